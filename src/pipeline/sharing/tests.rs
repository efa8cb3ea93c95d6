use super::*;
use parking_lot::Mutex as RealMutex;
use std::time::Duration;

/// Notes which device was woken.
#[derive(Default)]
struct Bell(RealMutex<Vec<usize>>);

impl WakeDevice for Bell {
    fn wake(&self, device: usize) {
        self.0.lock().push(device);
    }
}

struct Engine {
    turns: Turns,
    bell: Arc<Bell>,
    used_ns: u64,
}

impl Engine {
    fn new(share: &Share, backends: &[BackendId]) -> Engine {
        let bell = Arc::new(Bell::default());
        let weak: Weak<Bell> = Arc::downgrade(&bell);
        Engine {
            turns: Turns::new(share, backends, &(weak as Weak<dyn WakeDevice>)),
            bell,
            used_ns: 0,
        }
    }

    /// Looks for a batch that can start on device 0, which always waits.
    fn ask(&mut self) -> Option<Turn> {
        let turn = self.turns.ask(0);
        self.turns.end_look();
        turn
    }

    /// Looks without a batch that could start.
    fn look_in_vain(&mut self) {
        self.turns.end_look();
    }

    fn was_woken(&self) -> bool {
        !std::mem::take(&mut *self.bell.0.lock()).is_empty()
    }
}

/// Engines of equal weight on one device, of which one at a time has a turn.
fn engines<const N: usize>() -> [Engine; N] {
    let sharing = Sharing::new(1);
    let backend = [BackendId::new()];
    [(); N].map(|()| Engine::new(&sharing.share(1), &backend))
}

const MS: Duration = Duration::from_millis(1);

/// A device that runs batches one after the other, and engines that always have batches of these
/// lengths and as many slots as there are turns. Returns the time of each, in ms, and the longest
/// time between two batches of the same engine.
fn run(
    weights: &[u32],
    lengths: &[u32],
    batches_max: usize,
    batches: usize,
) -> (Vec<u64>, Vec<u64>) {
    let sharing = Sharing::new(batches_max);
    let backend = [BackendId::new()];
    let mut engines: Vec<Engine> = weights
        .iter()
        .map(|weight| Engine::new(&sharing.share(*weight), &backend))
        .collect();
    let start = Instant::now();
    let mut now = start;
    let mut running = std::collections::VecDeque::new();
    let mut last_end = vec![start; weights.len()];
    let mut longest = vec![0; weights.len()];
    let mut looks: Vec<usize> = (0..engines.len()).collect();
    for _ in 0..batches {
        // Those who were woken, and the one whose slot became free, start what they can.
        let woken = (0..engines.len()).filter(|&index| engines[index].was_woken());
        looks.extend(woken.collect::<Vec<_>>());
        for index in looks.drain(..).rev() {
            while let Some(turn) = engines[index].ask() {
                running.push_back((index, turn, now));
            }
        }
        let (index, turn, submitted_at) = running.pop_front().expect("one has a turn");
        now += MS * lengths[index];
        engines[index].used_ns += turn.end(submitted_at, now);
        looks.push(index);
        longest[index] = longest[index].max((now - last_end[index]).as_millis() as u64);
        last_end[index] = now;
    }
    let used = engines.iter().map(|it| it.used_ns / 1_000_000).collect();
    (used, longest)
}

#[test]
fn engines_have_time_in_proportion_to_their_weights_whatever_their_batches_take() {
    for batches_max in [1, 2, 3] {
        // Batches that take ten times as long.
        let (used, longest) = run(&[1, 1], &[10, 1], batches_max, 1100);
        let difference = used[0].abs_diff(used[1]);
        assert!(difference <= 40, "{batches_max} at a time: {used:?}");
        assert!(longest[1] <= 40, "short ones wait for {longest:?}");
        // Weights that are larger than a batch's nanoseconds.
        let (used, _) = run(&[u32::MAX, u32::MAX], &[10, 1], batches_max, 1100);
        assert!(used[0].abs_diff(used[1]) <= 40, "{used:?}");
        let (used, _) = run(&[1, 3, 2], &[5, 2, 1], batches_max, 3000);
        let shares = [used[0], used[1] / 3, used[2] / 2];
        let (least, most) = (shares.iter().min(), shares.iter().max());
        assert!(most.unwrap() - least.unwrap() <= 30, "{used:?}");
    }
}

/// A batch of a millisecond, if it is the engine's turn.
fn run_one(engine: &mut Engine, now: &mut Instant) -> bool {
    let Some(turn) = engine.ask() else {
        return false;
    };
    let submitted_at = *now;
    *now += MS;
    engine.used_ns += turn.end(submitted_at, *now);
    true
}

/// Asserts that two engines which both have batches to run take turns.
fn assert_fair(engines: [&mut Engine; 2], now: &mut Instant) {
    let [first, second] = engines;
    let before = [first.used_ns, second.used_ns];
    // Each is refused once, so that both wait.
    let turn = first.ask().or_else(|| second.ask()).unwrap();
    assert!(first.ask().is_none() && second.ask().is_none());
    drop(turn);
    for _ in 0..20 {
        for engine in [&mut *first, &mut *second] {
            run_one(engine, now);
        }
    }
    let used = [first.used_ns - before[0], second.used_ns - before[1]];
    assert!(used[0].abs_diff(used[1]) <= 3_000_000, "{used:?}");
}

#[test]
fn an_engine_that_ran_nothing_starts_where_the_others_are() {
    let [mut busy, mut late, mut held] = engines();
    let mut now = Instant::now();
    assert!(run_one(&mut held, &mut now));
    // Its batches wait for something else, so it does not ask for a turn.
    held.look_in_vain();
    for _ in 0..100 {
        assert!(run_one(&mut busy, &mut now));
    }
    // Neither has saved a hundred turns.
    assert_fair([&mut busy, &mut held], &mut now);
    held.look_in_vain();
    assert_fair([&mut busy, &mut late], &mut now);
}

#[test]
fn turns_that_did_not_wait_do_not_hold_up_an_engine_that_joins() {
    let [mut busy, mut urgent, mut late] = engines();
    let mut now = Instant::now();
    assert!(run_one(&mut busy, &mut now));
    for _ in 0..100 {
        let turn = urgent.turns.take(0);
        let submitted_at = now;
        now += MS;
        turn.end(submitted_at, now);
    }
    assert_fair([&mut busy, &mut late], &mut now);
}

#[test]
fn a_turn_that_is_not_taken_passes_on() {
    let [mut first, mut second, mut third] = engines();
    let turn = first.ask().unwrap();
    assert!(second.ask().is_none() && third.ask().is_none());
    assert!(!second.was_woken() && !third.was_woken());
    drop(turn);
    assert!(second.was_woken() && !third.was_woken());
    assert!(third.ask().is_none(), "the second engine comes first");
    assert!(second.was_woken(), "and is reminded");
    // Its batch was cancelled meanwhile.
    second.look_in_vain();
    assert!(third.was_woken());
    let turn = third.ask().unwrap();
    assert!(second.ask().is_none());
    drop(turn);
    assert!(second.was_woken());
}

#[test]
fn engines_that_are_dropped_let_others_go_on() {
    let [mut first, mut second, mut third] = engines();
    let turn = first.ask().unwrap();
    assert!(second.ask().is_none() && third.ask().is_none());
    // A batch of an engine that ended keeps its turn until it is dropped.
    drop(first);
    assert!(second.ask().is_none());
    drop(turn);
    assert!(second.was_woken());
    drop(second);
    assert!(third.was_woken());
    assert!(third.ask().is_some());
}

#[test]
fn devices_are_shared_one_by_one() {
    let sharing = Sharing::new(1);
    let [a, b] = [BackendId::new(), BackendId::new()];
    let mut both = Engine::new(&sharing.share(1), &[a, b]);
    let mut one = Engine::new(&sharing.share(1), &[b]);
    let on_a = both.turns.ask(0).unwrap();
    let on_b = both.turns.ask(1).unwrap();
    assert!(one.ask().is_none());
    drop(on_a);
    assert!(!one.was_woken());
    drop(on_b);
    assert!(one.was_woken());
    let on_b = one.ask().unwrap();
    // It waits on the second device, and no more once it looks for another one.
    assert!(both.turns.ask(1).is_none());
    both.turns.end_look();
    assert!(both.ask().is_some());
    drop(on_b);
    assert!(!both.was_woken());
}

#[test]
fn urgent_turns_wait_for_none_and_count() {
    let [mut bulk, mut urgent] = engines();
    let turn = bulk.ask().unwrap();
    let taken = urgent.turns.take(0);
    drop(turn);
    assert!(bulk.ask().is_none());
    drop(taken);
    assert!(bulk.was_woken());
}

#[test]
fn a_share_of_nothing_is_refused() {
    for (weight, batches_max) in [(0, 1), (1, 0)] {
        let error = Sharing::new(batches_max).share(weight).check().unwrap_err();
        let words = error.to_string();
        assert!(words.contains("at least 1"), "{words}");
    }
    assert!(Sharing::new(1).share(1).check().is_ok());
}

#[test]
fn a_device_that_no_engine_uses_any_more_leaves_its_place_to_another() {
    let sharing = Sharing::new(1);
    let stays = BackendId::new();
    let mut first = Engine::new(&sharing.share(1), &[stays]);
    for _ in 0..10 {
        let two = [BackendId::new(), BackendId::new()];
        let mut engine = Engine::new(&sharing.share(1), &two);
        assert!(engine.ask().is_some() && first.ask().is_some());
    }
    assert_eq!(sharing.0.shared.lock().len(), 3);
}
