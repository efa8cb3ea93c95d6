//! The topology of a trajectory: what each atom of its frames is.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use super::checks::Findings;
use super::decimal::LIMIT_MILLI;
use super::model::{Assembly, BFactorKind, Frame, Residue, Structure};
use super::read_limits::reserve;
use super::read_options::{Models, ReadOptions};
use super::reader::Reader;
use super::structure_builder::{distance, is_within};
use super::text::FilePlace;
use crate::{Error, Result};

/// A longer bond of the backbone crosses the border of the simulation's cell, in 0.001 A. Bonds of
/// less than 2 A stretch far less in a simulation, and cells are far wider.
const BOND_MAX: i64 = 5_000;

/// The structure of a file whose atoms are those of a trajectory.
#[derive(Clone, Debug)]
pub struct Topology {
    structure: Arc<Structure>,
    /// For each atom of the structure, its index among the atoms of the file.
    atoms: Vec<u32>,
    file_atoms: u32,
}

impl Reader {
    /// Reads the topology of a trajectory: the first model of a file that has the atoms of the
    /// trajectory in the same order. The error does not name the file.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if the reader's options ask for other models than
    /// the first or for an assembly, and those of [`Reader::read_path`].
    pub fn read_topology(&mut self, path: &Path) -> Result<Topology> {
        let file = std::fs::File::open(path).map_err(Error::io)?;
        // 0 for pipes and devices.
        let size = file.metadata().map_err(Error::io)?.len();
        self.read_topology_stream(&path.to_string_lossy(), file, size)
    }

    /// [`Reader::read_topology`] for a stream of `size` bytes, or 0 if that is unknown.
    ///
    /// # Errors
    /// Those of [`Reader::read_topology`].
    #[doc(hidden)]
    pub fn read_topology_stream(
        &mut self,
        name: &str,
        stream: impl Read,
        size: u64,
    ) -> Result<Topology> {
        let options = *self.options();
        if options.models != Models::First || options.assembly != Assembly::Deposited {
            let error = Error::usage("a topology is one model with the atoms of its file");
            return Err(error.fix("read the first model, without an assembly"));
        }
        options.limits.check_text(size)?;
        let mut structures = self.read_stream(name, stream, size, None, Error::io)?;
        let structure = structures.pop();
        let mut structure =
            structure.ok_or_else(|| Error::input("the topology file has no model"))?;
        // Frames move the atoms of the polymer.
        structure.ligands.clear();
        structure.waters.clear();
        if options.chemistry {
            let chemistry = structure.chemistry.take();
            let described = chemistry.and_then(|known| known.described_components().cloned());
            structure.find_chemistry(options.components, described, 0);
        }
        let (table, selector) = self.last_file();
        // B factors are copied and decide nothing. A second selection from atoms whose B factors are
        // their numbers shows which of them the first one took.
        for (number, atom) in (0..).zip(&mut table.atoms) {
            atom.b_factor = f32::from_bits(number);
        }
        let numbered = selector.select(
            table,
            |offset| FilePlace::Line(b"", offset),
            ReadOptions {
                b_factor_kind: Some(BFactorKind::Temperature),
                ..options
            },
        )?;
        let numbers = numbered.first().map_or(&[][..], |model| &model.b_factor);
        Ok(Topology {
            atoms: numbers.iter().map(|number| number.to_bits()).collect(),
            file_atoms: table.atoms.len() as u32,
            structure: Arc::new(structure),
        })
    }
}

impl Topology {
    /// The structure with the coordinates of the file.
    pub fn structure(&self) -> &Structure {
        &self.structure
    }

    /// For each atom of the structure, its index among the atoms of the file, `[atoms]`. These are
    /// all atoms of the model, with hydrogens, water and ligands.
    pub fn atoms(&self) -> &[u32] {
        &self.atoms
    }

    /// Number of atoms in the file's first model, which each frame has to have.
    pub fn file_atoms(&self) -> u32 {
        self.file_atoms
    }

    /// The structure at a frame. `position` returns the position of an atom in 0.001 A by its index
    /// among the atoms of the file; it is rounded to the nearest integer. Chains, residues, breaks
    /// and B factors are those of the topology.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) if a coordinate is not finite or beyond
    /// 100,000 A, or if a bond N-CA, CA-C or C-N of the backbone is longer than 5 A, which it is in
    /// molecules that cross the border of the periodic cell;
    /// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if there is no memory for the atoms.
    pub fn at_frame(
        &self,
        frame: Frame,
        position: impl Fn(usize) -> [f64; 3],
    ) -> Result<Structure> {
        let mut xyz = Vec::new();
        reserve(&mut xyz, self.atoms.len())?;
        let limit = f64::from(LIMIT_MILLI);
        for &atom in &self.atoms {
            let place = position(atom as usize);
            // NaN fails this comparison too.
            if !place.iter().all(|milli| milli.abs() <= limit) {
                let number = atom + 1;
                let message = format!(
                    "a coordinate of atom {number} is not a number, or is beyond {} A",
                    LIMIT_MILLI / 1000
                );
                return Err(Error::input(message).fix("write the trajectory again"));
            }
            // The cast truncates, so half a unit is added. `f64::round` is a call without SSE 4.1.
            xyz.push(place.map(|milli| (milli + 0.5_f64.copysign(milli)) as i32));
        }
        let structure = Structure {
            xyz,
            frame: Some(frame),
            // These fields describe the text of the topology's file.
            rounded_atoms: 0,
            truncation: None,
            findings: Findings::default(),
            ..Structure::clone(&self.structure)
        };
        match structure.first_long_bond() {
            None => Ok(structure),
            Some(bond) => Err(Error::input(format!("the frame is wrapped: {bond}"))
                .fix("make molecules whole before, for example with gmx trjconv -pbc whole")),
        }
    }
}

impl Structure {
    /// The first bond of the backbone that is longer than [`BOND_MAX`], for a message.
    fn first_long_bond(&self) -> Option<String> {
        let is_long = |a, b| match (self.position(a), self.position(b)) {
            (Some(a), Some(b)) => !is_within(a, b, BOND_MAX + 1),
            _ => false,
        };
        let mut before: Option<&Residue> = None;
        for residue in &self.residues {
            let linked = before.filter(|_| !residue.break_before);
            let bonds = [
                ("C-N", linked.map(|before| (before.c, residue.n))),
                ("N-CA", Some((residue.n, residue.ca))),
                ("CA-C", Some((residue.ca, residue.c))),
            ];
            for (name, bond) in bonds {
                if let Some((a, b)) = bond
                    && is_long(a, b)
                {
                    let chain = &self.chains[residue.chain as usize].auth_asym_id;
                    let number = residue.auth_seq_id;
                    let length = self.distance(a, b);
                    return Some(format!(
                        "at residue {chain} {number} the bond {name} is {length:.1} A long"
                    ));
                }
            }
            before = Some(residue);
        }
        None
    }

    /// The distance of two atoms in A.
    fn distance(&self, a: u32, b: u32) -> f64 {
        let [a, b] = [a, b].map(|atom| self.xyz[atom as usize]);
        distance(a, b) / 1000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Two glycines with hydrogens and two conformers, between water.
    const FILE: &str = "\
HETATM    1  O   HOH W   1      50.000   0.000   0.000  1.00  9.00           O
ATOM      2  N   GLY A   1       0.000   0.000   0.000  1.00  0.50           N
ATOM      3  H   GLY A   1       0.500   0.900   0.000  1.00  0.50           H
ATOM      4  CA AGLY A   1       1.400   0.300   0.000  0.40  0.50           C
ATOM      5  CA BGLY A   1       1.400   0.000   0.000  0.60  0.50           C
ATOM      6  C   GLY A   1       2.000   1.300   0.000  1.00  0.50           C
ATOM      7  O   GLY A   1       1.400   2.400   0.000  1.00  0.50           O
ATOM      8  N   GLY A   2       3.300   1.300   0.000  1.00  0.50           N
ATOM      9  CA  GLY A   2       4.000   2.500   0.000  1.00  0.50           C
ATOM     10  C   GLY A   2       5.500   2.300   0.000  1.00  0.50           C
HETATM   11  O   HOH W   2      52.000   0.000   0.000  1.00  9.00           O
ENDMDL
ATOM      2  N   GLY A   1       0.000   0.000   0.000  1.00  0.50           N
END
";
    const FRAME: Frame = Frame {
        index: 3,
        time_ps: Some(1.5),
    };

    fn topology(options: ReadOptions) -> Result<Topology> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("top.pdb");
        fs::write(&path, FILE).unwrap();
        Reader::new(options).read_topology(&path)
    }

    #[test]
    fn each_atom_of_the_structure_is_an_atom_of_the_file() {
        let topology = topology(ReadOptions::default()).unwrap();
        assert_eq!(topology.atoms(), [1, 4, 5, 6, 7, 8, 9]);
        assert_eq!(topology.file_atoms(), 11);
        let deposited = topology.structure();
        assert_eq!(deposited.b_factor, [0.5; 7]);
        let all = ReadOptions {
            models: Models::All,
            ..ReadOptions::default()
        };
        let error = self::topology(all).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Usage);
    }

    #[test]
    fn a_frame_has_the_residues_of_the_topology_and_its_own_coordinates() {
        let topology = topology(ReadOptions::default()).unwrap();
        let file: Vec<[f64; 3]> = (0..topology.file_atoms())
            .map(|atom| {
                let index = topology.atoms().iter().position(|&known| known == atom);
                index.map_or([f64::NAN; 3], |index| {
                    topology.structure().xyz[index].map(|milli| f64::from(milli) + 0.4)
                })
            })
            .collect();
        let frame = topology.at_frame(FRAME, |atom| file[atom]).unwrap();
        let expected = Structure {
            frame: Some(FRAME),
            truncation: None,
            ..topology.structure().clone()
        };
        assert_eq!(frame, expected);
        let moved = |moved: usize, to: [f64; 3]| {
            let place = |atom: usize| if atom == moved { to } else { file[atom] };
            topology
                .at_frame(FRAME, place)
                .map_err(|error| error.to_string())
        };
        let nitrogen = topology.structure().xyz[4].map(f64::from);
        let wrapped = moved(7, [nitrogen[0] + 40_000.0, nitrogen[1], nitrogen[2]]);
        let error = wrapped.unwrap_err();
        assert!(
            error.contains("residue A 2 the bond C-N is 41.3 A"),
            "{error}"
        );
        assert!(error.contains("trjconv"), "{error}");
        for far in [f64::NAN, f64::INFINITY, 1e9] {
            let error = moved(1, [0.0, far, 0.0]).unwrap_err();
            assert!(error.contains("atom 2"), "{error}");
        }
    }
}
