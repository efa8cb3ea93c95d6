//! The table of contacts, on the GPU and on the CPU.

use super::*;
use crate::made_up::spread;
use tapeloop::features::ContactPoint;

/// Contacts of C-alphas, of C-betas of one chain and of heavy atoms, and nearest residues; with
/// hydrogen bonds.
pub(super) fn configs() -> [FeatureConfig; 7] {
    use ContactPoint::{Any, Ca, Cb};
    [
        (Ca, 0, false),
        (Cb, 0, true),
        (Any, 0, false),
        (Any, 0, true),
        (Ca, 30, false),
        (Cb, 64, true),
        (Any, 33, false),
    ]
    .map(|(point, nearest, own_chain)| {
        let mut config = FeatureConfig {
            features: vec![
                FeatureName::Contacts,
                FeatureName::ContactNumber,
                FeatureName::HydrogenBonds,
            ],
            ..FeatureConfig::default()
        };
        config.contacts.point = point;
        config.contacts.nearest = nearest;
        config.contacts.own_chain = own_chain;
        config.hydrogen_bonds.keep = true;
        config
    })
}

/// Some of them outgrow the room for their contacts.
#[test]
#[ignore = "needs a CUDA device"]
fn contacts_agree() {
    let pool = pool();
    let gpu = gpu();
    let mut structures: Vec<_> = (0..60).map(|n| structure(n * 7 % 130, n as u64)).collect();
    structures.push(structure(0, 1));
    // Residues that are farther apart than a search in cells reaches.
    structures.push(spread(structure(100, 3)));
    for features in configs() {
        assert_agree_fused_or_not(&features, &gpu, &pool, &structures);
        let samples = repository("samples");
        assert_agree_fused_or_not(&features, &gpu, &pool, &read_all(&samples));
    }
}
