//! The assembly of an mmCIF file: `_pdbx_struct_assembly_gen` and `_pdbx_struct_oper_list`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::RangeInclusive;

use crate::assembly::{FIX, Generators, Operator, check_operators};
use crate::decimal;
use crate::read_limits::ReadLimits;
use crate::text::{FilePlace, quoted};
use crate::{Error, Result};

/// A row of `_pdbx_struct_assembly_gen`: where it starts, then [`GENERATOR_ITEMS`].
pub(super) type GeneratorRow<'a> = (FilePlace<'a>, [&'a [u8]; 3]);

/// The items that are read of `_pdbx_struct_assembly_gen`.
pub(super) const GENERATOR_ITEMS: &[&str] = &["assembly_id", "oper_expression", "asym_id_list"];

/// A row of `_pdbx_struct_oper_list`: where it starts, then [`OPERATOR_ITEMS`].
pub(super) type OperatorRow<'a> = (FilePlace<'a>, [&'a [u8]; 13]);

/// The items that are read of `_pdbx_struct_oper_list`.
pub(super) const OPERATOR_ITEMS: &[&str] = &[
    "id",
    "matrix[1][1]",
    "matrix[1][2]",
    "matrix[1][3]",
    "vector[1]",
    "matrix[2][1]",
    "matrix[2][2]",
    "matrix[2][3]",
    "vector[2]",
    "matrix[3][1]",
    "matrix[3][2]",
    "matrix[3][3]",
    "vector[3]",
];

/// Adds the generators of assembly 1 to `out`, if the file defines it. Fails with
/// [`ErrorKind::Input`](crate::ErrorKind::Input) for an expression or an operator that is malformed
/// or missing, and with [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) for too many operators
/// or chains.
pub(super) fn generators(
    limits: &ReadLimits,
    generators: &[GeneratorRow],
    operators: &[OperatorRow],
    out: &mut Generators,
) -> Result<()> {
    let mut rows = HashMap::new();
    for (place, [id, values @ ..]) in operators {
        rows.entry(*id).or_insert((*place, values));
    }
    let mut evaluated = 0;
    for &(place, [id, expression, chains]) in generators {
        if id != b"1" {
            continue;
        }
        let expression = OperatorExpression {
            place,
            expression: &without_blanks(expression),
            operators: &rows,
            limits,
        };
        out.add(expression.evaluate(&mut evaluated)?);
        let chains = without_blanks(chains);
        out.add_chains(chains.split(',').map(Cow::from), limits.chains_max)
            .map_err(|error| place.locate(error))?;
    }
    Ok(())
}

/// The expression of a generator: a list of operators (`1,2`, `1-60`, `P`), or lists in
/// parentheses, one behind the other, whose operators are multiplied. Of a product the last
/// operator is applied first.
struct OperatorExpression<'a> {
    /// Where the generator starts.
    place: FilePlace<'a>,
    expression: &'a str,
    /// By id, where the operator's row starts and its numbers.
    operators: &'a HashMap<&'a [u8], (FilePlace<'a>, &'a [&'a [u8]; 12])>,
    limits: &'a ReadLimits,
}

impl OperatorExpression<'_> {
    /// The operators of the expression. `evaluated` counts them and the factors of products.
    fn evaluate(&self, evaluated: &mut usize) -> Result<Vec<Operator>> {
        let lists = lists(self.expression).ok_or_else(|| self.malformed_error())?;
        let mut lists = lists.into_iter();
        let mut product = self.list(lists.next().unwrap_or_default(), evaluated)?;
        for list in lists {
            let factors = self.list(list, evaluated)?;
            // Before the product takes memory, which grows with each list.
            self.count(evaluated, product.len() * factors.len())?;
            let after = |last: Operator| factors.iter().map(move |first| last.after(first));
            product = product.into_iter().flat_map(after).collect();
        }
        Ok(product)
    }

    /// The operators of a list of ids and ranges of ids, which `evaluated` counts.
    fn list(&self, list: &str, evaluated: &mut usize) -> Result<Vec<Operator>> {
        let mut operators = Vec::new();
        for item in list.split(',') {
            if let Some(ids) = id_range(item) {
                if ids.is_empty() {
                    return Err(self.malformed_error());
                }
                for id in ids {
                    self.count(evaluated, 1)?;
                    operators.push(self.find(&id.to_string())?);
                }
            } else if item.is_empty() {
                return Err(self.malformed_error());
            } else {
                self.count(evaluated, 1)?;
                operators.push(self.find(item)?);
            }
        }
        Ok(operators)
    }

    /// The [`ErrorKind::Input`](crate::ErrorKind::Input) error of an expression that no rule
    /// allows.
    fn malformed_error(&self) -> Error {
        let expression = quoted(self.expression.as_bytes());
        let message = format!("oper_expression {expression} is malformed");
        self.place.error(message).fix(FIX)
    }

    /// The operator with this id. An [`ErrorKind::Input`](crate::ErrorKind::Input) error if there
    /// is none, or its numbers are not a rotation and a translation.
    fn find(&self, id: &str) -> Result<Operator> {
        let name = || quoted(id.as_bytes());
        let Some((place, values)) = self.operators.get(id.as_bytes()) else {
            let message = format!("operator {} is not in _pdbx_struct_oper_list", name());
            return Err(self.place.error(message).fix(FIX));
        };
        // `Operator::new` refuses numbers that are missing or malformed, as NaN.
        let mut rows = [[f64::NAN; 4]; 3];
        for (value, text) in rows.as_flattened_mut().iter_mut().zip(*values) {
            *value = decimal::float(text).unwrap_or(f64::NAN);
        }
        Operator::new(rows).ok_or_else(|| {
            let message = format!("operator {} is not a rotation and a translation", name());
            place.error(message).fix(FIX)
        })
    }

    /// Counts `more` operators before they are evaluated. An
    /// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) error if there are too many.
    fn count(&self, evaluated: &mut usize, more: usize) -> Result<()> {
        *evaluated += more;
        check_operators(*evaluated, self.limits).map_err(|error| self.place.locate(error))
    }
}

/// The ids of a range (`1-60`).
fn id_range(item: &str) -> Option<RangeInclusive<u32>> {
    let (first, last) = item.split_once('-')?;
    Some(first.parse().ok()?..=last.parse().ok()?)
}

/// The lists of an expression; `None` if its parentheses do not match.
fn lists(expression: &str) -> Option<Vec<&str>> {
    if !expression.contains(['(', ')']) {
        return Some(vec![expression]);
    }
    let inner = expression.strip_prefix('(')?.strip_suffix(')')?;
    let lists: Vec<&str> = inner.split(")(").collect();
    let nested = lists.iter().any(|list| list.contains(['(', ')']));
    (!nested).then_some(lists)
}

/// Text without blanks and line breaks: long lists may take several lines.
fn without_blanks(text: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(text).into_owned();
    text.retain(|letter| !letter.is_ascii_whitespace());
    text
}
