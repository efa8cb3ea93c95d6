//! What readers find unusual about the names and fields of a file, and read all the same.

use std::sync::Arc;

use crate::{Error, Result};
use tapeloop_error::internal::printable;

/// A check of what a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Check {
    /// The file may be cut short; see [`Structure::truncation`](super::Structure::truncation).
    Truncated,
    /// A residue has a peptide bond to the polymer, and was read as a ligand.
    DroppedResidues,
    /// A component that is known has no atom of that name. The atom counts as one of its side chain.
    UnknownAtoms,
    /// An atom was left out: a virtual site, or a second atom with the name of another one of its
    /// residue and without an alternate location.
    LeftOutAtoms,
    /// A residue's fields were read from other columns than the format states.
    RepairedFields,
    /// An atom of a standard component has another element than its name says. The name's counts.
    CorrectedElements,
    /// Columns 18 to 22 of a PDB file contradict each other about what is the component and what the
    /// chain.
    ContradictoryNames,
    /// A chain of a PDB file was split where another molecule starts; see
    /// [`ChainSplit`](super::ChainSplit).
    SplitChains,
    /// Models have the same residues in different places, as the parts of an assembly have;
    /// [`Models::Joined`](super::Models::Joined) reads them as one structure.
    ModelsOfAssembly,
}

impl Check {
    /// All checks.
    pub const ALL: &[Check] = &[
        Check::Truncated,
        Check::DroppedResidues,
        Check::UnknownAtoms,
        Check::LeftOutAtoms,
        Check::RepairedFields,
        Check::CorrectedElements,
        Check::ContradictoryNames,
        Check::SplitChains,
        Check::ModelsOfAssembly,
    ];

    /// The name in the config and in `run.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Check::Truncated => "truncated",
            Check::DroppedResidues => "dropped_residues",
            Check::UnknownAtoms => "unknown_atoms",
            Check::LeftOutAtoms => "left_out_atoms",
            Check::RepairedFields => "repaired_fields",
            Check::CorrectedElements => "corrected_elements",
            Check::ContradictoryNames => "contradictory_names",
            Check::SplitChains => "split_chains",
            Check::ModelsOfAssembly => "models_of_assembly",
        }
    }

    /// What was found, for messages: `atoms of names that their component does not have`.
    pub const fn about(self) -> &'static str {
        match self {
            Check::Truncated => "files that may be cut short",
            Check::DroppedResidues => {
                "residues with a peptide bond to the polymer that were read as ligands"
            }
            Check::UnknownAtoms => {
                "atoms whose names their component does not have, read as part of its side chain"
            }
            Check::LeftOutAtoms => "atoms left out, as virtual sites or as repeated names",
            Check::RepairedFields => {
                "residues whose fields stand in other columns than the PDB format's, and were read from there"
            }
            Check::CorrectedElements => {
                "atoms whose element column contradicts their name; the name was used"
            }
            Check::ContradictoryNames => {
                "residues whose bonds and name disagree on whether columns 18 to 22 hold a component of four letters or a chain id of two"
            }
            Check::SplitChains => {
                "places where chains were split, as another molecule starts there (chains.split)"
            }
            Check::ModelsOfAssembly => {
                "files whose models look like the parts of an assembly, which models = \"joined\" reads"
            }
        }
    }
}

/// A set of checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CheckSet(u16);

impl CheckSet {
    /// No check.
    pub const NONE: CheckSet = CheckSet(0);

    /// The set with a check added.
    pub const fn with(self, check: Check) -> Self {
        CheckSet(self.0 | 1 << check as u8)
    }

    /// Whether the set has a check.
    pub const fn contains(self, check: Check) -> bool {
        self.0 >> (check as u8) & 1 == 1
    }
}

impl FromIterator<Check> for CheckSet {
    fn from_iter<T: IntoIterator<Item = Check>>(checks: T) -> Self {
        checks.into_iter().fold(CheckSet::NONE, CheckSet::with)
    }
}

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The check.
    pub check: Check,
    /// How often it applied.
    pub count: u32,
    /// Where it applied first: `A LYS 33: atom XYZ`. Control characters are escaped.
    pub first: Arc<str>,
}

/// What the checks of a structure found, but for [`Check::Truncated`]: at most one [`Finding`] for
/// each check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// What was found, in the order in which each check applied first.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter()
    }

    /// How often a check applied.
    pub fn count(&self, check: Check) -> u32 {
        let found = self.0.iter().find(|finding| finding.check == check);
        found.map_or(0, |finding| finding.count)
    }

    /// Adds `count` to the count of a check. `first` returns the place; it is called only for the first
    /// finding of the check.
    pub fn add(&mut self, check: Check, count: u32, first: impl FnOnce() -> String) {
        match self.0.iter_mut().find(|finding| finding.check == check) {
            Some(finding) => finding.count = finding.count.saturating_add(count),
            None if count > 0 => self.0.push(Finding {
                check,
                count,
                first: printable(&first()).into(),
            }),
            None => {}
        }
    }

    /// Adds the findings of `others`.
    pub(super) fn extend(&mut self, others: &Findings) {
        for finding in others.iter() {
            self.add(finding.check, finding.count, || finding.first.to_string());
        }
    }

    /// An [`ErrorKind::Input`](crate::ErrorKind::Input) error for the first finding of a check in
    /// `strict`.
    pub(super) fn reject(&self, strict: CheckSet) -> Result<()> {
        match self.0.iter().find(|finding| strict.contains(finding.check)) {
            None => Ok(()),
            Some(Finding {
                check,
                count,
                first,
            }) => {
                let message = format!("{}: {count}, the first at {first}", check.about());
                let fix = format!(
                    "correct the file, or read it without {:?} in strict",
                    check.name()
                );
                Err(Error::input(message).fix(fix))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_counted_and_keep_the_first_place() {
        let mut findings = Findings::default();
        findings.add(Check::UnknownAtoms, 0, || unreachable!("nothing was found"));
        findings.add(Check::UnknownAtoms, 1, || "here".to_owned());
        findings.add(Check::UnknownAtoms, 2, || {
            unreachable!("it is not the first")
        });
        assert_eq!(findings.count(Check::UnknownAtoms), 3);
        assert_eq!(findings.count(Check::LeftOutAtoms), 0);
        let mut all = findings.clone();
        all.extend(&findings);
        assert_eq!(all.count(Check::UnknownAtoms), 6);
        assert_eq!(&*all.iter().next().unwrap().first, "here");
        all.add(Check::LeftOutAtoms, 1, || "\x1b[2J".to_owned());
        let last = all.iter().last().unwrap();
        assert_eq!(&*last.first, "\\u{1b}[2J");
    }

    #[test]
    fn only_checks_of_the_set_reject() {
        let mut findings = Findings::default();
        findings.add(Check::RepairedFields, 2, || "line 7".to_owned());
        let others = Check::ALL.iter().copied();
        let others: CheckSet = others
            .filter(|check| *check != Check::RepairedFields)
            .collect();
        findings.reject(others).unwrap();
        let strict = CheckSet::NONE.with(Check::RepairedFields);
        let error = findings.reject(strict).unwrap_err().to_string();
        assert!(error.contains("2, the first at line 7"), "{error}");
        assert!(error.contains("\"repaired_fields\" in strict"), "{error}");
    }
}
