//! The table of interfaces against its definition, written out naively.

use crate::chains::alone;
use crate::definitions::distance2;
use crate::made_up::{moved, structure};
use crate::samples::samples;
use crate::tables::{self, bits, compute};
use rayon::ThreadPoolBuilder;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tapeloop::ErrorKind;
use tapeloop::backend::{Backend, cpu::CpuBackend};
use tapeloop::features::{
    Column, Cutoff, FeatureConfig, FeatureName, FeatureTable, Features, Interfaces, Sasa, Setting,
    TableName,
};
use tapeloop::pipeline::{Engine, EngineConfig};
use tapeloop::structure::{Chain, LooseSpan, MISSING, Residue, Structure};

fn config(cutoff: f64, probe: f64) -> FeatureConfig {
    let mut config = FeatureConfig {
        features: vec![FeatureName::Interfaces],
        interfaces: Interfaces { keep: true },
        sasa: Sasa {
            points: 60,
            probe: Cutoff::from_angstrom(probe).unwrap(),
            ..Sasa::default()
        },
        ..FeatureConfig::default()
    };
    config.interface_residues.cutoff = Cutoff::from_angstrom(cutoff).unwrap();
    config
}

/// A row of the table: the chains, residues of each side, contacts and hydrogen bonds; areas.
#[derive(Debug, PartialEq)]
struct Row {
    counts: [i32; 6],
    areas: [f32; 3],
}

fn rows(table: &FeatureTable) -> Vec<Row> {
    let name = TableName::Interfaces;
    let counts = |index: usize| match table.column(name, index) {
        Column::Count(values) => values.to_vec(),
        Column::Real(_) => panic!("column {index} is real"),
    };
    let reals = |index: usize| match table.column(name, index) {
        Column::Real(values) => values.to_vec(),
        Column::Count(_) => panic!("column {index} is a count"),
    };
    let count_columns = [0, 1, 5, 6, 7, 8].map(counts);
    let area_columns = [2, 3, 4].map(reals);
    let row = |index: usize| Row {
        counts: count_columns.each_ref().map(|column| column[index]),
        areas: area_columns.each_ref().map(|column| column[index]),
    };
    (0..table.rows(name)).map(row).collect()
}

fn atoms_of(s: &Structure, residue: usize) -> &[[i32; 3]] {
    &s.xyz[s.atom_start[residue] as usize..s.atom_start[residue + 1] as usize]
}

/// For each set of chains the area of the residues of each chain, in a structure of that set alone.
fn areas(s: &Structure, sets: &[Vec<u32>], sasa: &Sasa) -> Vec<BTreeMap<u32, f64>> {
    let config = FeatureConfig {
        features: vec![FeatureName::Sasa],
        sasa: sasa.clone(),
        ..FeatureConfig::default()
    };
    let parts: Vec<Structure> = sets.iter().map(|set| alone(s, set).0).collect();
    let tables = compute(config, &parts);
    let sums = |(part, table): (&Structure, &FeatureTable)| {
        let Column::Real(areas) = table.column(TableName::Residues, 0) else {
            panic!("areas are reals")
        };
        let mut sums = BTreeMap::new();
        for (residue, area) in part.residues.iter().zip(areas) {
            // Residues without atoms have no area.
            *sums.entry(residue.chain).or_default() += f64::from(area.max(0.0));
        }
        sums
    };
    parts.iter().zip(&tables).map(sums).collect()
}

/// Hydrogen bonds in kcal/mol below -0.5, as donor and acceptor, of residues of different chains.
fn bonds(s: &Structure) -> Vec<(usize, usize)> {
    let position = |atom: u32| Some(s.position(atom)?.map(|x| f64::from(x) / 1000.0));
    let backbone: Vec<Option<[[f64; 3]; 4]>> = s
        .residues
        .iter()
        .map(|r| {
            let [n, ca, c, o] = [r.n, r.ca, r.c, r.o].map(position);
            Some([n?, ca?, c?, o?])
        })
        .collect();
    let minus = |a: [f64; 3], b: [f64; 3]| -> [f64; 3] { std::array::from_fn(|x| a[x] - b[x]) };
    let length = |a: [f64; 3]| a.iter().map(|x| x * x).sum::<f64>().sqrt();
    let mut found = Vec::new();
    for donor in 1..s.residues.len() {
        let residue = &s.residues[donor];
        let (Some([n, ca, ..]), Some([_, _, before, o_before])) =
            (backbone[donor], backbone[donor - 1])
        else {
            continue;
        };
        let axis = minus(before, o_before);
        if residue.break_before || residue.aa == b'P' || length(axis) == 0.0 {
            continue;
        }
        let h: [f64; 3] = std::array::from_fn(|x| n[x] + axis[x] / length(axis));
        for (acceptor, atoms) in backbone.iter().enumerate() {
            let Some([_, ca_there, c, o]) = *atoms else {
                continue;
            };
            let is_near = length(minus(ca, ca_there)) < 9.0;
            if s.residues[acceptor].chain == residue.chain || donor == acceptor + 1 || !is_near {
                continue;
            }
            let [on, ch, oh, cn] =
                [(o, n), (c, h), (o, h), (c, n)].map(|(a, b)| length(minus(a, b)));
            let nearest = on.min(ch).min(oh).min(cn);
            let energy = 27.888 * (1.0 / on + 1.0 / ch - 1.0 / oh - 1.0 / cn);
            let energy = if nearest < 0.5 {
                -9.9
            } else {
                energy.max(-9.9)
            };
            assert!((energy + 0.5005).abs() > 1e-5, "rounding decides");
            if energy < -0.5005 {
                found.push((donor, acceptor));
            }
        }
    }
    found
}

/// The rows by the definition. Pairs without areas have none.
fn expected(s: &Structure, config: &FeatureConfig) -> Vec<Row> {
    let cutoff = ((config.interface_residues.cutoff.angstrom() * 1000.0).round() as i64).pow(2);
    let mut contacts: BTreeMap<[u32; 2], BTreeSet<[usize; 2]>> = BTreeMap::new();
    for i in 0..s.residues.len() {
        for j in 0..s.residues.len() {
            let [a, b] = [i, j].map(|residue| s.residues[residue].chain);
            let mut theirs = atoms_of(s, j).iter();
            if a < b && theirs.any(|q| atoms_of(s, i).iter().any(|p| distance2(*p, *q) < cutoff)) {
                contacts.entry([a, b]).or_default().insert([i, j]);
            }
        }
    }
    let bonds = bonds(s);
    let sets = |[a, b]: &[u32; 2]| [vec![*a, *b], vec![*a], vec![*b]];
    let sets: Vec<Vec<u32>> = contacts.keys().flat_map(sets).collect();
    let areas = areas(s, &sets, &config.sasa);
    let row = |(([a, b], pairs), areas): ((&[u32; 2], &BTreeSet<[usize; 2]>), &[_])| {
        let side =
            |which: usize| -> BTreeSet<usize> { pairs.iter().map(|pair| pair[which]).collect() };
        let across = bonds.iter().filter(|(donor, acceptor)| {
            let [one, other] = [*donor, *acceptor].map(|residue| s.residues[residue].chain);
            [one.min(other), one.max(other)] == [*a, *b]
        });
        let counts = [side(0).len(), side(1).len(), pairs.len(), across.count()];
        let [i, j, contacts, bonds] = counts.map(|count| count as i32);
        let [together, alone @ ..]: &[BTreeMap<u32, f64>] = areas else {
            panic!("a set for both chains, and one for each")
        };
        let buried_i = alone[0][a] - together[a];
        let buried_j = alone[1][b] - together[b];
        Row {
            counts: [*a as i32, *b as i32, i, j, contacts, bonds],
            areas: [buried_i + buried_j, buried_i, buried_j].map(|area| area as f32),
        }
    };
    contacts.iter().zip(areas.chunks(3)).map(row).collect()
}

fn assert_same(found: &[Row], expected: &[Row], which: &str) {
    assert_eq!(found.len(), expected.len(), "{which}");
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.counts, expected.counts, "{which}");
        for (found, expected) in found.areas.iter().zip(&expected.areas) {
            let limit = 1e-4 * expected.abs() + 0.01;
            assert!(
                (found - expected).abs() < limit,
                "{which}: {found}, not {expected}"
            );
        }
    }
}

/// Strands of chains side by side, whose backbones are bonded to each other. Chain 2 has no residue
/// near others, and atoms without a residue of two chains are among them.
fn strands() -> Structure {
    let mut s = structure(0, 0);
    let atom = |s: &mut Structure, name: &[u8; 8], element: u8, position: [i32; 3]| {
        s.xyz.push(position);
        s.element.push(element);
        s.class.push(tapeloop::structure::AtomClass::of(
            *b"ALA     ",
            *name,
            element,
        ));
        s.b_factor.push(f32::NAN);
        s.xyz.len() as u32 - 1
    };
    (s.loose, s.xyz, s.element) = (Vec::new(), Vec::new(), Vec::new());
    (s.class, s.b_factor, s.atom_start) = (Vec::new(), Vec::new(), vec![0]);
    s.chains = vec![Chain::default(); 5];
    for index in 0..40 {
        let (strand, place_in_strand) = (index / 8, index % 8);
        // O of even residues points up, to the N of the strand above.
        let up = if place_in_strand % 2 == 0 { 1 } else { -1 };
        let origin = [
            3_300 * place_in_strand,
            4_800 * strand + if strand == 2 { 90_000 } else { 0 },
            0,
        ];
        let place = |by: [i32; 3]| moved(origin, by);
        let n = atom(&mut s, b"N       ", 7, place([-1_200, -200 * up, 300]));
        let ca = atom(&mut s, b"CA      ", 6, place([0, 0, 700 * up]));
        let c = atom(&mut s, b"C       ", 6, place([1_200, 500 * up, 0]));
        let o = atom(&mut s, b"O       ", 8, place([1_200, 1_730 * up, 0]));
        s.residues.push(Residue {
            chain: strand as u32,
            auth_seq_id: place_in_strand,
            ins_code: 0,
            label_seq_id: None,
            sequence_position: None,
            comp_id: *b"ALA     ",
            parent_comp_id: *b"ALA     ",
            aa: b'A',
            break_before: place_in_strand == 0,
            n,
            ca,
            c,
            o,
            cb: MISSING,
            uniprot: None,
            flags: Default::default(),
        });
        s.atom_start.push(s.xyz.len() as u32);
    }
    for (chain, x) in [(1, 2_000), (3, 9_000)] {
        atom(&mut s, b"C       ", 6, [x, 2_400, 3_000]);
        s.loose.push(LooseSpan {
            chain,
            atom_count: 1,
        });
    }
    s
}

fn made_up() -> Vec<Structure> {
    let mut structures: Vec<Structure> = (0..7)
        .map(|n| structure([0, 1, 2, 40, 90, 130, 200][n], 900 + n as u64))
        .collect();
    for (n, s) in structures.iter_mut().enumerate() {
        // Stretches of some residues, of chains that come in another order too.
        let chains = 3 + 20 * n;
        s.chains = vec![Chain::default(); chains];
        for (index, residue) in s.residues.iter_mut().enumerate() {
            residue.chain = (index / 3 * 7 % chains) as u32;
        }
        for span in &mut s.loose {
            span.chain = chains as u32 - 1;
        }
    }
    structures.push(strands());
    structures
}

#[test]
fn rows_are_the_pairs_of_chains_in_contact_by_the_definition() {
    let structures = made_up();
    for (cutoff, probe) in [(5.0, 1.4), (3.2, 0.3), (12.0, 3.0)] {
        let config = config(cutoff, probe);
        let tables = compute(config.clone(), &structures);
        let (mut pairs, mut bonds) = (0, 0);
        for (n, (s, table)) in structures.iter().zip(&tables).enumerate() {
            let found = rows(table);
            let expected = expected(s, &config);
            assert_same(
                &found,
                &expected,
                &format!("{cutoff} {probe}, structure {n}"),
            );
            pairs += found.len();
            bonds += found.iter().map(|row| row.counts[5]).sum::<i32>();
        }
        assert!(pairs > 40 && bonds > 3, "{pairs} pairs, {bonds} bonds");
        let last = rows(tables.last().unwrap());
        let chains: Vec<[i32; 2]> = last
            .iter()
            .map(|row| [row.counts[0], row.counts[1]])
            .collect();
        // The strands are 3.2 A apart and more.
        assert!(cutoff < 5.0 || chains[0] == [0, 1], "{chains:?}");
        assert!(
            chains.iter().all(|pair| !pair.contains(&2)),
            "chain 2 is far: {chains:?}"
        );
    }
}

#[test]
fn interfaces_of_samples_are_those_of_the_definition() {
    let config = config(5.0, 1.4);
    let mut found_some = 0;
    for (name, s) in samples() {
        if s.chains.len() < 2 || s.residues.len() > 500 {
            continue;
        }
        let table = &compute(config.clone(), std::slice::from_ref(&s))[0];
        let found = rows(table);
        assert_same(&found, &expected(&s, &config), &name);
        found_some += found.len();
    }
    assert!(found_some > 5, "{found_some}");
}

#[test]
fn the_table_changes_no_column_and_is_left_out_by_default() {
    let structures = made_up();
    let all = FeatureConfig::default();
    let with = FeatureConfig {
        interfaces: Interfaces { keep: true },
        ..FeatureConfig::default()
    };
    assert!(all.columns(TableName::Interfaces).is_empty());
    let [before, after] = [all, with].map(|config| compute(config, &structures));
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before.rows(TableName::Interfaces), 0);
        for table in [
            TableName::Residues,
            TableName::Chains,
            TableName::Structures,
        ] {
            let all = |found_table: &FeatureTable| {
                found_table.columns(table).map(bits).collect::<Vec<_>>()
            };
            assert_eq!(all(before), all(after));
        }
    }
    let error = Features::new(FeatureConfig {
        features: vec![FeatureName::Interfaces],
        ..FeatureConfig::default()
    });
    let error = error.err().unwrap();
    assert!(error.to_string().contains("nothing"), "{error}");
    let mut config = config(5.0, 1.4);
    let key = "interfaces";
    config
        .set(FeatureName::Interfaces, key, &Setting::Flag(false))
        .unwrap();
    assert_eq!(
        config.settings(FeatureName::Interfaces),
        [(key, Setting::Flag(false))]
    );
    let mut config = self::config(5.0, 1.4);
    config.interface_residues.cutoff = Cutoff::from_angstrom(12.5).unwrap();
    let error = Features::new(config).err().unwrap();
    assert!(
        error.to_string().contains("interface_residues.cutoff"),
        "{error}"
    );
}

/// Residues that all are chains of their own have more pairs, and more partners, than their usual
/// room holds.
#[test]
fn a_structure_that_outgrows_its_room_runs_again_by_itself() {
    let apart = |count: usize, seed: u64| {
        let mut s = structure(count, seed);
        s.chains = vec![Chain::default(); count];
        s.loose.clear();
        let residue_atom_count = *s.atom_start.last().unwrap() as usize;
        s.xyz.truncate(residue_atom_count);
        s.element.truncate(residue_atom_count);
        s.class.truncate(residue_atom_count);
        s.b_factor.truncate(residue_atom_count);
        for (index, residue) in s.residues.iter_mut().enumerate() {
            residue.chain = index as u32;
        }
        s
    };
    let structures = [structure(40, 1), apart(120, 5), structure(129, 2)];
    let config = config(5.0, 1.4);
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    let run = |residues_max: u32| {
        let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
        let workload = Features::new(config.clone()).unwrap();
        let mut engine_config = EngineConfig::new(Features::capacity(512));
        engine_config.buckets.push(Features::capacity(residues_max));
        let pool = Arc::clone(&pool);
        let mut engine = Engine::new(workload, &[backend], pool, &engine_config).unwrap();
        let outcomes = tables::outcomes(&mut engine, structures.iter());
        (outcomes, engine.counters().items_outgrown)
    };
    let (outcomes, outgrown) = run(8192);
    assert_eq!(outgrown, 1);
    for (n, (s, outcome)) in structures.iter().zip(outcomes).enumerate() {
        let found = rows(&outcome.unwrap());
        assert_same(&found, &expected(s, &config), &format!("structure {n}"));
        assert!(n != 1 || found.len() > 120, "{} pairs", found.len());
    }
    // No bucket holds the pairs of the second; the others have their results.
    let (outcomes, outgrown) = run(512);
    assert_eq!(outgrown, 1);
    let error = outcomes[1].as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Capacity);
    assert!(error.to_string().contains("pair_room"), "{error}");
    assert!(outcomes[0].is_ok() && outcomes[2].is_ok());
}
