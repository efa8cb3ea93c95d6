//! Reads the parameters of kernels from CUDA C++ text.
//!
//! The text of a kernel is its declaration: `const T*` is a buffer that the kernel reads, `T*` one
//! that it writes, `T* /* updated */` one that it reads and writes, and everything else is passed
//! by value. This is not a C++ front end: it understands comments, macros without parameters,
//! structs of plain fields, integer constants and the parameter lists of kernels, and skips the
//! rest.
//!
//! Build scripts use the crate too, to read the kernels that they compile, so it depends on nothing.

mod struct_layout;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
pub use struct_layout::{PARAMETER_BYTES_MAX, StructLayout, vector, vector_bytes};
use tokens::{Lexed, SignatureToken, TokenKind, tokens};

/// What a kernel does with the memory behind a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointerAccess {
    /// `const T*`
    Read,
    /// `T*`
    Write,
    /// `T* /* updated */`
    Update,
}

/// A CUDA C++ type: a number, whatever its spelling (`unsigned int` and `uint32_t` are the same),
/// or a struct by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CudaType {
    /// A number.
    Number(NumberType),
    /// A struct, by its name.
    Struct(String),
}

/// The number types of CUDA C++.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberType {
    /// `unsigned char`
    U8,
    /// `signed char`
    I8,
    /// `unsigned short`
    U16,
    /// `short`
    I16,
    /// `unsigned int`
    U32,
    /// `int`
    I32,
    /// `unsigned long long`
    U64,
    /// `long long`
    I64,
    /// `__half`
    F16,
    /// `__nv_bfloat16`
    BF16,
    /// `float`
    F32,
    /// `double`
    F64,
}

/// One parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The parameter's name.
    pub name: String,
    /// The type of a value, or of what a pointer points to.
    pub element: CudaType,
    /// `None` for a value.
    pub pointer: Option<PointerAccess>,
    /// The name of the macro that the parameter comes from.
    pub macro_name: Option<String>,
    /// The line of its declaration, from 1.
    pub line: usize,
}

/// A kernel's declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The kernel's name.
    pub name: String,
    /// The kernel's parameters in order.
    pub parameters: Vec<Parameter>,
    /// The largest block that `__launch_bounds__` allows; `None` without it, or if it is not a
    /// product of integer constants.
    pub block_threads: Option<u32>,
    /// The line of a `__launch_bounds__` whose value cannot be read.
    pub unread_bound: Option<usize>,
}

/// Why a text cannot be read, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureError {
    /// The line of the text, from 1.
    pub line: usize,
    /// What is wrong with the text.
    pub message: String,
}

impl fmt::Display for SignatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// The most parameters of a kernel, so that a macro cannot make millions of them.
const PARAMETERS_MAX: usize = 1024;

/// How deeply structs may be nested: one that contains itself ends there.
const NESTING_MAX: usize = 8;

type Result<T> = std::result::Result<T, SignatureError>;

/// The declarations in a text.
#[derive(Debug)]
pub struct Declarations {
    tokens: Vec<SignatureToken>,
    /// Macros without parameters.
    macros: BTreeMap<String, Vec<SignatureToken>>,
    /// Macros with parameters that turn the function after them into a kernel; their first argument
    /// is its launch bound.
    kernel_macros: BTreeSet<String>,
    /// The values of integer constants and macros. Of two definitions of a constant the last one counts.
    constants: BTreeMap<String, u32>,
    /// Where a struct's definition and its opening brace are, by the words before the brace.
    structs: BTreeMap<String, (usize, usize)>,
}

impl Declarations {
    /// Reads a text.
    pub fn parse(text: &str) -> Self {
        let mut all = Declarations {
            tokens: Vec::new(),
            macros: BTreeMap::new(),
            kernel_macros: BTreeSet::new(),
            constants: BTreeMap::new(),
            structs: BTreeMap::new(),
        };
        for token in tokens(text) {
            match token {
                Lexed::Token(token) => all.tokens.push(token),
                Lexed::Directive(line, text) => all.define(line, &text),
            }
        }
        all.find_constants();
        all.find_structs();
        all
    }

    /// Reads `constexpr ... name = value;`, in the order of the text: a value names only constants
    /// before it.
    fn find_constants(&mut self) {
        for (index, pair) in self.tokens.windows(2).enumerate() {
            let Some(name) = pair[0].word().filter(|_| pair[1].is('=')) else {
                continue;
            };
            let value = &self.tokens[index + 2..];
            let ends = |token: &SignatureToken| ";,=".chars().any(|end| token.is(end));
            let end = value.iter().position(ends).unwrap_or(0);
            if let Some(value) = self.constant_product(&value[..end]) {
                self.constants.insert(name.to_owned(), value);
            }
        }
    }

    /// Keeps a macro: the name if it begins kernels, or else its tokens, and its value if it is a
    /// constant.
    fn define(&mut self, line: usize, directive: &str) {
        let Some(definition) = directive.trim_start().strip_prefix("define") else {
            return;
        };
        let definition = definition.trim_start();
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let (name, body) =
            definition.split_at(definition.find(|c| !is_name(c)).unwrap_or(definition.len()));
        if body.starts_with('(') {
            if body.contains("__global__") {
                self.kernel_macros.insert(name.to_owned());
            }
            return;
        }
        let body = tokens(body).filter_map(|token| match token {
            Lexed::Token(token) => Some(SignatureToken { line, ..token }),
            Lexed::Directive(..) => None,
        });
        let body: Vec<SignatureToken> = body.collect();
        let value = match &body[..] {
            [open, inner @ .., close] if open.is('(') && close.is(')') => inner,
            all => all,
        };
        // Looked up once, as a constant is: a value names only macros before it.
        if let Some(value) = self.constant_product(value) {
            self.constants.entry(name.to_owned()).or_insert(value);
        }
        self.macros.entry(name.to_owned()).or_insert(body);
    }

    /// The kernels, in the order of the text.
    ///
    /// # Errors
    /// For a parameter of a type that cannot be passed.
    pub fn kernels(&self) -> Result<Vec<Signature>> {
        let mut found = Vec::new();
        let mut position = 0;
        while let Some(token) = self.tokens.get(position) {
            position += 1;
            let Some(word) = token.word() else { continue };
            let is_macro = self.kernel_macros.contains(word);
            if word == "__global__" || is_macro {
                let bounds = if is_macro {
                    self.group(&mut position)
                } else {
                    None
                };
                found.extend(self.kernel(&mut position, bounds)?);
            }
        }
        Ok(found)
    }

    /// Reads the kernel whose return type starts at `position`; `None` if no parameter list follows.
    fn kernel(
        &self,
        position: &mut usize,
        bounds: Option<&[SignatureToken]>,
    ) -> Result<Option<Signature>> {
        let mut bounds = bounds;
        let mut name: Option<&SignatureToken> = None;
        while let Some(token) = self.tokens.get(*position) {
            match token.word() {
                Some("__launch_bounds__") => {
                    *position += 1;
                    bounds = self.group(position);
                }
                Some("__cluster_dims__" | "__maxnreg__" | "__block_size__" | "__attribute__") => {
                    *position += 1;
                    self.group(position);
                }
                Some(_) => {
                    name = Some(token);
                    *position += 1;
                }
                None if token.is('(') => break,
                None if token.is('*') => *position += 1,
                None => return Ok(None),
            }
        }
        let (Some(name), Some(list)) = (name, self.group(position)) else {
            return Ok(None);
        };
        let mut parameters = Vec::new();
        if !list.is_empty() {
            for part in split(list, ',') {
                self.add_parameters(part, name, None, &mut parameters)?;
            }
        }
        let first = bounds.and_then(|list| split(list, ',').next());
        let block_threads = first.and_then(|tokens| self.constant_product(tokens));
        let unread_bound = first.filter(|_| block_threads.is_none());
        Ok(Some(Signature {
            name: name.word().unwrap_or_default().to_owned(),
            parameters,
            block_threads,
            unread_bound: unread_bound.map(|tokens| tokens.first().map_or(1, |token| token.line)),
        }))
    }

    /// The tokens between the parentheses that open at `position`, which moves past them; `None` if none
    /// open there or they do not close.
    fn group(&self, position: &mut usize) -> Option<&[SignatureToken]> {
        let (start, mut depth) = (*position + 1, 0);
        while let Some(token) = self.tokens.get(*position) {
            *position += 1;
            depth += i32::from(token.is('(')) - i32::from(token.is(')'));
            if depth == 0 {
                return self.tokens.get(start..*position - 1);
            }
        }
        None
    }

    /// Adds the parameters in `tokens`, a part of a list. A macro that stands for several is replaced by its
    /// tokens once, and each of them keeps the macro's name. Errors of an empty part name the line of `place`.
    fn add_parameters(
        &self,
        tokens: &[SignatureToken],
        place: &SignatureToken,
        macro_name: Option<&str>,
        parameters: &mut Vec<Parameter>,
    ) -> Result<()> {
        if let [token] = tokens
            && let Some(name) = token.word()
        {
            if name == "void" {
                return Ok(());
            }
            if let Some(body) = self.macros.get(name).filter(|_| macro_name.is_none()) {
                if body.is_empty() {
                    return Ok(());
                }
                return split(body, ',')
                    .try_for_each(|part| self.add_parameters(part, token, Some(name), parameters));
            }
        }
        if tokens.is_empty() {
            return place.error("the list of parameters has an empty place");
        }
        let declared = declare(tokens)?;
        let Some(name) = declared.name else {
            return tokens[0].error("the parameter has no name");
        };
        if parameters.len() == PARAMETERS_MAX {
            return tokens[0].error(format!("a kernel has at most {PARAMETERS_MAX} parameters"));
        }
        parameters.push(Parameter {
            name,
            element: declared.element,
            pointer: declared.pointer,
            macro_name: macro_name.map(str::to_owned),
            line: tokens[0].line,
        });
        Ok(())
    }

    /// The value of a product of integer literals, and of constants and macros of the file, such as the
    /// launch bound `32 * WARPS`; `None` for any other expression.
    fn constant_product(&self, tokens: &[SignatureToken]) -> Option<u32> {
        let mut product: u32 = 1;
        for factor in split(tokens, '*') {
            // `a::b::NAME` is looked up as NAME. Of its tokens `a`, `:`, `:`, `b`, ... every third is a word.
            let is_path = |(index, token): (usize, &SignatureToken)| match index % 3 {
                0 => token.word().is_some(),
                _ => token.is(':'),
            };
            if factor.len() % 3 != 1 || !factor.iter().enumerate().all(is_path) {
                return None;
            }
            let word = factor.last()?.word()?;
            let value = match word.trim_end_matches(['u', 'U']).parse() {
                Ok(value) => value,
                Err(_) => *self.constants.get(word)?,
            };
            product = product.checked_mul(value)?;
        }
        Some(product)
    }
}

/// A declaration such as `const T* name`.
struct Declarator {
    name: Option<String>,
    element: CudaType,
    pointer: Option<PointerAccess>,
}

/// Reads `const T* name`. The error names what a kernel cannot take.
fn declare(tokens: &[SignatureToken]) -> Result<Declarator> {
    let stars = tokens
        .iter()
        .filter(|token| token.is('*') || token.is('['))
        .count();
    if let Some(sign) = tokens
        .iter()
        .find(|token| token.is('&') || token.is('<') || token.is('('))
    {
        return sign.error("a kernel takes numbers, structs and pointers to them");
    }
    if stars > 1 {
        return tokens[0].error("a pointer to pointers; pass a buffer of addresses instead");
    }
    let star = tokens
        .iter()
        .position(|token| token.is('*') || token.is('['));
    let updated = tokens.iter().any(|token| token.kind == TokenKind::Updated);
    let is_qualifier = |word: &str| {
        let all = [
            "const",
            "volatile",
            "restrict",
            "__restrict__",
            "__restrict",
            "struct",
        ];
        all.contains(&word) || word == "__grid_constant__"
    };
    let is_const =
        |tokens: &[SignatureToken]| tokens.iter().any(|token| token.word() == Some("const"));
    let mut words: Vec<&str> = tokens
        .iter()
        .filter_map(SignatureToken::word)
        .filter(|word| !is_qualifier(word))
        .collect();
    // The name is the last word, unless that word is part of the type.
    let name = match words.len() {
        0 | 1 => None,
        _ if is_number_word(words[words.len() - 1]) => None,
        _ => words.pop().map(str::to_owned),
    };
    let Some(last) = words.last() else {
        return tokens[0].error("the parameter has no type");
    };
    let element = match number(&words) {
        Some(number) => CudaType::Number(number),
        None if words.len() == 1 && !is_number_word(last) => CudaType::Struct((*last).to_owned()),
        None => {
            let message = format!("the type {} has no fixed size", words.join(" "));
            return tokens[0].error(message);
        }
    };
    let pointer = star.map(|star| match (is_const(&tokens[..star]), updated) {
        (true, _) => PointerAccess::Read,
        (false, false) => PointerAccess::Write,
        (false, true) => PointerAccess::Update,
    });
    if updated && pointer != Some(PointerAccess::Update) {
        return tokens[0].error("only what a pointer without const points to can be updated");
    }
    Ok(Declarator {
        name,
        element,
        pointer,
    })
}

fn is_number_word(word: &str) -> bool {
    [
        "unsigned", "signed", "int", "char", "short", "long", "float", "double", "bool",
    ]
    .contains(&word)
}

impl NumberType {
    /// The size in bytes.
    pub fn bytes(self) -> usize {
        match self {
            NumberType::U8 | NumberType::I8 => 1,
            NumberType::U16 | NumberType::I16 | NumberType::F16 | NumberType::BF16 => 2,
            NumberType::U32 | NumberType::I32 | NumberType::F32 => 4,
            NumberType::U64 | NumberType::I64 | NumberType::F64 => 8,
        }
    }
}

/// The number type that these words name. `long` alone is none, because its size depends on the
/// platform.
fn number(words: &[&str]) -> Option<NumberType> {
    let count = |word: &str| words.iter().filter(|other| **other == word).count();
    let (short, long) = (count("short"), count("long"));
    let unsigned = count("unsigned") > 0;
    let integer = |narrow, wide| if unsigned { wide } else { narrow };
    if !words.is_empty() && words.iter().all(|word| is_number_word(word)) {
        return match words {
            ["float"] => Some(NumberType::F32),
            ["double"] => Some(NumberType::F64),
            ["bool"] => Some(NumberType::U8),
            _ if count("float") + count("double") + count("bool") > 0 || long == 1 => None,
            _ if count("char") == 1 => Some(integer(NumberType::I8, NumberType::U8)),
            _ if short == 1 => Some(integer(NumberType::I16, NumberType::U16)),
            _ if long == 2 => Some(integer(NumberType::I64, NumberType::U64)),
            _ => Some(integer(NumberType::I32, NumberType::U32)),
        };
    }
    let [word] = words else { return None };
    Some(match *word {
        "uint8_t" | "uchar" => NumberType::U8,
        "int8_t" => NumberType::I8,
        "uint16_t" | "ushort" => NumberType::U16,
        "int16_t" => NumberType::I16,
        "uint32_t" | "uint" => NumberType::U32,
        "int32_t" => NumberType::I32,
        "uint64_t" | "ulonglong" | "size_t" => NumberType::U64,
        "int64_t" | "longlong" => NumberType::I64,
        "half" | "__half" => NumberType::F16,
        "nv_bfloat16" | "__nv_bfloat16" => NumberType::BF16,
        _ => return None,
    })
}

/// Splits at each `sign` outside of brackets.
fn split(tokens: &[SignatureToken], sign: char) -> impl Iterator<Item = &[SignatureToken]> {
    let mut depth = 0;
    tokens.split(move |token| {
        depth += i32::from("([{<".chars().any(|open| token.is(open)));
        depth -= i32::from(")]}>".chars().any(|close| token.is(close)));
        depth == 0 && token.is(sign)
    })
}

#[cfg(test)]
mod tests;
