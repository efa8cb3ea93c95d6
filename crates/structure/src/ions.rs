//! Ions by the names of the dictionary and of simulation programs.

use super::atom_table::AtomTable;
use super::components;
use super::element;
use super::text8::{Text8, text8};

/// Names that are not the symbol of an element with a charge: CHARMM's, and IP and IM of Amber.
const NAMES: [(&str, &str); 11] = [
    ("BAR", "BA"),
    ("CAD", "CD"),
    ("CAL", "CA"),
    ("CES", "CS"),
    ("CLA", "CL"),
    ("IM", "CL"),
    ("IP", "NA"),
    ("LIT", "LI"),
    ("POT", "K"),
    ("RUB", "RB"),
    ("SOD", "NA"),
];

/// The symbol of the element of an ion, padded; `None` if the component is no ion. A name that some
/// other molecule has too (CLA is chlorophyll, and chloride in CHARMM) is an ion here: see how many
/// atoms there are.
pub(super) fn symbol(comp: Text8) -> Option<Text8> {
    let letters = letters(comp);
    let named = NAMES
        .iter()
        .find(|(name, _)| text8(name.as_bytes()) == letters);
    if let Some((_, symbol)) = named {
        return Some(text8(symbol.as_bytes()));
    }
    let [first, second, b' ', ..] = letters else {
        return None;
    };
    let number = element::from_symbol([first, second]);
    (number > 0).then_some(letters)
}

/// Sets the elements of ions in files that do not state them. Readers take the elements from the
/// names of atoms, which are carbon's for CA and CAL.
pub(super) fn set_elements(table: &mut AtomTable) {
    for run in &table.runs {
        if components::lookup(run.comp).is_some() {
            continue;
        }
        let Some(symbol) = symbol(run.comp) else {
            continue;
        };
        let atoms = &mut table.atoms[run.atoms.start as usize..run.atoms.end as usize];
        let is_of_ion = |name: Text8| [symbol, letters(run.comp)].contains(&letters(name));
        if atoms.iter().all(|atom| is_of_ion(atom.name)) {
            let number = element::from_symbol([symbol[0], symbol[1]]);
            atoms.iter_mut().for_each(|atom| atom.element = number);
        }
    }
}

/// The letters of a name in upper case, without the charge or number after them.
fn letters(name: Text8) -> Text8 {
    let is_letter = |byte: &&u8| byte.is_ascii_alphabetic();
    let count = name.iter().take_while(is_letter).count();
    let (letters, rest) = name.split_at(count);
    let is_charge = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b' ');
    if rest.iter().all(is_charge) {
        text8(letters).map(|byte| byte.to_ascii_uppercase())
    } else {
        text8(b"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ions_have_symbols_and_other_names_none() {
        for (comp, expected) in [
            ("CA", "CA"),
            ("CAL", "CA"),
            ("SOD", "NA"),
            ("POT", "K"),
            ("CLA", "CL"),
            ("CES", "CS"),
            ("ZN2", "ZN"),
            ("Na+", "NA"),
            ("CL-", "CL"),
            ("MG2+", "MG"),
            ("FE2", "FE"),
            ("HG", "HG"),
            ("K", "K"),
        ] {
            let found = symbol(text8(comp.as_bytes()));
            assert_eq!(found, Some(text8(expected.as_bytes())), "{comp}");
        }
        for comp in ["", "HEM", "ATP", "HOH", "GLC", "123", "C1A"] {
            assert_eq!(symbol(text8(comp.as_bytes())), None, "{comp}");
        }
    }
}
