//! The table of interactions on a card, with its counts by residue and by interface.

use super::{Fusion, assert_agree_by, gpu, list, pool};
use crate::made_up::{structure, with_ligands, with_rings_on_lines};
use tapeloop::features::{Cutoff, FeatureConfig, FeatureName};
use tapeloop::structure::{ReadOptions, Reader, Structure};
use tapeloop_test_support::repository;

fn config() -> FeatureConfig {
    let mut config = FeatureConfig {
        features: vec![FeatureName::Interfaces, FeatureName::Interactions],
        ..FeatureConfig::default()
    };
    (config.interfaces.keep, config.interactions.keep) = (true, true);
    config
}

/// All samples with what their atoms can take part in, nucleotides and ligands included.
fn with_chemistry() -> Vec<Structure> {
    let mut reader = Reader::new(ReadOptions {
        chemistry: true,
        ligands: true,
        agents: true,
        ..ReadOptions::default()
    });
    let mut files = Vec::new();
    list(&repository("samples"), &mut files);
    let structures = files.iter().filter_map(|file| reader.read_path(file).ok());
    let first_models = structures.filter_map(|models| models.into_iter().next());
    first_models.collect()
}

#[test]
#[ignore = "needs a CUDA device"]
fn interactions_agree() {
    let (pool, gpu) = (pool(), gpu());
    let samples = with_chemistry();
    let made_up: Vec<_> = (0..40)
        .map(|n| with_ligands(structure(n * 37 % 200, n as u64), n as u64))
        .collect();
    let without_planes: Vec<_> = samples.iter().cloned().map(with_rings_on_lines).collect();
    let mut far = config();
    let interactions = &mut far.interactions;
    for cutoff in [
        &mut interactions.hydrogen_bond,
        &mut interactions.salt_bridge,
        &mut interactions.pi_stacking,
        &mut interactions.cation_pi,
        &mut interactions.ring_offset,
        &mut interactions.hydrophobic,
    ] {
        *cutoff = Cutoff::from_angstrom(8.0).unwrap();
    }
    let mut edges = config();
    edges.interactions.kinds = vec!["pi_stacking_edge".to_owned()];
    for config in [config(), far, edges] {
        for structures in [&samples, &made_up, &without_planes] {
            assert_agree_by(&[Fusion::Off, Fusion::On], &config, &gpu, &pool, structures);
        }
    }
}

/// Small enough for a race checker.
#[test]
#[ignore = "needs a CUDA device"]
fn a_few_interactions_agree_in_separate_launches() {
    let (pool, gpu) = (pool(), gpu());
    let mut samples = with_chemistry();
    samples.retain(|structure| (100..1_500).contains(&structure.xyz.len()));
    samples.truncate(6);
    assert_agree_by(&[Fusion::Off], &config(), &gpu, &pool, &samples);
}
