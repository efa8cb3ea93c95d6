//! The points of a run: records of the same point are merged and named.

use super::diagnosis::is_noisy;
use super::format;
use super::record::{Figures, Outcome, PointFacts, Record, Reference, Run};
use super::statistics::{Spread, median};
use tapeloop_engine::error::{Error, Result};

/// A point, merged from all its records.
#[derive(Clone, Debug)]
pub(crate) struct MergedPoint {
    /// The settings from the first record, or from the base point if that is among them.
    pub(crate) facts: PointFacts,
    /// Refused if one of the records is.
    pub(crate) outcome: Outcome,
}

/// The axis of a base point.
const BASE: &str = "base";

/// The run of the last record, and all records of that run, except those whose settings were
/// removed from the program.
///
/// # Errors
/// [`ErrorKind::Config`](tapeloop_engine::ErrorKind::Config) if there are no records.
pub(crate) fn last_run(records: &[Record]) -> Result<(&Run, Vec<&Record>)> {
    let Some(last) = records.last() else {
        return Err(
            Error::config("there are no records").fix("give a file that `tapeloop bench` wrote")
        );
    };
    let of_run = |record: &&Record| record.run.id == last.run.id && record.point.removed.is_none();
    Ok((&last.run, records.iter().filter(of_run).collect()))
}

/// The records with the time per batch of the same work with one slot, where there is such a record: what
/// bounds a point may be that time ([`BATCH_LATENCY`](super::diagnosis::BATCH_LATENCY)).
pub(crate) fn with_one_slot(records: &[&Record]) -> Vec<Record> {
    let one_slot_ns = |facts: &PointFacts| {
        let alone = PointFacts {
            slots: 1,
            ..facts.clone()
        };
        let mut alike = records
            .iter()
            .filter(|record| is_same_point(&record.point, &alone));
        alike.find_map(|record| median(&record.figures()?.period_ns))
    };
    let filled = |record: &&Record| {
        let mut record = (*record).clone();
        if let Outcome::Measured(figures) = &mut record.outcome {
            figures.one_slot_ns = one_slot_ns(&record.point);
        }
        record
    };
    records.iter().map(filled).collect()
}

/// The points of a run, in the order of their first records.
pub(crate) fn merge(records: &[&Record]) -> Vec<MergedPoint> {
    let mut points: Vec<MergedPoint> = Vec::new();
    for record in records {
        let known = points
            .iter_mut()
            .find(|point| is_same_point(&point.facts, &record.point));
        match known {
            Some(point) => point.add(record),
            None => points.push(MergedPoint {
                facts: record.point.clone(),
                outcome: record.outcome.clone(),
            }),
        }
    }
    points
}

/// The base points of each workload, or its first point if none is marked. Work on files has one for each
/// number of threads; other workloads have one.
pub(crate) fn bases(points: &[MergedPoint]) -> Vec<&MergedPoint> {
    let mut bases: Vec<&MergedPoint> = Vec::new();
    for point in points {
        let workload = &point.facts.workload;
        let marked = points
            .iter()
            .any(|point| point.facts.workload == *workload && point.is_base());
        let first = !bases.iter().any(|base| base.facts.workload == *workload);
        if point.is_base() || (!marked && first) {
            bases.push(point);
        }
    }
    bases
}

/// Whether two points are the same: all settings but the axis are equal.
pub(crate) fn is_same_point(one: &PointFacts, other: &PointFacts) -> bool {
    let axis = other.axis.clone();
    PointFacts {
        axis,
        ..one.clone()
    } == *other
}

impl MergedPoint {
    /// Adds another record of the point, which becomes a base point if the record is of one. A point is
    /// refused if one of its records is.
    fn add(&mut self, record: &Record) {
        if record.point.axis == BASE {
            self.facts.axis = BASE.to_owned();
        }
        match (&mut self.outcome, &record.outcome) {
            (Outcome::Measured(figures), Outcome::Measured(more)) => figures.add(more),
            (Outcome::Measured(_), Outcome::Refused(_)) => self.outcome = record.outcome.clone(),
            (Outcome::Refused(_), _) => {}
        }
    }

    /// Whether it was measured, and is too noisy to be compared with another.
    pub(crate) fn is_noisy(&self) -> bool {
        let figures = self.figures();
        figures.is_some_and(|figures| is_noisy(figures, &self.facts))
    }

    pub(crate) fn is_base(&self) -> bool {
        self.facts.axis == BASE
    }

    pub(crate) fn figures(&self) -> Option<&Figures> {
        match &self.outcome {
            Outcome::Measured(figures) => Some(figures),
            Outcome::Refused(_) => None,
        }
    }

    /// Nanoseconds per batch.
    pub(crate) fn period(&self) -> Option<Spread> {
        Spread::from_values(&self.figures()?.period_ns)
    }
}

impl Figures {
    /// Adds the repetitions, the warnings and the other programs of another record of the point. Of the two
    /// closed loops it keeps the latencies of the one with more batches; other fields keep the value of the
    /// first record that has one.
    fn add(&mut self, more: &Figures) {
        self.period_ns.extend(&more.period_ns);
        self.host_ns.extend(&more.host_ns);
        self.batches = self.batches.saturating_add(more.batches);
        if self.closed.count < more.closed.count {
            self.closed = more.closed.clone();
        }
        if self.open.is_empty() {
            self.open.clone_from(&more.open);
        }
        if self.spans.is_empty() {
            self.spans.clone_from(&more.spans);
        }
        if self.shares.is_empty() {
            self.shares.clone_from(&more.shares);
            self.bound.clone_from(&more.bound);
        }
        if self.cores.is_empty() {
            self.cores.clone_from(&more.cores);
        }
        self.stages = self.stages.or(more.stages);
        for flag in &more.flags {
            if !self.flags.contains(flag) {
                self.flags.push(flag.clone());
            }
        }
        for reference in &more.references {
            let known = self
                .references
                .iter_mut()
                .find(|known| known.name == reference.name);
            match known {
                Some(known) => known.add(reference),
                None => self.references.push(reference.clone()),
            }
        }
    }
}

impl Reference {
    /// Adds another record's repetitions of the program.
    fn add(&mut self, more: &Reference) {
        self.period_ns.extend(&more.period_ns);
        // The outputs agree only if they do in every record.
        self.agrees = match (self.agrees, more.agrees) {
            (Some(one), Some(other)) => Some(one && other),
            (one, other) => one.or(other),
        };
    }
}

fn many(count: usize, one: &str, more: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {more}"),
    }
}

/// The size of a batch, in bytes for workloads of plain elements.
pub(crate) fn size(facts: &PointFacts) -> String {
    if facts.is_sized_in_bytes() {
        format::bytes(facts.upload_bytes as f64)
    } else {
        format!("{} {}", format::whole(facts.batch), facts.unit)
    }
}

/// A point's title, and the other settings that differ from the first point of its workload: a run measures
/// the base point first.
pub(crate) fn full_title(facts: &PointFacts, points: &[MergedPoint]) -> String {
    let mut all = points.iter().map(|point| &point.facts);
    let title = title(facts);
    let Some(base) = all.find(|base| base.workload == facts.workload) else {
        return title;
    };
    let more = difference(facts, base);
    let more = more
        .split(", ")
        .filter(|part| !part.is_empty() && !title.contains(part));
    let more: String = more.map(|part| format!(", {part}")).collect();
    title + &more
}

/// The settings in which a point differs from another, in words; empty if there are none.
pub(crate) fn difference(facts: &PointFacts, from: &PointFacts) -> String {
    let pairs = parts(facts).into_iter().zip(parts(from));
    let differing = pairs.enumerate();
    let differing = differing.filter(|(_, (part, other))| part != other);
    // A batch of another size also downloads another size, so the size is named only once.
    let is_size = |place: usize| place == SIZE || place == DOWNLOAD;
    let mut sized = false;
    let words: Vec<String> = differing
        .filter(|(place, _)| !is_size(*place) || !std::mem::replace(&mut sized, true))
        .map(|(_, (part, _))| part)
        .collect();
    words.join(", ")
}

/// The words for each setting, in the order of a name.
type SettingWords = [String; SETTINGS];

const SETTINGS: usize = 10;
// Indices into [`SettingWords`].
const SIZE: usize = 1;
/// The last one, as [`names`] leaves it out at first.
const DOWNLOAD: usize = SETTINGS - 1;

/// The words of a point's settings; of those that do not apply to its workload the words are empty.
fn parts(facts: &PointFacts) -> SettingWords {
    let transfer = match facts.transfer.as_str() {
        "copy" => "copies".to_owned(),
        "mapped" => "mapped memory".to_owned(),
        other => format!("transfer {other}"),
    };
    let fill = match facts.fill.as_str() {
        "" => String::new(),
        fill => format!("{fill} batches"),
    };
    let rounds = match facts.rounds {
        0 => String::new(),
        rounds => format!(" of {}", many(rounds, "round", "rounds")),
    };
    [
        many(facts.kernels, "kernel", "kernels") + &rounds,
        size(facts),
        facts.mode.clone(),
        facts.front.clone(),
        transfer,
        many(facts.slots, "slot", "slots"),
        many(facts.buckets, "bucket", "buckets"),
        fill,
        many(facts.threads, "thread", "threads"),
        // Batches with equal uploads may differ in their downloads.
        format!("{} back", format::bytes(facts.download_bytes as f64)),
    ]
}

/// A point in a few words: `launch, 12 kernels, 16 KiB, graph`.
pub(crate) fn title(facts: &PointFacts) -> String {
    if is_of_files(facts) {
        return workload(&facts.workload);
    }
    let parts = parts(facts);
    let short = match facts.kernels {
        // A point that was refused before its workload was recorded has no number.
        0 => &parts[1..3],
        _ => &parts[..3],
    };
    let short = short.iter().filter(|part| !part.trim().is_empty());
    let short: Vec<&str> = short.map(String::as_str).collect();
    format!("{}, {}", facts.workload.replace('_', " "), short.join(", "))
}

/// The name of a workload, in words.
pub(crate) fn workload(name: &str) -> String {
    match name {
        "read" => "reading files".to_owned(),
        "sasa_kernel" => "areas, kernel alone".to_owned(),
        "sasa_files" => "areas, files to results".to_owned(),
        "all_files" => "all features, files to results".to_owned(),
        "sasa_files_cuda" => "areas, files to results, on the GPU".to_owned(),
        "all_files_cuda" => "all features, files to results, on the GPU".to_owned(),
        other => other.replace('_', " "),
    }
}

/// Whether a point is work on files.
pub(crate) fn is_of_files(facts: &PointFacts) -> bool {
    facts.front == "program"
}

/// Names for points of one workload that are shown together: the settings in which they differ, or the text
/// `none` for a point whose settings give no words. The size of a batch decides what it downloads, so downloads
/// are named only where two names would be the same without them. Points that differ in something else alone,
/// such as the input, have the same name.
pub(crate) fn names(all: &[&PointFacts], none: &str) -> Vec<String> {
    let parts: Vec<SettingWords> = all.iter().map(|facts| parts(facts)).collect();
    let differs = |place: usize| parts.iter().any(|p| p[place] != parts[0][place]);
    let mut places: Vec<usize> = (0..DOWNLOAD).filter(|place| differs(*place)).collect();
    let joined = |places: &[usize]| {
        let name = |p: &SettingWords| -> Vec<String> {
            let named = places.iter().map(|place| p[*place].clone());
            named.filter(|part| !part.is_empty()).collect()
        };
        parts
            .iter()
            .map(|p| name(p).join(", "))
            .collect::<Vec<String>>()
    };
    let names = joined(&places);
    let twice = (0..names.len()).any(|i| names[..i].contains(&names[i]));
    let names = if twice && differs(DOWNLOAD) {
        places.push(DOWNLOAD);
        joined(&places)
    } else {
        names
    };
    let or_none = |name: String| {
        if name.is_empty() {
            none.to_owned()
        } else {
            name
        }
    };
    names.into_iter().map(or_none).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(edit: impl Fn(&mut PointFacts)) -> PointFacts {
        let mut facts = PointFacts {
            workload: "sasa_kernel".to_owned(),
            mode: "graph".to_owned(),
            unit: "elements".to_owned(),
            kernels: 12,
            upload_bytes: 16_384,
            ..PointFacts::default()
        };
        edit(&mut facts);
        facts
    }

    fn named(all: &[PointFacts]) -> Vec<String> {
        names(&all.iter().collect::<Vec<_>>(), "one")
    }

    #[test]
    fn points_are_named_by_what_they_differ_in() {
        let graph = facts(|_| ());
        let stream = facts(|facts| facts.mode = "stream".to_owned());
        let many = facts(|facts| facts.slots = 4);
        let back = facts(|facts| facts.download_bytes = 2048);
        assert_eq!(named(std::slice::from_ref(&graph)), ["one"]);
        assert_eq!(named(&[graph.clone(), stream]), ["graph", "stream"]);
        assert_eq!(named(&[graph.clone(), many]), ["0 slots", "4 slots"]);
        assert_eq!(named(&[graph.clone(), back]), ["0 B back", "2 KiB back"]);
        assert_eq!(title(&graph), "sasa kernel, 12 kernels, 16 KiB, graph");
    }

    #[test]
    fn counts_of_batches_end_at_the_largest() {
        let mut figures = Figures {
            batches: u64::MAX,
            ..Figures::default()
        };
        figures.add(&figures.clone());
        assert_eq!(figures.batches, u64::MAX);
    }

    #[test]
    fn a_point_is_the_same_whatever_it_was_measured_for() {
        let one = facts(|facts| facts.axis = "slots".to_owned());
        let other = facts(|facts| facts.axis = BASE.to_owned());
        assert!(is_same_point(&one, &other));
        assert!(!is_same_point(&one, &facts(|facts| facts.threads = 9)));
    }
}
