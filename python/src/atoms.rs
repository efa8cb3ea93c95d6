//! Atoms in memory as the text of an mmCIF file, so that they are read as files are.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::fmt::Write;

/// The columns of `_atom_site` that are written.
const HEADER: &str = "data_atoms\nloop_\n_atom_site.group_PDB\n_atom_site.id\n\
_atom_site.type_symbol\n_atom_site.label_atom_id\n_atom_site.label_alt_id\n\
_atom_site.label_comp_id\n_atom_site.auth_asym_id\n_atom_site.auth_seq_id\n\
_atom_site.pdbx_PDB_ins_code\n_atom_site.Cartn_x\n_atom_site.Cartn_y\n_atom_site.Cartn_z\n\
_atom_site.occupancy\n_atom_site.B_iso_or_equiv\n";

/// The bytes of an mmCIF file with these atoms, one entry of each list an atom. Coordinates are in
/// angstrom, and rounded to 0.001, as the readers keep them. `ValueError` for lists of other lengths, and for what
/// mmCIF cannot hold.
#[pyfunction]
#[pyo3(signature = (coordinates, names, residues, chains, numbers, insertions=None, elements=None,
    hetero=None, b_factors=None))]
// Writes atoms as mmCIF, which the readers of files then read. Checks the lengths of the lists,
// and what mmCIF cannot hold.
#[expect(clippy::too_many_arguments, reason = "they are the columns of a table")]
pub(crate) fn mmcif_of_atoms<'py>(
    py: Python<'py>,
    coordinates: Vec<[f64; 3]>,
    names: Vec<String>,
    residues: Vec<String>,
    chains: Vec<String>,
    numbers: Vec<i64>,
    insertions: Option<Vec<String>>,
    elements: Option<Vec<String>>,
    hetero: Option<Vec<bool>>,
    b_factors: Option<Vec<f64>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let atoms = coordinates.len();
    let lengths = [
        ("names", names.len()),
        ("residues", residues.len()),
        ("chains", chains.len()),
        ("numbers", numbers.len()),
        ("insertions", insertions.as_ref().map_or(atoms, Vec::len)),
        ("elements", elements.as_ref().map_or(atoms, Vec::len)),
        ("hetero", hetero.as_ref().map_or(atoms, Vec::len)),
        ("b_factors", b_factors.as_ref().map_or(atoms, Vec::len)),
    ];
    if let Some((name, length)) = lengths.iter().find(|(_, length)| *length != atoms) {
        let message = format!("{name} has {length} entries, and there are {atoms} atoms");
        return Err(PyValueError::new_err(message));
    }
    let mut text = HEADER.to_owned();
    let of = |texts: &Option<Vec<String>>, atom: usize| {
        let text = texts.as_ref().map(|texts| texts[atom].as_str());
        value(text.unwrap_or_default())
    };
    for (atom, [x, y, z]) in coordinates.iter().enumerate() {
        if ![x, y, z].iter().all(|length| length.is_finite()) {
            let message = format!("the coordinates of atom {atom} are not finite");
            return Err(PyValueError::new_err(message));
        }
        let is_hetero = hetero.as_ref().is_some_and(|hetero| hetero[atom]);
        let group = if is_hetero { "HETATM" } else { "ATOM" };
        let b_factor = b_factors.as_ref().map(|factors| factors[atom].to_string());
        let b_factor = b_factor.as_deref().unwrap_or("?");
        let number = numbers[atom];
        if i32::try_from(number).is_err() {
            let message = format!("the residue number of atom {atom} is {number}, over 32 bits");
            return Err(PyValueError::new_err(message));
        }
        // mmCIF's signs for no value.
        if ["?", "."].contains(&&*chains[atom]) {
            let message = format!("{:?} cannot be the name of a chain", chains[atom]);
            return Err(PyValueError::new_err(message));
        }
        let insertion = insertions.as_ref().map_or("", |codes| &codes[atom]);
        if insertion.chars().count() > 1 {
            let message = format!(
                "the insertion code of atom {atom} is {insertion:?}, and has one character"
            );
            return Err(PyValueError::new_err(message));
        }
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{group} {} {} {} . {} {} {number} {} {x:.3} {y:.3} {z:.3} 1 {b_factor}",
            atom + 1,
            of(&elements, atom)?,
            value(&names[atom])?,
            value(&residues[atom])?,
            value(&chains[atom])?,
            of(&insertions, atom)?,
        );
    }
    Ok(PyBytes::new(py, text.as_bytes()))
}

/// A text as a value of an mmCIF file: quoted if it needs quotes.
fn value(text: &str) -> PyResult<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"*+-.".contains(&byte);
    if text.is_empty() {
        return Ok("?".to_owned());
    }
    if text.bytes().all(is_plain) && !text.starts_with(['.', '-']) && !is_word(text) {
        return Ok(text.to_owned());
    }
    let is_printable = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    let quote = ['"', '\''].into_iter().find(|&quote| !text.contains(quote));
    match quote {
        Some(quote) if text.bytes().all(is_printable) => Ok(format!("{quote}{text}{quote}")),
        _ => Err(PyValueError::new_err(format!("{text:?} cannot be a name"))),
    }
}

/// Whether mmCIF gives the text a meaning of its own.
fn is_word(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let words = ["data_", "save_", "loop_", "stop_", "global_"];
    words.iter().any(|word| text.starts_with(word))
}
