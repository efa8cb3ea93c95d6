//! How CUDA C++ lays out the structs that a text defines.

use super::tokens::SignatureToken;
use super::{
    CudaType, Declarations, NESTING_MAX, NumberType, PointerAccess, Result, SignatureError,
    declare, number, split,
};
use std::collections::BTreeMap;

/// A struct as CUDA C++ lays it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructLayout {
    /// Its size in bytes.
    pub bytes: usize,
    /// Its alignment in bytes.
    pub align: usize,
    /// Its pointers: offset in bytes, access, element type.
    pub pointers: Vec<(usize, PointerAccess, CudaType)>,
}

/// The largest struct in bytes that is laid out, so that sizes of nested arrays do not overflow. As a value CUDA
/// takes far less.
const BYTES_MAX: usize = 1 << 24;

/// The most bytes of all parameters of a kernel together, which is CUDA's limit. The last pointer of a struct ends
/// there at the most: each pointer is listed.
pub const PARAMETER_BYTES_MAX: usize = 32_764;

/// Sizes and alignments, by name, of the inner structs that have been laid out.
type InnerLayouts = BTreeMap<String, (usize, usize)>;

const DATA_ALONE: &str = "a struct that is passed by value has data members alone";

impl Declarations {
    /// The layout of a struct that the text defines: numbers, pointers, other such structs, and
    /// arrays of these.
    ///
    /// # Errors
    /// If the text does not define the struct, with `line`, where it is used; or if it has other members.
    pub fn layout(&self, name: &str, line: usize) -> Result<StructLayout> {
        self.layout_within(name, line, 0, &mut BTreeMap::new())
    }

    /// The layout of a struct that is used on `line`, at this depth of nesting. `known` has those of structs
    /// that were laid out before.
    fn layout_within(
        &self,
        name: &str,
        line: usize,
        depth: usize,
        known: &mut InnerLayouts,
    ) -> Result<StructLayout> {
        let Some(&(start, open)) = self.structs.get(name) else {
            let message = format!("the text does not define struct {name}");
            return Err(SignatureError { line, message });
        };
        if depth == NESTING_MAX {
            return self.tokens[start].error(format!("struct {name} is nested too deeply"));
        }
        let close = self.tokens[open..].iter().position(|token| token.is('}'));
        let Some(close) = close else {
            return self.tokens[open].error(format!("struct {name} has no end"));
        };
        let members = &self.tokens[open + 1..open + close];
        if let Some(inner) = members.iter().find(|token| token.is('{')) {
            return inner.error(DATA_ALONE);
        }
        let mut layout = StructLayout {
            bytes: 0,
            align: 1,
            pointers: Vec::new(),
        };
        let head = &self.tokens[start..open];
        if split(head, ':').count() > 1 {
            // It has a base, whose members come first.
            return head[0].error(DATA_ALONE);
        }
        // alignas(16), and CUDA's own word for it.
        for (index, token) in head.iter().enumerate() {
            if matches!(token.word(), Some("alignas" | "__align__")) {
                let value = self.group(&mut (start + index + 1));
                let Some(align) = value.and_then(|value| self.constant_product(value)) else {
                    return token.error("the alignment is not a constant");
                };
                // `alignas(0)` has no effect.
                layout.align = layout.align.max(align as usize);
            }
        }
        for member in split(members, ';') {
            if !member.is_empty() {
                self.add_member(member, &mut layout, depth, known)?;
            }
        }
        layout.bytes = layout.bytes.next_multiple_of(layout.align);
        if layout.bytes > BYTES_MAX {
            self.tokens[start].error(too_large())
        } else {
            Ok(layout)
        }
    }

    /// Finds where structs are defined. If a struct is defined twice, the first definition counts.
    pub(super) fn find_structs(&mut self) {
        for start in 0..self.tokens.len() {
            let is_struct = |token: &SignatureToken| token.word() == Some("struct");
            if !is_struct(&self.tokens[start]) {
                continue;
            }
            let rest = &self.tokens[start + 1..];
            let ends_head = |token: &SignatureToken| {
                is_struct(token) || "{;,*>".chars().any(|end| token.is(end))
            };
            let Some(words) = rest.iter().position(ends_head) else {
                continue;
            };
            // The name is one of the words of the head. The others are attributes such as `alignas`, which
            // no parameter has as its type.
            if rest[words].is('{') {
                for word in rest[..words].iter().filter_map(SignatureToken::word) {
                    let place = (start, start + 1 + words);
                    self.structs.entry(word.to_owned()).or_insert(place);
                }
            }
        }
    }

    /// Adds the members of a declaration such as `T a, *b, c[3]`.
    fn add_member(
        &self,
        tokens: &[SignatureToken],
        layout: &mut StructLayout,
        depth: usize,
        known: &mut InnerLayouts,
    ) -> Result<()> {
        if tokens.iter().any(|token| token.is('(')) {
            return tokens[0].error(DATA_ALONE);
        }
        let mut parts = split(tokens, ',');
        let first = parts.next().unwrap_or_default();
        // The name is the last word before an array's length, which may be a word too.
        let bracket = first.iter().position(|token| token.is('['));
        let words = first[..bracket.unwrap_or(first.len())]
            .iter()
            .rposition(|token| token.word().is_some())
            .unwrap_or(0);
        let type_tokens: Vec<SignatureToken> = first[..words]
            .iter()
            .take_while(|token| token.word().is_some())
            .cloned()
            .collect();
        let rest = parts.map(|part| [&type_tokens[..], part].concat());
        for declarator in std::iter::once(first.to_vec()).chain(rest) {
            let (declarator, length) = match declarator.iter().position(|token| token.is('[')) {
                None => (&declarator[..], 1),
                Some(bracket) => {
                    let length = declarator.get(bracket + 1..declarator.len() - 1);
                    match length.and_then(|length| self.constant_product(length)) {
                        Some(length) => (&declarator[..bracket], length as usize),
                        None => {
                            return declarator[bracket]
                                .error("the array's length is not a constant");
                        }
                    }
                }
            };
            if declarator.is_empty() {
                return tokens[0].error("the member has no type");
            }
            let declared = declare(declarator)?;
            let (bytes, align) = match (&declared.pointer, &declared.element) {
                (Some(_), _) => (8, 8),
                (None, CudaType::Number(number)) => (number.bytes(), number.bytes()),
                (None, CudaType::Struct(name)) => {
                    match vector_bytes(name).or_else(|| known.get(name).copied()) {
                        Some(size) => size,
                        None => {
                            let line = declarator[0].line;
                            let inner = self.layout_within(name, line, depth + 1, known)?;
                            if !inner.pointers.is_empty() {
                                return declarator[0]
                                    .error("a struct with pointers inside another");
                            }
                            let size = (inner.bytes, inner.align);
                            known.insert(name.clone(), size);
                            size
                        }
                    }
                }
            };
            let offset = layout.bytes.next_multiple_of(align);
            // Inner structs are below the limit too, so nothing overflows.
            if offset + length * bytes > BYTES_MAX {
                return declarator[0].error(too_large());
            }
            if let Some(access) = declared.pointer {
                if offset + length * bytes > PARAMETER_BYTES_MAX {
                    let message =
                        format!("the struct has pointers behind {PARAMETER_BYTES_MAX} bytes");
                    return declarator[0].error(message);
                }
                let pointers =
                    (0..length).map(|index| (offset + 8 * index, access, declared.element.clone()));
                layout.pointers.extend(pointers);
            }
            layout.bytes = offset + length * bytes;
            layout.align = layout.align.max(align);
        }
        Ok(())
    }
}

fn too_large() -> String {
    format!("the struct has more than {BYTES_MAX} bytes")
}

/// The numbers of one of CUDA's own vector types: their type and count.
pub fn vector(name: &str) -> Option<(NumberType, usize)> {
    let digit = name.find(|c: char| c.is_ascii_digit())?;
    let count = name[digit..].parse().ok()?;
    let number = number(&[&name[..digit]])?;
    (1..=4).contains(&count).then_some((number, count))
}

/// Size and alignment of one of CUDA's own vector types.
pub fn vector_bytes(name: &str) -> Option<(usize, usize)> {
    let (number, count) = vector(name)?;
    let bytes = number.bytes() * count;
    let align = match count {
        2 | 4 => bytes.min(16),
        _ => number.bytes(),
    };
    Some((bytes, align))
}
