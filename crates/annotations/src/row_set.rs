//! Sets of rows of annotations.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Rows per word.
const WORD: u32 = 64;

/// Words for all rows that 32 bits can count.
const WORDS_MAX: u32 = u32::MAX / WORD + 1;

/// A set of rows, each by its index among the rows of all tables. As text it is a list of words of 64
/// rows in hexadecimal digits, the first row in the lowest bit; `0x5` stands for five words without a
/// row, and `1x5` for five words with all rows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(super) struct RowSet {
    /// The words that have a row, by the index of their first row divided by [`WORD`].
    words: BTreeMap<u32, u64>,
    /// Runs of words with all rows, as the text has them: the first word of each, and the one behind its
    /// last. No two overlap. So a text takes memory with its length, and not with the rows that it claims.
    full: BTreeMap<u32, u32>,
}

impl RowSet {
    /// Adds a row.
    pub(super) fn insert(&mut self, row: u32) {
        *self.words.entry(row / WORD).or_default() |= 1 << (row % WORD);
    }

    /// Adds the rows of another set.
    pub(super) fn extend(&mut self, other: &RowSet) {
        for (&index, word) in &other.words {
            *self.words.entry(index).or_default() |= word;
        }
        for (&start, &end) in &other.full {
            self.add_full(start..end);
        }
    }

    /// Adds all rows of a run of words, which is not empty. Joins it to the runs that it meets.
    fn add_full(&mut self, words: Range<u32>) {
        let Range { mut start, mut end } = words;
        while let Some((&first, &behind)) = self.full.range(..=end).next_back()
            && behind >= start
        {
            self.full.remove(&first);
            (start, end) = (start.min(first), end.max(behind));
        }
        self.full.insert(start, end);
    }

    /// Number of rows within a range.
    pub(super) fn count_in(&self, rows: &Range<u32>) -> u32 {
        let words = words_of(rows).map(|(index, mask)| (self.word(index) & mask).count_ones());
        words.sum()
    }

    /// The first row of a range that is not in the set.
    pub(super) fn first_missing(&self, rows: &Range<u32>) -> Option<u32> {
        words_of(rows).find_map(|(index, mask)| first_row(index, !self.word(index) & mask))
    }

    /// The first row that is in this set and not in the other one.
    pub(super) fn first_without(&self, other: &RowSet) -> Option<u32> {
        self.runs().find_map(|(mut words, word)| {
            words.find_map(|index| first_row(index, word & !other.word(index)))
        })
    }

    /// The word with this index, 0 if it has no row.
    fn word(&self, index: u32) -> u64 {
        let run = self.full.range(..=index).next_back();
        if run.is_some_and(|(_, &end)| index < end) {
            return u64::MAX;
        }
        self.words.get(&index).copied().unwrap_or(0)
    }

    /// The words that have a row, ascending: runs of equal ones, each with the word.
    fn runs(&self) -> impl Iterator<Item = (Range<u32>, u64)> {
        let mut words = self.words.iter().peekable();
        let mut full = self.full.iter().peekable();
        std::iter::from_fn(move || {
            let run = full.peek().map(|&(&start, &end)| start..end);
            if let Some(run) = &run {
                while words.next_if(|(index, _)| run.contains(*index)).is_some() {}
            }
            let is_before = |index: u32| run.as_ref().is_none_or(|run| index < run.start);
            match words.next_if(|(index, _)| is_before(**index)) {
                Some((&index, &word)) => Some((index..index + 1, word)),
                None => full.next().map(|(&start, &end)| (start..end, u64::MAX)),
            }
        })
    }
}

/// The words with the rows of a range, each with the bits of these rows.
fn words_of(rows: &Range<u32>) -> impl Iterator<Item = (u32, u64)> {
    let Range { start, end } = rows.clone();
    let words = start / WORD..end.div_ceil(WORD);
    words.filter(move |_| start < end).map(move |index| {
        let first = u64::from(index) * u64::from(WORD);
        let from = u64::from(start).saturating_sub(first);
        let behind = (u64::from(end) - first).min(WORD.into());
        (
            index,
            u64::MAX << from & u64::MAX >> (u64::from(WORD) - behind),
        )
    })
}

/// The first row of a word with this index; `None` if it has none.
fn first_row(index: u32, word: u64) -> Option<u32> {
    (word != 0).then(|| index * WORD + word.trailing_zeros())
}

impl From<RowSet> for String {
    fn from(set: RowSet) -> String {
        let mut text = String::new();
        let mut runs = set.runs().peekable();
        let mut next = 0;
        while let Some((words, word)) = runs.next() {
            if words.start > next {
                text += &format!("0x{} ", words.start - next);
            }
            next = words.end;
            if word != u64::MAX {
                text += &format!("{word:016x} ");
                continue;
            }
            while let Some((more, _)) =
                runs.next_if(|(more, word)| more.start == next && *word == u64::MAX)
            {
                next = more.end;
            }
            text += &format!("1x{} ", next - words.start);
        }
        text
    }
}

impl TryFrom<String> for RowSet {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        const WRONG: &str = "this is no set of rows";
        let mut set = RowSet::default();
        let mut next: u32 = 0;
        for part in text.split_terminator(' ') {
            let (word, count) = match part.split_once('x') {
                Some(("0", count)) => (0, count.parse().map_err(|_| WRONG)?),
                Some(("1", count)) => (u64::MAX, count.parse().map_err(|_| WRONG)?),
                Some(_) => return Err(WRONG),
                None => (u64::from_str_radix(part, 16).map_err(|_| WRONG)?, 1),
            };
            let end = next.checked_add(count).filter(|end| *end <= WORDS_MAX);
            let end = end.ok_or(WRONG)?;
            match word {
                u64::MAX if next < end => set.add_full(next..end),
                0 | u64::MAX => {}
                word => {
                    set.words.insert(next, word);
                }
            }
            next = end;
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(rows: &[u32]) -> RowSet {
        let mut set = RowSet::default();
        rows.iter().for_each(|&row| set.insert(row));
        set
    }

    #[test]
    fn rows_are_counted_and_found_by_range() {
        let rows = set(&[0, 63, 64, 130, u32::MAX - 1]);
        assert_eq!(rows.count_in(&(0..u32::MAX)), 5);
        assert_eq!(rows.count_in(&(1..64)), 1);
        assert_eq!(rows.count_in(&(63..65)), 2);
        assert_eq!(rows.count_in(&(65..130)), 0);
        assert_eq!(rows.count_in(&(64..64)), 0);
        assert_eq!(rows.first_missing(&(63..70)), Some(65));
        assert_eq!(rows.first_missing(&(63..65)), None);
        assert_eq!(rows.first_missing(&(128..200)), Some(128));
        assert_eq!(rows.first_missing(&(5..5)), None);
        let mut more = set(&[1]);
        more.extend(&rows);
        assert_eq!(more.first_without(&rows), Some(1));
        assert_eq!(rows.first_without(&more), None);
        assert_eq!(rows.first_without(&set(&[0, 63])), Some(64));
    }

    #[test]
    fn a_set_is_the_same_after_it_was_text() {
        let most: Vec<u32> = (100..500).chain([u32::MAX]).collect();
        for rows in [set(&[]), set(&[0]), set(&[3, 64, 1000]), set(&most)] {
            let text = String::from(rows.clone());
            assert!(text.len() < 120, "{text}");
            let read = RowSet::try_from(text.clone()).unwrap();
            assert_eq!(rows.first_without(&read), None, "{text}");
            assert_eq!(read.first_without(&rows), None, "{text}");
            assert_eq!(String::from(read), text);
        }
        for wrong in [
            "000000000000000g",
            "2x1",
            "1x",
            "1x67108865",
            "0x4294967295 1x1",
        ] {
            assert!(RowSet::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_text_takes_memory_with_its_length_and_not_with_the_rows_that_it_claims() {
        let text = |set: &RowSet| String::from(set.clone());
        let all = RowSet::try_from("1x67108864".to_owned()).unwrap();
        assert_eq!((all.words.len(), all.full.len()), (0, 1));
        assert_eq!(text(&all), "1x67108864 ");
        assert_eq!(all.count_in(&(100..200)), 100);
        // Rows before, within and behind runs, and runs that meet.
        let mut set = RowSet::try_from("0x1 1x2 0x3 1x1 ".to_owned()).unwrap();
        for row in [0, 130, 64 * 6, 64 * 7] {
            set.insert(row);
        }
        let one = "0000000000000001";
        assert_eq!(text(&set), format!("{one} 1x2 0x3 1x1 {one} "));
        assert_eq!(set.count_in(&(0..64 * 8)), 1 + 128 + 64 + 1);
        assert_eq!(set.first_missing(&(64..64 * 8)), Some(64 * 3));
        assert_eq!(set.first_without(&self::set(&[0])), Some(64));
        set.extend(&RowSet::try_from("0x3 1x3 ".to_owned()).unwrap());
        assert_eq!(text(&set), format!("{one} 1x6 {one} "));
        assert_eq!(set.full.len(), 1);
        set.extend(&all);
        assert_eq!(text(&set), text(&all));
    }
}
