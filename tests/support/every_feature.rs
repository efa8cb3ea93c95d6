//! A configuration in which every feature computes something.

use tapeloop::features::{
    Cluster, ContactPoint, Contacts, DepthChains, FeatureConfig, HydrogenBonds, Interfaces,
    Ligands, ResidueDepth,
};

/// All features, those included that compute nothing by default.
pub(crate) fn every_feature() -> FeatureConfig {
    FeatureConfig {
        cluster: Cluster {
            select: vec!["H".to_owned()],
            ..Cluster::default()
        },
        contacts: Contacts {
            point: ContactPoint::Ca,
            ..Contacts::default()
        },
        hydrogen_bonds: HydrogenBonds { keep: true },
        interfaces: Interfaces { keep: true },
        ligands: Ligands {
            keep: true,
            ..Ligands::default()
        },
        residue_depth: ResidueDepth {
            chains: DepthChains::All,
        },
        ..FeatureConfig::default()
    }
}
