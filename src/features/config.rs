//! The configuration: the features to compute, and their settings.

use super::columns::{ColumnDecl, TableName};
use super::feature::{About, Feature, Setting, unknown_setting_error};
use super::fused::Fusion;
use super::kernels::WithCode;
use super::own_kernels::OwnKernel;
use super::reals::Reals;
use super::recorder::{FeatureBuffers, FeatureRecorder};
use super::sasa::radius_excess;
use super::{fused, image};
use crate::backend::DeviceInfo;
use crate::error::{Error, Result};
use crate::record::Recorder;
use std::any::Any;
use {
    crate::record::Image,
    std::sync::{Arc, OnceLock},
};

/// The table of features, in the order of their columns: for each its variant of [`FeatureName`],
/// its name in a config, and the module and type of its settings.
macro_rules! features {
    ($($(#[$doc:meta])* $variant:ident, $field:ident: $module:ident::$settings:ident;)*) => {
        /// The settings of each feature.
        pub(super) mod settings {
            $(pub use super::super::$module::$settings;)*
        }

        /// A feature.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum FeatureName {
            $($(#[$doc])* $variant,)*
        }

        impl FeatureName {
            /// All features, in the order of their columns.
            pub const ALL: &'static [FeatureName] = &[$(FeatureName::$variant),*];

            /// The name in a config.
            pub fn name(self) -> &'static str {
                match self {
                    $(FeatureName::$variant => stringify!($field),)*
                }
            }
        }

        /// The features to compute. The columns of the tables follow from it alone, not from the
        /// data.
        #[derive(Clone, Debug, PartialEq)]
        pub struct FeatureConfig {
            /// The features, each once.
            pub features: Vec<FeatureName>,
            /// Whether their launches are fused into one launch.
            pub fusion: Fusion,
            /// The type that real columns of residues are downloaded as.
            pub reals: Reals,
            /// Kernels of the user's own, whose columns follow those of the features. They need a
            /// GPU.
            pub own_kernels: Vec<OwnKernel>,
            $($(#[$doc])* pub $field: settings::$settings,)*
        }

        impl Default for FeatureConfig {
            /// All features with their default settings.
            fn default() -> Self {
                FeatureConfig {
                    features: FeatureName::ALL.to_vec(),
                    fusion: Fusion::default(),
                    reals: Reals::default(),
                    own_kernels: Vec::new(),
                    $($field: settings::$settings::default(),)*
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
    ContactNumber, contact_number: contact_number::ContactNumber;
    /// Weighted contact number.
    Wcn, wcn: weighted_contact_number::WeightedContactNumber;
    /// Half-sphere exposure from C-alphas.
    HseA, hse_a: half_sphere::HalfSphereA;
    /// Half-sphere exposure from C-betas.
    HseB, hse_b: half_sphere::HalfSphereB;
    /// Torsions of the backbone.
    Torsions, torsions: torsions::Torsions;
    /// Angles of the C-alpha trace.
    CaGeometry, ca_geometry: ca_geometry::CaGeometry;
    /// Torsions of the side chains.
    SideChains, side_chains: side_chains::SideChains;
    /// Secondary structure and hydrogen bonds.
    Dssp, dssp: dssp::Dssp;
    /// Bridges, ladders and sheets of secondary structure.
    Sheets, sheets: dssp::Sheets;
    /// Solvent-accessible area.
    Sasa, sasa: sasa::Sasa;
    /// Relative solvent accessibility.
    Rsa, rsa: rsa::Rsa;
    /// The residues at interfaces between chains.
    InterfaceResidues, interface_residues: interface_residues::InterfaceResidues;
    /// Protrusion.
    Protrusion, protrusion: protrusion::Protrusion;
    /// Depths below the surface.
    ResidueDepth, residue_depth: residue_depth::ResidueDepth;
    /// Contact order.
    ContactOrder, contact_order: contact_order::ContactOrder;
    /// Eigenvector centrality.
    Centrality, centrality: centrality::Centrality;
    /// Clusters of selected residues.
    Cluster, cluster: cluster::Cluster;
    /// Annotations smoothed over contacts.
    Smooth, smooth: smooth::Smooth;
    /// B factors.
    BFactor, b_factor: b_factor::BFactor;
    /// pLDDT.
    Plddt, plddt: b_factor::Plddt;
    /// Radius of gyration.
    Rg, rg: radius_of_gyration::RadiusOfGyration;
    /// The table of contacts.
    Contacts, contacts: contacts::Contacts;
    /// The table of hydrogen bonds.
    HydrogenBonds, hydrogen_bonds: dssp::HydrogenBonds;
    /// The table of atoms.
    Atoms, atoms: sasa::Atoms;
    /// Ligands, ions and glycans.
    Ligands, ligands: ligands::Ligands;
    /// The table of interfaces.
    Interfaces, interfaces: interfaces::Interfaces;
    /// The table of interactions.
    Interactions, interactions: interactions::Interactions;
}

impl FeatureName {
    /// The feature whose first setting has this key, which switches the feature on where it is off
    /// by default.
    pub fn of_key(key: &str) -> Option<FeatureName> {
        let config = FeatureConfig::default();
        let has_key = |name: &FeatureName| {
            let settings = config.settings(*name);
            settings.first().is_some_and(|(first, _)| *first == key)
        };
        FeatureName::ALL.iter().copied().find(has_key)
    }

    /// Names of groups of features.
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
    /// The names of the features asked for, in the order of their columns.
    fn chosen_names(&self) -> impl Iterator<Item = FeatureName> {
        let names = FeatureName::ALL.iter().copied();
        names.filter(|name| self.features.contains(name))
    }

    /// The features asked for, in the order of their columns.
    fn chosen(&self) -> impl Iterator<Item = &dyn Feature> {
        self.chosen_names().map(|name| self.feature(name))
    }

    /// Whether a feature was asked for, and its settings give it something to compute.
    pub(super) fn computes(&self, name: FeatureName) -> bool {
        self.features.contains(&name) && !self.feature(name).columns().is_empty()
    }

    /// A feature's description.
    pub fn about(&self, name: FeatureName) -> About {
        let about = self.feature(name).about();
        match name {
            // Areas of atoms are terms of those of residues, whose settings choose algorithm and radii.
            FeatureName::Atoms => About {
                source: self.sasa.about().source,
                ..about
            },
            _ => about,
        }
    }

    /// The features whose results a feature needs.
    pub fn needs(&self, name: FeatureName) -> impl Iterator<Item = FeatureName> {
        let names = self.about(name).needs;
        let all = FeatureName::ALL.iter().copied();
        all.filter(move |other| names.contains(&other.name()))
    }

    /// A feature's settings by their keys.
    pub fn settings(&self, name: FeatureName) -> Vec<(&'static str, Setting)> {
        // `settings` borrows the fields mutably, so the values are read from a copy.
        let mut copy = self.clone();
        let settings = copy.feature_mut(name).settings().into_iter();
        settings.map(|(key, field)| (key, field.value())).collect()
    }

    /// Changes a feature's setting.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a key that the feature does not have, or
    /// a value that it cannot take.
    pub fn set(&mut self, name: FeatureName, key: &str, value: &Setting) -> Result<()> {
        let mut settings = self.feature_mut(name).settings().into_iter();
        match settings.find(|(other, _)| *other == key) {
            Some((_, field)) => field.set(key, value),
            None => Err(unknown_setting_error(key)),
        }
    }

    /// Lets a feature compute something that has no columns: changes its first setting, a flag to
    /// its opposite, a choice to the first other word, and a list of texts to `["H"]`, the code of
    /// a residue. Returns the key and the new value; `None`, and changes nothing, if the feature
    /// has columns already, or if its first setting is of another type.
    pub fn let_compute(&mut self, name: FeatureName) -> Option<(&'static str, Setting)> {
        if !self.columns_of(name).is_empty() {
            return None;
        }
        let (key, setting) = self.settings(name).into_iter().next()?;
        let setting = match setting {
            Setting::Choice(chosen, words) => {
                let word = words.iter().copied().find(|word| *word != chosen)?;
                Setting::Choice(word, words)
            }
            Setting::Texts(_) => Setting::Texts(vec!["H".to_owned()]),
            Setting::Flag(flag) => Setting::Flag(!flag),
            _ => return None,
        };
        self.set(name, key, &setting).ok()?;
        Some((key, setting))
    }

    /// The columns of a feature. Those in the table of another feature are there only if that feature
    /// is asked for, and its settings switch the table on.
    pub fn columns_of(&self, name: FeatureName) -> Vec<ColumnDecl> {
        self.declared(name).collect()
    }

    /// Whether a feature's column in `table` is computed: the table is always there, or the
    /// feature's own, or the feature that it belongs to is computed.
    fn has_table(&self, name: FeatureName, table: TableName) -> bool {
        static OWNERS: OnceLock<[Option<FeatureName>; TableName::ALL.len()]> = OnceLock::new();
        let owner_of = |table: TableName| table.decl().key.and_then(FeatureName::of_key);
        let owner = OWNERS.get_or_init(|| TableName::ALL.map(owner_of))[table as usize];
        owner.is_none_or(|owner| owner == name || self.computes(owner))
    }

    /// The columns of a feature as they are stored, with the feature's source.
    fn declared(&self, name: FeatureName) -> impl Iterator<Item = ColumnDecl> {
        let feature = self.feature(name);
        let source = self.about(name).source;
        let columns = feature.columns().into_iter();
        let columns = columns.filter(move |column| self.has_table(name, column.table));
        columns.map(move |column| ColumnDecl {
            source,
            ..self.reals.stored(column)
        })
    }

    /// Checks that something is computed, that no name of a feature or of a column occurs twice,
    /// the settings of each feature that was chosen, and that kernels of the user's own can read
    /// the tags. Else an [`ErrorKind::Config`](crate::ErrorKind::Config) error.
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
        if let Some(name) = first_repeat(&features) {
            let error = Error::config(format!("feature {name} is asked for twice"));
            return Err(error.fix("leave one of them out"));
        }
        for table in TableName::ALL {
            let columns = self.columns(table).into_iter();
            let columns: Vec<_> = columns.map(|column| column.name).collect();
            if let Some(name) = first_repeat(&columns) {
                return Err(self.taken_error(table, &name));
            }
        }
        self.chosen_names()
            .try_for_each(|name| self.check_settings(name))?;
        self.check_tags()?;
        self.check_all_compute()
    }

    /// The error of a column that is there twice: one that a kernel of the user's own writes, and a feature or
    /// another kernel too, or one of two equal settings, which an embedder may make.
    fn taken_error(&self, table: TableName, name: &str) -> Error {
        let is_it = |column: ColumnDecl| column.table == table && column.name == name;
        let mut kernels = self.own_kernels.iter().rev();
        let Some(kernel) = kernels.find(|kernel| kernel.columns().any(is_it)) else {
            let message = format!("two settings of a feature make the column {name:?}");
            return Error::config(message).fix("leave out one of two equal cutoffs or channels");
        };
        let kernel = kernel.name();
        let message = format!(
            "{kernel} has the column {name:?}, which a feature or another kernel has already"
        );
        Error::config(message)
            .fix("rename the kernel's parameter, or leave the kernel or the feature out")
    }

    /// Checks that the tags of atoms hold their radii, if a kernel of the user's own reads the
    /// tags. Else an [`ErrorKind::Config`](crate::ErrorKind::Config) error.
    fn check_tags(&self) -> Result<()> {
        let excess = radius_excess(self.sasa.radii);
        match self.own_kernels.iter().find(|kernel| kernel.reads_atoms()) {
            Some(kernel) if excess > 0 => {
                let (kernel, radii) = (kernel.name(), self.sasa.radii.name());
                let message = format!(
                    "{kernel} reads `atoms`, whose tags have no room for the radii {radii:?}"
                );
                Err(Error::config(message).fix("leave sasa.radii out, or the kernel"))
            }
            _ => Ok(()),
        }
    }

    /// Checks the settings of a feature and of those that it needs, which are computed too.
    fn check_settings(&self, name: FeatureName) -> Result<()> {
        let feature = self.feature(name);
        for (key, setting) in self.settings(name) {
            setting.check(key)?;
        }
        feature.check()?;
        self.needs(name)
            .try_for_each(|needed| self.check_settings(needed))
    }

    /// Checks that no feature was requested by name whose settings give it nothing to compute, such
    /// as a table that is not switched on. If all features are requested, the default, such a
    /// feature is left out. Else an [`ErrorKind::Config`](crate::ErrorKind::Config) error.
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
            Some((key, Setting::Choice(chosen, words))) => {
                let others = words.iter().filter(|word| *word != chosen);
                let others: Vec<String> = others.map(|word| format!("\"{word}\"")).collect();
                error.fix(format!("set {key} = {}", others.join(" or ")))
            }
            Some((key, _)) => error.fix(format!("set {key}")),
            None => error,
        })
    }

    /// The columns of a table, in order.
    pub fn columns(&self, table: TableName) -> Vec<ColumnDecl> {
        let all = self.chosen_names().flat_map(|name| self.declared(name));
        let own_columns = self.own_kernels.iter().flat_map(OwnKernel::columns);
        let all = all.chain(own_columns.map(|column| self.reals.stored(column)));
        all.filter(|column| column.table == table).collect()
    }

    /// The images of the built-in kernels, of all features, and of the user's own; that of the fused
    /// kernel if fusion is on.
    #[doc(hidden)]
    pub fn images(&self) -> Vec<Arc<Image>> {
        let fused = (self.fusion == Fusion::On).then(fused::image);
        let own_images = self.own_kernels.iter().map(OwnKernel::image);
        let built_in = image::images().map(|(_, image)| image);
        built_in.chain(fused).chain(own_images).collect()
    }

    /// Records the features asked for, then the kernels of the user's own; `with_code` attaches the code
    /// of all kernels.
    pub(super) fn record(
        &self,
        recorder: &mut Recorder,
        device: &DeviceInfo,
        with_code: WithCode,
    ) -> Result<FeatureBuffers> {
        let all = FeatureName::ALL
            .iter()
            .map(|name| self.feature(*name) as &dyn Any);
        let requested = self.chosen().map(|feature| feature as &dyn Any);
        let mut recorder =
            FeatureRecorder::new(recorder, all.collect(), requested.collect(), self.reals);
        for name in self.chosen_names() {
            let before = recorder.column_count();
            self.feature(name).record(&mut recorder);
            let recorded = recorder.column_count() - before;
            let declared = self.declared(name).count();
            assert_eq!(recorded, declared, "a result for each column");
        }
        for kernel in &self.own_kernels {
            kernel.record(&mut recorder);
        }
        recorder.finish(self.fusion, device, with_code)
    }
}
