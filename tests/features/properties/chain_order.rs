//! Chains in another order.

use super::*;

/// The structure with only these rows, in this order. `chains` has the new number of each chain.
fn with_rows(s: &Structure, rows: &[usize], chains: &[u32]) -> Structure {
    let mut to = Structure {
        xyz: Vec::new(),
        element: Vec::new(),
        class: Vec::new(),
        atom_name: Vec::new(),
        b_factor: Vec::new(),
        residues: Vec::new(),
        atom_start: vec![0],
        ..s.clone()
    };
    let take = |to: &mut Structure, atoms: std::ops::Range<usize>| {
        to.xyz.extend(&s.xyz[atoms.clone()]);
        to.element.extend(&s.element[atoms.clone()]);
        to.class.extend(&s.class[atoms.clone()]);
        to.atom_name.extend(&s.atom_name[atoms.clone()]);
        to.b_factor.extend(&s.b_factor[atoms]);
    };
    for &row in rows {
        let atoms = s.atom_start[row] as usize..s.atom_start[row + 1] as usize;
        let mut residue = s.residues[row];
        residue.chain = chains[residue.chain as usize];
        let shift = to.xyz.len() as u32;
        for atom in [
            &mut residue.n,
            &mut residue.ca,
            &mut residue.c,
            &mut residue.o,
            &mut residue.cb,
        ] {
            if *atom != MISSING {
                *atom = *atom - s.atom_start[row] + shift;
            }
        }
        to.residues.push(residue);
        take(&mut to, atoms);
        to.atom_start.push(to.xyz.len() as u32);
    }
    take(
        &mut to,
        s.atom_start[s.residues.len()] as usize..s.xyz.len(),
    );
    for span in &mut to.loose {
        span.chain = chains[span.chain as usize];
    }
    for (old, &new) in chains.iter().enumerate() {
        to.chains[new as usize] = s.chains[old].clone();
    }
    for (new, old) in to.channels.iter_mut().zip(&s.channels) {
        new.values = rows.iter().map(|&row| old.values[row]).collect();
    }
    to
}

/// The new number of each chain if those with rows are turned by `turn` places and
/// reversed, and the old row of each new one.
fn reordered(s: &Structure, turn: usize) -> (Vec<u32>, Vec<usize>) {
    let with_rows = s.row_chains().len();
    let place = |old: usize| {
        if old < with_rows {
            with_rows - 1 - (old + turn) % with_rows
        } else {
            old
        }
    };
    let chains: Vec<u32> = (0..s.chains.len()).map(|old| place(old) as u32).collect();
    let mut rows: Vec<usize> = (0..s.residues.len()).collect();
    rows.sort_by_key(|&row| chains[s.residues[row].chain as usize]);
    (chains, rows)
}

/// Columns of bridges and ladders.
const BRIDGES: [&str; 6] = [
    "bridge1",
    "bridge1_kind",
    "ladder1",
    "bridge2",
    "bridge2_kind",
    "ladder2",
];

/// Squared distance in 0.001 A of a residue's atoms from a chain's nearest.
fn nearest_squared(s: &Structure, row: usize, chain: u32) -> i64 {
    let atoms_of = |row: usize| s.atom_start[row] as usize..s.atom_start[row + 1] as usize;
    let rows_of_chain = (0..s.residues.len()).filter(|&row| s.residues[row].chain == chain);
    let mut others: Vec<usize> = rows_of_chain.flat_map(atoms_of).collect();
    let mut next = s.atom_start[s.residues.len()] as usize;
    for span in &s.loose {
        let atoms = next..next + span.atom_count as usize;
        next = atoms.end;
        others.extend(atoms.filter(|_| span.chain == chain));
    }
    let squared = |(a, b): (usize, usize)| -> i64 {
        let axes = s.xyz[a].iter().zip(&s.xyz[b]);
        axes.map(|(a, b)| i64::from(a - b).pow(2)).sum()
    };
    let pairs = atoms_of(row).flat_map(|a| others.iter().map(move |&b| (a, b)));
    pairs.map(squared).min().unwrap()
}

/// Numbers by first appearance, as clusters have them.
fn renumbered(values: &[i32]) -> Vec<i32> {
    let mut seen: Vec<i32> = Vec::new();
    let number = |&value: &i32| {
        if value == NULL_COUNT {
            return value;
        }
        let known = seen.iter().position(|&other| other == value);
        known.unwrap_or_else(|| {
            seen.push(value);
            seen.len() - 1
        }) as i32
    };
    values.iter().map(number).collect()
}

fn assert_rows_are_reordered(
    context: &str,
    s: &Structure,
    (chains, rows): (&[u32], &[usize]),
    found: &FeatureTable,
    expected: &FeatureTable,
) {
    let pairs = columns(TableName::Residues, found).into_iter();
    for ((decl, found), (_, expected)) in pairs.zip(columns(TableName::Residues, expected)) {
        let name = format!("{context}: {}", decl.name);
        let new_row = |old: i32| match rows.iter().position(|&row| row as i32 == old) {
            Some(row) => row as i32,
            None => NULL_COUNT,
        };
        match (found, expected) {
            // Its terms are summed in the order of rows, which affects the last bits.
            (Column::Real(found), Column::Real(expected)) if decl.name == "wcn" => {
                for (value, &row) in found.iter().zip(rows) {
                    let close = (value - expected[row]).abs() <= 2e-6 * value;
                    assert!(close || value.is_nan() && expected[row].is_nan(), "{name}");
                }
            }
            (Column::Real(found), Column::Real(expected)) => {
                let same =
                    |(value, row): (&f32, &usize)| value.to_bits() == expected[*row].to_bits();
                assert!(found.iter().zip(rows).all(same), "{name}");
            }
            // Ladders are numbered by the order of rows, and so are the bridges of a residue.
            _ if BRIDGES.contains(&decl.name.as_str()) => {}
            (Column::Count(found), Column::Count(expected)) if decl.name == "sheet" => {
                let expected: Vec<i32> = rows.iter().map(|&row| expected[row]).collect();
                assert_eq!(renumbered(found), renumbered(&expected), "{name}");
            }
            (Column::Count(found), Column::Count(expected)) => {
                let expected_of_rows: Vec<i32> = rows.iter().map(|&row| expected[row]).collect();
                let expected_of_rows: Vec<i32> = match decl.kind {
                    _ if decl.name == "cluster" => renumbered(&expected_of_rows),
                    _ if PARTNERS.contains(&decl.name.as_str()) => {
                        expected_of_rows.into_iter().map(new_row).collect()
                    }
                    ColumnKind::Chain => {
                        let new = |old: i32| chains.get(old as usize).map_or(-1, |&new| new as i32);
                        expected_of_rows.into_iter().map(new).collect()
                    }
                    _ => expected_of_rows,
                };
                for ((&found, &expected), &row) in found.iter().zip(&expected_of_rows).zip(rows) {
                    // Of chains equally near the first is named, and of partners
                    // bonded equally well: the column of energies is the same.
                    let is_tie = || match decl.kind {
                        ColumnKind::Chain => {
                            let is = |new: i32| move |&chain: &u32| chain as i32 == new;
                            let old = |new: i32| chains.iter().position(is(new)).unwrap();
                            let distance = |new| nearest_squared(s, row, old(new) as u32);
                            distance(found) == distance(expected)
                        }
                        _ => PARTNERS.contains(&decl.name.as_str()) && found != NULL_COUNT,
                    };
                    let is_tie = || found < expected && is_tie();
                    assert!(found == expected || is_tie(), "{name}: row {row}");
                }
            }
            _ => panic!("{name} is of one kind"),
        }
    }
}

#[test]
fn the_order_of_chains_orders_the_rows_and_changes_no_value() {
    let samples = structures();
    let expected = compute(samples.iter().map(|(_, s)| s));
    let mut changed = 0;
    for turn in 0..2 {
        let orders: Vec<_> = samples.iter().map(|(_, s)| reordered(s, turn)).collect();
        let others: Vec<Structure> = samples
            .iter()
            .zip(&orders)
            .map(|((_, s), (chains, rows))| with_rows(s, rows, chains))
            .collect();
        let tables = compute(&others);
        let all = samples
            .iter()
            .zip(&orders)
            .zip(tables.iter().zip(&expected));
        for (((name, s), (chains, rows)), (found, expected)) in all {
            changed += usize::from(!rows.is_sorted());
            assert_rows_are_reordered(name, s, (chains, rows), found, expected);
            let pairs = columns(TableName::Chains, found).into_iter();
            for ((decl, found), (_, expected)) in pairs.zip(columns(TableName::Chains, expected)) {
                let (found, expected) = (bits(found), bits(expected));
                let in_place = |(&new, expected): (&u32, &u32)| found[new as usize] == *expected;
                let all = chains.iter().zip(&expected).all(in_place);
                assert!(all, "{name}: {} of chains", decl.name);
            }
            let pairs = columns(TableName::Structures, found).into_iter();
            for ((decl, found), (_, expected)) in
                pairs.zip(columns(TableName::Structures, expected))
            {
                assert!(bits(found) == bits(expected), "{name}: {}", decl.name);
            }
        }
    }
    assert!(changed >= 8, "{changed} orders are new");
}
