//! Structures at the edges of definitions and limits.

use super::*;

/// A structure of residues that have only a C-alpha, each linked to the one before.
fn structure_of_c_alphas(positions: &[[i32; 3]]) -> Structure {
    let mut s = structure(positions.len(), 0);
    s.xyz = positions.to_vec();
    s.loose.clear();
    s.element = vec![6; positions.len()];
    s.class = vec![AtomClass::of(*b"ALA     ", *b"CA      ", 6); positions.len()];
    s.b_factor = (0..positions.len()).map(|index| index as f32).collect();
    s.atom_start = (0..=positions.len() as u32).collect();
    for (index, residue) in s.residues.iter_mut().enumerate() {
        (residue.ca, residue.cb) = (index as u32, MISSING);
        (residue.n, residue.c) = (MISSING, MISSING);
        residue.break_before = index == 0;
    }
    s
}

#[test]
fn a_distance_of_exactly_the_cutoff_is_outside() {
    // 4.8, 6.4 and 8 make a right triangle.
    let around = |p: [i32; 3]| structure_of_c_alphas(&[[0, 0, 0], p]);
    let positions = [[8000, 0, 0], [0, -8000, 0], [4800, 6400, 0], [8001, 0, 0]].map(around);
    let inside = [[7999, 0, 0], [4800, 6399, 0], [0, 0, -7999]].map(around);
    let far = [[100_000_000, -100_000_000, 100_000_000]].map(around);
    let config = EngineConfig::new(Features::capacity(64));
    let assert_near = |structures: &[Structure], count: i32| {
        for table in compute(structures, &config, 1) {
            let column = table.column(TableName::Residues, 0);
            assert_eq!(column, Column::Count(&[count, count]));
        }
    };
    assert_near(&positions, 0);
    assert_near(&inside, 1);
    assert_near(&far, 0);
}

#[test]
fn the_largest_cutoff_is_exact_too() {
    let cutoff = Cutoff::from_angstrom(37.0).unwrap();
    let features = FeatureConfig {
        features: vec![FeatureName::ContactNumber],
        contact_number: ContactNumber {
            ca: vec![cutoff],
            cb: vec![],
            own_chain: false,
        },
        ..FeatureConfig::default()
    };
    let pairs = [
        [36_999, 0, 0],
        [37_000, 0, 0],
        [22_200, 29_600, 0],
        [22_200, 29_599, 0],
    ];
    let pairs = pairs.map(|p| structure_of_c_alphas(&[[0, 0, 0], p]));
    let config = EngineConfig::new(Features::capacity(64));
    let tables = compute_with(features, &pairs, &config, 1);
    assert_eq!(tables.len(), 4);
    for (table, count) in tables.iter().zip([1, 0, 0, 1]) {
        let column = table.column(TableName::Residues, 0);
        assert_eq!(column, Column::Count(&[count, count]));
    }
}

#[test]
fn a_residue_without_c_alpha_is_null_and_no_neighbour() {
    let mut s = structure(40, 3);
    s.residues[20].ca = MISSING;
    let config = EngineConfig::new(Features::capacity(64));
    let table = &compute(slice::from_ref(&s), &config, 1)[0];
    assert_matches(&s, table);
    let c_alpha_columns = [
        "cn_ca_8", "wcn", "hse_a_up", "hse_b_up", "phi", "ss8", "b_ca", "b_z",
    ];
    for column in c_alpha_columns.map(|name| residue_column(table, name)) {
        match column {
            Column::Count(values) => assert_eq!(values[20], NULL_COUNT),
            Column::Real(values) => assert!(values[20].is_nan()),
        }
    }
    // Its C-beta counts, and is counted, as long as the file has it.
    let near_c_betas = |s: &Structure| {
        let table = &compute(slice::from_ref(s), &config, 1)[0];
        match residue_column(table, "cn_cb_10") {
            Column::Count(values) => values.to_vec(),
            Column::Real(_) => panic!("cn_cb_10 is a count"),
        }
    };
    let with = near_c_betas(&s);
    assert!(s.residues[20].cb != MISSING && with[20] > 0);
    s.residues[20].cb = MISSING;
    let without = near_c_betas(&s);
    assert_eq!(without[20], NULL_COUNT);
    let lost = with
        .iter()
        .zip(&without)
        .filter(|(with, without)| with > without);
    assert_eq!(lost.count(), with[20] as usize + 1);
}

#[test]
fn structures_that_no_reader_makes_are_refused_or_harmless() {
    let good = structure(60, 5);
    let mut linked_at_the_start = structure(60, 6);
    linked_at_the_start.residues[0].break_before = false;
    // A backbone torn apart builds its C-beta millions of A away.
    let mut torn = structure(60, 7);
    let (n, c) = (torn.residues[9].n as usize, torn.residues[9].c as usize);
    torn.residues[9].cb = MISSING;
    (torn.xyz[n], torn.xyz[c]) = ([90_000_000, 0, 0], [0, -90_000_000, 5]);
    let mut beyond = structure(60, 8);
    beyond.xyz[3] = [100_000_001, 0, 0];
    let mut chainless = structure(60, 9);
    chainless.residues[30].chain = 77;
    let all = [
        good.clone(),
        linked_at_the_start,
        beyond,
        torn,
        chainless,
        good,
    ];

    let pool = pool(2);
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let config = EngineConfig::new(Features::capacity(1024));
    let workload = Features::new(FeatureConfig::default()).unwrap();
    let mut engine = Engine::new(workload, &[backend], pool, &config).unwrap();
    let results: Vec<_> = tables::outcomes(&mut engine, all.iter())
        .into_iter()
        .map(|outcome| outcome.map_err(|error| error.message().to_owned()))
        .collect();
    assert_eq!(
        bits(slice::from_ref(results[0].as_ref().unwrap())),
        bits(slice::from_ref(results[5].as_ref().unwrap()))
    );
    let Column::Count(up) = residue_column(results[1].as_ref().unwrap(), "hse_a_up") else {
        panic!("counts")
    };
    assert_eq!(
        up[0], NULL_COUNT,
        "the first residue has no plane, whatever its link says"
    );
    assert!(results[2].as_ref().unwrap_err().contains("100000 A"));
    let torn = results[3].as_ref().unwrap();
    let Column::Count(cb) = torn.column(TableName::Residues, 3) else {
        panic!("counts")
    };
    assert_eq!(cb[9], NULL_COUNT);
    assert!(results[4].as_ref().unwrap_err().contains("chain"));
}

#[test]
fn a_structure_of_100000_residues_is_right() {
    // C-alphas 3.8 A apart in ten rows 100 A apart: how many are within 8 A needs
    // no search.
    let (count, row) = (100_000i32, 10_000);
    let place = |index| [(index % row) * 3800, (index / row) * 100_000, 0];
    let line = structure_of_c_alphas(&(0..count).map(place).collect::<Vec<[i32; 3]>>());
    let mut config = EngineConfig::new(Features::capacity(4096));
    config.slots = 1;
    config.buckets.push(Features::capacity(131_072));
    let chosen = FeatureConfig {
        features: vec![
            FeatureName::ContactNumber,
            FeatureName::BFactor,
            FeatureName::Rg,
        ],
        contact_number: ContactNumber {
            ca: vec![Cutoff::from_angstrom(8.0).unwrap()],
            cb: vec![],
            own_chain: false,
        },
        ..FeatureConfig::default()
    };
    let table = &compute_with(chosen, slice::from_ref(&line), &config, 2)[0];
    let neighbours = |i: i32| (i % row).min(2) + (row - 1 - i % row).min(2);
    let expected: Vec<i32> = (0..count).map(neighbours).collect();
    let column = table.column(TableName::Residues, 0);
    assert_eq!(column, Column::Count(&expected));
    let found = table.column(TableName::Structures, 0);
    assert_column_close("rg", found, &[rg(&line.xyz)]);
    // Other tests check the members of chains at smaller sizes; this one checks that all are there.
    let Column::Real(z) = table.column(TableName::Residues, 1) else {
        panic!("b_z is real")
    };
    assert!(z.iter().all(|z| !z.is_nan()));
}
