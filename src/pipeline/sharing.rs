//! [`Sharing`]: engines that share devices take turns on them.
//!
//! A batch needs a turn on its device before it is written, and has it until the device is done
//! with the batch. The engine that has used the least of the device's time, divided by its weight,
//! has the next turn. An engine that had nothing to run, or no slot to run it in, starts where the
//! others are, so that it cannot save time up. This is start-time fair queueing (Goyal, Vin and
//! Cheng, IEEE/ACM Transactions on Networking 5, 1997) for lengths that are known only afterwards: a
//! turn counts with the engine's usual length until its end.

use super::compute::WakeDevice;
use super::sync::Mutex;
use crate::backend::contract::BackendId;
use crate::error::{Error, Result};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Instant;

/// Devices that several engines share fairly: each engine that has batches to run gets a part of a
/// device's time in proportion to its weight ([`EngineConfig::share`](super::EngineConfig::share)).
/// Each engine keeps its own workload, slots, buckets and statistics.
///
/// The time of a device that an engine used is in
/// [`Counters::device_ns`](super::Counters::device_ns). A single batch is never interrupted, so an
/// engine with short batches waits for the long ones of others; smaller batches of those shorten
/// the wait.
///
/// A turn begins when a batch gets its slot, and ends when the engine has seen the batch done. So
/// the code of a workload that is called between, such as `write` and `read`, holds up other
/// engines for as long as it takes, and it must not wait for an engine that shares the same
/// devices. Items that have outgrown their batch run again without a turn.
///
/// The engines must be built with the same backends: two backends that were opened on one GPU count
/// as two devices. A backend that an engine is given twice has two parts. A supervised backend
/// serves one engine only, so it cannot be shared.
///
/// ```
/// use std::sync::Arc;
/// use tapeloop::backend::{Backend, cpu::CpuBackend};
/// use tapeloop::pipeline::{EngineConfig, Sharing};
///
/// let backend: Arc<dyn Backend> = Arc::new(CpuBackend::inline());
/// let sharing = Sharing::new(3);
/// let mut bulk = EngineConfig::new([1 << 20]);
/// let mut interactive = EngineConfig::new([1 << 12]);
/// bulk.share = Some(sharing.share(1));
/// // Three quarters of the time while both have batches to run.
/// interactive.share = Some(sharing.share(3));
/// // Then `Engine::new(workload, &[backend.clone()], pool, &bulk)`, and the same for the other.
/// # let _ = backend;
/// ```
#[derive(Clone)]
pub struct Sharing(Arc<Devices>);

impl fmt::Debug for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sharing = f.debug_struct("Sharing");
        sharing.field("batches_max", &self.0.batches_max).finish()
    }
}

/// An engine's part of devices that it shares with others, of [`Sharing::share`].
#[derive(Clone, Debug)]
pub struct Share {
    of: Sharing,
    weight: u32,
}

impl Sharing {
    /// Devices that run batches of several engines. On each device at most `batches_max` batches
    /// are at a time, of all engines together. With 3, one can be written or uploaded while another
    /// is computed and a third one is downloaded; fewer shorten the wait of an engine whose turn it
    /// is. Batches in slots that an engine keeps for urgent ones
    /// ([`EngineConfig::urgent_slots`](super::EngineConfig::urgent_slots)) do not wait for a turn,
    /// but count.
    pub fn new(batches_max: usize) -> Self {
        Sharing(Arc::new(Devices {
            batches_max,
            shared: Mutex::new(Vec::new()),
        }))
    }

    /// The part of one engine. While several engines have batches to run, each has time in
    /// proportion to its weight.
    pub fn share(&self, weight: u32) -> Share {
        let of = self.clone();
        Share { of, weight }
    }
}

impl Share {
    pub(super) fn check(&self) -> Result<()> {
        let (weight, batches_max) = (self.weight, self.of.0.batches_max);
        if weight == 0 || batches_max == 0 {
            let message = format!(
                "share: weight = {weight} with batches_max = {batches_max}: no batch could run"
            );
            return Err(Error::config(message).fix("set both to at least 1"));
        }
        Ok(())
    }
}

struct Devices {
    batches_max: usize,
    shared: Mutex<Vec<SharedDevice>>,
}

struct SharedDevice {
    id: BackendId,
    /// Turns that have not ended.
    turns: usize,
    /// When a batch was last seen done.
    last_end: Option<Instant>,
    /// The weighted time of the engine that had the latest turn, when it began.
    clock: Weighted,
    engines: Vec<EngineState>,
}

/// An engine on one device.
struct EngineState {
    member: MemberId,
    /// The number of the device in the engine.
    device: usize,
    threads: Weak<dyn WakeDevice>,
    weight: u32,
    /// The time of its turns, divided by its weight.
    time: Weighted,
    turns: usize,
    /// Whether it was refused a turn, and has batches to run.
    waits: bool,
    /// Whether it has no turns, and did not ask for one when it last looked for a batch to start.
    is_idle: bool,
    /// How long its turns take: a moving average.
    usual_ns: u64,
}

/// Identifies an engine among those that share devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MemberId(u64);

/// An engine among those that share devices, until it is dropped.
struct Member {
    of: Sharing,
    id: MemberId,
    /// By the engine's devices: their places among the shared ones.
    places: Vec<usize>,
}

impl Member {
    fn new(share: &Share, backends: &[BackendId], threads: &Weak<dyn WakeDevice>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = MemberId(NEXT.fetch_add(1, Relaxed));
        let mut shared = share.of.0.shared.lock();
        let join = |(device, backend): (usize, &BackendId)| {
            let known = shared.iter().position(|it| it.id == *backend);
            let place = known.unwrap_or_else(|| {
                let device = SharedDevice {
                    id: *backend,
                    turns: 0,
                    last_end: None,
                    clock: Weighted(0),
                    engines: Vec::new(),
                };
                // The place of a device that no engine uses any more.
                match shared.iter().position(|it| it.engines.is_empty()) {
                    Some(place) => {
                        shared[place] = device;
                        place
                    }
                    None => {
                        shared.push(device);
                        shared.len() - 1
                    }
                }
            });
            shared[place].engines.push(EngineState {
                member: id,
                device,
                threads: Weak::clone(threads),
                weight: share.weight,
                time: Weighted(0),
                turns: 0,
                waits: false,
                is_idle: true,
                usual_ns: 0,
            });
            place
        };
        let places = backends.iter().enumerate().map(join).collect();
        drop(shared);
        Member {
            of: share.of.clone(),
            id,
            places,
        }
    }

    /// Calls `work` with a device and this engine's position on it, then wakes the engine whose
    /// turn it is.
    fn on_device<T>(
        &self,
        device: usize,
        work: impl FnOnce(&mut SharedDevice, usize, usize) -> T,
    ) -> T {
        let Devices {
            batches_max,
            shared,
        } = &*self.of.0;
        let mut shared = shared.lock();
        let on = &mut shared[self.places[device]];
        let is_own = |it: &EngineState| (it.member, it.device) == (self.id, device);
        let own = on.engines.iter().position(is_own);
        let done = work(on, own.expect("it joined"), *batches_max);
        on.wake_next(*batches_max);
        done
    }

    /// Begins a turn on a device. If it `waits` for its turn, `None` if others come first.
    fn begin(self: &Arc<Self>, device: usize, waits: bool) -> Option<Turn> {
        let assumed_ns = self.on_device(device, |on, own, batches_max| {
            on.begin(own, waits.then_some(batches_max))
        })?;
        Some(Turn {
            member: Arc::clone(self),
            device,
            assumed_ns,
            is_over: false,
        })
    }

    /// Notes that the engine does not wait for a turn. Returns whether it is idle now.
    fn withdraw(&self, device: usize) -> bool {
        self.on_device(device, |on, own, _| {
            let engine = &mut on.engines[own];
            engine.waits = false;
            engine.is_idle = engine.turns == 0;
            engine.is_idle
        })
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut shared = self.of.0.shared.lock();
        for &place in &self.places {
            let on = &mut shared[place];
            on.engines.retain(|it| it.member != self.id);
            on.wake_next(self.of.0.batches_max);
        }
    }
}

impl SharedDevice {
    /// Begins a turn. If it waits for its turn, not while `batches_max` batches have turns or come
    /// first. Returns the time that the turn counts until it ends.
    fn begin(&mut self, own: usize, batches_max: Option<usize>) -> Option<u64> {
        let clock = self.clock;
        let engine = &mut self.engines[own];
        if std::mem::take(&mut engine.is_idle) {
            engine.time = engine.time.max(clock);
        }
        let place = engine.place();
        let others = self.engines.iter().enumerate();
        let ahead = others.filter(|(other, it)| *other != own && it.waits && it.place() < place);
        let may_begin = batches_max.is_none_or(|max| self.turns + ahead.count() < max);
        let engine = &mut self.engines[own];
        engine.waits = !may_begin;
        if !may_begin {
            return None;
        }
        if batches_max.is_some() {
            // A turn that did not wait is not where the others are.
            self.clock = clock.max(engine.time);
        }
        self.turns += 1;
        engine.turns += 1;
        engine.time.0 += Weighted::of(engine.usual_ns, engine.weight).0;
        Some(engine.usual_ns)
    }

    /// Ends a turn that counted `assumed_ns`. `ran` is when its batch was submitted, and when it
    /// was seen done; `None` if it did not run. Returns the time that it took of the device.
    fn end(&mut self, own: usize, assumed_ns: u64, ran: Option<(Instant, Instant)>) -> u64 {
        let used_ns = ran.map(|(submitted_at, now)| {
            // Before that the device was busy with other batches.
            let since = self
                .last_end
                .max(Some(submitted_at))
                .unwrap_or(submitted_at);
            self.last_end = self.last_end.max(Some(now));
            now.saturating_duration_since(since).as_nanos() as u64
        });
        self.turns -= 1;
        let engine = &mut self.engines[own];
        engine.turns -= 1;
        engine.time.0 -= Weighted::of(assumed_ns, engine.weight).0;
        let Some(used_ns) = used_ns else { return 0 };
        engine.time.0 += Weighted::of(used_ns, engine.weight).0;
        engine.usual_ns = match engine.usual_ns {
            0 => used_ns,
            usual => usual - usual / 4 + used_ns / 4,
        };
        used_ns
    }

    /// Wakes the engine whose turn it is, if one waits and another batch may run.
    fn wake_next(&self, batches_max: usize) {
        if self.turns < batches_max {
            let waiting = self.engines.iter().filter(|it| it.waits);
            if let Some(next) = waiting.min_by_key(|it| it.place())
                && let Some(threads) = next.threads.upgrade()
            {
                threads.wake(next.device);
            }
        }
    }
}

impl EngineState {
    /// What orders the engines that wait.
    fn place(&self) -> (Weighted, MemberId) {
        (self.time, self.member)
    }
}

/// A time divided by a weight, in nanoseconds times 2^32: so a nanosecond counts for any weight.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Weighted(u128);

impl Weighted {
    fn of(ns: u64, weight: u32) -> Self {
        Weighted((u128::from(ns) << 32) / u128::from(weight))
    }
}

/// A batch's turn on a device. Dropping it ends it as one whose batch did not run.
pub(crate) struct Turn {
    member: Arc<Member>,
    device: usize,
    /// What the turn counts until it ends.
    assumed_ns: u64,
    is_over: bool,
}

impl Turn {
    /// Ends the turn of a batch that was submitted at `submitted_at` and seen done `now`. Returns the
    /// time that it took of the device, in nanoseconds.
    pub(super) fn end(mut self, submitted_at: Instant, now: Instant) -> u64 {
        self.is_over = true;
        self.end_as(Some((submitted_at, now)))
    }

    fn end_as(&self, ran: Option<(Instant, Instant)>) -> u64 {
        let end = |on: &mut SharedDevice, own, _| on.end(own, self.assumed_ns, ran);
        self.member.on_device(self.device, end)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.is_over {
            self.end_as(None);
        }
    }
}

/// An engine's end: its queue asks for turns each time it looks for a batch that can start.
pub(super) struct Turns {
    member: Arc<Member>,
    /// By device: whether a turn was refused in this look.
    refused: Vec<bool>,
    /// By device: whether the engine has asked for turns since it was idle.
    is_active: Vec<bool>,
}

impl Turns {
    /// Makes an engine with devices of these backends one of those that share them. `threads` are those
    /// of its devices.
    pub(super) fn new(
        share: &Share,
        backends: &[BackendId],
        threads: &Weak<dyn WakeDevice>,
    ) -> Self {
        Turns {
            member: Arc::new(Member::new(share, backends, threads)),
            refused: vec![false; backends.len()],
            is_active: vec![false; backends.len()],
        }
    }

    /// Asks for a turn. If it is refused, the device's thread is woken once it is this engine's turn.
    pub(super) fn ask(&mut self, device: usize) -> Option<Turn> {
        let turn = self.member.begin(device, true);
        self.refused[device] = turn.is_none();
        self.is_active[device] = true;
        turn
    }

    /// A turn that waits for no others.
    pub(super) fn take(&mut self, device: usize) -> Turn {
        let turn = self.member.begin(device, false);
        self.is_active[device] = true;
        turn.expect("it is not refused")
    }

    /// Whether this look has asked for a turn on the device in vain.
    pub(super) fn was_refused(&self, device: usize) -> bool {
        self.refused[device]
    }

    /// Ends a look. The engine no longer waits for turns that it did not ask for again, and is idle on
    /// devices on which it has none.
    pub(super) fn end_look(&mut self) {
        for device in 0..self.refused.len() {
            let was_refused = std::mem::take(&mut self.refused[device]);
            if !was_refused && self.is_active[device] {
                self.is_active[device] = !self.member.withdraw(device);
            }
        }
    }
}

#[cfg(test)]
mod tests;
