//! Atomic numbers from element symbols, and from atom names if a file has no symbols.

use super::text8::Text8;

/// Symbols by atomic number, from 1.
const SYMBOLS: [&str; 118] = [
    "H", "HE", "LI", "BE", "B", "C", "N", "O", "F", "NE", "NA", "MG", "AL", "SI", "P", "S", "CL",
    "AR", "K", "CA", "SC", "TI", "V", "CR", "MN", "FE", "CO", "NI", "CU", "ZN", "GA", "GE", "AS",
    "SE", "BR", "KR", "RB", "SR", "Y", "ZR", "NB", "MO", "TC", "RU", "RH", "PD", "AG", "CD", "IN",
    "SN", "SB", "TE", "I", "XE", "CS", "BA", "LA", "CE", "PR", "ND", "PM", "SM", "EU", "GD", "TB",
    "DY", "HO", "ER", "TM", "YB", "LU", "HF", "TA", "W", "RE", "OS", "IR", "PT", "AU", "HG", "TL",
    "PB", "BI", "PO", "AT", "RN", "FR", "RA", "AC", "TH", "PA", "U", "NP", "PU", "AM", "CM", "BK",
    "CF", "ES", "FM", "MD", "NO", "LR", "RF", "DB", "SG", "BH", "HS", "MT", "DS", "RG", "CN", "NH",
    "FL", "MC", "LV", "TS", "OG",
];

/// Atomic numbers by the low five bits of two letters; 0 for none. Deuterium is hydrogen.
static NUMBERS: [u8; 1024] = {
    let mut table = [0; 1024];
    let mut number = 0;
    while number < SYMBOLS.len() {
        let symbol = SYMBOLS[number].as_bytes();
        let second = if symbol.len() == 2 { symbol[1] } else { 0 };
        table[index(symbol[0], second)] = number as u8 + 1;
        number += 1;
    }
    table[index(b'D', 0)] = 1;
    table
};

/// The atomic number of hydrogen and deuterium.
pub(super) const HYDROGEN: u8 = 1;

/// Stands for the atomic number of a point that is no atom: a lone pair, a Drude particle, or another
/// virtual site of a force field. Its low bits are those of hydrogen.
pub(super) const VIRTUAL_SITE: u8 = HYDROGEN | 128;

/// Whether an atomic number is of a heavy atom, or unknown (0).
#[inline]
pub(super) fn is_heavy(element: u8) -> bool {
    element & 127 != HYDROGEN
}

/// The symbol of an element, in capitals; empty for 0 and other numbers that no element has.
pub fn symbol(number: u8) -> &'static str {
    let index = usize::from(number).checked_sub(1);
    let symbol = index.and_then(|index| SYMBOLS.get(index));
    symbol.copied().unwrap_or_default()
}

/// Whether an element is a metal. B, Si, Ge, As, Sb and Te are none.
pub(super) fn is_metal(element: u8) -> bool {
    !matches!(element, 0..=2 | 5..=10 | 14..=18 | 32..=36 | 51..=54 | 85 | 86 | 119..)
}

const fn index(first: u8, second: u8) -> usize {
    (first & 31) as usize * 32 + (second & 31) as usize
}

/// The atomic number of a symbol in either case and either alignment (`b" C"`, `b"C "`, `b"Cl"`); 0
/// if it is not a symbol.
#[inline]
pub(super) fn from_symbol([first, second]: [u8; 2]) -> u8 {
    let plain = |byte: u8| byte.is_ascii_alphabetic() | (byte == b' ');
    // The low bits of a blank are 0, so " C" with its columns exchanged is "C ".
    let (first, second, plain) = if first == b' ' {
        (second, first, plain(second))
    } else {
        (first, second, plain(first) & plain(second))
    };
    NUMBERS[index(first, second)] * u8::from(plain)
}

/// Like [`from_name_columns`], of a name without leading blanks.
pub(super) fn from_name([a, b, c, d, ..]: Text8) -> u8 {
    from_name_columns([a, b, c, d])
}

/// The heaviest element that names of atoms imply, einsteinium: of heavier ones no structure is known, and
/// their symbols are names of light atoms, such as `CN` and `HS`.
const NAMED_MAX: u8 = 99;

/// The atomic number of a symbol of two letters that a name begins with; 0 for none.
fn from_two_letters(letters: [u8; 2]) -> u8 {
    let number = from_symbol(letters);
    if number <= NAMED_MAX { number } else { 0 }
}

/// The atomic number that the name of a polymer atom implies; 0 for none.
///
/// `name` is the four name columns of a PDB line, in which an element of one letter is in the second
/// column. Simulation programs start all names in the first column. So an element of amino acids or
/// nucleotides before a remoteness letter (`CA`, `CD`, `HG`, `NE`, ...) is carbon, hydrogen,
/// nitrogen, oxygen or sulfur in either column, and never calcium, cadmium, mercury or neon, which
/// are not in polymers.
pub(super) fn from_name_columns(name: [u8; 4]) -> u8 {
    let [first, second, third, fourth] = name.map(|byte| byte.to_ascii_uppercase());
    if first == b' ' || first.is_ascii_digit() {
        // Old names of hydrogens start with a digit, in either column: `1HB `, ` 1HB`.
        let letter = if second.is_ascii_digit() {
            third
        } else {
            second
        };
        return from_symbol([letter, b' ']);
    }
    if !second.is_ascii_alphabetic() {
        return from_symbol([first, b' ']);
    }
    // Four-letter hydrogen names fill all columns (HG11, DD22).
    if fourth != b' ' && matches!(first, b'H' | b'D') {
        return HYDROGEN;
    }
    let both = from_two_letters([first, second]);
    if both == 0 || is_remoteness(first, second) {
        return from_symbol([first, b' ']);
    }
    both
}

/// The atomic number that the columns of a name imply in a residue that is no polymer, in a file that
/// keeps to the columns: two letters from the first column on are the symbol of an element (`CA  ` is
/// calcium, ` CA ` carbon). Names that start with a digit, and those with H or D first, are read as in polymers,
/// but for mercury's (`HG  `). Names of four letters fill all columns (`CAAA` is carbon); of those only `CL`,
/// `BR` and `FE` are two-letter symbols.
pub(super) fn from_columns(name: [u8; 4]) -> u8 {
    let [first, second, _, fourth] = name.map(|byte| byte.to_ascii_uppercase());
    let starts_as_hydrogen = matches!(first, b'H' | b'D') && (fourth != b' ' || second != b'G');
    if !first.is_ascii_alphabetic() || !second.is_ascii_alphabetic() || starts_as_hydrogen {
        return from_name_columns(name);
    }
    let has_symbol = fourth == b' ' || matches!(&[first, second], b"CL" | b"BR" | b"FE");
    match from_two_letters([first, second]) {
        both if both > 0 && has_symbol => both,
        _ => from_symbol([first, b' ']),
    }
}

/// Whether a name without leading blanks is of a virtual site: a lone pair (LP of CHARMM and OPLS), an
/// extra point (EP of Amber, MW of water models), or a Drude particle (D before the name of a heavy
/// atom). Of the atoms of polymers, those with M before C or N are GROMACS' dummy masses.
pub(super) fn is_virtual_site(name: &[u8], is_polymer: bool) -> bool {
    let [first, second, ..] = *name else {
        return false;
    };
    match [first, second].map(|byte| byte.to_ascii_uppercase()) {
        [b'L' | b'E', b'P'] | [b'M', b'W'] => true,
        [b'D', b'C' | b'N' | b'O' | b'S' | b'P'] => true,
        [b'M', b'C' | b'N'] => is_polymer,
        _ => false,
    }
}

fn is_remoteness(element: u8, letter: u8) -> bool {
    b"CHNOSD".contains(&element) && b"ABGDEZHO".contains(&letter) && [element, letter] != *b"SE"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_in_any_case_and_alignment() {
        assert_eq!(from_symbol(*b" C"), 6);
        assert_eq!(from_symbol(*b"C "), 6);
        assert_eq!(from_symbol(*b"SE"), 34);
        assert_eq!(from_symbol(*b"se"), 34);
        assert_eq!(from_symbol(*b" D"), HYDROGEN);
        assert_eq!(from_symbol(*b"Og"), 118);
        for none in [*b"  ", *b" X", *b"12", *b"1H", *b"C+"] {
            assert_eq!(from_symbol(none), 0, "{none:?}");
        }
    }

    #[test]
    fn names_in_either_column() {
        for (name, number) in [
            (b" CA ", 6),
            (b"CA  ", 6),
            (b"NE  ", 7),
            (b"OG1 ", 8),
            (b" SG ", 16),
            (b"C210", 6),
            (b" P  ", 15),
        ] {
            let text = String::from_utf8_lossy(name);
            assert_eq!(from_name_columns(*name), number, "{text}");
        }
    }

    #[test]
    fn columns_decide_in_residues_that_are_no_polymer() {
        for (name, symbol) in [
            (b"CA  ", *b"CA"),
            (b" CA ", *b"C "),
            (b"CD  ", *b"CD"),
            (b"NA  ", *b"NA"),
            (b"HG  ", *b"HG"),
            (b" HG ", *b"H "),
            (b"HG11", *b"H "),
            (b"HO  ", *b"H "),
            (b"HS  ", *b"H "),
            (b"HF  ", *b"HF"),
            (b"1HB ", *b"H "),
            (b"2HN ", *b"H "),
            (b"1H  ", *b"H "),
            (b"3H2*", *b"H "),
            (b"CN  ", *b"C "),
            (b"CL1 ", *b"CL"),
            (b"CL12", *b"CL"),
            (b"CAAA", *b"C "),
            (b"NA12", *b"N "),
            (b"C1  ", *b"C "),
            (b"FE  ", *b"FE"),
            (b"OXY ", *b"O "),
        ] {
            let text = String::from_utf8_lossy(name);
            assert_eq!(from_columns(*name), from_symbol(symbol), "{text}");
        }
    }

    #[test]
    fn virtual_sites_by_their_names() {
        for name in ["LP1", "LPOA", "EPW", "MW", "DCA", "DO", "DSG"] {
            assert!(is_virtual_site(name.as_bytes(), false), "{name}");
        }
        for name in ["MN1", "MCB2"] {
            assert!(is_virtual_site(name.as_bytes(), true), "{name}");
            assert!(!is_virtual_site(name.as_bytes(), false), "{name}");
        }
        for name in ["CA", "D", "DA", "DG1", "N", "MG", "LI", "E1", "O"] {
            assert!(!is_virtual_site(name.as_bytes(), true), "{name}");
        }
    }

    #[test]
    fn hydrogen_names_old_and_new() {
        for name in [
            b"1HB ", b" 2HB", b" HA ", b"HA  ", b"HG11", b"HH12", b"2HD1", b" D  ", b"DD22",
            b"HG  ", b"HE1 ",
        ] {
            let text = String::from_utf8_lossy(name);
            assert_eq!(from_name_columns(*name), HYDROGEN, "{text}");
        }
    }

    #[test]
    fn selenium_and_halogens_are_not_taken_for_sulfur_or_carbon() {
        assert_eq!(from_name_columns(*b"SE  "), 34);
        assert_eq!(from_name_columns(*b"BR  "), 35);
        assert_eq!(from_name_columns(*b"CL  "), 17);
        for none in [b"    ", b" X  ", b" 1  ", b"****"] {
            assert_eq!(from_name_columns(*none), 0);
        }
    }

    #[test]
    fn metals_are_the_metals() {
        let number = |symbol: &[u8; 2]| from_symbol(*symbol);
        for metal in [
            b"Na", b"MG", b"K ", b"CA", b"FE", b"Zn", b"HG", b"CD", b"U ", b"AL",
        ] {
            assert!(is_metal(number(metal)), "{metal:?}");
        }
        for other in [
            b"C ", b"N ", b"O ", b"S ", b"P ", b"CL", b"BR", b"I ", b"SE", b"B ", b"AS",
        ] {
            assert!(!is_metal(number(other)), "{other:?}");
        }
        assert!(!is_metal(0) && !is_metal(u8::MAX));
    }
}
