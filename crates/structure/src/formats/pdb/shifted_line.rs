//! Atom lines whose fields are not in the columns of the format.
//!
//! A field that is too wide moves all that follow to the right: a serial number of six digits, a chain
//! id of two letters, a component of five, a residue number of five digits. Editors replace blanks by
//! tabs, or separate all fields by tabs. Such a line is read if it is certain what its writer meant,
//! which the points of the coordinates and the other fields show; else the cause is named.

use super::columns::{COORDINATES, Columns, GAP_MAX, is_atom, padded, residue_number};
use crate::decimal::{self, fixed8, int};
use crate::text8::{Text8, text8};

/// The most columns that a line is shifted by. The widest field after the serial number is a chain
/// id, which may have nine letters then: shifted by more than a coordinate's width, a line is taken
/// for damaged.
const SHIFT_MAX: usize = 8;

/// A line with its fields in the columns of the format.
#[derive(Debug, PartialEq)]
pub(super) struct ShiftedLine {
    pub columns: Columns,
    /// How many columns the line has.
    pub len: usize,
    /// The component, the chain or the number, if its field is wider than the format's; all three of a
    /// line whose fields tabs separate.
    pub comp: Option<Text8>,
    pub chain: Option<Vec<u8>>,
    pub number: Option<i32>,
    /// Whether a coordinate was rounded to fit its columns.
    pub rounded: bool,
}

/// The chain and the number of the residue of the line before.
pub(super) struct LastResidue<'a> {
    pub chain: &'a [u8],
    pub number: Option<i32>,
}

impl ShiftedLine {
    /// A line of these columns, of which it has `len`; 80 are read at most.
    fn new(columns: Columns, len: usize) -> Self {
        ShiftedLine {
            columns,
            len: len.min(80),
            comp: None,
            chain: None,
            number: None,
            rounded: false,
        }
    }

    /// The line `line`, an atom, with its fields in their columns; `None` if they are in no other
    /// columns that are known.
    ///
    /// # Errors
    /// Fails if it is not certain what the writer of the file meant; the text says why.
    pub(super) fn read(line: &[u8], last: LastResidue) -> Result<Option<Self>, String> {
        if line.contains(&b'\t') {
            return match expanded(line).or_else(|| separated(line)) {
                Some(line) => Ok(Some(line)),
                None => Err("tabs stand where the format has columns".to_owned()),
            };
        }
        let shifts = 1..=SHIFT_MAX;
        let Some(shift) = shifts
            .into_iter()
            .find(|&shift| has_coordinates(line, shift))
        else {
            return Ok(None);
        };
        unshifted(line, shift, last).map(Some)
    }
}

/// How many columns the fields of an atom line are to the right of the format's, from the coordinates
/// on; `None` for a line with tabs.
pub(super) fn shift(line: &[u8]) -> Option<usize> {
    if line.contains(&b'\t') {
        return None;
    }
    let shifts = (0..=SHIFT_MAX).find(|&shift| has_coordinates(line, shift));
    Some(shifts.unwrap_or(0))
}

/// Whether the coordinates are `shift` columns to the right of the format's, with three decimals each.
fn has_coordinates(line: &[u8], shift: usize) -> bool {
    let fields = COORDINATES.map(|first| {
        let field = line.get(first + shift..first + shift + 8)?;
        Some(u64::from_le_bytes(field.try_into().ok()?))
    });
    let [Some(x), Some(y), Some(z)] = fields else {
        return false;
    };
    fixed8([x, y, z]).is_some()
}

/// The line without the `shift` columns from `first` on.
fn without(line: &[u8], first: usize, shift: usize) -> ShiftedLine {
    let columns = [&line[..first], &line[first + shift..]].concat();
    ShiftedLine::new(padded(&columns), columns.len())
}

/// The line whose coordinates are `shift` columns to the right, at least one, and in the line.
///
/// # Errors
/// It is not certain which field is too wide.
fn unshifted(line: &[u8], shift: usize, last: LastResidue) -> Result<ShiftedLine, String> {
    let is_digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let is_word = |text: &[u8]| !text.is_empty() && !text.iter().any(|&byte| byte <= b' ');
    // A serial number of more than five digits, perhaps not alone.
    let serial = line[6..11 + shift].trim_ascii_start();
    let serial = serial.split(|byte| !byte.is_ascii_digit()).next();
    let serial = serial.unwrap_or_default().len().saturating_sub(5);
    if serial > 0 && is_digits(&line[11..11 + serial]) {
        return if serial == shift {
            Ok(without(line, 11, shift))
        } else {
            let line = [&line[..11], &line[11 + serial..]].concat();
            unshifted(&line, shift - serial, last)
        };
    }
    // A number, an insertion code and three blanks must follow a wide component or chain.
    let number = &line[22 + shift..26 + shift];
    // Numbers are written without zeros before them.
    let has_number = residue_number(number).is_some() && number[0] != b'0';
    let is_blank = line[27 + shift..30 + shift] == *b"   ";
    if !is_blank {
        return Err(format!(
            "columns are shifted by {shift}, and it is not clear from where on"
        ));
    }
    if has_number && is_word(&line[17..20 + shift]) && line[20 + shift] == b' ' {
        let mut shifted = without(line, 20, shift);
        shifted.comp = Some(text8(&line[17..20 + shift]));
        return Ok(shifted);
    }
    let chain = &line[21..22 + shift];
    let is_chain = has_number && is_word(chain);
    let wide = &line[22..26 + shift];
    let wide_number = int(wide).filter(|_| is_digits(wide));
    let continues = |number: i32| {
        let last = last.number.unwrap_or_default();
        // After a larger step the digits may be a chain id and a number, as they may with a 0 first.
        number >= 10_000 && (0..=GAP_MAX).contains(&number.saturating_sub(last))
    };
    let as_number = wide_number.filter(|_| !is_chain || last.chain == line[21..22].trim_ascii());
    match as_number {
        Some(number) if !is_chain || continues(number) => {
            let mut shifted = without(line, 22, shift);
            shifted.number = Some(number);
            Ok(shifted)
        }
        // All digits, and no residue before that shows where the chain ends.
        _ if wide_number.is_some() && last.chain != chain => Err(format!(
            "columns are shifted by {shift} from column 22 on, and {:?} may be a chain id of {} \
             letters or a residue number of {} digits",
            String::from_utf8_lossy(&line[21..26 + shift]),
            shift + 1,
            shift + 4
        )),
        _ if is_chain => {
            let mut shifted = without(line, 22, shift);
            shifted.chain = Some(chain.to_vec());
            Ok(shifted)
        }
        _ => Err(format!(
            "columns are shifted by {shift}, and it is not clear from where on"
        )),
    }
}

/// The line with blanks up to the next column of eight instead of each tab, if that puts the
/// coordinates into their columns.
fn expanded(line: &[u8]) -> Option<ShiftedLine> {
    let mut columns = Vec::with_capacity(80);
    // Eighty columns take no more bytes than that.
    for &byte in line.iter().take(80) {
        match byte {
            b'\t' => columns.resize(columns.len() / 8 * 8 + 8, b' '),
            byte => columns.push(byte),
        }
    }
    has_coordinates(&columns, 0).then(|| ShiftedLine::new(padded(&columns), columns.len()))
}

/// The line whose fields tabs separate: record, serial number, atom, component, chain, number, three
/// coordinates, and perhaps occupancy, B factor and element.
fn separated(line: &[u8]) -> Option<ShiftedLine> {
    let fields: Vec<&[u8]> = line
        .split(|&byte| byte == b'\t')
        .map(<[u8]>::trim_ascii)
        .collect();
    let [
        record,
        serial,
        name,
        comp,
        chain,
        number,
        x,
        y,
        z,
        rest @ ..,
    ] = &fields[..]
    else {
        return None;
    };
    let number = int(number)?;
    let is_plain = is_atom(line)
        && int(serial).is_some()
        && (1..=4).contains(&name.len())
        && (1..=8).contains(&comp.len())
        && rest.len() <= 3;
    let (coordinates, rounded) = decimal::coordinates([x, y, z]).ok()?;
    if !is_plain {
        return None;
    }
    let element = rest.get(2).copied().unwrap_or_default();
    let [occupancy, b_factor] = [0, 1].map(|i| rest.get(i).copied().unwrap_or_default());
    if element.len() > 2 || occupancy.len() > 6 || b_factor.len() > 6 {
        return None;
    }
    let mut columns = [b' '; 80];
    let mut put = |end: usize, text: &[u8]| columns[end - text.len()..end].copy_from_slice(text);
    put(record.len().min(6), &record[..record.len().min(6)]);
    // A name of less than four letters starts in the second column, unless its element has two.
    let name_end = 13 - usize::from(name.len() == 4 || element.len() == 2) + name.len();
    put(name_end, name);
    put(20, &comp[..comp.len().min(3)]);
    for (axis, value) in coordinates.into_iter().enumerate() {
        let text = format!("{:.3}", f64::from(value) / 1000.0);
        if text.len() > 8 {
            return None;
        }
        put(38 + 8 * axis, text.as_bytes());
    }
    put(60, occupancy);
    put(66, b_factor);
    put(78, element);
    Some(ShiftedLine {
        comp: Some(text8(comp)),
        chain: Some(chain.to_vec()),
        number: Some(number),
        rounded,
        ..ShiftedLine::new(columns, 78)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str =
        "ATOM     12  CA  ALA A   7A     27.343  24.294   2.683  1.00 14.70           C";

    fn read(line: &str, chain: &str, number: i32) -> Result<Option<ShiftedLine>, String> {
        let last = LastResidue {
            chain: chain.as_bytes(),
            number: Some(number),
        };
        ShiftedLine::read(line.as_bytes(), last)
    }

    /// The line with `wide` instead of the columns from `first` to `end`, counted from 1.
    fn with(first: usize, end: usize, wide: &str) -> String {
        format!("{}{wide}{}", &LINE[..first - 1], &LINE[end..])
    }

    fn columns(line: &str) -> Columns {
        padded(line.as_bytes())
    }

    #[test]
    fn a_line_in_its_columns_is_not_shifted() {
        assert_eq!(read(LINE, "A", 6), Ok(None));
        assert_eq!(read(&LINE.replace("24.294", "24.29x"), "A", 6), Ok(None));
    }

    #[test]
    fn the_wide_field_is_the_one_that_the_others_leave() {
        let serial = read(&with(7, 11, "123456"), "A", 7).unwrap().unwrap();
        assert_eq!(serial.columns[11..], columns(LINE)[11..]);
        assert_eq!(
            (serial.comp, serial.chain, serial.number),
            (None, None, None)
        );
        for chain in ["A1", "BB", "ABC"] {
            let line = read(&with(22, 22, chain), "A", 6).unwrap().unwrap();
            assert_eq!(line.chain.as_deref(), Some(chain.as_bytes()));
            assert_eq!(line.columns[22..], columns(LINE)[22..]);
        }
        let component = read(&with(18, 20, "A1LU6"), "A", 6).unwrap().unwrap();
        assert_eq!(component.comp, Some(*b"A1LU6   "));
        assert_eq!(component.columns[20..], columns(LINE)[20..]);
        let number = read(&with(23, 26, "12345"), "A", 12_344).unwrap().unwrap();
        assert_eq!(number.number, Some(12_345));
        assert_eq!(number.columns[26..], columns(LINE)[26..]);
    }

    #[test]
    fn digits_that_may_be_of_the_chain_or_of_the_number_need_the_residue_before() {
        // Chain A1 and 1000, or chain A and 11000.
        let line = with(22, 26, "A11000");
        let as_chain = read(&line, "A1", 999).unwrap().unwrap();
        assert_eq!(as_chain.chain.as_deref(), Some(&b"A1"[..]));
        let as_number = read(&line, "A", 10_999).unwrap().unwrap();
        assert_eq!((as_number.chain, as_number.number), (None, Some(11_000)));
        let error = read(&line, "B", 7).unwrap_err();
        assert!(error.contains("1 from column 22"), "{error}");
        assert!(error.contains("chain id of 2 letters"), "{error}");
        // A number of five digits has no 0 first, also where it would go on.
        assert!(read(&with(22, 26, "A09500"), "A", 9_400).is_err());
    }

    #[test]
    fn tabs_are_blanks_up_to_a_column_or_separate_fields() {
        // Each group of blanks that ends at a column of eight is a tab.
        let tabs = LINE.replace("ATOM     12", "ATOM\t 12");
        let expanded = read(&tabs, "A", 6).unwrap().unwrap();
        assert_eq!(expanded.columns[12..66], columns(LINE)[12..66]);
        let fields = "ATOM\t12\tCA\tALA\tA\t7\t27.343\t24.294\t2.683\t1.00\t14.70\tC";
        let separated = read(fields, "A", 6).unwrap().unwrap();
        assert_eq!(separated.columns[30..66], columns(LINE)[30..66]);
        assert_eq!(separated.columns[12..16], columns(LINE)[12..16]);
        assert_eq!(separated.columns[76..78], columns(LINE)[76..78]);
        assert_eq!(separated.chain.as_deref(), Some(&b"A"[..]));
        assert_eq!(
            (separated.comp, separated.number, separated.rounded),
            (Some(*b"ALA     "), Some(7), false)
        );
        let more_decimals = fields.replace("24.294", "24.2936");
        let rounded = read(&more_decimals, "A", 6).unwrap().unwrap();
        assert_eq!(
            (rounded.columns, rounded.rounded),
            (separated.columns, true)
        );
        let error = read("ATOM\t12\tCA\tALA\tA\tx\t27.343\t24.294\t2.683", "A", 6).unwrap_err();
        assert!(error.contains("tabs"), "{error}");
    }
}
