//! Dictionary arrays of texts, in the order in which the texts come first. Each text is looked up
//! by its hash once a structure or chain, not once a row.

use super::structure_rows::{RowRange, row_count};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, StringArray};
use std::collections::HashMap;
use std::sync::Arc;

use super::nulls::with_nulls;

/// The key of null.
const NULL: i32 = -1;
/// A key that is not known yet.
const UNKNOWN: i32 = -2;

/// All one-letter texts.
const ASCII: &str = {
    const BYTES: [u8; 128] = {
        let mut bytes = [0; 128];
        let mut code = 0;
        while code < 128 {
            bytes[code] = code as u8;
            code += 1;
        }
        bytes
    };
    match std::str::from_utf8(&BYTES) {
        Ok(ascii) => ascii,
        Err(_) => unreachable!(),
    }
};

/// The rows of a dictionary array so far.
pub(super) struct DictionaryRows<'a> {
    /// An index of `texts` for each row, or [`NULL`].
    keys: Vec<i32>,
    texts: DictionaryTexts<'a>,
    /// A cache of padded names with their keys: each stands at the place that its bits give, and replaces
    /// another one there.
    padded: Vec<([u8; 8], i32)>,
    /// The keys of bytes, such as one-letter codes.
    codes: [i32; 1 << u8::BITS],
    /// The keys of a structure's indices.
    indices: Vec<i32>,
}

/// The texts so far, each with its key.
#[derive(Default)]
struct DictionaryTexts<'a> {
    in_order: Vec<&'a str>,
    known: HashMap<&'a str, i32>,
}

impl<'a> DictionaryTexts<'a> {
    fn key_of(&mut self, text: &'a str) -> i32 {
        *self.known.entry(text).or_insert_with(|| {
            self.in_order.push(text);
            // The rows are those of a slice or of one structure: fewer than there are keys.
            self.in_order.len() as i32 - 1
        })
    }
}

impl<'a> DictionaryRows<'a> {
    /// The array of the rows in these ranges; `add` adds those of each.
    pub(super) fn gather(
        ranges: &'a [RowRange],
        mut add: impl FnMut(&mut DictionaryRows<'a>, &'a RowRange),
    ) -> ArrayRef {
        let mut dictionary = DictionaryRows {
            keys: Vec::with_capacity(row_count(ranges)),
            texts: DictionaryTexts::default(),
            padded: Vec::new(),
            codes: [UNKNOWN; 1 << u8::BITS],
            indices: Vec::new(),
        };
        ranges.iter().for_each(|range| add(&mut dictionary, range));
        let DictionaryRows { keys, texts, .. } = dictionary;
        let keys = with_nulls::<Int32Type>(keys, |key| *key == NULL);
        let texts = StringArray::from_iter_values(texts.in_order);
        Arc::new(DictionaryArray::new(keys, Arc::new(texts)))
    }

    /// Adds texts; neighbours in the same memory cost one look-up.
    pub(super) fn extend_texts(&mut self, texts: impl Iterator<Item = Option<&'a str>>) {
        let mut last: (Option<&str>, i32) = (None, NULL);
        for text in texts {
            let same = match (text, last.0) {
                (Some(text), Some(last)) => std::ptr::eq(text, last),
                (None, None) => true,
                _ => false,
            };
            if !same {
                last = (text, text.map_or(NULL, |text| self.texts.key_of(text)));
            }
            self.keys.push(last.1);
        }
    }

    /// Adds names that are padded with spaces; a blank one is null or empty.
    pub(super) fn extend_padded(
        &mut self,
        names: impl Iterator<Item = &'a [u8; 8]>,
        blank_is_null: bool,
    ) {
        // Structures have fewer distinct names of atoms or residues. Names that share a place
        // replace each other, which costs a search in `texts` and no more.
        const PLACES_BITS: u32 = 8;
        // No name is all zeros.
        self.padded.resize(1 << PLACES_BITS, ([0; 8], UNKNOWN));
        let (padded, texts) = (&mut self.padded[..1 << PLACES_BITS], &mut self.texts);
        self.keys.extend(names.map(|name| {
            // Fibonacci hashing: the highest bits of the product with 2^64 over the golden ratio.
            let mixed = u64::from_le_bytes(*name).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let known = &mut padded[(mixed >> (u64::BITS - PLACES_BITS)) as usize];
            if known.0 != *name {
                let text = std::str::from_utf8(name).unwrap_or("?").trim_ascii_end();
                let key = if text.is_empty() && blank_is_null {
                    NULL
                } else {
                    texts.key_of(text)
                };
                *known = (*name, key);
            }
            known.1
        }));
    }

    /// Adds one-letter codes; blank and 0 stand for `blank`, or for null.
    pub(super) fn extend_codes(&mut self, codes: impl Iterator<Item = u8>, blank: Option<u8>) {
        self.extend_bytes(codes, |code| {
            let shown = match code {
                0 | b' ' => blank,
                code => Some(code),
            };
            let place = usize::from(shown?);
            Some(ASCII.get(place..place + 1).unwrap_or("?"))
        });
    }

    /// Adds the texts of bytes; a byte without a text is null. A byte has one text in all rows.
    pub(super) fn extend_bytes(
        &mut self,
        bytes: impl Iterator<Item = u8>,
        text: impl Fn(u8) -> Option<&'static str>,
    ) {
        let (codes, texts) = (&mut self.codes, &mut self.texts);
        self.keys.extend(bytes.map(|byte| {
            let key = &mut codes[usize::from(byte)];
            if *key == UNKNOWN {
                *key = text(byte).map_or(NULL, |text| texts.key_of(text));
            }
            *key
        }));
    }

    /// Adds the texts of a structure's indices; negative ones and empty texts are null.
    pub(super) fn extend_indices(&mut self, indices: &[i32], text: impl Fn(usize) -> &'a str) {
        self.indices.clear();
        for &index in indices {
            let Ok(index) = usize::try_from(index) else {
                self.keys.push(NULL);
                continue;
            };
            if index >= self.indices.len() {
                self.indices.resize(index + 1, UNKNOWN);
            }
            if self.indices[index] == UNKNOWN {
                let text = text(index);
                self.indices[index] = if text.is_empty() {
                    NULL
                } else {
                    self.texts.key_of(text)
                };
            }
            self.keys.push(self.indices[index]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::structure_rows::StructureRows;
    use super::*;
    use arrow_array::cast::AsArray;
    use tapeloop::features::FeatureTable;
    use tapeloop::structure::{Chain, Structure};

    /// A row group with all rows of structures with these chains. A dictionary needs no more of it
    /// than what `add` reads there.
    fn group(structures: &[&[&str]]) -> Vec<RowRange> {
        let chain = |name: &&str| Chain {
            auth_asym_id: (*name).into(),
            label_asym_id: None,
            entity_id: None,
            sequence: None,
        };
        let range = |names: &&[&str]| {
            let structure = Structure {
                chains: names.iter().map(chain).collect(),
                ..Structure::default()
            };
            let features = FeatureTable::new(Default::default());
            RowRange {
                record: Arc::new(StructureRows::new(String::new(), structure, features)),
                rows: 0..names.len(),
            }
        };
        structures.iter().map(range).collect()
    }

    /// The array's texts, and the index of each row's text among them.
    fn parts(array: &ArrayRef) -> (Vec<&str>, Vec<Option<i32>>) {
        let array = array.as_dictionary::<Int32Type>();
        let texts = array.values().as_string::<i32>();
        let texts = texts.iter().map(|text| text.expect("no text is null"));
        (texts.collect(), array.keys().iter().collect())
    }

    #[test]
    fn texts_have_the_order_in_which_they_come_first() {
        let copy = "B".to_owned();
        let long = "Carbon";
        let group = group(&[&[], &[]]);
        let mut ranges = [
            vec![Some("B"), Some("B"), None, None, Some("A"), Some(&copy)],
            // The second one begins where the first one does.
            vec![Some(&long[..1]), Some(long), None, Some("A"), Some("")],
        ]
        .into_iter();
        let array = DictionaryRows::gather(&group, |keys, _| {
            keys.extend_texts(ranges.next().unwrap().into_iter());
        });
        let (texts, keys) = parts(&array);
        assert_eq!(texts, ["B", "A", "C", "Carbon", ""]);
        let first = [Some(0), Some(0), None, None, Some(1), Some(0)];
        let second = [Some(2), Some(3), None, Some(1), Some(4)];
        assert_eq!(keys, [&first[..], &second].concat());
    }

    #[test]
    fn a_dictionary_of_no_rows_or_of_nulls_has_no_text() {
        assert_eq!(
            parts(&DictionaryRows::gather(&[], |_, _| ())),
            (vec![], vec![])
        );
        let group = group(&[&[]]);
        let array = DictionaryRows::gather(&group, |keys, _| {
            keys.extend_texts([None, None].into_iter());
            keys.extend_padded([b"        "].into_iter(), true);
            keys.extend_codes([0, b' '].into_iter(), None);
            keys.extend_indices(&[-1], |_| unreachable!("a negative index"));
        });
        assert_eq!(parts(&array), (vec![], vec![None; 6]));
    }

    #[test]
    fn padded_names_lose_their_padding_and_blank_ones_are_null_or_empty() {
        let names = [
            b"ALA     ",
            b"        ",
            b" A B    ",
            b"ABCDEFGH",
            b"ALA     ",
            b"\xff       ",
            b"        ",
        ];
        for (blank_is_null, texts, blank) in [
            (true, vec!["ALA", " A B", "ABCDEFGH", "?"], None),
            (false, vec!["ALA", "", " A B", "ABCDEFGH", "?"], Some(1)),
        ] {
            let group = group(&[&[]]);
            let array = DictionaryRows::gather(&group, |keys, _| {
                keys.extend_padded(names.into_iter(), blank_is_null);
            });
            let (found, keys) = parts(&array);
            assert_eq!(found, texts);
            let key =
                |text: &str| Some(texts.iter().position(|known| *known == text).unwrap() as i32);
            let [name, spaced, long, other] = ["ALA", " A B", "ABCDEFGH", "?"].map(key);
            assert_eq!(keys, [name, blank, spaced, long, name, other, blank]);
        }
    }

    #[test]
    fn padded_names_that_share_a_place_keep_their_keys() {
        // More names than places, and all of them once more in each structure.
        let name = |number: usize| format!("{number:<8}").into_bytes().try_into().unwrap();
        let names: Vec<[u8; 8]> = (0..600).map(name).collect();
        let group = group(&[&[], &[]]);
        let array = DictionaryRows::gather(&group, |keys, _| {
            keys.extend_padded(names.iter().chain(&names), false);
        });
        let (texts, keys) = parts(&array);
        let numbers: Vec<String> = (0..600).map(|number| number.to_string()).collect();
        assert_eq!(texts, numbers);
        assert!(keys.into_iter().eq((0..2400).map(|row| Some(row % 600))));
    }

    #[test]
    fn blank_codes_are_null_or_a_letter_and_others_than_ascii_a_question_mark() {
        let codes = [b'M', 0, b'X', b' ', 0xe9, b'?', b'M', 0xff, 0x7f];
        let array_of = |group: &[RowRange], blank| {
            let array = DictionaryRows::gather(group, |keys, _| {
                keys.extend_codes(codes.into_iter(), blank);
            });
            let (texts, keys) = parts(&array);
            (texts.concat(), keys)
        };
        let (texts, keys) = array_of(&group(&[&[]]), Some(b'X'));
        assert_eq!(texts, "MX?\u{7f}");
        assert_eq!(keys, [0, 1, 1, 1, 2, 2, 0, 2, 3].map(Some));
        // The second structure has the keys of the first one.
        let (texts, keys) = array_of(&group(&[&[], &[]]), None);
        assert_eq!(texts, "MX?\u{7f}");
        let keys_of_one = [0, -1, 1, -1, 2, 2, 0, 2, 3].map(|key| (key >= 0).then_some(key));
        assert_eq!(keys, keys_of_one.repeat(2));
    }

    #[test]
    fn indices_are_of_their_own_structure_and_equal_names_share_a_text() {
        let group = group(&[&["A", "B", "A"], &["B", "C", "A"]]);
        let mut indices = [vec![1, -1, 0, 2, i32::MIN, 1], vec![0, 2, -1, 1]].into_iter();
        let array = DictionaryRows::gather(&group, |keys, range| {
            let chains = &range.record.structure.chains;
            keys.extend_indices(&indices.next().unwrap(), |index| {
                &*chains[index].auth_asym_id
            });
        });
        let (texts, keys) = parts(&array);
        assert_eq!(texts, ["B", "A", "C"]);
        let first = [Some(0), None, Some(1), Some(1), None, Some(0)];
        let second = [Some(0), Some(1), None, Some(2)];
        assert_eq!(keys, [&first[..], &second].concat());
    }
}
