//! Vector clocks, and the history of accesses to memory.

use super::violation::Actor;
use std::ops::Range;

/// The `place`-th piece of work of a stream, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Epoch {
    pub(super) stream: usize,
    pub(super) place: u64,
}

/// For each stream, the last piece of work that is ordered before the owner of the clock.
#[derive(Clone, Debug, Default)]
pub(super) struct VectorClock(Vec<u64>);

impl VectorClock {
    pub(super) fn covers(&self, epoch: Epoch) -> bool {
        self.0.get(epoch.stream).copied().unwrap_or(0) >= epoch.place
    }

    pub(super) fn reach(&mut self, epoch: Epoch) {
        if self.0.len() <= epoch.stream {
            self.0.resize(epoch.stream + 1, 0);
        }
        let place = &mut self.0[epoch.stream];
        *place = epoch.place.max(*place);
    }

    /// Extends the clock by what another one covers.
    pub(super) fn join(&mut self, other: &VectorClock) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (place, more) in self.0.iter_mut().zip(&other.0) {
            *place = (*more).max(*place);
        }
    }

    /// Keeps what both cover.
    pub(super) fn meet(&mut self, other: &VectorClock) {
        self.0.truncate(other.0.len());
        for (place, other) in self.0.iter_mut().zip(&other.0) {
            *place = (*other).min(*place);
        }
    }
}

/// An access by the device or the host.
#[derive(Clone, Debug)]
pub(super) struct PastAccess {
    pub(super) epoch: Epoch,
    pub(super) actor: Actor,
    pub(super) range: Range<usize>,
    pub(super) writes: bool,
}

/// The accesses to a piece of memory that some later work may not be ordered after.
#[derive(Default)]
pub(super) struct History(Vec<Segment>);

#[derive(Clone)]
struct Segment {
    range: Range<usize>,
    write: Option<PastAccess>,
    /// The last read of each stream since the write.
    reads: Vec<PastAccess>,
}

impl Segment {
    fn cut(&self, start: usize, end: usize) -> Option<Segment> {
        let range = self.range.start.max(start)..self.range.end.min(end);
        (!range.is_empty()).then(|| Segment {
            range,
            ..self.clone()
        })
    }

    /// Removes the accesses that `settled` is ordered after. Returns whether none is left.
    fn forget(&mut self, settled: &VectorClock) -> bool {
        self.write.take_if(|access| settled.covers(access.epoch));
        self.reads.retain(|access| !settled.covers(access.epoch));
        self.write.is_none() && self.reads.is_empty()
    }

    /// Adds a read, in place of the earlier one of its stream: what comes after the later comes
    /// after both.
    fn read(&mut self, access: &PastAccess) {
        self.reads
            .retain(|old| old.epoch.stream != access.epoch.stream);
        self.reads.push(access.clone());
    }
}

impl History {
    /// An earlier access that conflicts with an access to `range` and is not ordered before
    /// `clock`.
    pub(super) fn conflict(
        &self,
        range: &Range<usize>,
        writes: bool,
        clock: &VectorClock,
    ) -> Option<&PastAccess> {
        let segments = self.0.iter();
        let overlapping = segments
            .filter(|segment| segment.range.start < range.end && range.start < segment.range.end);
        let clashes = overlapping.flat_map(|segment| {
            let reads = segment.reads.iter().filter(move |_| writes);
            segment.write.iter().chain(reads)
        });
        clashes
            .into_iter()
            .find(|access| !clock.covers(access.epoch))
    }

    /// Adds an access of at least one byte, and drops those that all later work is ordered after.
    /// [`History::conflict`] was asked first: what a write replaces is ordered before it, or reported.
    pub(super) fn record(&mut self, access: &PastAccess, settled: &VectorClock) {
        let Range { start, end } = access.range;
        let fresh = |range: Range<usize>| Segment {
            range,
            write: None,
            reads: Vec::new(),
        };
        let mut inside = Vec::new();
        // An access inside of a segment cuts it in three.
        let mut kept = Vec::with_capacity(self.0.len() + 2);
        for mut segment in self.0.drain(..) {
            if segment.forget(settled) {
                continue;
            }
            kept.extend(segment.cut(0, start));
            kept.extend(segment.cut(end, usize::MAX));
            inside.extend(segment.cut(start, end));
        }
        if access.writes {
            let mut written = fresh(start..end);
            written.write = Some(access.clone());
            kept.push(written);
        } else {
            let mut next = start;
            for mut segment in inside {
                if next < segment.range.start {
                    kept.push(fresh(next..segment.range.start));
                    kept.last_mut().expect("just pushed").read(access);
                }
                next = segment.range.end;
                segment.read(access);
                kept.push(segment);
            }
            if next < end {
                let mut rest = fresh(next..end);
                rest.read(access);
                kept.push(rest);
            }
        }
        kept.sort_unstable_by_key(|segment| segment.range.start);
        self.0 = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(stream: usize, place: u64, range: Range<usize>, writes: bool) -> PastAccess {
        PastAccess {
            epoch: Epoch { stream, place },
            actor: Actor::HOST,
            range,
            writes,
        }
    }

    #[test]
    fn what_clashes_is_a_write_against_anything_unseen_in_a_common_byte() {
        let (mut history, nothing) = (History::default(), VectorClock::default());
        history.record(&access(0, 1, 0..8, true), &nothing);
        history.record(&access(1, 1, 4..12, false), &nothing);
        let clash = |history: &History, range, writes, clock: &VectorClock| {
            let access = history.conflict(&range, writes, clock);
            access.map(|access| (access.epoch.stream, access.writes))
        };
        assert_eq!(clash(&history, 0..4, false, &nothing), Some((0, true)));
        assert_eq!(clash(&history, 8..12, false, &nothing), None);
        assert_eq!(clash(&history, 8..12, true, &nothing), Some((1, false)));
        assert_eq!(clash(&history, 12..20, true, &nothing), None);
        let mut clock = VectorClock::default();
        clock.reach(Epoch {
            stream: 0,
            place: 1,
        });
        assert_eq!(clash(&history, 4..5, false, &clock), None);
        assert_eq!(clash(&history, 4..5, true, &clock), Some((1, false)));
        // A write replaces all earlier accesses in its range.
        history.record(&access(1, 2, 0..12, true), &clock);
        assert_eq!(history.0.len(), 1);
        assert_eq!(clash(&history, 0..1, false, &clock), Some((1, true)));
        let mut both = VectorClock::default();
        both.join(&clock);
        both.reach(Epoch {
            stream: 1,
            place: 2,
        });
        assert_eq!(clash(&history, 0..12, true, &both), None);
        history.record(&access(0, 2, 20..21, false), &both);
        assert_eq!(history.0.len(), 1, "what the host has seen is forgotten");
    }

    #[test]
    fn two_clocks_meet_in_what_both_cover() {
        let epoch = |stream, place| Epoch { stream, place };
        let (mut clock, mut other) = (VectorClock::default(), VectorClock::default());
        clock.reach(epoch(0, 5));
        clock.reach(epoch(2, 1));
        other.reach(epoch(0, 3));
        other.reach(epoch(1, 4));
        clock.meet(&other);
        assert!(clock.covers(epoch(0, 3)) && !clock.covers(epoch(0, 4)));
        assert!(!clock.covers(epoch(1, 1)) && !clock.covers(epoch(2, 1)));
    }
}
