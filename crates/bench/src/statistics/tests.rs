use super::*;

/// A small random generator, which makes the same numbers on each machine.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A nearly normal number: the sum of twelve uniform numbers.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    fn runs(&mut self, count: usize, median: f64, noise: f64) -> Vec<f64> {
        // One of twelve values is an outlier, as if other work ran on the machine.
        let one = |_| {
            let outlier = if self.unit() < 1.0 / 12.0 { 5.0 } else { 0.0 };
            median * (1.0 + noise * (self.normal() + outlier)).max(0.01)
        };
        (0..count).map(one).collect()
    }
}

fn share_significant(repetitions: usize, shift: f64, noise: f64) -> f64 {
    let mut random = Random(repetitions as u64);
    let tries = 1000;
    let finding = (0..tries).filter(|_| {
        let old = random.runs(repetitions, 1e4, noise);
        let new = random.runs(repetitions, 1e4 * shift, noise);
        let finding = PeriodChange::between(&old, &new).unwrap().finding;
        matches!(finding, ChangeFinding::Less | ChangeFinding::More)
    });
    finding.count() as f64 / f64::from(tries)
}

#[test]
fn chances_are_those_of_the_tables() {
    // The 20 ways to divide six values into 3 and 3, counted by the number of inverted pairs.
    let ways: Vec<f64> = chances(3, 3).iter().map(|c| (c * 20.0).round()).collect();
    assert_eq!(ways, [1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0, 2.0, 1.0, 1.0]);
    assert!((chances(7, 4).iter().sum::<f64>() - 1.0).abs() < 1e-12);
    // Critical values of U for 1%, two-sided: 16 for 10 and 10, 0 for 5 and 5.
    assert_eq!(tail(10, 10), Some(16));
    assert_eq!(tail(5, 5), Some(0));
    assert_eq!(tail(4, 4), None);
    // The approximation takes over without a jump.
    let (exact, next) = (tail(20, 20).unwrap(), tail(21, 20).unwrap());
    assert!(next >= exact && next - exact < 20, "{exact} {next}");
}

#[test]
fn equal_runs_are_seldom_significantly_different() {
    for repetitions in [3, 4, 5, 7, 8, 10, 21] {
        for noise in [0.005, 0.02, 0.05, 0.2] {
            let share = share_significant(repetitions, 1.0, noise);
            assert!(share < 0.02, "{repetitions} of {noise}: {share}");
        }
    }
}

#[test]
fn a_shift_beyond_the_noise_is_significant_and_one_within_is_not() {
    assert!(share_significant(10, 1.05, 0.01) > 0.95);
    assert!(share_significant(5, 1.05, 0.005) > 0.5);
    assert!(share_significant(10, 0.95, 0.01) > 0.95);
    assert!(share_significant(10, 1.05, 0.2) < 0.05);
    assert!(share_significant(21, 1.01, 0.001) < 0.02);
}

#[test]
fn the_findings_same_and_unclear_are_distinguished() {
    let finding = |old: &[f64], new: &[f64]| PeriodChange::between(old, new).unwrap().finding;
    let quiet = [100.0, 101.0, 99.0, 100.5, 99.5];
    assert_eq!(finding(&quiet, &quiet), ChangeFinding::Same);
    assert_eq!(finding(&quiet[..2], &quiet), ChangeFinding::Unclear);
    let loud = [100.0, 140.0, 70.0, 120.0, 85.0];
    assert_eq!(finding(&loud, &loud), ChangeFinding::Unclear);
    assert_eq!(
        finding(&quiet, &quiet.map(|ns| ns * 1.2)),
        ChangeFinding::More
    );
    assert_eq!(
        finding(&quiet, &quiet.map(|ns| ns / 1.2)),
        ChangeFinding::Less
    );
}

#[test]
fn ties_count_for_no_difference() {
    assert_eq!(
        PeriodChange::between(&[5.0; 10], &[5.0; 10]).map(|c| c.finding),
        Some(ChangeFinding::Same)
    );
}

#[test]
fn values_that_are_not_finite_and_positive_are_left_out() {
    let wrong = [f64::NAN, f64::INFINITY, 0.0, -1.0];
    assert_eq!(PeriodChange::between(&wrong, &[1.0; 5]), None);
    assert_eq!(Spread::from_values(&wrong), None);
    assert_eq!(median(&[f64::NAN, 2.0]), Some(2.0));
    assert_eq!(median(&[3.0, 1.0, 2.0, 10.0]), Some(2.5));
}

#[test]
fn the_lowest_rate_is_that_of_the_longest_period() {
    let spread = Spread::from_values(&[10.0, 20.0, 40.0]).unwrap();
    let rate = spread.rate(2.0);
    assert_eq!((rate.low, rate.median, rate.high), (5e7, 1e8, 2e8));
}
