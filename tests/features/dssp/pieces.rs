//! Pieces of samples, and backbones that lack something.

use super::*;

/// Some rows of a structure, from first to end, with a break wherever one is left out.
fn part<const N: usize>(s: &Structure, rows: [(usize, usize); N]) -> Structure {
    let mut part = Structure {
        xyz: Vec::new(),
        element: Vec::new(),
        class: Vec::new(),
        atom_name: Vec::new(),
        b_factor: Vec::new(),
        residues: Vec::new(),
        atom_start: vec![0],
        loose: Vec::new(),
        ..s.clone()
    };
    for (first, end) in rows {
        for residue in first..end {
            let atoms = s.atom_start[residue] as usize..s.atom_start[residue + 1] as usize;
            let start = part.xyz.len() as u32;
            let moved = |atom: u32| match atom {
                MISSING => MISSING,
                atom => atom - s.atom_start[residue] + start,
            };
            let r = s.residues[residue];
            part.residues.push(Residue {
                break_before: r.break_before || residue == first,
                n: moved(r.n),
                ca: moved(r.ca),
                c: moved(r.c),
                o: moved(r.o),
                cb: moved(r.cb),
                ..r
            });
            part.xyz.extend(&s.xyz[atoms.clone()]);
            part.element.extend(&s.element[atoms.clone()]);
            part.class.extend(&s.class[atoms.clone()]);
            part.b_factor.extend(&s.b_factor[atoms]);
            part.atom_start.push(part.xyz.len() as u32);
        }
    }
    part
}

#[test]
fn a_helix_cut_out_is_a_helix() {
    let found = compute_one(&part(&sample("1ubi.pdb"), [(22, 34)]));
    assert_eq!(found.ss8, "-HHHHHHHHHH-");
    assert_eq!(found.ss3, "CHHHHHHHHHHC");
    assert!(
        found
            .bonded()
            .iter()
            .all(|(donor, acceptor)| donor - acceptor >= 3)
    );
    // Each N-H is bonded to the residue four before.
    for donor in 4..11 {
        assert_eq!(found.bonds[donor][0].map(|bond| bond.0), Some(donor - 4));
    }
}

#[test]
fn strands_pair_both_ways_along_one_chain_and_between_chains() {
    let s = sample("1ubi.pdb");
    // The hairpin of the first two strands.
    let hairpin = compute_one(&part(&s, [(0, 17)]));
    assert_eq!(hairpin.ss8, "-EEEEE-TTS-EEEEE-");
    // The first and the last strand lie side by side, with a break between them.
    let strands = part(&s, [(0, 8), (62, 73)]);
    let parallel = compute_one(&strands);
    assert_eq!(parallel.ss8, "---EEEE----EEEE----");
    // The same as two chains.
    let mut chains = strands;
    chains.chains.push(chains.chains[0].clone());
    chains.residues[8..]
        .iter_mut()
        .for_each(|residue| residue.chain = 1);
    assert!(compute_one(&chains) == parallel);
    // Neither strand is one without the other.
    let alone = compute(&[part(&s, [(0, 8)]), part(&s, [(62, 73)])]);
    assert!(alone.iter().all(|strand| !strand.ss8.contains(['E', 'B'])));
}

#[test]
fn no_pattern_spans_a_break_and_no_hydrogen_follows_one() {
    let whole = sample("1ubi.pdb");
    let mut broken = whole.clone();
    broken.residues[28].break_before = true;
    let (whole, broken) = (compute_one(&whole), compute_one(&broken));
    assert!(whole.bonds[28][0].is_some());
    assert_eq!(broken.bonds[28][..2], [None, None]);
    // The O of the residue still accepts bonds.
    assert_eq!(broken.bonds[28][2..], whole.bonds[28][2..]);
    assert_eq!(&whole.ss8[22..35], "HHHHHHHHHHHH-");
    assert_eq!(&broken.ss8[22..35], "HHHHH--HHHHH-");
}

#[test]
fn a_residue_without_a_backbone_atom_is_null_and_takes_no_part() {
    let whole = sample("1ubi.pdb");
    let expected = compute_one(&whole);
    let without: [fn(&mut Residue); 4] = [
        |r| r.n = MISSING,
        |r| r.ca = MISSING,
        |r| r.c = MISSING,
        |r| r.o = MISSING,
    ];
    for (atom, remove) in without.into_iter().enumerate() {
        let mut s = whole.clone();
        remove(&mut s.residues[28]);
        let found = compute_one(&s);
        assert_eq!(found.letter(28), ' ');
        assert_eq!(found.bonds[28], [None; 4]);
        assert!(
            found
                .bonds
                .iter()
                .flatten()
                .flatten()
                .all(|bond| bond.0 != 28)
        );
        // It ends a stretch, and the next has no hydrogen.
        assert!(expected.bonds[29][0].is_some());
        assert_eq!(found.bonds[29][..2], [None, None], "without atom {atom}");
        assert_eq!(found.letter(60), expected.letter(60));
        assert_matches("without an atom", &s, DsspVersion::V2, &found);
    }
}

#[test]
fn proline_gives_no_bond() {
    let mut s = sample("1ubi.pdb");
    let donors = compute_one(&s);
    let donor =
        (22..34).find(|&residue| donors.bonds[residue][0].is_some_and(|bond| bond.1 < -2.0));
    let donor = donor.expect("a helix has strong bonds");
    s.residues[donor].aa = b'P';
    let found = compute_one(&s);
    assert_eq!(found.bonds[donor][..2], [None, None]);
    assert_eq!(found.bonds[donor][2..], donors.bonds[donor][2..]);
}

#[test]
fn neighbours_bond_one_way_alone() {
    let structures: Vec<_> = samples().into_iter().map(|(_, s)| s).collect();
    for found in compute(&structures) {
        for (residue, bonds) in found.bonds.iter().enumerate() {
            let acceptors = bonds[..2].iter().flatten();
            assert!(
                acceptors
                    .clone()
                    .all(|bond| bond.0 != residue && bond.0 + 1 != residue)
            );
            assert!(acceptors.clone().all(|bond| (-9.9..0.0).contains(&bond.1)));
        }
    }
}

#[test]
fn polyproline_replaces_loops_alone_and_only_in_version_4() {
    let structures: Vec<_> = samples().into_iter().map(|(_, s)| s).collect();
    let (two, four) = (
        compute(&structures),
        compute_by(DsspVersion::V4, &structures),
    );
    let mut seen = 0;
    for (two, four) in two.iter().zip(&four) {
        assert_eq!(two.ss8, four.ss8.replace('P', "-"));
        assert_eq!(two.ss3, four.ss3);
        assert!(two.bonds == four.bonds);
        seen += four.ss8.matches('P').count();
    }
    assert!(seen > 50, "{seen}");
}

#[test]
fn the_version_is_a_setting() {
    let mut config = config(DsspVersion::V2);
    let settings = config.settings(FeatureName::Dssp);
    let (key, setting) = settings.into_iter().next().unwrap();
    let tapeloop::features::Setting::Choice(default, all) = setting else {
        panic!("one of several words")
    };
    assert_eq!((key, default, all), ("dssp.version", "2", &["2", "4"][..]));
    let four = tapeloop::features::Setting::Choice("4", all);
    config.set(FeatureName::Dssp, key, &four).unwrap();
    assert_eq!(config.dssp.version, DsspVersion::V4);
    let three = tapeloop::features::Setting::Choice("3", all);
    assert!(config.set(FeatureName::Dssp, key, &three).is_err());
}
