//! Interfaces between chains.

use super::*;

/// The nearest atom of another chain: squared distance and chain.
fn nearest_chains(s: &Structure) -> Vec<Option<(i64, u32)>> {
    let row_atoms = atoms_of_rows(s);
    let chains_of_rows = row_atoms.iter().map(|(row, _)| s.residues[*row].chain);
    let chains_of_span =
        |span: &LooseSpan| std::iter::repeat_n(span.chain, span.atom_count as usize);
    let chains: Vec<u32> = chains_of_rows
        .chain(s.loose.iter().flat_map(chains_of_span))
        .collect();
    assert_eq!(chains.len(), s.xyz.len());
    let mut nearest: Vec<Option<(i64, u32)>> = vec![None; s.residues.len()];
    for (row, a) in row_atoms {
        for (b, &chain) in s.xyz.iter().zip(&chains) {
            if chain != s.residues[row].chain {
                let found = (distance2(a, *b), chain);
                nearest[row] = Some(nearest[row].map_or(found, |best| best.min(found)));
            }
        }
    }
    let reach = 12_000i64.pow(2);
    nearest
        .into_iter()
        .map(|found| found.filter(|(d2, _)| *d2 < reach))
        .collect()
}

#[test]
fn an_interface_is_where_another_chain_is_near() {
    let mut structures = made_up();
    for s in &mut structures {
        // Chains of stretches of 20, and a line of them that thins out.
        for (index, residue) in s.residues.iter_mut().enumerate() {
            residue.chain = (index / 20 % 3) as u32;
        }
        for (index, position) in s.xyz.iter_mut().enumerate() {
            position[0] += index as i32 / 60 * (index as i32 / 10 * 500);
        }
    }
    // Equally near to two chains, of which the first is meant.
    let mut tie = structure(3, 1);
    tie.xyz = vec![[0, 0, 0], [4_000, 0, 0], [0, -4_000, 0]];
    (tie.element, tie.b_factor) = (vec![6; 3], vec![0.0; 3]);
    tie.class.truncate(3);
    tie.loose.clear();
    tie.atom_start = vec![0, 1, 2, 3];
    for (index, chain) in [0, 2, 1].into_iter().enumerate() {
        let residue = &mut tie.residues[index];
        (residue.chain, residue.ca) = (chain, index as u32);
        (residue.n, residue.c, residue.cb) = (MISSING, MISSING, MISSING);
    }
    structures.push(tie);
    let computed = Computed::of_features(&[FeatureName::InterfaceResidues], &structures);
    let (mut near, mut between, mut none) = (0, 0, 0);
    for (n, s) in structures.iter().enumerate() {
        let expected = nearest_chains(s);
        let distance = |found: &Option<(i64, u32)>| {
            found.map_or(f64::NAN, |(d2, _)| (d2 as f64).sqrt() / 1000.0)
        };
        let distances: Vec<f64> = expected.iter().map(distance).collect();
        let found = computed.reals(n, TableName::Residues, "iface_dmin");
        assert_close("iface_dmin", found, &distances, 1e-6);
        let is_near = |found: &Option<(i64, u32)>| found.is_some_and(|(d2, _)| d2 < 25_000_000);
        let flags: Vec<i32> = expected.iter().map(|f| i32::from(is_near(f))).collect();
        assert_eq!(computed.counts(n, TableName::Residues, "iface"), flags);
        let chains: Vec<i32> = expected
            .iter()
            .map(|found| found.map_or(NULL_COUNT, |(_, chain)| chain as i32))
            .collect();
        let found = computed.counts(n, TableName::Residues, "iface_chain");
        assert_eq!(found, chains);
        near += flags.iter().sum::<i32>();
        between += chains.iter().filter(|chain| **chain >= 0).count() as i32;
        none += chains.iter().filter(|chain| **chain < 0).count() as i32;
    }
    assert!(
        near > 20 && between > near && none > 20,
        "{near} {between} {none}"
    );
    let tie = structures.len() - 1;
    let chain = computed.counts(tie, TableName::Residues, "iface_chain");
    assert_eq!(chain, [1, 0, 0]);
}

#[test]
fn what_other_chains_bury_is_the_area_of_the_chain_alone_less_that_in_the_model() {
    let mut s = structure(150, 31);
    let residue_atom_count = *s.atom_start.last().unwrap() as usize;
    s.xyz.truncate(residue_atom_count);
    s.element.truncate(residue_atom_count);
    s.b_factor.truncate(residue_atom_count);
    s.class.truncate(residue_atom_count);
    s.loose.clear();
    let alone = |chain: u32| {
        let mut chain_alone = s.clone();
        let atoms = atoms_of_rows(&s).into_iter();
        let kept: Vec<bool> = atoms
            .map(|(row, _)| s.residues[row].chain == chain)
            .collect();
        let mut keep = kept.iter();
        chain_alone.xyz.retain(|_| *keep.next().unwrap());
        let mut keep = kept.iter();
        chain_alone.class.retain(|_| *keep.next().unwrap());
        chain_alone.element.truncate(chain_alone.xyz.len());
        chain_alone.b_factor.truncate(chain_alone.xyz.len());
        chain_alone.atom_start = vec![0];
        chain_alone
            .residues
            .retain(|residue| residue.chain == chain);
        for (row, span) in s.atom_start.windows(2).enumerate() {
            if s.residues[row].chain == chain {
                let end = chain_alone.atom_start.last().unwrap() + span[1] - span[0];
                chain_alone.atom_start.push(end);
            }
        }
        chain_alone
    };
    let structures = [s.clone(), alone(0), alone(1), alone(2)];
    let computed = Computed::of_features(
        &[FeatureName::InterfaceResidues, FeatureName::Sasa],
        &structures,
    );
    let in_model = computed.reals(0, TableName::Residues, "sasa");
    let deltas = computed.reals(0, TableName::Residues, "sasa_delta");
    let mut alone = [1, 2, 3].map(|n| computed.reals(n, TableName::Residues, "sasa").iter());
    for (row, residue) in s.residues.iter().enumerate() {
        let alone = alone[residue.chain as usize].next().unwrap();
        let expected = alone - in_model[row];
        assert!(
            (deltas[row] - expected).abs() < 1e-3,
            "{row}: {}, {expected}",
            deltas[row]
        );
    }
    assert!(deltas.iter().filter(|delta| **delta > 1.0).count() > 50);
}

#[test]
fn an_interface_is_sought_no_farther_than_12_angstrom() {
    let mut config = asking_for(&[FeatureName::InterfaceResidues]);
    config.interface_residues.cutoff = tapeloop::features::Cutoff::from_angstrom(12.001).unwrap();
    let error = Features::new(config).err().unwrap();
    assert!(error.to_string().contains("interface_residues.cutoff"));
}
