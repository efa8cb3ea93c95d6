//! What the summary of a run says about unusual inputs.

use super::summary::is_warning;
use std::path::Path;
use tapeloop::features::{FeatureName, Separation};
use tapeloop::structure::{Assembly, Check};
use tapeloop_annotations::{Matches, TableMatches};
use tapeloop_bench::internal::format;
use tapeloop_cli::plan::Plan;
use tapeloop_cli::run_counters::{RunCounters, RunCounts, finding_line};
use tapeloop_files::shown;

/// Lines about unusual inputs, and about the annotations.
pub(super) fn notes(
    plan: &Plan,
    counters: &RunCounters,
    tables: &[TableMatches],
    matches: &Matches,
) -> Vec<String> {
    // Differences saturate, as a run that goes on begins with numbers from `run.json`, which may be any.
    let counts = counters.counts();
    let mut notes = Vec::new();
    let others = counters.first_others_skipped();
    let more = if counts.others_skipped > others.len() as u64 {
        ", ..."
    } else {
        ""
    };
    notes.extend(note(
        "skipped files in folders and archives whose names are not those of structure files",
        counts.others_skipped,
        &format!(" ({}{more})", others.join(", ")),
    ));
    notes.extend(note(
        "members of archives with the name of an earlier member, which --members can tell apart",
        counts.names_repeated,
        "",
    ));
    notes.extend(note(
        "files that were named again, and are read once",
        counts.files_repeated,
        &format!(
            " ({}{})",
            counters.first_repeated().unwrap_or_default(),
            if counts.files_repeated > 1 {
                ", ..."
            } else {
                ""
            }
        ),
    ));
    notes.extend(note(
        "skipped FIFOs, sockets and devices in folders and globs",
        counts.specials_skipped,
        "",
    ));
    notes.extend(note(
        "structures with pLDDT from 0 to 1, which was multiplied by 100",
        counts.scaled_plddt,
        "",
    ));
    let features = &plan.config.features;
    if features.features.contains(&FeatureName::ContactOrder)
        && features.contact_order.separation == Separation::Sequence
    {
        notes.extend(note(
            "chains with breaks whose files give no positions in the sequence, so that co counts only \
             the residues that are there",
            counts.unnumbered_chains,
            "",
        ));
    }
    notes.extend(TableMatches::lines(tables));
    notes.extend(matches.without_rows());
    let findings = counters.findings();
    let checks = Check::ALL.iter().filter(|check| !is_warning(**check));
    let found = checks.filter_map(|&check| finding_line(check, &findings));
    notes.extend(found);
    if let Some(first) = counters.first_endless() {
        let count = counts.truncated.saturating_sub(counts.truncated_likely);
        let more = if count > 1 { ", ..." } else { "" };
        notes.extend(note(
            "PDB files without END, whose last line is whole (--strict rejects them)",
            count,
            &format!(" ({first}{more})"),
        ));
    }
    notes.extend(note(
        "structures of more residues than batch.residues_max, or of many atoms, which ran alone",
        counts.alone,
        "",
    ));
    if plan.config.reading.assembly != Assembly::Deposited {
        notes.extend(note(
            "structures without an assembly 1, whose deposited chains were read",
            counts.structures.saturating_sub(counts.assemblies),
            "",
        ));
    }
    notes
}

/// Lines about what may make values wrong, besides the checks of files.
pub(super) fn warnings(plan: &Plan, counts: &RunCounts) -> Vec<String> {
    let lines = [
        unlisted_radii(plan, counts),
        unnamed_plddt(plan, counts.unnamed_plddt),
    ];
    lines.into_iter().flatten().collect()
}

/// A line about structures whose B factors were read as such, and may be pLDDT. `None` if there are none, or if
/// the config says what the B factors are.
fn unnamed_plddt(plan: &Plan, structures: u64) -> Option<String> {
    let is_unknown = plan.config.reading.b_factor_kind.is_none();
    let structures = if is_unknown { structures } else { 0 };
    note(
        "structures whose B factors look like pLDDT, which their files do not name",
        structures,
        " (b_factor = \"plddt\" reads them as pLDDT)",
    )
}

/// A line that no atom of the run is in the file of radii; `None` if one is, or if there is no file.
fn unlisted_radii(plan: &Plan, counts: &RunCounts) -> Option<String> {
    let radii = plan.config.features.sasa.radii;
    let is_unlisted = counts.structures > 0 && counts.without_listed_atoms == counts.structures;
    (radii.file_text().is_some() && is_unlisted).then(|| {
        format!(
            "no atom is listed in {}, the file of sasa.radii, so all have the radii of their elements: \
             write names as structure files have them, in upper case, such as ALA CB or ANY CB",
            shown(Path::new(radii.name()))
        )
    })
}

/// A line with a count; `None` if it is zero.
fn note(text: &str, count: u64, which: &str) -> Option<String> {
    (count > 0).then(|| format!("{text}: {}{which}", format::whole(count)))
}
