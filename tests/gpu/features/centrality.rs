//! Eigenvectors of chains of every length around that of the vectors in shared memory, with few and
//! with many contacts.

use super::*;

/// A structure of one chain, whose coordinates are multiplied by `factor`.
fn one_chain(residues: usize, factor: i32) -> Structure {
    let mut one = structure(residues, residues as u64);
    for residue in &mut one.residues {
        residue.chain = 0;
    }
    one.chains.truncate(1);
    for value in one.xyz.iter_mut().flatten() {
        *value *= factor;
    }
    one
}

#[test]
#[ignore = "needs a CUDA device"]
fn chains_of_every_length_and_density_agree() {
    let pool = pool();
    let gpu = gpu();
    let lengths = [
        1, 2, 3, 31, 33, 511, 513, 1023, 1024, 1025, 2815, 2816, 2817,
    ];
    // Most residues of a made-up chain have more contacts than a list holds, which those of
    // proteins never have. Scaled by three, no residue has more than 29.
    let structures = [1, 3].map(|factor| lengths.map(|residues| one_chain(residues, factor)));
    let features = FeatureConfig {
        features: vec![FeatureName::Centrality],
        ..FeatureConfig::default()
    };
    assert_agree_fused_or_not(&features, &gpu, &pool, structures.as_flattened());
}
