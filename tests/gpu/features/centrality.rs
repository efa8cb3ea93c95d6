//! Eigenvectors of chains of every length around that of the vectors in shared memory, with few and
//! with many contacts.

use super::*;

/// A structure of one chain, whose coordinates are multiplied by a fraction.
fn one_chain(residues: usize, (by, of): (i32, i32)) -> Structure {
    let mut one = structure(residues, residues as u64);
    for residue in &mut one.residues {
        residue.chain = 0;
    }
    one.chains.truncate(1);
    for value in one.xyz.iter_mut().flatten() {
        *value = *value / of * by;
    }
    one
}

#[test]
fn chains_of_every_length_and_density_agree() {
    let pool = pool();
    let Some(gpu) = gpu() else { return };
    let lengths = [
        1, 2, 3, 31, 33, 511, 513, 1023, 1024, 1025, 2815, 2816, 2817,
    ];
    // Made-up chains are denser than proteins. Three times as long they have few contacts; in an
    // eighth of the length a residue has more than a list holds, which proteins never have.
    let dense = lengths.map(|residues| one_chain(residues, (1, 1)));
    let sparse = lengths.map(|residues| one_chain(residues, (3, 1)));
    let crowded = [40, 600, 1025].map(|residues| one_chain(residues, (1, 8)));
    let structures: Vec<Structure> = dense.into_iter().chain(sparse).chain(crowded).collect();
    let features = FeatureConfig {
        features: vec![FeatureName::Centrality],
        ..FeatureConfig::default()
    };
    assert_agree_fused_or_not(&features, &gpu, &pool, &structures);
}
