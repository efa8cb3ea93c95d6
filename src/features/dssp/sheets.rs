//! Bridges, ladders and sheets.

use super::super::columns::{ColumnDecl, ColumnKind, TableName, Tolerance};
use super::super::feature::{About, Feature, SettingField};
use super::super::kernels::{ladder_bridges, sheet_columns, sheet_join, sheet_number};
use super::super::layout::{BRIDGES_MAX, RESIDUES, STRUCTURES};
use super::super::recorder::FeatureRecorder;
use super::{Patterns, patterns};

/// Settings of bridges, ladders and sheets. Their hydrogen bonds are those of [`Dssp`](super::Dssp).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sheets {
    /// Whether there are columns of bridges, ladders and sheets. If not, the feature has no columns.
    pub keep: bool,
}

/// The texts of `bridge1_kind` and `bridge2_kind`, in the kernel's order.
const KINDS: &[&str] = &["parallel", "antiparallel"];

impl Feature for Sheets {
    fn about(&self) -> About {
        About {
            summary: "The bridges, ladders and sheets that strands are made of, and the number of \
                      a residue's hydrogen bonds; only with `sheets = true`.",
            formula: "bonds as in dssp; residues i and j, each linked to both neighbours and 3 or \
                      more apart, have a parallel bridge if N-H of i+1 bonds to O of j and N-H of \
                      j to O of i-1, or the same with i and j exchanged; else an antiparallel one \
                      if i and j bond both ways, or i+1 to j-1 and j+1 to i-1; a ladder is a run of \
                      bridges of one kind, joined over bulges of up to 4 residues on one strand and \
                      1 on the other; a sheet is ladders that share residues; sheets are numbered \
                      from 1 by their first residues, ladders from 1 by sheet, first residue and \
                      partner; bridge1 and bridge2 are BP1 and BP2 of mkdssp 4.2: a ladder writes \
                      bridge2 if one of its residues on the strand has a bridge1, and replaces an \
                      earlier bridge2; null where there is none; hb_nho_bonds and hb_ohn_bonds count \
                      the partners in hb_* that are bonds",
            source: "Kabsch and Sander 1983, Biopolymers 22:2577",
            needs: &["dssp"],
        }
    }

    fn settings(&mut self) -> Vec<(&'static str, SettingField<'_>)> {
        vec![("sheets", SettingField::Flag(&mut self.keep))]
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        if !self.keep {
            return Vec::new();
        }
        let column = |name: &str, kind, about: String| {
            ColumnDecl::residue(name, kind, "", about).reference(Tolerance::EXACT)
        };
        let of_bridges = |name: &str, kind, about: String| {
            column(name, kind, about).idle_when("no residue with such a bridge was read")
        };
        let mut columns = Vec::new();
        for (number, which) in [(1, "first"), (2, "second")] {
            let bridge = format!("bridge{number}");
            let about = format!("The residue of the {which} bridge, by its res_index.");
            columns.push(of_bridges(&bridge, ColumnKind::Count, about));
            let about = format!("The kind of the {which} bridge.");
            columns.push(of_bridges(
                &format!("{bridge}_kind"),
                ColumnKind::Text(KINDS),
                about,
            ));
            let about = format!("The ladder of the {which} bridge, from 1 in its model.");
            columns.push(of_bridges(
                &format!("ladder{number}"),
                ColumnKind::Count,
                about,
            ));
        }
        let about = "The sheet of the residue, from 1 in its model; that of the last ladder that has \
                     the residue or a bulge there.";
        columns.push(of_bridges("sheet", ColumnKind::Count, about.to_owned()));
        for (name, partners) in [("hb_nho", "acceptors"), ("hb_ohn", "donors")] {
            let about = format!(
                "How many of the {partners} {name}1 and {name}2 are hydrogen bonds, whose energy is \
                 below -0.5 kcal/mol."
            );
            columns.push(column(&format!("{name}_bonds"), ColumnKind::Count, about));
        }
        columns
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        if !self.keep {
            return;
        }
        let Patterns {
            hydrogens,
            energies,
            bridges,
            ..
        } = patterns(r);
        let (header, structures, residues) = (r.header(), r.structures(), r.residues());
        let keys = r.zeros("ladder_keys", RESIDUES, BRIDGES_MAX);
        let spans = r.zeros("ladder_spans", RESIDUES, 1);
        let parents = r.device("sheet_parents", RESIDUES, 1);
        let args = ladder_bridges::Args {
            header,
            structures,
            hydrogens,
            bridges,
            keys,
            spans,
            parents,
        };
        r.launch_threads(RESIDUES, args);
        let args = sheet_join::Args {
            header,
            structures,
            keys,
            parents,
        };
        r.launch_threads(RESIDUES, args);

        let counts = r.zeros("sheet_ladder_counts", RESIDUES, 1);
        let sheets = r.device("sheets", RESIDUES, 3);
        // A ladder begins with a bridge, which two residues have.
        let listed = r.device("sheet_ladders", RESIDUES, BRIDGES_MAX / 2);
        let args = sheet_number::Args {
            header,
            structures,
            keys,
            parents,
            counts,
            sheets,
            listed,
        };
        r.launch_blocks(STRUCTURES, args);

        // Three values for each of two bridges, the sheet, and two counts of bonds.
        let columns = r.nulls_unless_written::<i32>(TableName::Residues, "sheet_columns", 9);
        let args = sheet_columns::Args {
            header,
            structures,
            residues,
            hydrogens,
            energies: energies.buffer,
            bridges,
            keys,
            spans,
            parents,
            sheets,
            listed,
            columns: columns.buffer,
        };
        r.launch_threads(RESIDUES, args);
        (0..9).for_each(|value| r.column(columns, value));
    }
}
