//! Statistics of residues' columns, as the config names them.

use std::fmt;
use tapeloop::error::{Error, Result};
use tapeloop::features::{ColumnDecl, ColumnKind};

/// A column of chains and structures: a statistic of a column of residues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduction {
    pub column: String,
    pub statistic: Statistic,
}

/// A statistic of the values that are not null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    Mean,
    Min,
    Max,
    /// The percentile, 0 to 100, interpolated linearly between the two nearest values: definition 7
    /// of Hyndman and Fan (1996), doi:10.1080/00031305.1996.10473566, NumPy's default.
    Percentile(u8),
}

impl Statistic {
    /// The statistic with this name: `mean`, `min`, `max`, `median`, or `p0` to `p100` for a
    /// percentile.
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "mean" => Statistic::Mean,
            "min" => Statistic::Min,
            "max" => Statistic::Max,
            "median" => Statistic::Percentile(50),
            _ => {
                let percent = name.strip_prefix('p')?;
                let is_plain = percent == "0" || !percent.starts_with(['0', '+']);
                let percent = percent.parse().ok().filter(|percent| *percent <= 100)?;
                is_plain.then_some(Statistic::Percentile(percent))?
            }
        })
    }

    /// The statistic as a sentence begins.
    fn about(self) -> String {
        match self {
            Statistic::Mean => "Mean".to_owned(),
            Statistic::Min => "Smallest value".to_owned(),
            Statistic::Max => "Largest value".to_owned(),
            Statistic::Percentile(50) => "Median".to_owned(),
            Statistic::Percentile(percent) => format!("{percent}th percentile"),
        }
    }

    /// The statistic of some values, which are sorted if that is needed; NaN for none.
    pub fn compute(self, values: &mut [f64]) -> f64 {
        if values.is_empty() {
            return f64::NAN;
        }
        match self {
            Statistic::Mean => values.iter().sum::<f64>() / values.len() as f64,
            Statistic::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
            Statistic::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Statistic::Percentile(percent) => {
                values.sort_unstable_by(f64::total_cmp);
                let position = (values.len() - 1) as f64 * f64::from(percent) / 100.0;
                let (low, high) = (
                    values[position.floor() as usize],
                    values[position.ceil() as usize],
                );
                low + (high - low) * position.fract()
            }
        }
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Statistic::Mean => f.write_str("mean"),
            Statistic::Min => f.write_str("min"),
            Statistic::Max => f.write_str("max"),
            Statistic::Percentile(50) => f.write_str("median"),
            Statistic::Percentile(percent) => write!(f, "p{percent}"),
        }
    }
}

/// Whether a column's values are numbers.
fn has_numbers(decl: &ColumnDecl) -> bool {
    matches!(
        decl.kind,
        ColumnKind::Count | ColumnKind::Real | ColumnKind::Half
    )
}

impl Reduction {
    /// Parses `rsa.mean`; `*.mean` is of each column of numbers among `columns`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](tapeloop::ErrorKind::Config): there is no such statistic or column, or the
    /// column holds no numbers.
    pub fn parse(text: &str, columns: &[ColumnDecl]) -> Result<Vec<Self>> {
        let Some((column, statistic)) = text.rsplit_once('.') else {
            let error = Error::config(format!("\"{text}\" names no statistic"));
            return Err(error.fix("write a column and a statistic: \"rsa.mean\""));
        };
        let statistic = Statistic::parse(statistic).ok_or_else(|| {
            let error = Error::config(format!("\"{statistic}\" is not a statistic"));
            error.fix("take mean, min, max, median, or a percentile such as p90")
        })?;
        let new = |decl: &ColumnDecl| Reduction {
            column: decl.name.clone(),
            statistic,
        };
        if column == "*" {
            return Ok(columns
                .iter()
                .filter(|decl| has_numbers(decl))
                .map(new)
                .collect());
        }
        let decl = columns
            .iter()
            .find(|decl| decl.name == column)
            .ok_or_else(|| {
                let error = Error::config(format!(
                    "no chosen feature has a residue column \"{column}\""
                ));
                error.fix("`tapeloop features` lists the columns; `features` chooses them")
            })?;
        // The share of residues with a flag is its mean.
        let is_share = decl.kind == ColumnKind::Flag && statistic == Statistic::Mean;
        if !has_numbers(decl) && !is_share {
            let error = Error::config(format!("\"{column}\" has no {statistic}"));
            return Err(error.fix("take a column of numbers, or the mean of true and false"));
        }
        Ok(vec![new(decl)])
    }

    /// The column's name.
    pub fn name(&self) -> String {
        format!("{}_{}", self.column, self.statistic)
    }

    /// What the column holds in a table of `rows`: "chain".
    pub fn about(&self, rows: &str) -> String {
        let (statistic, column) = (self.statistic.about(), &self.column);
        format!("{statistic} of {column} over the residues of the {rows} that have a value.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_those_of_numpy() {
        let computed = |name: &str, values: &[f64]| {
            Statistic::parse(name)
                .unwrap()
                .compute(&mut values.to_vec())
        };
        let values = [3.0, -1.0, 7.5, 2.0, 2.0];
        assert_eq!(computed("mean", &values), 2.7);
        assert_eq!(
            (computed("min", &values), computed("max", &values)),
            (-1.0, 7.5)
        );
        assert_eq!(computed("median", &values), 2.0);
        // numpy.percentile(values, [0, 10, 90, 100])
        assert_eq!(computed("p0", &values), -1.0);
        assert!((computed("p10", &values) - 0.2).abs() < 1e-12);
        assert!((computed("p90", &values) - 5.7).abs() < 1e-12);
        assert_eq!(computed("p100", &values), 7.5);
        assert_eq!(computed("median", &[4.0, 1.0]), 2.5);
        for name in ["mean", "min", "max", "p5"] {
            assert!(computed(name, &[]).is_nan());
            assert_eq!(computed(name, &[6.0]), 6.0);
        }
        for name in ["p101", "p", "p-1", "p05", "p+5", "average", ""] {
            assert_eq!(Statistic::parse(name), None, "{name}");
        }
    }
}
