//! Secondary structure and hydrogen bonds: against DSSP's sequential rules, written out naively,
//! against other programs, and at breaks and missing atoms.

mod pieces;
mod sheets;
mod table;

use crate::made_up::structure;
use crate::samples::{sample, samples};
use crate::tables;
use std::slice;
use tapeloop::features::{
    Column, ColumnKind, Dssp, DsspVersion, FeatureConfig, FeatureName, FeatureTable, TableName,
};
use tapeloop::structure::{MISSING, Residue, Structure};

fn config(version: DsspVersion) -> FeatureConfig {
    FeatureConfig {
        features: vec![FeatureName::Dssp],
        dssp: Dssp {
            version,
            ..Dssp::default()
        },
        ..FeatureConfig::default()
    }
}

fn compute_by(version: DsspVersion, structures: &[Structure]) -> Vec<Found> {
    let tables = tables::compute(config(version), structures);
    tables.iter().map(Found::new).collect()
}

fn compute(structures: &[Structure]) -> Vec<Found> {
    compute_by(DsspVersion::V2, structures)
}

fn compute_one(structure: &Structure) -> Found {
    compute(slice::from_ref(structure)).swap_remove(0)
}

/// A bond's partner and energy.
type Bond = Option<(usize, f32)>;

/// The secondary structure and the bonds that the program computed for one structure.
#[derive(PartialEq)]
struct Found {
    /// One letter per residue, a blank for null.
    ss8: String,
    ss3: String,
    /// Acceptors of the N-H and donors to the O, the best first.
    bonds: Vec<[Bond; 4]>,
}

impl Found {
    fn new(table: &FeatureTable) -> Found {
        let decls = config(DsspVersion::V2).columns(TableName::Residues);
        let column = |name: &str| {
            let column = decls.iter().position(|decl| decl.name == name).unwrap();
            (
                decls[column].kind,
                table.column(TableName::Residues, column),
            )
        };
        let text = |name: &str| -> String {
            let (ColumnKind::Text(texts), Column::Count(values)) = column(name) else {
                panic!("{name} is text")
            };
            let letter = |value: &i32| texts.get(*value as usize).map_or(" ", |text| text);
            values.iter().map(letter).collect()
        };
        let bonds = ["hb_nho1", "hb_nho2", "hb_ohn1", "hb_ohn2"].map(|name| -> Vec<Bond> {
            let energy = format!("{name}_energy");
            let (Column::Count(partners), Column::Real(energies)) =
                (column(name).1, column(&energy).1)
            else {
                panic!("{name} is a count, {energy} real")
            };
            let bond = |(partner, energy): (&i32, &f32)| {
                assert_eq!(*partner < 0, energy.is_nan(), "both are null or none");
                usize::try_from(*partner)
                    .ok()
                    .map(|partner| (partner, *energy))
            };
            partners.iter().zip(energies).map(bond).collect()
        });
        let row = |residue: usize| std::array::from_fn(|which| bonds[which][residue]);
        Found {
            ss8: text("ss8"),
            ss3: text("ss3"),
            bonds: (0..bonds[0].len()).map(row).collect(),
        }
    }

    fn letter(&self, residue: usize) -> char {
        self.ss8.as_bytes()[residue] as char
    }

    /// Bonds below -0.5 kcal/mol, as donor and acceptor.
    fn bonded(&self) -> Vec<(usize, usize)> {
        let bonds_of = |(donor, bonds): (usize, &[Bond; 4])| {
            let strong = bonds[..2].iter().flatten().filter(|bond| bond.1 < -0.5);
            strong.map(|bond| (donor, bond.0)).collect::<Vec<_>>()
        };
        self.bonds.iter().enumerate().flat_map(bonds_of).collect()
    }
}

type Point = [f64; 3];

fn minus(a: Point, b: Point) -> Point {
    std::array::from_fn(|axis| a[axis] - b[axis])
}

fn dot(a: Point, b: Point) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn length(a: Point) -> f64 {
    dot(a, a).sqrt()
}

fn distance(a: Point, b: Point) -> f64 {
    length(minus(a, b))
}

/// DSSP as Hekkelman's programs compute it, pair by pair and ladder by ladder.
struct Naive {
    /// N, CA, C, O in A of residues that have all four.
    backbone: Vec<Option<[Point; 4]>>,
    /// The number of the stretch of linked, complete residues that each residue is in.
    segment: Vec<usize>,
    /// Energies by donor and acceptor, all below zero, best first.
    bonds: Vec<(f64, usize, usize)>,
    /// Ladders of more than one stretch of bridges.
    joined: usize,
}

impl Naive {
    fn new(s: &Structure) -> Naive {
        let angstrom = |atom: u32| Some(s.position(atom)?.map(|x| f64::from(x) / 1000.0));
        let all = |r: &Residue| {
            let atoms = [
                angstrom(r.n)?,
                angstrom(r.ca)?,
                angstrom(r.c)?,
                angstrom(r.o)?,
            ];
            Some(atoms)
        };
        let backbone: Vec<_> = s.residues.iter().map(all).collect();
        let mut segment = vec![0; backbone.len()];
        for residue in 1..backbone.len() {
            let joined = !s.residues[residue].break_before
                && backbone[residue].is_some()
                && backbone[residue - 1].is_some();
            segment[residue] = segment[residue - 1] + usize::from(!joined);
        }
        let hydrogen = |residue: usize| {
            let before = residue
                .checked_sub(1)
                .filter(|&before| segment[before] == segment[residue])?;
            let ([n, ..], [_, _, c, o]) = (backbone[residue]?, backbone[before]?);
            let along = minus(c, o).map(|x| x / distance(c, o));
            let is_donor = s.residues[residue].aa != b'P' && c != o;
            is_donor.then(|| std::array::from_fn::<f64, 3, _>(|axis| n[axis] + along[axis]))
        };
        let mut bonds = Vec::new();
        for donor in 0..backbone.len() {
            let Some((h, [n, ca, ..])) = hydrogen(donor).zip(backbone[donor]) else {
                continue;
            };
            for (acceptor, atoms) in backbone.iter().enumerate() {
                let Some([_, other, c, o]) = *atoms else {
                    continue;
                };
                let within = (distance(ca, other).powi(2) * 1e6).round() < 81e6;
                if within && donor != acceptor && donor != acceptor + 1 {
                    let energy = energy(n, h, c, o);
                    bonds.extend((energy < 0.0).then_some((energy, donor, acceptor)));
                }
            }
        }
        bonds.sort_by(|a, b| a.partial_cmp(b).unwrap());
        Naive {
            segment,
            backbone,
            bonds,
            joined: 0,
        }
    }

    fn best(&self, residue: usize) -> [Bond; 4] {
        let gives = self.bonds.iter().filter(|bond| bond.1 == residue);
        let takes = self.bonds.iter().filter(|bond| bond.2 == residue);
        let mut gives = gives.map(|bond| (bond.2, bond.0 as f32));
        let mut takes = takes.map(|bond| (bond.1, bond.0 as f32));
        [gives.next(), gives.next(), takes.next(), takes.next()]
    }

    /// Whether each ladder is antiparallel, and the residues of its strands.
    fn ladders(&mut self, is_bond: &[Vec<usize>]) -> Vec<(bool, Vec<usize>, Vec<usize>)> {
        let n = self.backbone.len();
        let bond = |donor: usize, acceptor: usize| is_bond[donor].contains(&acceptor);
        let inner = |residue: usize| {
            residue > 0
                && residue + 1 < n
                && self.segment[residue - 1] == self.segment[residue + 1]
                && self.backbone[residue].is_some()
        };
        let kind = |i: usize, j: usize| {
            if !inner(i) || !inner(j) {
                None
            } else if bond(i + 1, j) && bond(j, i - 1) || bond(j + 1, i) && bond(i, j - 1) {
                Some(false)
            } else if bond(i + 1, j - 1) && bond(j + 1, i - 1) || bond(j, i) && bond(i, j) {
                Some(true)
            } else {
                None
            }
        };
        let mut ladders: Vec<(bool, Vec<usize>, Vec<usize>)> = Vec::new();
        for i in 0..n {
            for j in i + 3..n {
                let Some(antiparallel) = kind(i, j) else {
                    continue;
                };
                let grows = |ladder: &&mut (bool, Vec<usize>, Vec<usize>)| {
                    let next = if antiparallel {
                        j + 1 == ladder.2[0]
                    } else {
                        ladder.2.last() == Some(&(j - 1))
                    };
                    ladder.0 == antiparallel
                        && ladder.1.last() == Some(&(i.wrapping_sub(1)))
                        && next
                };
                match ladders.iter_mut().find(grows) {
                    Some((_, is, js)) => {
                        is.push(i);
                        js.insert(if antiparallel { 0 } else { js.len() }, j);
                    }
                    None => ladders.push((antiparallel, vec![i], vec![j])),
                }
            }
        }
        let mut a = 0;
        while a < ladders.len() {
            let mut b = a + 1;
            while b < ladders.len() {
                if self.is_bulge(&ladders[a], &ladders[b]) {
                    let (antiparallel, is, js) = ladders.remove(b);
                    self.joined += 1;
                    ladders[a].1.extend(is);
                    let place = if antiparallel { 0 } else { ladders[a].2.len() };
                    ladders[a].2.splice(place..place, js);
                } else {
                    b += 1;
                }
            }
            a += 1;
        }
        ladders
    }

    fn is_bulge(
        &self,
        a: &(bool, Vec<usize>, Vec<usize>),
        b: &(bool, Vec<usize>, Vec<usize>),
    ) -> bool {
        let ends = |strand: &Vec<usize>| (strand[0] as i64, *strand.last().unwrap() as i64);
        let ((ibi, iei), (jbi, jei)) = (ends(&a.1), ends(&a.2));
        let ((ibj, iej), (jbj, jej)) = (ends(&b.1), ends(&b.2));
        let unbroken =
            |from: i64, to: i64| self.segment[from as usize] == self.segment[to as usize];
        let apart = if a.0 { jbi - jej } else { jbj - jei };
        a.0 == b.0
            && unbroken(ibi.min(ibj), iei.max(iej))
            && unbroken(jbi.min(jbj), jei.max(jej))
            && ibj > iei
            && ibj - iei < 6
            && apart >= 0
            && (apart < 6 && ibj - iei < 3 || apart < 3)
    }

    /// The acceptors that each residue's N-H is bonded to.
    fn acceptors(&self) -> Vec<Vec<usize>> {
        let acceptors = |donor: usize| -> Vec<usize> {
            let [first, second, ..] = self.best(donor);
            let strong = [first, second].into_iter().flatten();
            strong
                .filter(|bond| bond.1 < -0.5)
                .map(|bond| bond.0)
                .collect()
        };
        (0..self.backbone.len()).map(acceptors).collect()
    }

    fn ss8(&mut self, version: DsspVersion) -> String {
        let n = self.backbone.len();
        let is_bond = self.acceptors();
        let mut ss = vec![b'-'; n];
        for (_, is, js) in self.ladders(&is_bond) {
            let state = if is.len() > 1 { b'E' } else { b'B' };
            for strand in [is, js] {
                let residues = &mut ss[strand[0]..=*strand.last().unwrap()];
                residues
                    .iter_mut()
                    .for_each(|state_so_far| *state_so_far = state.max(*state_so_far));
            }
        }
        let starts = |stride: usize, residue: usize| {
            residue + stride < n
                && self.segment[residue] == self.segment[residue + stride]
                && is_bond[residue + stride].contains(&residue)
        };
        for (stride, state, over) in [(4, b'H', "-BEH"), (3, b'G', "-G"), (5, b'I', "-IH")] {
            for residue in 1..n {
                if starts(stride, residue) && starts(stride, residue - 1) {
                    let turn = &mut ss[residue..residue + stride];
                    if turn.iter().all(|old| over.as_bytes().contains(old)) {
                        turn.fill(state);
                    }
                }
            }
        }
        for (residue, state) in ss
            .iter_mut()
            .enumerate()
            .filter(|(_, state)| **state == b'-')
        {
            let turn =
                |stride: usize| (1..stride).any(|k| residue >= k && starts(stride, residue - k));
            if [3, 4, 5].into_iter().any(turn) {
                *state = b'T';
            } else if self.is_bend(residue) == Some(true) {
                *state = b'S';
            }
        }
        if version == DsspVersion::V4 {
            for residue in 1..n.saturating_sub(2) {
                if (residue..residue + 3).all(|residue| self.is_polyproline(residue) == Some(true))
                {
                    let loops = ss[residue..residue + 3]
                        .iter_mut()
                        .filter(|state| **state == b'-');
                    loops.for_each(|state| *state = b'P');
                }
            }
        }
        let letter = |residue: usize| {
            if self.backbone[residue].is_some() {
                ss[residue] as char
            } else {
                ' '
            }
        };
        (0..n).map(letter).collect()
    }

    fn same_segment(&self, from: Option<usize>, to: usize) -> Option<usize> {
        from.filter(|&from| self.segment.get(to) == Some(&self.segment[from]))
    }

    fn is_bend(&self, residue: usize) -> Option<bool> {
        let before = self.same_segment(residue.checked_sub(2), residue + 2)?;
        let ca = |residue: usize| Some(self.backbone[residue]?[1]);
        let (u, v) = (
            minus(ca(residue)?, ca(before)?),
            minus(ca(residue + 2)?, ca(residue)?),
        );
        Some(dot(u, v) < 70f64.to_radians().cos() * length(u) * length(v))
    }

    fn is_polyproline(&self, residue: usize) -> Option<bool> {
        let before = self.same_segment(residue.checked_sub(1), residue + 1)?;
        let ([_, _, c0, _], [n, ca, c, _]) = (self.backbone[before]?, self.backbone[residue]?);
        let [n2, ..] = self.backbone[residue + 1]?;
        let (phi, psi) = (dihedral([c0, n, ca, c]), dihedral([n, ca, c, n2]));
        Some((-104.0..=-46.0).contains(&phi) && (116.0..=174.0).contains(&psi))
    }
}

/// In kcal/mol, to 0.001.
fn energy(n: Point, h: Point, c: Point, o: Point) -> f64 {
    let distances = [
        distance(h, o),
        distance(h, c),
        distance(n, c),
        distance(n, o),
    ];
    if distances.iter().any(|d| *d < 0.5) {
        return -9.9;
    }
    let [ho, hc, nc, no] = distances;
    let energy = 27.888 * (1.0 / no + 1.0 / hc - 1.0 / ho - 1.0 / nc);
    ((energy * 1000.0).round() / 1000.0).max(-9.9)
}

fn dihedral([p1, p2, p3, p4]: [Point; 4]) -> f64 {
    let axis = minus(p3, p2).map(|x| x / distance(p2, p3));
    let normal = |arm: Point| minus(arm, axis.map(|x| x * dot(arm, axis)));
    let (v, w) = (normal(minus(p1, p2)), normal(minus(p4, p3)));
    let cross: Point = std::array::from_fn(|k| {
        let (i, j) = ((k + 1) % 3, (k + 2) % 3);
        axis[i] * v[j] - axis[j] * v[i]
    });
    dot(cross, w).atan2(dot(v, w)).to_degrees()
}

fn assert_matches(name: &str, s: &Structure, version: DsspVersion, found: &Found) -> Naive {
    let mut naive = Naive::new(s);
    let close = |a: f32, b: f32| (a - b).abs() < 1.5e-3;
    for (residue, bonds) in found.bonds.iter().enumerate() {
        for (which, (found, expected)) in bonds.iter().zip(naive.best(residue)).enumerate() {
            // Single precision may round an energy to the next 0.001 kcal/mol, and so
            // prefer another partner.
            let same = match (found, expected) {
                (Some((partner, energy)), Some((_, expected))) => {
                    let pair = if which < 2 {
                        (residue, *partner)
                    } else {
                        (*partner, residue)
                    };
                    let mut all = naive.bonds.iter().filter(|bond| (bond.1, bond.2) == pair);
                    let is_close = all.next().is_some_and(|bond| close(bond.0 as f32, *energy));
                    is_close && close(*energy, expected)
                }
                (None, None) => true,
                (Some(bond), None) => bond.1 > -1.5e-3,
                (None, Some(bond)) => bond.1 > -1.5e-3,
            };
            assert!(
                same,
                "{name}, {which} of {residue}: {found:?}, expected {expected:?}"
            );
        }
    }
    assert_eq!(found.ss8, naive.ss8(version), "{name}");
    let class = |letter: char| match letter {
        'H' | 'G' | 'I' => 'H',
        'E' | 'B' => 'E',
        ' ' => ' ',
        _ => 'C',
    };
    assert_eq!(found.ss3, found.ss8.chars().map(class).collect::<String>());
    naive
}

#[test]
fn the_samples_match_the_sequential_rules() {
    let samples = samples();
    let structures: Vec<_> = samples.iter().map(|(_, s)| s.clone()).collect();
    let (mut joined, mut letters) = (0, String::new());
    for version in [DsspVersion::V2, DsspVersion::V4] {
        for ((name, s), found) in samples.iter().zip(compute_by(version, &structures)) {
            joined += assert_matches(name, s, version, &found).joined;
            letters += &found.ss8;
        }
    }
    assert!(joined > 20, "{joined} ladders were joined by bulges");
    for letter in " -HEBGITSP".chars() {
        assert!(letters.contains(letter), "the samples have '{letter}'");
    }
}

#[test]
fn made_up_structures_match_the_sequential_rules() {
    let sizes = [
        0, 1, 2, 3, 5, 6, 63, 64, 65, 127, 128, 129, 511, 512, 513, 1025,
    ];
    let structures: Vec<_> = sizes.iter().map(|&n| structure(n, n as u64)).collect();
    for (s, found) in structures.iter().zip(compute(&structures)) {
        let name = format!("{} residues", s.residues.len());
        assert_matches(&name, s, DsspVersion::V2, &found);
    }
}

#[test]
fn ubiquitin_is_as_mdtraj_and_mkdssp_say() {
    let s = sample("1ubi.pdb");
    let mdtraj = "-EEEEEETTS-EEEEE--TT-BHHHHHHHHHHHH---GGGEEEEETTEE--TTSBGGGGT--TT-EEEEEE--S--";
    let mkdssp = "-EEEEEETTS-EEEEE--TT-BHHHHHHHHHHHH---GGGEEEEETTEEPPTTSBGGGGT--TT-EEEEEE--S--";
    assert_eq!(compute_one(&s).ss8, mdtraj);
    assert_eq!(compute_by(DsspVersion::V4, &[s])[0].ss8, mkdssp);
}
