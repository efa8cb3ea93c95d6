//! Whether two sets of repetitions differ significantly, and by how much.
//!
//! Benchmark times are not normally distributed, and their outliers are on one side, so ranks are
//! compared: with the test of Mann and Whitney ("On a test of whether one of two random variables
//! is stochastically larger than the other", 1947), and the interval that Hodges and Lehmann (1963)
//! derive from it. Repetitions within a run agree better than two runs do (Kalibera and Jones,
//! "Rigorous benchmarking in reasonable time", 2013), so a difference must also exceed a floor that
//! follows the spread within the runs.

/// The smallest difference that can be significant, as a share: runs without a change differ by up to 2%
/// (docs/PERFORMANCE.md, "Method").
pub(crate) const FLOOR: f64 = 0.02;

/// A difference of this share must be detectable for the finding [`ChangeFinding::Same`].
pub(crate) const DETECTABLE: f64 = 0.1;

/// Fewer repetitions give no finding: of two and two, chance separates one pair of runs in three.
const REPETITIONS_MIN: usize = 3;

/// The probability of each tail outside of the 99% interval.
const TAIL: f64 = 0.005;

/// Above this number of pairs the normal approximation is good enough, and the time of the exact distribution
/// grows with the square of the number.
const PAIRS_EXACT: usize = 400;

/// The smallest, the median and the largest value of some repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) low: f64,
    pub(crate) median: f64,
    pub(crate) high: f64,
}

/// The values that are finite and positive, sorted.
fn sorted_valid(values: &[f64]) -> Vec<f64> {
    let is_valid = |value: &f64| value.is_finite() && *value > 0.0;
    let mut values: Vec<f64> = values.iter().copied().filter(is_valid).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The median of sorted values; `None` if there are no values.
pub(crate) fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[half]),
        _ => Some((sorted[half - 1] + sorted[half]) / 2.0),
    }
}

/// The median of the values that are finite and positive; `None` if there are none.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    median_of_sorted(&sorted_valid(values))
}

impl Spread {
    /// The spread of the values that are finite and positive; `None` if there are none.
    pub(crate) fn from_values(values: &[f64]) -> Option<Self> {
        let sorted = sorted_valid(values);
        Some(Spread {
            low: *sorted.first()?,
            median: median_of_sorted(&sorted)?,
            high: *sorted.last()?,
        })
    }

    /// The rate, per second, if each period of these nanoseconds handles `amount`.
    pub(crate) fn rate(self, amount: f64) -> Self {
        let rate = |period_ns: f64| amount * 1e9 / period_ns;
        Spread {
            low: rate(self.high),
            median: rate(self.median),
            high: rate(self.low),
        }
    }
}

/// The standard deviation of the repetitions, divided by their median. Eight or more repetitions
/// use the median absolute deviation, which ignores outliers; of fewer one or two values would decide it.
fn noise(sorted: &[f64], median: f64) -> f64 {
    if sorted.len() < 8 {
        let squares = sorted.iter().map(|value| (value - median).powi(2));
        let degrees_of_freedom = sorted.len().saturating_sub(1).max(1) as f64;
        return (squares.sum::<f64>() / degrees_of_freedom).sqrt() / median;
    }
    let mut deviations: Vec<f64> = sorted.iter().map(|value| (value - median).abs()).collect();
    deviations.sort_by(f64::total_cmp);
    // The standard deviation of a normal distribution is 1.4826 times its median absolute deviation.
    1.4826 * median_of_sorted(&deviations).unwrap_or(0.0) / median
}

/// What can be concluded about a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeFinding {
    Less,
    More,
    /// No significant difference, though one of 10% would be significant.
    Same,
    /// Too noisy for a conclusion.
    Unclear,
}

/// The ratio of two sets of repetitions, with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PeriodChange {
    /// The ratio of the medians.
    pub(crate) ratio: f64,
    /// The low end of the ratio's interval.
    pub(crate) low: f64,
    /// The high end of the ratio's interval.
    pub(crate) high: f64,
    /// Whether the interval is one of 99%; otherwise it is the whole range.
    is_99: bool,
    /// The smallest difference that counts, as a share.
    pub(crate) floor: f64,
    pub(crate) finding: ChangeFinding,
}

impl PeriodChange {
    /// `new` divided by `old`; `None` if either has no valid value.
    pub(crate) fn between(old: &[f64], new: &[f64]) -> Option<Self> {
        let (old, new) = (sorted_valid(old), sorted_valid(new));
        let (old_median, new_median) = (median_of_sorted(&old)?, median_of_sorted(&new)?);
        let ratio = new_median / old_median;
        let pairs = old.iter().flat_map(|o| new.iter().map(move |n| n / o));
        let mut pairs: Vec<f64> = pairs.collect();
        pairs.sort_by(f64::total_cmp);
        let tail = tail(old.len(), new.len());
        // Without a 99% interval the whole range stands for it.
        let outermost = tail.unwrap_or(0);
        let (low, high) = (pairs[outermost], pairs[pairs.len() - 1 - outermost]);
        let noise = noise(&old, old_median).max(noise(&new, new_median));
        // With few repetitions chance separates up to one in ten pairs of runs completely.
        let floor = FLOOR.max(noise * if tail.is_some() { 1.0 } else { 3.0 });
        let is_too_few = old.len().min(new.len()) < REPETITIONS_MIN;
        let is_apart = low > 1.0 || high < 1.0;
        let exceeds_floor = ratio > 1.0 + floor || ratio < 1.0 / (1.0 + floor);
        let width = (high / ratio - 1.0).max(1.0 - low / ratio);
        let finding = match () {
            () if is_too_few => ChangeFinding::Unclear,
            () if is_apart && exceeds_floor && ratio < 1.0 => ChangeFinding::Less,
            () if is_apart && exceeds_floor => ChangeFinding::More,
            () if floor.max(width) > DETECTABLE => ChangeFinding::Unclear,
            () => ChangeFinding::Same,
        };
        Some(PeriodChange {
            ratio,
            low,
            high,
            is_99: tail.is_some(),
            floor,
            finding,
        })
    }

    /// The same ratio, without a conclusion.
    pub(crate) fn unclear(self) -> Self {
        let finding = ChangeFinding::Unclear;
        PeriodChange { finding, ..self }
    }

    /// The kind of the interval from `low` to `high`, in words.
    pub(crate) fn interval_name(&self) -> &'static str {
        if self.is_99 { "99% interval" } else { "range" }
    }
}

/// The index of the interval's ends among the sorted ratios of all pairs, counted from each end;
/// `None` if even the outermost ratios are within the interval.
fn tail(n: usize, m: usize) -> Option<usize> {
    if n * m > PAIRS_EXACT {
        let (n, m) = (n as f64, m as f64);
        let deviation = (n * m * (n + m + 1.0) / 12.0).sqrt();
        // Beyond 2.576 standard deviations a normal distribution has a tail of [`TAIL`].
        return Some((n * m / 2.0 - 2.576 * deviation) as usize);
    }
    let mut below = 0.0;
    let chances = chances(n, m);
    let outside = chances.iter().take_while(|chance| {
        below += **chance;
        below <= TAIL
    });
    outside.count().checked_sub(1)
}

/// The probability of each number of inverted pairs between `n` and `m` values of one distribution.
/// The recursion removes the largest value: it is one of the `n` values, and so above all `m`
/// others, or it is one of the `m` values.
fn chances(n: usize, m: usize) -> Vec<f64> {
    let length = n * m + 1;
    let certain = || {
        let mut row = vec![0.0; length];
        row[0] = 1.0;
        row
    };
    let mut rows: Vec<Vec<f64>> = (0..=m).map(|_| certain()).collect();
    for i in 1..=n {
        let mut next = vec![certain()];
        for j in 1..=m {
            let share_of_n = i as f64 / (i + j) as f64;
            let chance = |u: usize| {
                let above = u.checked_sub(j).map_or(0.0, |u| rows[j][u]);
                share_of_n * above + (1.0 - share_of_n) * next[j - 1][u]
            };
            let row = (0..length).map(chance).collect();
            next.push(row);
        }
        rows = next;
    }
    rows.swap_remove(m)
}

#[cfg(test)]
mod tests;
