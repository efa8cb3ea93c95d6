//! Rows of categories of any data block of CIF text.

use super::lexer::{CUT_SHORT, CifToken, Lexer};
use crate::Result;
use crate::text::at_line;

/// The values of a row by the index of their item; empty for null, and for items that the text does not
/// have.
pub(crate) struct CifValues<'a>(&'a [&'a [u8]]);

impl<'a> CifValues<'a> {
    pub(crate) fn get(&self, item: usize) -> &'a [u8] {
        self.0[item]
    }
}

/// Calls `visit` with the index of the category and the values of its items for each row of `categories`,
/// which are names without the underscore, each with its items. A loop is of the first of its categories
/// that is among them.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind::Input) with the line if the text is no CIF, and those of
/// `visit`.
pub(crate) fn each_row(
    text: &[u8],
    categories: &[(&str, &[&str])],
    mut visit: impl FnMut(usize, CifValues<'_>) -> Result<()>,
) -> Result<()> {
    let place_of = |tag: &[u8]| place_of(tag, categories);
    let mut lexer = Lexer::new(text);
    // A category of one row may have no loop.
    let mut plain: Option<(usize, Vec<&[u8]>)> = None;
    loop {
        let (span, token) = lexer.next()?;
        let place = match token {
            CifToken::Tag(tag) => place_of(tag),
            _ => None,
        };
        let goes_on = plain.as_ref().map(|(category, _)| *category) == place.map(|found| found.0);
        if !goes_on && let Some((category, values)) = plain.take() {
            visit(category, CifValues(&values))?;
        }
        match token {
            CifToken::End => return Ok(()),
            CifToken::Tag(_) => {
                let (_, CifToken::Value(value)) = lexer.next()? else {
                    return Err(at_line(text, span.start, "a tag has no value").fix(CUT_SHORT));
                };
                if let Some((category, item)) = place {
                    let items = categories[category].1.len();
                    let (_, values) = plain.get_or_insert_with(|| (category, vec![&[][..]; items]));
                    if let Some(item) = item {
                        values[item] = value;
                    }
                }
            }
            CifToken::Loop => {
                let tags = lexer.tags(span.start)?;
                let places: Vec<_> = tags.iter().map(|tag| place_of(tag)).collect();
                let category = places.iter().flatten().next().map(|place| place.0);
                let items = category.map_or(0, |category| categories[category].1.len());
                let mut values = vec![&[][..]; items];
                let mut column = 0;
                loop {
                    let end = lexer.pos();
                    let (_, CifToken::Value(value)) = lexer.next()? else {
                        lexer.seek(end);
                        break;
                    };
                    // An item of another category in the loop is no value of the row.
                    if let Some((found, Some(item))) = places[column]
                        && Some(found) == category
                    {
                        values[item] = value;
                    }
                    column += 1;
                    if column == places.len() {
                        column = 0;
                        if let Some(category) = category {
                            visit(category, CifValues(&values))?;
                        }
                    }
                }
                if column > 0 {
                    let message = "the last row of the loop is not complete";
                    return Err(at_line(text, span.start, message).fix(CUT_SHORT));
                }
            }
            CifToken::Data(_) | CifToken::Value(_) | CifToken::Other => {}
        }
    }
}

/// The category of a tag, and its item if that is a wanted one.
fn place_of(tag: &[u8], categories: &[(&str, &[&str])]) -> Option<(usize, Option<usize>)> {
    let tag = tag.strip_prefix(b"_")?;
    let dot = tag.iter().position(|&byte| byte == b'.')?;
    let (category, item) = (&tag[..dot], &tag[dot + 1..]);
    let is = |name: &str, text: &[u8]| name.as_bytes().eq_ignore_ascii_case(text);
    let index = categories.iter().position(|(name, _)| is(name, category))?;
    let items = categories[index].1.iter();
    let item = items.into_iter().position(|name| is(name, item));
    Some((index, item))
}

#[cfg(test)]
mod tests {
    use super::each_row;

    #[test]
    fn rows_are_those_of_loops_and_of_plain_items_in_every_block() {
        let text = "data_A\n_a.x 1\n_a.other 9\n_a.y 'two words'\n_b.x 5\n\
                    data_B\nloop_\n_A.y\n_a.z\n_a.x\n? 7 3 4 . \"q\"\n_b.y 6\n";
        let mut rows = Vec::new();
        let categories: [(&str, &[&str]); 2] = [("a", &["x", "y"]), ("b", &["x"])];
        let text_of = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
        each_row(text.as_bytes(), &categories, |category, values| {
            let second = if category == 0 {
                text_of(values.get(1))
            } else {
                String::new()
            };
            rows.push((category, text_of(values.get(0)), second));
            Ok(())
        })
        .unwrap();
        let row = |category, x: &str, y: &str| (category, x.to_owned(), y.to_owned());
        let expected = [
            row(0, "1", "two words"),
            row(1, "5", ""),
            row(0, "3", ""),
            row(0, "q", "4"),
            row(1, "", ""),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn items_of_another_category_in_a_loop_are_left_out() {
        let text = b"data_A\nloop_\n_a.x\n_b.x\n_b.z\n1 2 3\n";
        let categories: [(&str, &[&str]); 2] = [("a", &["x"]), ("b", &["x", "y", "z"])];
        let mut rows = Vec::new();
        each_row(text, &categories, |category, values| {
            rows.push((category, values.get(0).to_vec()));
            Ok(())
        })
        .unwrap();
        assert_eq!(rows, [(0, b"1".to_vec())]);
    }

    #[test]
    fn text_that_is_cut_is_refused_with_its_line() {
        for text in ["data_A\nloop_\n_a.x\n_a.y\n1 2 3\n", "data_A\n_a.x"] {
            let outcome = each_row(text.as_bytes(), &[("a", &["x"])], |_, _| Ok(()));
            assert!(
                outcome.unwrap_err().to_string().contains("line 2"),
                "{text}"
            );
        }
    }
}
