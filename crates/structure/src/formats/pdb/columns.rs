//! The columns of lines, and the fields in them.

use std::ops::Range;

use memchr::memchr;

use crate::atom_table::PolymerKind;
use crate::components;
use crate::decimal::{self, OCCUPANCY_ONE, fixed8, int};
use crate::text::without_byte_order_mark;
use crate::text8::{Text8, text8};

/// The first 80 columns of a line. After a short line they go on with blanks or with the next line, which
/// must not be read as this one's: functions that read columns from [`COORDINATES_END`] on take the line's
/// length `len`, without its line break. A line with coordinates has at least [`COORDINATES_END`] columns, and
/// may have more than 80.
pub(super) type Columns = [u8; 80];

/// Columns 18 to 27: component (3), its fourth letter or a blank (1), chain (1), residue number (4) and
/// insertion code (1).
pub(super) type ResidueKey = [u8; 10];

/// The first four letters of a record's name in upper case. Other characters change too.
pub(super) fn upper_case(first4: &[u8; 4]) -> u32 {
    u32::from_le_bytes(*first4) & 0xdfdf_dfdf
}

/// Whether a line is an atom.
pub(super) fn is_atom(line: &[u8]) -> bool {
    matches!(line.first_chunk().map(upper_case), Some(ATOM | HETATM))
}

/// Where the first line starts: after a byte order mark.
pub(super) fn text_start(text: &[u8]) -> usize {
    text.len() - without_byte_order_mark(text).len()
}

/// Where the line that begins at `start` ends.
#[inline]
pub(super) fn line_end(text: &[u8], start: usize) -> usize {
    memchr(b'\n', &text[start..]).map_or(text.len(), |len| start + len)
}

/// The columns of a line, filled up with blanks or cut off.
pub(super) fn padded(line: &[u8]) -> Columns {
    let mut columns = [b' '; 80];
    let len = line.len().min(80);
    columns[..len].copy_from_slice(&line[..len]);
    columns
}

/// The first columns of x, y and z, of eight columns each.
pub(super) const COORDINATES: [usize; 3] = [30, 38, 46];

/// The fields of x, y and z without blanks around them, of a line of [`COORDINATES_END`] columns at
/// least.
pub(super) fn coordinate_fields(columns: &[u8]) -> [&[u8]; 3] {
    COORDINATES.map(|first| columns[first..first + 8].trim_ascii())
}

/// Where the columns of the coordinates end.
pub(super) const COORDINATES_END: usize = 54;

pub(super) const ATOM: u32 = u32::from_le_bytes(*b"ATOM");

pub(super) const HETATM: u32 = u32::from_le_bytes(*b"HETA");

/// Reads a field of six columns with two decimals (`  1.00`) in 0.001. `columns` has one more column
/// on either side, so that it is one word; a blank and a third decimal of 0 take their places.
#[inline]
fn hundredths(columns: [u8; 8]) -> Option<i32> {
    const FIELD: u64 = 0x00ff_ffff_ffff_ff00;
    const AROUND: u64 = u64::from_le_bytes(*b" \0\0\0\0\0\x000");
    fixed8([u64::from_le_bytes(columns) & FIELD | AROUND]).map(|[value]| value)
}

/// Occupancy in millionths: columns 55 to 60. The line has `len` columns, at least [`COORDINATES_END`].
#[inline(always)]
pub(super) fn occupancy(columns: &Columns, len: usize) -> i32 {
    if len < 60 {
        return decimal::occupancy(columns[54..len].trim_ascii());
    }
    if take(columns, 54) == *b"  1.00" {
        return OCCUPANCY_ONE;
    }
    match hundredths(take(columns, 53)) {
        Some(value) => value * (OCCUPANCY_ONE / 1000),
        None => decimal::occupancy(columns[54..60].trim_ascii()),
    }
}

/// The columns of the B factor.
pub(in crate::formats) const B_FACTOR: Range<usize> = 60..66;

/// The B factor of a line of `len` columns; NaN if it has no number.
#[inline(always)]
pub(super) fn b_factor(columns: &Columns, len: usize) -> f32 {
    if len < B_FACTOR.end {
        return decimal::b_factor(columns[B_FACTOR.start.min(len)..len].trim_ascii());
    }
    match hundredths(take(columns, B_FACTOR.start - 1)) {
        Some(value) => decimal::thousandths_to_f32(value),
        None => decimal::b_factor(columns[B_FACTOR].trim_ascii()),
    }
}

/// The segment id of a line that has none.
pub(super) const NO_SEGID: [u8; 4] = *b"    ";

/// The segment id: columns 73 to 76; [`NO_SEGID`] for none. Old files have their entry's code there, and the
/// number of the line behind it, which is none.
#[inline]
pub(super) fn segid(columns: &Columns, len: usize) -> [u8; 4] {
    if len <= 72 {
        return NO_SEGID;
    }
    let mut segid: [u8; 4] = take(columns, 72);
    if len < 76 {
        segid[len - 72..].fill(b' ');
    }
    if segid == NO_SEGID {
        return segid;
    }
    let after = &columns[76..len.clamp(76, 80)];
    let is_line_number = after.iter().any(u8::is_ascii_digit)
        && after.iter().all(|byte| matches!(byte, b'0'..=b'9' | b' '));
    if is_line_number { NO_SEGID } else { segid }
}

/// An atom's name without leading blanks.
#[inline]
pub(super) fn atom_name(columns: [u8; 4]) -> Text8 {
    const SPACES: u64 = u64::from_le_bytes(*b"        ");
    let shift = if columns[0] == b' ' { 8 } else { 0 };
    let word = (u64::from(u32::from_le_bytes(columns)) | SPACES << 32) >> shift;
    let name = word | (SPACES & !(!0 >> shift));
    if name as u8 == b' ' {
        text8(columns.trim_ascii())
    } else {
        name.to_le_bytes()
    }
}

/// Whether the names of a file's atoms start in their first column whatever the element, as that of the
/// first alpha carbon of an amino acid does; false without one.
pub(super) fn is_left_aligned(text: &[u8]) -> bool {
    let mut line_start = 0;
    while line_start < text.len() {
        let end = line_end(text, line_start);
        let line = &text[line_start..end];
        line_start = end + 1;
        if let (true, Some(fields)) = (is_atom(line), line.get(12..20))
            && fields[..4].trim_ascii() == b"CA"
            && components::lookup(text8(fields[5..].trim_ascii()))
                .is_some_and(|known| known.kind == PolymerKind::Amino)
        {
            return fields[0] == b'C';
        }
    }
    false
}

/// A residue number in four columns: decimal, or hybrid-36 above 9999.
pub(super) fn residue_number(field: &[u8]) -> Option<i32> {
    match field.first()? {
        b'A'..=b'Z' => base36(field, b'A').map(|n| n - 10 * 36i32.pow(3) + 10_000),
        b'a'..=b'z' => base36(field, b'a').map(|n| n + 16 * 36i32.pow(3) + 10_000),
        _ => int(field.trim_ascii()),
    }
}

/// The most residues that a gap of a chain has where only the gap shows how a number is written: above
/// the hundreds that chains lack, and far below 30,961, by which the hexadecimal `A000` after 9999 would
/// jump, which is 10,000 in hybrid-36.
pub(super) const GAP_MAX: i32 = 1_000;

/// The number and the insertion code of the residue `key`, and whether the number has more digits than
/// the format's four: in five columns and more, unless the fifth is an insertion code after the residue
/// before, or in hexadecimal digits after 9999. `last` is the number of the residue before, which counts if it is of
/// the same chain.
#[inline(always)]
pub(super) fn number_of(
    key: &ResidueKey,
    columns: &Columns,
    last: Option<i32>,
    is_same_chain: impl Fn() -> bool,
) -> ((Option<i32>, u8), bool) {
    if key[9].is_ascii_digit() && key[5..].iter().all(u8::is_ascii_digit) {
        return number_of_digits(key, columns, last.filter(|_| is_same_chain()));
    }
    let ins_code = if key[9] == b' ' { 0 } else { key[9] };
    if let Some(last) = last.filter(|&last| last >= 9_999)
        && is_same_chain()
    {
        let digits = std::str::from_utf8(&key[5..9]).unwrap_or_default();
        let hexadecimal = i32::from_str_radix(digits, 16).ok();
        let is_next = |number: &i32| (0..=GAP_MAX).contains(&(number - last));
        if let Some(number) = hexadecimal.filter(is_next) {
            return ((Some(number), ins_code), true);
        }
    }
    ((residue_number(&key[5..9]), ins_code), false)
}

/// The number and the insertion code of a residue with digits in columns 23 to 27, and whether they all
/// are of the number; `last` is the number of the residue before in the same chain.
#[cold]
fn number_of_digits(
    key: &ResidueKey,
    columns: &Columns,
    last: Option<i32>,
) -> ((Option<i32>, u8), bool) {
    // An insertion after the residue of these four digits, or the next one.
    let four = int(&key[5..9]);
    // In 64 bits, as a number whose field is too wide may be any of 32.
    let step = four
        .zip(last)
        .map(|(four, last)| i64::from(four) - i64::from(last));
    if matches!(step, Some(0 | 1)) {
        return ((four, key[9]), false);
    }
    // The coordinates begin in column 31.
    let digits = &columns[22..30];
    let digits = digits.split(|byte| !byte.is_ascii_digit()).next();
    ((digits.and_then(int), 0), true)
}

/// Four base-36 digits whose letters start at `letter`.
fn base36(field: &[u8], letter: u8) -> Option<i32> {
    field.iter().try_fold(0, |value, &byte| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            _ if (letter..letter + 26).contains(&byte) => byte - letter + 10,
            _ => return None,
        };
        Some(value * 36 + i32::from(digit))
    })
}

/// `N` columns from `first`, counted from 0.
#[inline]
pub(super) fn take<const N: usize>(columns: &Columns, first: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&columns[first..first + N]);
    out
}

/// Whether the first word of `line` is `word`.
pub(super) fn is_word(line: &[u8], word: &[u8]) -> bool {
    line.strip_prefix(word)
        .is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
}
