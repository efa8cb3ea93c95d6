//! Which features, with which settings.

use super::b_factor::{BFactor, Plddt};
use super::ca_geometry::CaGeometry;
use super::centrality::Centrality;
use super::cluster::Cluster;
use super::columns::{ColumnDecl, TableName};
use super::contact_number::ContactNumber;
use super::contact_order::ContactOrder;
use super::dssp::Dssp;
use super::feature::{About, Feature, Setting};
use super::fused::Fusion;
use super::half_sphere::{HalfSphereA, HalfSphereB};
use super::interface::Interface;
use super::layout::REACH;
use super::protrusion::Protrusion;
use super::radius_of_gyration::RadiusOfGyration;
use super::reals::Reals;
use super::rsa::Rsa;
use super::sasa::Sasa;
use super::smooth::Smooth;
use super::torsions::Torsions;
use super::weighted_contact_number::WeightedContactNumber;
use crate::error::{Error, Result};

/// A distance cutoff on the 0.001 A lattice. Within means strictly less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cutoff {
    milli_angstrom: u32,
}

impl Cutoff {
    /// The largest, in A.
    pub const MAX_ANGSTROM: f64 = REACH as f64 / 1000.0;

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
            let max = Cutoff::MAX_ANGSTROM;
            Err(Error::config(format!(
                "a cutoff of {angstrom} A is not above 0 and at most {max} A"
            )))
        }
    }

    /// A cutoff of whole A, up to 37.
    pub(super) const fn of_angstrom(angstrom: u32) -> Self {
        Cutoff::of_milli_angstrom(angstrom * 1000)
    }

    /// A cutoff of so many 0.001 A, up to 37,000.
    pub(super) const fn of_milli_angstrom(milli_angstrom: u32) -> Self {
        assert!(milli_angstrom > 0 && milli_angstrom <= REACH);
        Cutoff { milli_angstrom }
    }

    /// The cutoff in A.
    pub fn angstrom(self) -> f64 {
        f64::from(self.milli_angstrom) / 1000.0
    }

    pub(super) fn milli_angstrom(self) -> u32 {
        self.milli_angstrom
    }

    /// As part of a column's name: `8`, `8_5`.
    pub(super) fn label(self) -> String {
        self.angstrom().to_string().replace('.', "_")
    }
}

/// Names of features, each with its settings in [`FeatureConfig`].
macro_rules! features {
    ($($(#[$doc:meta])* $variant:ident, $name:literal, $field:ident: $settings:ty;)*) => {
        /// A feature by the name that a config gives it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum FeatureName {
            $($(#[$doc])* $variant,)*
        }

        impl FeatureName {
            /// All of them, in the order of their columns.
            pub const ALL: &'static [FeatureName] = &[$(FeatureName::$variant),*];

            /// The name in a config.
            pub fn name(self) -> &'static str {
                match self {
                    $(FeatureName::$variant => $name,)*
                }
            }
        }

        /// The features to compute. Columns follow from it alone, not from the data.
        #[derive(Clone, Debug, PartialEq)]
        pub struct FeatureConfig {
            /// The features, each once.
            pub features: Vec<FeatureName>,
            /// Whether their launches are fused into one.
            pub fusion: Fusion,
            /// What real columns of residues are downloaded as.
            pub reals: Reals,
            $($(#[$doc])* pub $field: $settings,)*
        }

        impl Default for FeatureConfig {
            /// All features, with their usual settings.
            fn default() -> Self {
                FeatureConfig {
                    features: FeatureName::ALL.to_vec(),
                    fusion: Fusion::default(),
                    reals: Reals::default(),
                    $($field: <$settings>::default(),)*
                }
            }
        }

        impl FeatureConfig {
            pub(super) fn feature(&self, name: FeatureName) -> &dyn Feature {
                match name {
                    $(FeatureName::$variant => &self.$field,)*
                }
            }

            fn feature_mut(&mut self, name: FeatureName) -> &mut dyn Feature {
                match name {
                    $(FeatureName::$variant => &mut self.$field,)*
                }
            }
        }
    };
}

features! {
    /// Contact numbers around C-alphas and C-betas.
    ContactNumber, "contact_number", contact_number: ContactNumber;
    /// Weighted contact number.
    Wcn, "wcn", wcn: WeightedContactNumber;
    /// Half-sphere exposure from C-alphas.
    HseA, "hse_a", hse_a: HalfSphereA;
    /// Half-sphere exposure from C-betas.
    HseB, "hse_b", hse_b: HalfSphereB;
    /// Torsions of the backbone.
    Torsions, "torsions", torsions: Torsions;
    /// Angles of the C-alpha trace.
    CaGeometry, "ca_geometry", ca_geometry: CaGeometry;
    /// Secondary structure and hydrogen bonds.
    Dssp, "dssp", dssp: Dssp;
    /// Solvent-accessible area.
    Sasa, "sasa", sasa: Sasa;
    /// Relative solvent accessibility.
    Rsa, "rsa", rsa: Rsa;
    /// Interfaces between chains.
    Iface, "iface", iface: Interface;
    /// Protrusion.
    Protrusion, "protrusion", protrusion: Protrusion;
    /// Contact order.
    ContactOrder, "contact_order", contact_order: ContactOrder;
    /// Eigenvector centrality.
    Centrality, "centrality", centrality: Centrality;
    /// Clusters of selected residues.
    Cluster, "cluster", cluster: Cluster;
    /// Annotations smoothed over contacts.
    Smooth, "smooth", smooth: Smooth;
    /// B factors.
    BFactor, "b_factor", b_factor: BFactor;
    /// pLDDT.
    Plddt, "plddt", plddt: Plddt;
    /// Radius of gyration.
    Rg, "rg", rg: RadiusOfGyration;
}

impl FeatureName {
    /// Names for several features at once.
    pub const PRESETS: &'static [(&'static str, &'static [FeatureName])] = &[
        ("all", FeatureName::ALL),
        (
            "exposure",
            &[
                FeatureName::ContactNumber,
                FeatureName::Wcn,
                FeatureName::HseA,
                FeatureName::HseB,
                FeatureName::Sasa,
                FeatureName::Rsa,
                FeatureName::Protrusion,
            ],
        ),
        (
            "backbone",
            &[
                FeatureName::Torsions,
                FeatureName::CaGeometry,
                FeatureName::Dssp,
            ],
        ),
        ("interface", &[FeatureName::Iface]),
        (
            "graph",
            &[
                FeatureName::ContactOrder,
                FeatureName::Centrality,
                FeatureName::Smooth,
            ],
        ),
    ];
}

impl FeatureConfig {
    /// Settings that launch every kernel between them.
    pub fn of_all_kernels() -> Vec<Self> {
        let separate = FeatureConfig {
            fusion: Fusion::Off,
            cluster: Cluster {
                select: vec!["H".to_owned()],
            },
            ..FeatureConfig::default()
        };
        let narrow = |reals| FeatureConfig {
            reals,
            ..separate.clone()
        };
        // Beside interfaces, areas come from another kernel.
        let areas = FeatureConfig {
            features: vec![FeatureName::Sasa],
            ..separate.clone()
        };
        let fused = FeatureConfig {
            fusion: Fusion::On,
            ..separate.clone()
        };
        let (f16, bf16) = (narrow(Reals::F16), narrow(Reals::Bf16));
        vec![separate, f16, bf16, areas, fused]
    }

    /// The features asked for, in the order of their columns.
    fn chosen(&self) -> impl Iterator<Item = &dyn Feature> {
        let names = FeatureName::ALL.iter().copied();
        let chosen = names.filter(|name| self.features.contains(name));
        chosen.map(|name| self.feature(name))
    }

    /// What a feature is.
    pub fn about(&self, name: FeatureName) -> About {
        self.feature(name).about()
    }

    /// A feature's settings by their keys.
    pub fn settings(&self, name: FeatureName) -> Vec<(&'static str, Setting)> {
        self.feature(name).settings()
    }

    /// Changes a feature's setting.
    ///
    /// # Errors
    /// A key that the feature does not have, or a value that it cannot take.
    pub fn set(&mut self, name: FeatureName, key: &str, value: &Setting) -> Result<()> {
        self.feature_mut(name).set(key, value)
    }

    /// The columns of a feature.
    pub fn columns_of(&self, name: FeatureName) -> Vec<ColumnDecl> {
        let columns = self.feature(name).columns().into_iter();
        columns.map(|column| self.reals.stored(column)).collect()
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
        let columns = |table| -> Vec<_> {
            let columns = self.columns(table).into_iter();
            columns.map(|column| column.name).collect()
        };
        let repeat = first_repeat(&features)
            .or_else(|| first_repeat(&columns(TableName::Residues)))
            .or_else(|| first_repeat(&columns(TableName::Chains)))
            .or_else(|| first_repeat(&columns(TableName::Structures)));
        if let Some(name) = repeat {
            return Err(Error::config(format!("{name} is asked for twice")));
        }
        self.chosen()
            .try_for_each(|feature| self.check_settings(feature))?;
        self.check_all_compute()
    }

    /// Checks the settings of a feature and of those that it needs.
    fn check_settings(&self, feature: &dyn Feature) -> Result<()> {
        for (key, setting) in feature.settings() {
            setting.check(key)?;
        }
        feature.check()?;
        let mut needs = feature.about().needs.iter();
        needs.try_for_each(|name| self.check_settings(self.feature(*name)))
    }

    /// Whether no feature was named that lacks what it is to compute. Where all are
    /// asked for, such a one is left out.
    fn check_all_compute(&self) -> Result<()> {
        if self.features.len() == FeatureName::ALL.len() {
            return Ok(());
        }
        let idle = |name: &&FeatureName| self.columns_of(**name).is_empty();
        let Some(name) = self.features.iter().find(idle) else {
            return Ok(());
        };
        let error = Error::config(format!("{} has nothing to compute", name.name()));
        Err(match self.settings(*name).first() {
            Some((key, _)) => error.fix(format!("set {key}")),
            None => error,
        })
    }

    /// The columns of a table, in order.
    pub fn columns(&self, table: TableName) -> Vec<ColumnDecl> {
        let all = self.chosen().flat_map(|feature| feature.columns());
        let of_table = all.filter(|column| column.table == table);
        of_table.map(|column| self.reals.stored(column)).collect()
    }

    /// Records all features.
    pub(super) fn record(&self, recording: &mut super::recording::Recording<'_>) {
        for feature in self.chosen() {
            let before = recording.column_count();
            feature.record(recording);
            let recorded = recording.column_count() - before;
            assert_eq!(
                recorded,
                feature.columns().len(),
                "a result for each column"
            );
        }
    }
}
