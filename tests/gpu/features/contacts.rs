//! The table of contacts, on the GPU and on the CPU.

use super::*;
use tapeloop::features::ContactPoint;

/// Contacts of C-alphas, of C-betas of one chain, and of heavy atoms.
pub(super) fn configs() -> [FeatureConfig; 4] {
    use ContactPoint::{Any, Ca, Cb};
    [(Ca, false), (Cb, true), (Any, false), (Any, true)].map(|(point, own_chain)| {
        let mut config = FeatureConfig {
            features: vec![FeatureName::Contacts, FeatureName::ContactNumber],
            ..FeatureConfig::default()
        };
        config.contacts.point = point;
        config.contacts.own_chain = own_chain;
        config
    })
}

/// Some of them outgrow the room for their contacts.
#[test]
fn contacts_agree() {
    let pool = pool();
    let Some(gpu) = gpu() else { return };
    let mut structures: Vec<_> = (0..60).map(|n| structure(n * 7 % 130, n as u64)).collect();
    structures.push(structure(0, 1));
    for features in configs() {
        assert_agree_fused_or_not(&features, &gpu, &pool, &structures);
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
        assert_agree_fused_or_not(&features, &gpu, &pool, &read_all(&samples));
    }
}
