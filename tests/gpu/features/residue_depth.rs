//! Residue depth, on the GPU and on the CPU.

use super::*;
use crate::made_up::spread;
use tapeloop::features::{DepthChains, ResidueDepth};
use tapeloop::structure::Radii;

pub(super) const OF_MODEL: ResidueDepth = ResidueDepth {
    chains: DepthChains::All,
};

/// Depths alone, and with the areas whose test points they share; at the ends of the settings.
fn configs() -> [FeatureConfig; 5] {
    let alone = vec![FeatureName::ResidueDepth];
    let shared = vec![
        FeatureName::ResidueDepth,
        FeatureName::Sasa,
        FeatureName::InterfaceResidues,
    ];
    [
        (&alone, DepthChains::All, 256, 1.4),
        (&shared, DepthChains::Own, 100, 1.4),
        (&shared, DepthChains::All, 1024, 1.4),
        (&alone, DepthChains::Own, 33, 16.0),
        (&alone, DepthChains::All, 20, 0.001),
    ]
    .map(|(features, chains, points, probe)| {
        let mut config = FeatureConfig {
            features: features.clone(),
            residue_depth: ResidueDepth { chains },
            ..FeatureConfig::default()
        };
        config.sasa.points = points;
        config.sasa.probe = Cutoff::from_angstrom(probe).unwrap();
        config
    })
}

/// Some have bodies apart from each other, and some outgrow the room for their points.
#[test]
#[ignore = "needs a CUDA device"]
fn depths_agree() {
    let pool = pool();
    let gpu = gpu();
    let mut structures: Vec<_> = (0..40).map(|n| structure(n * 7 % 130, n as u64)).collect();
    structures.extend([structure(0, 1), crowded(2), spread(structure(100, 3))]);
    for features in configs() {
        assert_agree_fused_or_not(&features, &gpu, &pool, &structures);
        let samples = repository("samples");
        assert_agree_fused_or_not(&features, &gpu, &pool, &read_all(&samples));
    }
}

/// Radii above 1.9 A are counted as part of the probe, and depths get that back.
#[test]
#[ignore = "needs a CUDA device"]
fn areas_and_depths_agree_with_larger_radii() {
    let (pool, gpu) = (pool(), gpu());
    let radii = Radii::named("bondi").unwrap();
    let mut structures: Vec<_> = (0..20).map(|n| structure(n * 7 % 130, n as u64)).collect();
    structures.push(with_ligands(structure(90, 5), 5));
    // Their classes are those of ProtOr, whose indices the other set has too.
    structures.iter_mut().for_each(|s| s.radii = radii);
    let mut features = features();
    features.sasa.radii = radii;
    assert_agree_fused_or_not(&features, &gpu, &pool, &structures);
}
