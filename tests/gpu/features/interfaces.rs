//! The table of interfaces, on the GPU and on the CPU.

use super::*;
use tapeloop::features::{Interfaces, Setting};
use tapeloop::structure::Chain;

/// Interfaces alone, and with the features whose launches they share; with other distances too.
pub(super) fn configs() -> [FeatureConfig; 3] {
    let alone = vec![FeatureName::Interfaces];
    let shared = [
        FeatureName::InterfaceResidues,
        FeatureName::Sasa,
        FeatureName::Dssp,
    ];
    let shared = [&alone[..], &shared].concat();
    [
        (alone.clone(), 5.0, 1.4),
        (shared, 12.0, 3.0),
        (alone, 2.0, 16.0),
    ]
    .map(|(features, cutoff, probe)| {
        let mut config = FeatureConfig {
            features,
            interfaces: Interfaces { keep: true },
            ..FeatureConfig::default()
        };
        config.interface_residues.cutoff = Cutoff::from_angstrom(cutoff).unwrap();
        config.sasa.probe = Cutoff::from_angstrom(probe).unwrap();
        config
    })
}

/// Makes every feature that searches for neighbours leave other chains out.
pub(super) fn leave_other_chains_out(features: &mut FeatureConfig) {
    for &name in FeatureName::ALL {
        for (key, _) in features.settings(name) {
            if key.ends_with(".chains") {
                let own_chain = Setting::Choice("own", &["all", "own"]);
                features.set(name, key, &own_chain).unwrap();
            }
        }
    }
}

/// The structure with its residues dealt out to chains in turn, `stretch` residues at a time.
fn in_chains(mut s: Structure, stretch: usize, chains: usize) -> Structure {
    s.chains = vec![Chain::default(); chains];
    for (index, residue) in s.residues.iter_mut().enumerate() {
        residue.chain = (index / stretch * 7 % chains) as u32;
    }
    for span in &mut s.loose {
        span.chain = chains as u32 - 1;
    }
    s
}

/// Some have more than 64 chains, and some outgrow the room for their interfaces.
#[test]
#[ignore = "needs a CUDA device"]
fn interfaces_agree() {
    let pool = pool();
    let gpu = gpu();
    let mut structures: Vec<_> = (0..40).map(|n| structure(n * 7 % 130, n as u64)).collect();
    for (stretch, chains) in [(1, 300), (3, 100), (40, 5)] {
        structures.push(in_chains(structure(300, chains as u64), stretch, chains));
    }
    structures.push(structure(0, 1));
    for features in configs() {
        assert_agree_fused_or_not(&features, &gpu, &pool, &structures);
        let samples = repository("samples");
        assert_agree_fused_or_not(&features, &gpu, &pool, &read_all(&samples));
    }
}
