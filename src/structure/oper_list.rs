//! The assembly of an mmCIF file: `_pdbx_struct_assembly_gen` and
//! `_pdbx_struct_oper_list`.

use super::assembly::{FIX, Generator, OPERATORS_MAX, Operator};
use super::decimal;
use super::table::at_line;
use crate::{Error, Result};

/// A row of `_pdbx_struct_assembly_gen`: where it starts, then the items of
/// [`GENERATOR_ITEMS`].
pub(super) type GeneratorRow<'a> = (u32, [&'a [u8]; 3]);

/// The items that are read of `_pdbx_struct_assembly_gen`.
pub(super) const GENERATOR_ITEMS: &[&[u8]] = &[b"assembly_id", b"oper_expression", b"asym_id_list"];

/// A row of `_pdbx_struct_oper_list`: where it starts, then the items of
/// [`OPERATOR_ITEMS`].
pub(super) type OperatorRow<'a> = (u32, [&'a [u8]; 13]);

/// The items that are read of `_pdbx_struct_oper_list`.
pub(super) const OPERATOR_ITEMS: &[&[u8]] = &[
    b"id",
    b"matrix[1][1]",
    b"matrix[1][2]",
    b"matrix[1][3]",
    b"vector[1]",
    b"matrix[2][1]",
    b"matrix[2][2]",
    b"matrix[2][3]",
    b"vector[2]",
    b"matrix[3][1]",
    b"matrix[3][2]",
    b"matrix[3][3]",
    b"vector[3]",
];

/// The generators of assembly 1; none where the file does not have it.
pub(super) fn generators(
    text: &[u8],
    generators: &[GeneratorRow],
    operators: &[OperatorRow],
) -> Result<Vec<Generator>> {
    let mut out = Vec::new();
    let mut operator_count = 0;
    for &(offset, [_, expression, chains]) in generators.iter().filter(|(_, [id, ..])| *id == b"1")
    {
        let expression = Expression {
            text,
            offset,
            expression: without_blanks(expression),
            operators,
        };
        let operators = expression.evaluate()?;
        operator_count += operators.len();
        expression.check_count(operator_count)?;
        out.push(Generator {
            operators,
            chains: without_blanks(chains)
                .split(',')
                .map(str::to_owned)
                .collect(),
        });
    }
    Ok(out)
}

/// An expression of a generator: a list of operators (`1,2`, `1-60`, `P`), or
/// lists in parentheses, one behind the other, whose operators are multiplied.
/// Of a product the last is applied first.
struct Expression<'a> {
    text: &'a [u8],
    /// Where the generator is.
    offset: u32,
    expression: String,
    operators: &'a [OperatorRow<'a>],
}

impl Expression<'_> {
    fn evaluate(&self) -> Result<Vec<Operator>> {
        let lists = lists(&self.expression).ok_or_else(|| self.malformed())?;
        let mut lists = lists.into_iter();
        let mut product = self.list(lists.next().unwrap_or_default())?;
        for list in lists {
            let factors = self.list(list)?;
            self.check_count(product.len() * factors.len())?;
            let after = |last: Operator| factors.iter().map(move |first| last.after(first));
            product = product.into_iter().flat_map(after).collect();
        }
        Ok(product)
    }

    fn list(&self, list: &str) -> Result<Vec<Operator>> {
        let mut operators = Vec::new();
        for item in list.split(',') {
            let range = item.split_once('-');
            let range =
                range.and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
            if let Some((first, last)) = range {
                let range: std::ops::RangeInclusive<u32> = first..=last;
                if range.is_empty() {
                    return Err(self.malformed());
                }
                for id in range {
                    operators.push(self.find(&id.to_string())?);
                    self.check_count(operators.len())?;
                }
            } else if item.is_empty() {
                return Err(self.malformed());
            } else {
                operators.push(self.find(item)?);
                self.check_count(operators.len())?;
            }
        }
        Ok(operators)
    }

    fn malformed(&self) -> Error {
        let message = format!("oper_expression {:?} is malformed", self.expression);
        self.error(self.offset, &message)
    }

    fn find(&self, id: &str) -> Result<Operator> {
        let is = |row: &&OperatorRow| row.1[0] == id.as_bytes();
        let Some((offset, [_, values @ ..])) = self.operators.iter().find(is) else {
            let message = format!("operator {id:?} is not in _pdbx_struct_oper_list");
            return Err(self.error(self.offset, &message));
        };
        let mut rows = [[f64::NAN; 4]; 3];
        for (value, text) in rows.as_flattened_mut().iter_mut().zip(values) {
            *value = decimal::float(text).unwrap_or(f64::NAN);
        }
        Operator::new(rows).ok_or_else(|| {
            let message = format!("operator {id:?} is no rotation and shift");
            self.error(*offset, &message)
        })
    }

    fn check_count(&self, count: usize) -> Result<()> {
        if count <= OPERATORS_MAX {
            return Ok(());
        }
        let message = format!("assembly 1 has over {OPERATORS_MAX} operators");
        Err(self.error(self.offset, &message))
    }

    fn error(&self, offset: u32, message: &str) -> Error {
        at_line(self.text, offset as usize, message).fix(FIX)
    }
}

/// The lists of an expression, `None` where its parentheses do not match.
fn lists(expression: &str) -> Option<Vec<&str>> {
    if !expression.contains(['(', ')']) {
        return Some(vec![expression]);
    }
    let inner = expression.strip_prefix('(')?.strip_suffix(')')?;
    let lists: Vec<&str> = inner.split(")(").collect();
    let nested = lists.iter().any(|list| list.contains(['(', ')']));
    (!nested).then_some(lists)
}

/// Long lists may go over several lines.
fn without_blanks(text: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(text).into_owned();
    text.retain(|letter| !letter.is_ascii_whitespace());
    text
}
