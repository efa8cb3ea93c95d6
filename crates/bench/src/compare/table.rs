//! A comparison as a table for a terminal.

use super::{Compared, Comparison, Side, Verdict};
use crate::format;
use std::fmt;

impl Verdict {
    /// The word for a verdict in the table; capitals ask for attention.
    fn word(self) -> &'static str {
        match self {
            Verdict::Refused => "REFUSED",
            Verdict::Slower => "SLOWER",
            Verdict::Faster => "faster",
            Verdict::Mended => "mended",
            Verdict::Same => "same",
            Verdict::Unclear => "unclear",
            Verdict::StillRefused => "still refused",
        }
    }
}

impl Compared {
    /// The cells of a point's row.
    fn cells(&self) -> [String; 7] {
        let time = |ns: Option<f64>| ns.map_or_else(|| format::NONE.to_owned(), format::time);
        let change = |ratio: Option<f64>| ratio.map(format::change).unwrap_or_default();
        let interval = self.interval.map(|(low, high)| {
            let (low, high) = (format::change(low), format::change(high));
            format!("{low} to {high}")
        });
        let details = interval.into_iter().chain(self.reason.clone());
        let details: Vec<String> = details.collect();
        [
            self.verdict.word().to_owned(),
            self.name.clone(),
            time(self.old_ns),
            time(self.new_ns),
            change(self.ratio),
            details.join(", "),
            change(self.ratio_corrected),
        ]
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (run, side) in [("old", &self.old), ("new", &self.new)] {
            let commit = match side.commit.as_str() {
                "" => String::new(),
                commit => format!(", commit {commit}"),
            };
            let Side { date, version, .. } = side;
            writeln!(
                f,
                "{run}: {date}, version {version}{commit}, {}",
                side.machine
            )?;
        }
        for warning in &self.warnings {
            writeln!(f, "warning: {warning}")?;
        }
        writeln!(f)?;
        let headings = [
            "",
            "point",
            "old",
            "new",
            "change",
            "interval",
            "relative to other programs",
        ];
        let mut rows = vec![headings.map(str::to_owned)];
        rows.extend(self.points.iter().map(Compared::cells));
        write_table(f, &rows)?;
        for (run, names) in [("old", &self.only_old), ("new", &self.only_new)] {
            for name in names {
                writeln!(f, "only in the {run} run: {name}")?;
            }
        }
        write!(f, "\n{}", self.words())
    }
}

/// Writes a table: words to the left, figures to the right. Leaves columns out that are empty below their
/// heading.
fn write_table(f: &mut fmt::Formatter<'_>, rows: &[[String; 7]]) -> fmt::Result {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let has_text = |column: &usize| rows.iter().skip(1).any(|row| !row[*column].is_empty());
    for row in rows {
        let cells = (0..7).filter(has_text).map(|column| match column {
            0 | 1 => format!("{:<1$}", row[column], width(column)),
            _ => format!("{:>1$}", row[column], width(column)),
        });
        let cells: Vec<String> = cells.collect();
        writeln!(f, "{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}
