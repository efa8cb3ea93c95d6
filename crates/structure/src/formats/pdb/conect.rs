//! CONECT records: the bonds of atoms, which they name by their serial numbers.

use std::collections::{HashMap, HashSet};

use super::columns::{Columns, coordinate_fields, is_atom, line_end, padded, take, text_start};
use super::models::ends_model;
use crate::chemistry::ATOM_BONDS_MAX;
use crate::decimal;
use crate::stated_bonds::StatedBonds;

/// A serial number as the file writes it, in five columns.
type Serial = [u8; 5];

/// The first columns of the serial numbers of a CONECT record: the atom's, and up to four that it is bonded
/// to.
const FIELDS: [usize; 5] = [6, 11, 16, 21, 26];

/// The most bonds of one atom that are read, so that the time does not grow with the product of the models
/// and the bonds. More than [`ATOM_BONDS_MAX`], so that an atom of a crowd keeps too many to count.
const BONDS_MAX: usize = 2 * ATOM_BONDS_MAX;

/// The bonds that CONECT records state within each model, wherever the records stand. Serial numbers of
/// no atom of a model are ignored, and those of several: programs write more than 99,999 atoms with the
/// same ones.
pub(super) fn read(text: &[u8]) -> StatedBonds {
    // By atom: those that its records name.
    let mut bonds: HashMap<Serial, HashSet<Serial>> = HashMap::new();
    let mut bonded: HashSet<Serial> = HashSet::new();
    each_line(text, |line| {
        if line.starts_with(b"CONECT") {
            let columns = padded(line);
            let [one, others @ ..] = FIELDS.map(|first| serial(&columns, first));
            for other in others {
                let known = bonds.entry(one).or_default();
                if ![one, other].contains(&NO_SERIAL) && known.len() < BONDS_MAX {
                    known.insert(other);
                    bonded.extend([one, other]);
                }
            }
        }
    });
    let mut stated = StatedBonds::default();
    if bonded.is_empty() {
        return stated;
    }
    // The position of each atom; `None` if several of the model have its number.
    let mut places: HashMap<Serial, Option<[i32; 3]>> = HashMap::new();
    // Looks at the atoms of the model alone, as a file may have many models, and many bonds.
    let mut end_model = |places: &mut HashMap<Serial, Option<[i32; 3]>>| {
        let places = std::mem::take(places);
        let place = |serial: &Serial| places.get(serial).copied().flatten();
        for one in places.keys() {
            for other in bonds.get(one).into_iter().flatten() {
                if let (Some(one), Some(other)) = (place(one), place(other)) {
                    stated.add([one, other]);
                }
            }
        }
    };
    each_line(text, |line| {
        if ends_model(line) {
            end_model(&mut places);
        } else if is_atom(line) {
            let columns = padded(line);
            let serial = serial(&columns, FIELDS[0]);
            if bonded.contains(&serial) {
                let texts = coordinate_fields(&columns);
                let xyz = decimal::coordinates(texts).ok().map(|(xyz, _)| xyz);
                let known = places.entry(serial);
                known.and_modify(|place| *place = None).or_insert(xyz);
            }
        }
    });
    end_model(&mut places);
    stated
}

const NO_SERIAL: Serial = [b' '; 5];

/// The serial number in five columns from `first` on.
fn serial(columns: &Columns, first: usize) -> Serial {
    take(columns, first)
}

/// Calls `visit` with each line, without its end.
fn each_line(text: &[u8], mut visit: impl FnMut(&[u8])) {
    let mut start = text_start(text);
    while start < text.len() {
        let end = line_end(text, start);
        visit(&text[start..end]);
        start = end + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atom_table::AtomLine;

    fn atom_line(serial: &str, x: i32) -> String {
        format!(
            "HETATM{serial:>5}  C1  LIG A   1    {:8.3}   0.000   0.000  1.00  0.00           C\n",
            f64::from(x)
        )
    }

    fn bonds_among(text: &str, places: &[i32]) -> Vec<[u32; 2]> {
        let atoms = places.iter().map(|x| AtomLine {
            xyz: [1000 * x, 0, 0],
            ..AtomLine::default()
        });
        read(text.as_bytes())
            .among(&atoms.collect::<Vec<_>>())
            .to_vec()
    }

    #[test]
    fn bonds_are_those_of_each_model() {
        let atoms = [("1", 1), ("2", 2), ("A0000", 3)];
        let model = |shift: i32| {
            let lines = atoms.map(|(serial, x)| atom_line(serial, x + shift));
            format!("MODEL\n{}ENDMDL\n", lines.concat())
        };
        let text = format!(
            "{}{}CONECT    1    2A0000\r\nCONECT    2    1\nEND\n",
            model(0),
            model(10)
        );
        assert_eq!(bonds_among(&text, &[1, 2, 3]), [[0, 1], [0, 2]]);
        assert_eq!(bonds_among(&text, &[11, 12, 13]), [[0, 1], [0, 2]]);
        assert_eq!(bonds_among(&text, &[2, 3]), [[0u32; 2]; 0]);
        // END alone is between the frames of VMD.
        let frames = text.replace("MODEL\n", "").replace("ENDMDL", "END");
        assert_eq!(bonds_among(&frames, &[1, 2, 3]), [[0, 1], [0, 2]]);
        assert_eq!(bonds_among(&frames, &[11, 12, 13]), [[0, 1], [0, 2]]);
    }

    #[test]
    fn numbers_of_no_atom_or_of_several_state_no_bonds() {
        let lines = [("1", 1), ("2", 2), ("2", 3)].map(|(serial, x)| atom_line(serial, x));
        let text = format!("{}CONECT    1    2    9\nCONECT\n", lines.concat());
        assert!(bonds_among(&text, &[1, 2, 3]).is_empty());
        assert!(bonds_among("CONECT    1    2", &[1, 2]).is_empty());
    }
}
