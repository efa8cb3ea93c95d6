//! Which features, with which parameters.

use super::columns::{ColumnDecl, ColumnKind};
use super::layout::REACH;
use crate::error::{Error, Result};

/// A distance cutoff on the 0.001 A lattice. Within means strictly less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cutoff {
    milli_angstrom: u32,
}

impl Cutoff {
    /// A cutoff of `angstrom`, to the nearest 0.001 A.
    ///
    /// # Errors
    /// If it is not above 0 and at most 37 A: kernels compare squared distances
    /// in 32 bits.
    pub fn from_angstrom(angstrom: f64) -> Result<Self> {
        let milli = (angstrom * 1000.0).round();
        if milli >= 1.0 && milli <= f64::from(REACH) {
            Ok(Cutoff {
                milli_angstrom: milli as u32,
            })
        } else {
            let max = f64::from(REACH) / 1000.0;
            Err(Error::config(format!(
                "a cutoff of {angstrom} A is not above 0 and at most {max} A"
            )))
        }
    }

    /// The cutoff in A.
    pub fn angstrom(self) -> f64 {
        f64::from(self.milli_angstrom) / 1000.0
    }

    pub(super) fn squared(self) -> u32 {
        self.milli_angstrom.pow(2)
    }

    /// As part of a column's name: `8`, `8_5`.
    fn label(self) -> String {
        self.angstrom().to_string().replace('.', "_")
    }
}

/// A feature by the name that a config gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FeatureName {
    /// Contact numbers around C-alphas and C-betas.
    ContactNumber,
    /// Weighted contact number.
    Wcn,
    /// Half-sphere exposure from C-alphas.
    HseA,
    /// B-factor z-score.
    BZ,
    /// Radius of gyration.
    Rg,
}

impl FeatureName {
    /// All of them, in the order of their columns.
    pub const ALL: [FeatureName; 5] = [
        FeatureName::ContactNumber,
        FeatureName::Wcn,
        FeatureName::HseA,
        FeatureName::BZ,
        FeatureName::Rg,
    ];

    /// The name in a config.
    pub fn name(self) -> &'static str {
        match self {
            FeatureName::ContactNumber => "contact_number",
            FeatureName::Wcn => "wcn",
            FeatureName::HseA => "hse_a",
            FeatureName::BZ => "b_z",
            FeatureName::Rg => "rg",
        }
    }
}

/// The features to compute. Columns follow from it alone, not from the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureConfig {
    /// The features, each once.
    pub features: Vec<FeatureName>,
    /// Cutoffs of contact numbers around C-alphas.
    pub contact_ca: Vec<Cutoff>,
    /// Cutoffs of contact numbers around C-betas.
    pub contact_cb: Vec<Cutoff>,
    /// Radius of half-sphere exposure.
    pub hse_radius: Cutoff,
}

impl Default for FeatureConfig {
    /// All features; contact numbers at 8, 10 and 12 A around C-alphas and at 8
    /// and 10 A around C-betas; half spheres of 12 A.
    fn default() -> Self {
        let cutoff = |angstrom: u32| Cutoff {
            milli_angstrom: angstrom * 1000,
        };
        FeatureConfig {
            features: FeatureName::ALL.to_vec(),
            contact_ca: [8, 10, 12].map(cutoff).to_vec(),
            contact_cb: [8, 10].map(cutoff).to_vec(),
            hse_radius: cutoff(12),
        }
    }
}

impl FeatureConfig {
    pub(super) fn has(&self, feature: FeatureName) -> bool {
        self.features.contains(&feature)
    }

    /// Cutoffs around C-alphas, none if contact numbers are not asked for.
    pub(super) fn ca_cutoffs(&self) -> &[Cutoff] {
        if self.has(FeatureName::ContactNumber) {
            &self.contact_ca
        } else {
            &[]
        }
    }

    /// Cutoffs around C-betas, none if contact numbers are not asked for.
    pub(super) fn cb_cutoffs(&self) -> &[Cutoff] {
        if self.has(FeatureName::ContactNumber) {
            &self.contact_cb
        } else {
            &[]
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let first_repeat = |names: &[String]| -> Option<String> {
            (1..names.len())
                .find(|&i| names[..i].contains(&names[i]))
                .map(|i| names[i].clone())
        };
        if self.features.is_empty() {
            return Err(Error::config("no feature is asked for"));
        }
        let features: Vec<_> = self.features.iter().map(|f| f.name().to_owned()).collect();
        let columns: Vec<_> = self.residue_columns().into_iter().map(|c| c.name).collect();
        if let Some(name) = first_repeat(&features).or_else(|| first_repeat(&columns)) {
            return Err(Error::config(format!("{name} is asked for twice")));
        }
        if self.has(FeatureName::ContactNumber)
            && self.contact_ca.is_empty()
            && self.contact_cb.is_empty()
        {
            return Err(Error::config("contact_number has no cutoff"));
        }
        Ok(())
    }

    /// Columns with one value for each residue, in order.
    pub fn residue_columns(&self) -> Vec<ColumnDecl> {
        let mut columns = Vec::new();
        let mut column = |name: String, kind, unit, about: String| {
            columns.push(ColumnDecl {
                name,
                kind,
                unit,
                about,
            });
        };
        for cutoff in self.ca_cutoffs() {
            let about = format!(
                "Other C-alphas of the model closer than {} A to the C-alpha.",
                cutoff.angstrom()
            );
            column(
                format!("cn_ca_{}", cutoff.label()),
                ColumnKind::Count,
                "",
                about,
            );
        }
        for cutoff in self.cb_cutoffs() {
            let about = format!(
                "Other C-betas of the model closer than {} A to the C-beta, which is built from \
                 N, CA and C for glycine and where it is missing.",
                cutoff.angstrom()
            );
            column(
                format!("cn_cb_{}", cutoff.label()),
                ColumnKind::Count,
                "",
                about,
            );
        }
        if self.has(FeatureName::Wcn) {
            let about = "Sum of 1/d^2 over the other C-alphas of the model (Lin et al. 2008).";
            column(
                "wcn".to_owned(),
                ColumnKind::Real,
                "1/A^2",
                about.to_owned(),
            );
        }
        if self.has(FeatureName::HseA) {
            for (name, side) in [("hse_a_up", "side chain's"), ("hse_a_down", "other")] {
                let about = format!(
                    "C-alphas closer than {} A on the {side} side of the plane normal to the \
                     bisector of the neighbouring C-alphas (Hamelryck 2005).",
                    self.hse_radius.angstrom()
                );
                column(name.to_owned(), ColumnKind::Count, "", about);
            }
        }
        if self.has(FeatureName::BZ) {
            let about = "B factor of the C-alpha less the chain's mean, over the chain's \
                         population standard deviation.";
            column("b_z".to_owned(), ColumnKind::Real, "", about.to_owned());
        }
        columns
    }

    /// Columns with one value for each structure, in order.
    pub fn structure_columns(&self) -> Vec<ColumnDecl> {
        if !self.has(FeatureName::Rg) {
            return Vec::new();
        }
        let column = |name: &str, of: &str| ColumnDecl {
            name: name.to_owned(),
            kind: ColumnKind::Real,
            unit: "A",
            about: format!("Radius of gyration of {of}, all of one weight."),
        };
        vec![
            column("rg", "all selected atoms"),
            column("rg_ca", "the C-alphas"),
        ]
    }
}
