//! Settings and structures that are refused.

use super::*;

#[test]
fn a_bucket_of_more_chains_than_a_tile_can_name_is_refused() {
    let features = Features::new(FeatureConfig::default()).unwrap();
    let backend = CpuBackend::inline();
    let chains = features.axes().iter().position(|axis| *axis == "chains");
    let chains = chains.unwrap();
    let record = |more: u32| {
        let mut capacity = *Features::capacity(16)
            .as_slice()
            .first_chunk::<6>()
            .unwrap();
        capacity[chains] = (1 << 19) + more;
        let mut recorder = Recorder::new(&capacity);
        features.record(&mut recorder, backend.device()).map(drop)
    };
    record(0).unwrap();
    let error = record(1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.to_string().contains("524288 chains"), "{error}");
    let largest = Features::capacity(u32::MAX / 32);
    assert_eq!(largest.as_slice()[chains], 1 << 19);
}

#[test]
fn settings_of_features_that_others_need_are_checked_too() {
    for (name, points) in [
        (FeatureName::Rsa, 0),
        (FeatureName::InterfaceResidues, u32::MAX),
    ] {
        let config = FeatureConfig {
            features: vec![name],
            sasa: Sasa {
                points,
                ..Sasa::default()
            },
            ..FeatureConfig::default()
        };
        let error = Features::new(config).err().unwrap().to_string();
        let expected = format!("sasa.points of {points}");
        assert!(error.contains(&expected), "{name:?}: {error}");
    }
}

#[test]
fn atoms_in_one_point_reject_their_structure_and_no_other() {
    let good = structure(300, 1);
    let mut dense = structure(300, 2);
    dense.xyz.fill([1_000; 3]);
    let pool = pool(1);
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let engine_config = EngineConfig::new(Features::capacity(1024));
    let run = |name: FeatureName, structures: [&Structure; 3]| {
        let mut config = FeatureConfig {
            features: vec![name],
            ..every_feature()
        };
        config.contacts.nearest = 4;
        let workload = Features::new(config).unwrap();
        let backends = [Arc::clone(&backend)];
        let mut engine =
            Engine::new(workload, &backends, Arc::clone(&pool), &engine_config).unwrap();
        let inputs = structures.map(|structure| Input::new("", 0, Ok(structure.clone())));
        let mut results = Vec::new();
        engine
            .run(inputs.into_iter(), &mut |completion: Completion<
                Features,
            >| {
                results.push(completion.result.map_err(|error| error.to_string()));
                Ok(())
            })
            .unwrap();
        results
    };
    // The radius of gyration and the weighted contact number sort nothing into cells.
    let names = [
        FeatureName::Sasa,
        FeatureName::Centrality,
        FeatureName::Rg,
        FeatureName::Wcn,
        FeatureName::ResidueDepth,
        FeatureName::Dssp,
        FeatureName::ContactOrder,
        FeatureName::Protrusion,
        FeatureName::HseA,
        FeatureName::ContactNumber,
        FeatureName::Contacts,
    ];
    for name in names {
        let results = run(name, [&good, &dense, &good]);
        let error = results[1].as_ref().unwrap_err();
        let start = "write: more than 256 ";
        assert!(error.starts_with(start), "{name:?}: {error}");
        let tables = [&results[0], &results[2]].map(|table| table.clone().unwrap());
        assert_eq!(bits(&tables[..1]), bits(&tables[1..]));
        let alone = run(name, [&good; 3]);
        assert_eq!(bits(&tables[..1]), bits(&[alone[0].clone().unwrap()]));
    }
    // 150 atoms in each of some cells.
    let mut crowded = structure(300, 3);
    let atoms = crowded.xyz.iter_mut().enumerate();
    atoms.for_each(|(index, position)| *position = [index as i32 / 150 * 8_192, 0, 0]);
    let results = run(FeatureName::Sasa, [&good, &crowded, &good]);
    let error = results[1].as_ref().unwrap_err();
    assert!(
        error.contains("more than 128 atoms") && error.contains("on average"),
        "{error}"
    );
    assert!(results[0].is_ok() && results[2].is_ok());
    // Where a feature reads both, the atoms of a ligand count with those of residues.
    let mut with_ligand = with_ligands(structure(70, 4), 4);
    let atom = with_ligand.ligands[0].atoms[0];
    with_ligand.ligands[0].atoms = vec![atom; 300].into();
    let ligand_results = run(FeatureName::Ligands, [&good, &with_ligand, &good]);
    let error = ligand_results[1].as_ref().unwrap_err();
    assert!(error.starts_with("write: more than 256 atoms"), "{error}");
    assert!(ligand_results[0].is_ok() && ligand_results[2].is_ok());
    assert!(run(FeatureName::Sasa, [&good, &with_ligand, &good])[1].is_ok());
}

#[test]
fn more_steps_of_centrality_than_the_settings_allow_are_refused() {
    for steps in [0, 1_000_000] {
        let error = Features::new(FeatureConfig {
            features: vec![FeatureName::Centrality],
            centrality: Centrality { steps },
            ..FeatureConfig::default()
        });
        let error = error.err().unwrap().to_string();
        assert!(error.contains(&format!("steps of {steps}")), "{error}");
    }
}

#[test]
fn equal_settings_and_words_that_a_setting_lacks_are_named_as_such() {
    let mut config = FeatureConfig {
        features: vec![FeatureName::ContactNumber],
        ..FeatureConfig::default()
    };
    config.contact_number.ca = vec![config.contact_number.ca[0]; 2];
    let error = Features::new(config.clone()).err().unwrap().to_string();
    assert!(error.contains("two settings of a feature"), "{error}");
    let words = config.settings(FeatureName::Dssp).into_iter();
    let choice = |(key, setting)| match setting {
        Setting::Choice(..) => Some(key),
        _ => None,
    };
    for key in words.filter_map(choice) {
        let unknown = Setting::Choice("neither", &[]);
        let error = config.set(FeatureName::Dssp, key, &unknown).unwrap_err();
        let expected = format!("{key} has no word \"neither\"");
        assert!(error.to_string().contains(&expected), "{error}");
    }
}

#[test]
fn c_betas_of_backbones_as_far_apart_as_numbers_go_are_built() {
    let (least, most) = ([i32::MIN; 3], [i32::MAX; 3]);
    for position in [
        virtual_c_beta(least, most, least),
        virtual_c_beta(most, least, [0; 3]),
    ] {
        assert_eq!(position, [position[0]; 3]);
    }
}
