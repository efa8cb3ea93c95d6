//! Keeps the allocations of one kind of memory: the free ones, and the owners of the others.
//!
//! Without a lock and without a clock: the caller has the lock and passes the time.

use super::leaks::{LeakLine, LeakReport};
use super::{Limits, SpaceStats};
use crate::backend::{Allocation, Space};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

pub(super) struct Store {
    space: Space,
    limits: Limits,
    tracking: bool,
    /// By size, the least recently freed first.
    cached: BTreeMap<usize, VecDeque<FreeAllocation>>,
    /// No free allocation was freed before this time.
    oldest: Instant,
    /// Allocations of dropped buffers that views, graphs or work in flight still hold.
    parked: Vec<Allocation>,
    /// The buffers that are alive, if tracked.
    live: BTreeMap<u64, LiveAllocation>,
    /// The last number that a buffer or a free allocation got. Smaller numbers are older.
    number: u64,
    /// Whether the pool is closed: no allocation is kept for reuse.
    is_closed: bool,
    counts: SpaceStats,
}

struct FreeAllocation {
    allocation: Allocation,
    number: u64,
    since: Instant,
}

struct LiveAllocation {
    owner: Cow<'static, str>,
    bytes: u64,
    since: Instant,
}

/// What a buffer passes to [`Store::take_back`].
#[derive(Clone, Copy)]
pub(super) struct Loan {
    number: u64,
    requested_bytes: u64,
}

impl Store {
    pub(super) fn new(space: Space, limits: Limits, tracking: bool, now: Instant) -> Self {
        Store {
            space,
            limits,
            tracking,
            cached: BTreeMap::new(),
            oldest: now,
            parked: Vec::new(),
            live: BTreeMap::new(),
            number: 0,
            is_closed: false,
            counts: SpaceStats::default(),
        }
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(super) fn stats(&self) -> SpaceStats {
        let largest = self.cached.last_key_value().map_or(0, |(&size, _)| size);
        SpaceStats {
            largest_free_bytes: largest as u64,
            ..self.counts
        }
    }

    /// The most recently freed allocation of this size, which is the likeliest to be in a cache.
    pub(super) fn take(&mut self, bytes: usize) -> Option<Allocation> {
        let class = self.cached.get_mut(&bytes)?;
        let free = class.pop_back().expect("empty classes are removed");
        if class.is_empty() {
            self.cached.remove(&bytes);
        }
        self.counts.cached_bytes -= bytes as u64;
        Some(free.allocation)
    }

    /// Frees free allocations until a new one of `bytes` bytes is within the limit. Returns false,
    /// and frees none, if that cannot be reached.
    pub(super) fn make_room(&mut self, bytes: usize) -> bool {
        let Some(max) = self.limits.bytes_max else {
            return true;
        };
        let busy = self.counts.in_use_bytes + self.counts.parked_bytes;
        let Some(cached_max) = max.checked_sub(busy.saturating_add(bytes as u64)) else {
            return false;
        };
        while self.counts.cached_bytes > cached_max {
            self.free_oldest();
        }
        true
    }

    /// Frees the allocation that has been free for the longest time.
    fn free_oldest(&mut self) {
        let first = |class: &VecDeque<FreeAllocation>| class.front().map(|free| free.number);
        let oldest = self.cached.iter().min_by_key(|(_, class)| first(class));
        let (&size, _) = oldest.expect("called while allocations are cached");
        let class = self.cached.get_mut(&size).expect("found above");
        class.pop_front();
        if class.is_empty() {
            self.cached.remove(&size);
        }
        self.count_trim(size);
    }

    /// Counts a free allocation of `size` bytes as freed.
    fn count_trim(&mut self, size: usize) {
        self.counts.cached_bytes -= size as u64;
        self.counts.trims += 1;
        self.counts.releases += 1;
    }

    /// Counts a buffer of `requested` bytes in an allocation of `bytes`.
    pub(super) fn lend(
        &mut self,
        requested: usize,
        bytes: usize,
        is_hit: bool,
        owner: Cow<'static, str>,
        now: Instant,
    ) -> Loan {
        let bytes = bytes as u64;
        let loan = Loan {
            number: self.next_number(),
            requested_bytes: requested as u64,
        };
        if self.tracking {
            let live = LiveAllocation {
                owner,
                bytes,
                since: now,
            };
            self.live.insert(loan.number, live);
        }
        let counts = &mut self.counts;
        counts.buffers += 1;
        counts.requested_bytes += loan.requested_bytes;
        counts.in_use_bytes += bytes;
        counts.in_use_bytes_peak = counts.in_use_bytes_peak.max(counts.in_use_bytes);
        counts.held_bytes_peak = counts.held_bytes_peak.max(counts.held_bytes());
        counts.total_bytes += bytes;
        counts.hits += u64::from(is_hit);
        counts.misses += u64::from(!is_hit);
        loan
    }

    /// Counts a buffer that could not be lent.
    pub(super) fn refuse(&mut self) {
        self.counts.refused += 1;
    }

    /// Parks the allocation of a dropped buffer. [`Store::take_back_idle`] makes it free when no
    /// view, graph or work in flight holds it. A closed pool frees it at once instead, or when its
    /// last other holder is gone.
    pub(super) fn take_back(&mut self, loan: Loan, allocation: Allocation) {
        let bytes = allocation.bytes() as u64;
        self.live.remove(&loan.number);
        self.counts.buffers -= 1;
        self.counts.requested_bytes -= loan.requested_bytes;
        self.counts.in_use_bytes -= bytes;
        if self.is_closed {
            self.counts.releases += 1;
        } else {
            self.counts.parked_bytes += bytes;
            self.parked.push(allocation);
        }
    }

    /// Makes parked allocations free that have no other holder, and frees those beyond the limit of
    /// their class.
    pub(super) fn take_back_idle(&mut self, now: Instant) {
        // An earlier call may have passed a later time.
        self.oldest = self.oldest.min(now);
        let idle: Vec<Allocation> = self.parked.extract_if(.., Allocation::is_idle).collect();
        for allocation in idle {
            let bytes = allocation.bytes();
            self.counts.parked_bytes -= bytes as u64;
            let kept = self.cached.get(&bytes).map_or(0, VecDeque::len);
            if kept >= self.limits.cached_max_per_class {
                self.counts.releases += 1;
                continue;
            }
            self.counts.cached_bytes += bytes as u64;
            let free = FreeAllocation {
                allocation,
                number: self.next_number(),
                since: now,
            };
            self.cached.entry(bytes).or_default().push_back(free);
        }
    }

    /// Frees the allocations that were free for the idle time. Returns their bytes.
    pub(super) fn trim(&mut self, now: Instant) -> u64 {
        let idle_trim = self.limits.idle_trim;
        let is_due = |since: Instant| now.saturating_duration_since(since) >= idle_trim;
        // Most calls end here.
        if !is_due(self.oldest) {
            return 0;
        }
        let given_back = self.free_where(|free| is_due(free.since));
        let fronts = self.cached.values().filter_map(VecDeque::front);
        self.oldest = fronts.map(|free| free.since).min().unwrap_or(now);
        given_back
    }

    /// Frees all free allocations. Returns their bytes.
    pub(super) fn clear(&mut self) -> u64 {
        self.free_where(|_| true)
    }

    /// Frees the free allocations of each size up to the first that stays. Returns their bytes. The
    /// free ones of a size are in the order in which they were freed, so a condition on the time
    /// frees all that it holds for.
    fn free_where(&mut self, goes: impl Fn(&FreeAllocation) -> bool) -> u64 {
        let before = self.counts.cached_bytes;
        let mut cached = std::mem::take(&mut self.cached);
        cached.retain(|&size, class| {
            while class.front().is_some_and(&goes) {
                class.pop_front();
                self.count_trim(size);
            }
            !class.is_empty()
        });
        self.cached = cached;
        before - self.counts.cached_bytes
    }

    /// Frees everything, and keeps nothing from now on. Parked allocations are freed when their
    /// last holder is gone.
    pub(super) fn close(&mut self) {
        self.clear();
        self.is_closed = true;
        self.counts.releases += self.parked.len() as u64;
        self.counts.parked_bytes = 0;
        self.parked.clear();
    }

    /// Adds the buffers that are alive to a report.
    pub(super) fn report(&self, report: &mut LeakReport, now: Instant) {
        if !self.tracking && self.counts.buffers > 0 {
            report.lines.push(LeakLine {
                owner: None,
                space: self.space,
                buffers: self.counts.buffers,
                bytes: self.counts.in_use_bytes,
                oldest: None,
            });
        }
        let mut by_owner: BTreeMap<&Cow<'static, str>, LeakLine> = BTreeMap::new();
        // In the order of numbers, so the first buffer of an owner is its oldest.
        for live in self.live.values() {
            let line = by_owner.entry(&live.owner).or_insert_with(|| LeakLine {
                owner: Some(live.owner.clone()),
                space: self.space,
                buffers: 0,
                bytes: 0,
                oldest: Some(now.saturating_duration_since(live.since)),
            });
            line.buffers += 1;
            line.bytes += live.bytes;
        }
        report.lines.extend(by_owner.into_values());
    }

    fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }
}
