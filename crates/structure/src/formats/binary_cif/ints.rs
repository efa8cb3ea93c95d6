//! Integers of all rows of a column. What returns a value for each row fails only if there is no memory for
//! them.

use std::borrow::Cow;
use std::cell::Cell;

use crate::Result;
use crate::read_limits::reserve;

/// Integers of all rows.
pub(super) enum Ints {
    Each(Vec<i32>),
    /// One value for all rows, and their number, as in many columns of chains and models.
    Same(i32, usize),
    /// The same for several rows each, as in the columns that the atoms of a residue share.
    Runs(Runs),
}

impl Ints {
    /// The integers of pairs of a value and its number of rows, which is not negative. `rows` is the
    /// sum of these.
    pub(super) fn from_pairs(pairs: Vec<i32>, rows: usize) -> Self {
        match *pairs {
            [value, _] => Ints::Same(value, rows),
            _ => Ints::Runs(Runs {
                pairs,
                rows,
                last: Cell::new((0, 0)),
            }),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Ints::Each(values) => values.len(),
            Ints::Same(_, rows) => *rows,
            Ints::Runs(runs) => runs.rows,
        }
    }

    /// The value of a row. Takes constant time on average if rows are asked for in order.
    #[inline]
    pub(super) fn get(&self, row: usize) -> i32 {
        match self {
            Ints::Each(values) => values[row],
            Ints::Same(value, _) => *value,
            Ints::Runs(runs) => runs.get(row),
        }
    }

    /// The value of each row.
    pub(super) fn each(&self) -> Result<Cow<'_, [i32]>> {
        match self {
            Ints::Each(values) => Ok(Cow::Borrowed(values)),
            _ => self.map(|value| value).map(Cow::Owned),
        }
    }

    pub(super) fn into_vec(self) -> Result<Vec<i32>> {
        match self {
            Ints::Each(values) => Ok(values),
            _ => self.map(|value| value),
        }
    }

    /// Applies `f` to the values, once for each run of equal ones. Returns a value for each row.
    pub(super) fn map<T: Copy>(&self, mut f: impl FnMut(i32) -> T) -> Result<Vec<T>> {
        let mut out = Vec::new();
        reserve(&mut out, self.len())?;
        match self {
            Ints::Each(values) => out.extend(values.iter().map(|&value| f(value))),
            Ints::Same(value, rows) => out.resize(*rows, f(*value)),
            Ints::Runs(runs) => {
                for (value, rows) in runs.iter() {
                    out.resize(out.len() + rows, f(value));
                }
            }
        }
        Ok(out)
    }

    /// Combines the values of `self` and `other` row by row. Both have the same number of rows.
    pub(super) fn zip(&self, other: &Ints, combine: impl Fn(i32, i32) -> i32) -> Result<Ints> {
        let rows = self.len();
        let (mut runs, mut other_runs) = match (self, other) {
            (Ints::Same(a, _), Ints::Same(b, _)) => return Ok(Ints::Same(combine(*a, *b), rows)),
            (Ints::Each(_), _) | (_, Ints::Each(_)) => {
                let mut each = Vec::new();
                reserve(&mut each, rows)?;
                each.extend((0..rows).map(|row| combine(self.get(row), other.get(row))));
                return Ok(Ints::Each(each));
            }
            _ => (self.runs(), other.runs()),
        };
        let mut pairs = Vec::new();
        let (mut a, mut b) = ((0, 0), (0, 0));
        let mut left = rows;
        while left > 0 {
            // Both have runs for all rows, so neither ends before.
            if a.1 == 0 {
                a = runs.next().unwrap_or((a.0, left));
            }
            if b.1 == 0 {
                b = other_runs.next().unwrap_or((b.0, left));
            }
            let both = a.1.min(b.1);
            pairs.extend([combine(a.0, b.0), both as i32]);
            (a.1, b.1, left) = (a.1 - both, b.1 - both, left - both);
        }
        Ok(Ints::from_pairs(pairs, rows))
    }

    /// Folds the values that occur, a run of equal ones at once where that is known.
    pub(super) fn fold<T>(&self, first: T, mut with: impl FnMut(T, i32) -> T) -> T {
        match self {
            Ints::Each(values) => values.iter().fold(first, |all, &value| with(all, value)),
            _ => self.runs().fold(first, |all, (value, _)| with(all, value)),
        }
    }

    /// Marks with 1 each row that differs from the row before.
    pub(super) fn mark_changes(&self, changes: &mut [u8]) {
        match self {
            Ints::Each(values) => mark_differences(values, |value| value, changes),
            Ints::Same(..) => {}
            Ints::Runs(runs) => {
                let (mut row, mut before) = (0, None);
                for (value, rows) in runs.iter() {
                    changes[row] |= u8::from(before.is_some_and(|before| before != value));
                    (row, before) = (row + rows, Some(value));
                }
            }
        }
    }

    /// Each value with its number of rows, which is not 0. Empty for [`Ints::Each`].
    fn runs(&self) -> impl Iterator<Item = (i32, usize)> {
        let (same, runs) = match self {
            Ints::Each(_) => (None, None),
            Ints::Same(value, rows) => (Some((*value, *rows)), None),
            Ints::Runs(runs) => (None, Some(runs.iter())),
        };
        let same = same.filter(|&(_, rows)| rows > 0);
        same.into_iter().chain(runs.into_iter().flatten())
    }
}

/// Values that each hold for several rows.
pub(super) struct Runs {
    /// A value and its number of rows, in turns.
    pairs: Vec<i32>,
    rows: usize,
    /// The index of the pair that holds the row of the last [`Runs::get`], and the first row of that pair.
    last: Cell<(usize, usize)>,
}

impl Runs {
    /// The value of a row. Rows are mostly read in order, so the search goes on from the last pair
    /// that was read.
    fn get(&self, row: usize) -> i32 {
        let pairs = self.pairs.as_chunks::<2>().0;
        let (mut pair, mut start) = self.last.get();
        if row < start {
            (pair, start) = (0, 0);
        }
        loop {
            let [value, rows] = pairs[pair];
            if row - start < rows as usize {
                self.last.set((pair, start));
                return value;
            }
            (pair, start) = (pair + 1, start + rows as usize);
        }
    }

    /// Each value with its number of rows, but for values without rows.
    fn iter(&self) -> impl Iterator<Item = (i32, usize)> {
        let pairs = self.pairs.as_chunks::<2>().0.iter();
        pairs
            .map(|&[value, rows]| (value, rows as usize))
            .filter(|&(_, rows)| rows > 0)
    }
}

/// Marks with 1 each value whose bits differ from those of the value before.
pub(super) fn mark_differences<T: Copy, B: PartialEq>(
    values: &[T],
    bits: impl Fn(T) -> B,
    changes: &mut [u8],
) {
    let Some(later) = changes.get_mut(1..) else {
        return;
    };
    let pairs = values.iter().zip(values.iter().skip(1));
    for (change, (&before, &value)) in later.iter_mut().zip(pairs) {
        *change |= u8::from(bits(before) != bits(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(pairs: &[i32]) -> Ints {
        let rows = pairs.as_chunks::<2>().0.iter();
        let rows = rows.map(|&[_, rows]| rows as usize).sum();
        Ints::from_pairs(pairs.to_vec(), rows)
    }

    fn marks(ints: &Ints) -> Vec<u8> {
        let mut changes = vec![0; ints.len()];
        ints.mark_changes(&mut changes);
        changes
    }

    #[test]
    fn runs_are_the_values_of_their_rows() {
        for pairs in [
            &[7, 5][..],
            &[7, 2, 9, 1, 9, 3, 7, 1],
            &[3, 0, 7, 2, 4, 0, 7, 1, -1, 9, 5, 0],
            &[4, 0],
            &[],
        ] {
            let mut each = Vec::new();
            for &[value, rows] in pairs.as_chunks::<2>().0 {
                each.extend(std::iter::repeat_n(value, rows as usize));
            }
            let ints = runs(pairs);
            assert_eq!(ints.len(), each.len());
            for rows in [0..each.len(), 0..each.len().min(2)] {
                for row in rows {
                    assert_eq!(ints.get(row), each[row], "{pairs:?}");
                }
            }
            assert_eq!(*ints.each().unwrap(), each, "{pairs:?}");
            let sum = |ints: &Ints| ints.fold(0, |bits, value| bits | 1 << (value & 31));
            assert_eq!(marks(&ints), marks(&Ints::Each(each.clone())), "{pairs:?}");
            assert_eq!(sum(&ints), sum(&Ints::Each(each)), "{pairs:?}");
        }
    }

    #[test]
    fn two_columns_are_combined_row_by_row() {
        let columns = || {
            [
                Ints::Same(4, 6),
                runs(&[1, 2, 8, 0, 2, 3, 5, 1]),
                runs(&[0, 3, 3, 3]),
                Ints::Each(vec![9, 9, 1, 2, 2, 0]),
            ]
        };
        for a in columns() {
            for b in columns() {
                let both = a.zip(&b, |a, b| 10 * a + b).unwrap();
                let wanted: Vec<i32> = (0..6).map(|row| 10 * a.get(row) + b.get(row)).collect();
                assert_eq!(*both.each().unwrap(), wanted);
            }
        }
    }
}
