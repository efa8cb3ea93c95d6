//! The assembly of an mmCIF file: `_pdbx_struct_assembly_gen` and
//! `_pdbx_struct_oper_list`.

use std::borrow::Cow;
use std::collections::HashMap;

use super::assembly::{FIX, Generators, Operator};
use super::decimal;
use super::limits::{ReadLimits, check};
use super::mmcif::on_line;
use super::table::{at_line, quoted};
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

/// Adds the generators of assembly 1 to `out`; none where the file does not have it.
pub(super) fn generators(
    text: &[u8],
    limits: &ReadLimits,
    generators: &[GeneratorRow],
    operators: &[OperatorRow],
    out: &mut Generators,
) -> Result<()> {
    let mut rows = HashMap::new();
    for (offset, [id, values @ ..]) in operators {
        rows.entry(*id).or_insert((*offset, values));
    }
    let mut evaluated = 0;
    for &(offset, [_, expression, chains]) in generators.iter().filter(|(_, [id, ..])| *id == b"1")
    {
        let expression = Expression {
            text,
            offset,
            expression: &without_blanks(expression),
            operators: &rows,
            max: limits.operators_max,
        };
        out.add(expression.evaluate(&mut evaluated)?);
        let chains = without_blanks(chains);
        out.list(chains.split(',').map(Cow::from), limits.chains_max)
            .map_err(|error| on_line(text, offset as usize, error))?;
    }
    Ok(())
}

/// An expression of a generator: a list of operators (`1,2`, `1-60`, `P`), or
/// lists in parentheses, one behind the other, whose operators are multiplied.
/// Of a product the last is applied first.
struct Expression<'a> {
    text: &'a [u8],
    /// Where the generator is.
    offset: u32,
    expression: &'a str,
    operators: &'a OperatorIndex<'a>,
    /// The most operators that are evaluated.
    max: u32,
}

/// By id, where a row starts and its numbers.
type OperatorIndex<'a> = HashMap<&'a [u8], (u32, &'a [&'a [u8]; 12])>;

impl Expression<'_> {
    /// The operators, each of which `evaluated` counts, and each factor of a product.
    fn evaluate(&self, evaluated: &mut usize) -> Result<Vec<Operator>> {
        let lists = lists(self.expression).ok_or_else(|| self.malformed())?;
        let mut lists = lists.into_iter();
        let mut product = self.list(lists.next().unwrap_or_default(), evaluated)?;
        for list in lists {
            let factors = self.list(list, evaluated)?;
            self.count(evaluated, product.len() * factors.len())?;
            let after = |last: Operator| factors.iter().map(move |first| last.after(first));
            product = product.into_iter().flat_map(after).collect();
        }
        Ok(product)
    }

    fn list(&self, list: &str, evaluated: &mut usize) -> Result<Vec<Operator>> {
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
                    self.count(evaluated, 1)?;
                    operators.push(self.find(&id.to_string())?);
                }
            } else if item.is_empty() {
                return Err(self.malformed());
            } else {
                self.count(evaluated, 1)?;
                operators.push(self.find(item)?);
            }
        }
        Ok(operators)
    }

    fn malformed(&self) -> Error {
        let expression = quoted(self.expression.as_bytes());
        let message = format!("oper_expression {expression} is malformed");
        self.error(self.offset, &message)
    }

    fn find(&self, id: &str) -> Result<Operator> {
        let Some((offset, values)) = self.operators.get(id.as_bytes()) else {
            let id = quoted(id.as_bytes());
            let message = format!("operator {id} is not in _pdbx_struct_oper_list");
            return Err(self.error(self.offset, &message));
        };
        let mut rows = [[f64::NAN; 4]; 3];
        for (value, text) in rows.as_flattened_mut().iter_mut().zip(*values) {
            *value = decimal::float(text).unwrap_or(f64::NAN);
        }
        Operator::new(rows).ok_or_else(|| {
            let id = quoted(id.as_bytes());
            let message = format!("operator {id} is no rotation and shift");
            self.error(*offset, &message)
        })
    }

    /// Counts operators that are about to be evaluated.
    fn count(&self, evaluated: &mut usize, more: usize) -> Result<()> {
        *evaluated += more;
        let what = || "assembly 1 has too many operators";
        check("operators_max", self.max, *evaluated as u64, what)
            .map_err(|error| on_line(self.text, self.offset as usize, error))
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
