//! Figures out of samples, and lines of JSON.

use std::fmt::{Display, Write};

/// One line of JSON, in the making.
#[must_use]
pub(crate) struct Line(String);

impl Line {
    pub(crate) fn new(case: &str) -> Self {
        Line(String::from("{\"who\":\"rust\"")).text("case", case)
    }

    /// A number, or `true` and `false`.
    pub(crate) fn number(mut self, key: &str, value: impl Display) -> Self {
        write!(self.0, ",\"{key}\":{value}").expect("a string takes it");
        self
    }

    pub(crate) fn text(mut self, key: &str, value: &str) -> Self {
        let plain: String = value
            .chars()
            .filter(|c| !c.is_control() && !['"', '\\'].contains(c))
            .collect();
        write!(self.0, ",\"{key}\":\"{plain}\"").expect("a string takes it");
        self
    }

    /// The median and the tail of samples in nanoseconds.
    pub(crate) fn times(self, prefix: &str, mut samples: Vec<f64>) -> Self {
        samples.sort_unstable_by(f64::total_cmp);
        let at = |part: f64| {
            let index = (samples.len() as f64 * part) as usize;
            format!("{:.0}", samples[index.min(samples.len() - 1)])
        };
        self.number(&format!("{prefix}p50_ns"), at(0.5))
            .number(&format!("{prefix}p90_ns"), at(0.9))
            .number(&format!("{prefix}p99_ns"), at(0.99))
    }

    /// The median of repetitions, and their spread.
    pub(crate) fn period(self, mut reps: Vec<f64>) -> Self {
        reps.sort_unstable_by(f64::total_cmp);
        let (half, last) = (reps.len() / 2, reps.len() - 1);
        let median = match reps.len() % 2 {
            0 => (reps[half - 1] + reps[half]) / 2.0,
            _ => reps[half],
        };
        self.number("period_ns", format!("{median:.1}"))
            .number("min_ns", format!("{:.1}", reps[0]))
            .number("max_ns", format!("{:.1}", reps[last]))
    }

    pub(crate) fn print(self) {
        println!("{}}}", self.0);
    }
}
