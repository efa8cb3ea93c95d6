//! The cells of tables of annotations, and the types of their columns: Parquet states the type; in a table in
//! text it is inferred from all cells of the column.

use std::borrow::Cow;
use tapeloop_error::{Error, Result};

/// Texts that stand for a missing number or flag, in any case.
const NULLS: [&str; 9] = ["", "NA", "N/A", "nan", "null", "none", ".", "?", "-"];

/// A cell as the format of the table has it. All cells of a table in text are texts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum AnnotationCell<'a> {
    Null,
    Flag(bool),
    Integer(i64),
    Real(f64),
    Text(&'a str),
}

/// The type of a column of annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A boolean.
    Flag,
    /// An integer of 32 bits.
    Integer,
    /// An integer of 64 bits.
    Long,
    /// A real of 32 bits.
    Real,
    /// A real of 64 bits.
    Double,
    /// A text.
    Text,
}

/// Finds the type of a column.
#[derive(Clone, Debug, Default)]
pub(super) struct TypeFinder {
    /// The widest type that files of Parquet state.
    stated: Option<Type>,
    inferred: InferredType,
}

/// The type that all texts of a column so far have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum InferredType {
    #[default]
    Nothing,
    Flags,
    Integers,
    Numbers,
    Texts,
}

impl TypeFinder {
    /// Adds the type that a file of Parquet states.
    ///
    /// # Errors
    /// Of kind `Config`: other files state a type that no type holds together with this one.
    pub(super) fn add_stated(&mut self, stated: Type) -> Result<()> {
        let before = self.stated.unwrap_or(stated);
        self.stated = Some(wider(before, stated).ok_or_else(|| {
            let text = format!(
                "the column holds {}, and in another table {}",
                stated.plural(),
                before.plural()
            );
            Error::config(text)
                .fix("write the column with one type, or give the columns other names")
        })?);
        Ok(())
    }

    /// Adds a cell of a table in text.
    pub(super) fn add(&mut self, text: &str) {
        if self.inferred == InferredType::Texts || is_null(text) {
            return;
        }
        let this = match text {
            _ if flag_of(text).is_some() => InferredType::Flags,
            _ if integer_of(text).is_some() => InferredType::Integers,
            _ if real_of(text).is_some() => InferredType::Numbers,
            _ => InferredType::Texts,
        };
        self.inferred = match (self.inferred, this) {
            (InferredType::Nothing, this) => this,
            (inferred, this) if inferred == this => inferred,
            (
                InferredType::Integers | InferredType::Numbers,
                InferredType::Integers | InferredType::Numbers,
            ) => InferredType::Numbers,
            _ => InferredType::Texts,
        };
    }

    /// The type of the column, once all cells have been added.
    ///
    /// # Errors
    /// Of kind `Config`: Parquet states numbers or flags, and a table in text has others.
    pub(super) fn column_type(&self) -> Result<Type> {
        let inferred = match self.inferred {
            InferredType::Nothing => return Ok(self.stated.unwrap_or(Type::Text)),
            InferredType::Flags => Type::Flag,
            InferredType::Integers => Type::Long,
            InferredType::Numbers => Type::Double,
            InferredType::Texts => Type::Text,
        };
        match self.stated {
            None => Ok(inferred),
            Some(Type::Text) => Ok(Type::Text),
            Some(stated) => wider(stated, inferred).ok_or_else(|| {
                let text = format!(
                    "the column holds {} in Parquet, and in text {}",
                    stated.plural(),
                    inferred.plural()
                );
                Error::config(text)
                    .fix("write the column with one type, or give the columns other names")
            }),
        }
    }
}

/// The type that holds the values of both; `None` if none does.
fn wider(a: Type, b: Type) -> Option<Type> {
    use Type::{Double, Integer, Long, Real};
    match (a, b) {
        _ if a == b => Some(a),
        (Integer | Long, Integer | Long) => Some(Long),
        (Integer | Long | Real | Double, Integer | Long | Real | Double) => Some(Double),
        _ => None,
    }
}

impl Type {
    fn plural(self) -> &'static str {
        match self {
            Type::Flag => "true and false",
            Type::Integer | Type::Long | Type::Real | Type::Double => "numbers",
            Type::Text => "texts",
        }
    }
}

impl<'a> AnnotationCell<'a> {
    /// The flag of a cell in a column of flags; `None` for null.
    pub(super) fn flag(self) -> Option<bool> {
        match self {
            AnnotationCell::Flag(flag) => Some(flag),
            AnnotationCell::Text(text) => flag_of(text),
            _ => None,
        }
    }

    /// The number of a cell in a column of integers; `None` for null.
    pub(super) fn integer(self) -> Option<i64> {
        match self {
            AnnotationCell::Integer(integer) => Some(integer),
            AnnotationCell::Text(text) => integer_of(text),
            _ => None,
        }
    }

    /// The number of a cell in a column of reals; NaN is null.
    pub(super) fn real(self) -> Option<f64> {
        match self {
            AnnotationCell::Integer(integer) => Some(integer as f64),
            AnnotationCell::Real(real) => Some(real).filter(|real| !real.is_nan()),
            AnnotationCell::Text(text) => real_of(text),
            _ => None,
        }
    }

    /// The text of a cell in a column of texts. An empty one is null, and no other.
    pub(super) fn text(self) -> Option<&'a str> {
        match self {
            AnnotationCell::Text(text) => Some(text).filter(|text| !text.is_empty()),
            _ => None,
        }
    }

    /// The cell as messages show it.
    pub(super) fn shown(self) -> Cow<'a, str> {
        match self {
            AnnotationCell::Null => "null".into(),
            AnnotationCell::Flag(flag) => flag.to_string().into(),
            AnnotationCell::Integer(integer) => integer.to_string().into(),
            // Up to 1e15 a whole number is shown as it was written, not as `52.0`.
            AnnotationCell::Real(real) if real.fract() == 0.0 && real.abs() < 1e15 => {
                real.to_string().into()
            }
            AnnotationCell::Real(real) => format!("{real:?}").into(),
            AnnotationCell::Text(text) => text.into(),
        }
    }
}

/// Whether a text stands for a missing number or flag.
pub(super) fn is_null(text: &str) -> bool {
    // None of them is longer, and most texts are.
    text.len() <= 4 && NULLS.iter().any(|null| text.eq_ignore_ascii_case(null))
}

fn flag_of(text: &str) -> Option<bool> {
    match text {
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// A whole number of 64 bits. With leading zeros it is a name, such as `007`.
fn integer_of(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_name = digits.len() > 1 && digits.starts_with('0');
    let starts = digits.as_bytes().first().is_some_and(u8::is_ascii_digit);
    if is_name || !starts {
        return None;
    }
    text.parse().ok()
}

/// A finite number, in decimals or with an exponent. With leading zeros it is a name, such as `00.5`.
fn real_of(text: &str) -> Option<f64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let bytes = digits.as_bytes();
    let is_name = matches!(bytes, [b'0', b'0'..=b'9', ..]);
    let starts = matches!(bytes, [b'0'..=b'9', ..] | [b'.', b'0'..=b'9', ..]);
    if is_name || !starts {
        return None;
    }
    text.parse().ok().filter(|real: &f64| real.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[&str]) -> Type {
        let mut finder = TypeFinder::default();
        texts.iter().for_each(|text| finder.add(text));
        finder.column_type().unwrap()
    }

    #[test]
    fn the_type_of_a_text_column_follows_from_all_its_cells() {
        assert_eq!(found(&["", "NA", "?"]), Type::Text);
        assert_eq!(found(&["true", "", "False"]), Type::Flag);
        assert_eq!(found(&["1", "-20", "NA", "+3"]), Type::Long);
        assert_eq!(found(&["1", "0.5", "-", ".25", "1e-3"]), Type::Double);
        // More digits than an integer of 64 bits has.
        assert_eq!(found(&["1", "92233720368547758070"]), Type::Double);
        for text in [
            "B.1.1.7", "007", "00.5", "inf", "1e999", "0x10", "1,5", "e5", "--1",
        ] {
            assert_eq!(found(&["1", text]), Type::Text, "{text}");
        }
        assert_eq!(found(&["true", "1"]), Type::Text);
    }

    #[test]
    fn stated_types_are_widened_and_texts_are_not_mixed_with_numbers() {
        let type_of = |stated: &[Type], texts: &[&str]| {
            let mut finder = TypeFinder::default();
            stated
                .iter()
                .try_for_each(|stated| finder.add_stated(*stated))?;
            texts.iter().for_each(|text| finder.add(text));
            finder.column_type()
        };
        use Type::*;
        assert_eq!(type_of(&[Integer], &[]).unwrap(), Integer);
        assert_eq!(type_of(&[Integer, Long], &[]).unwrap(), Long);
        assert_eq!(type_of(&[Integer, Real], &[]).unwrap(), Double);
        assert_eq!(type_of(&[Real], &["1"]).unwrap(), Double);
        assert_eq!(type_of(&[Text], &["1"]).unwrap(), Text);
        let error = type_of(&[Text, Long], &[]).unwrap_err().to_string();
        assert!(error.contains("numbers, and in another table"), "{error}");
        let error = type_of(&[Long], &["1", "high"]).unwrap_err().to_string();
        assert!(error.contains("in Parquet"), "{error}");
    }

    #[test]
    fn words_for_missing_values_are_null_in_numbers_and_texts_in_texts() {
        assert_eq!(AnnotationCell::Text("NA").real(), None);
        assert_eq!(AnnotationCell::Text("NA").text(), Some("NA"), "Namibia");
        assert_eq!(AnnotationCell::Text("").text(), None);
        assert_eq!(AnnotationCell::Real(f64::NAN).real(), None);
        assert_eq!(AnnotationCell::Text("7").integer(), Some(7));
    }
}
