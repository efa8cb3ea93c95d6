//! Reads the parameters of kernels from CUDA C++ text.
//!
//! The text of a kernel is its declaration: `const T*` is a buffer that the kernel reads, `T*` one
//! that it writes, `T* /* updated */` one that it reads and writes, and everything else is passed
//! by value. This is not a C++ front end: it understands comments, macros without parameters,
//! structs of plain fields, integer constants and the parameter lists of kernels, and skips the
//! rest.
//!
//! The build script includes this file to read the built-in kernels, so it uses only the standard
//! library.

use std::collections::BTreeMap;
use std::fmt;

/// What a kernel does with the memory behind a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PointerAccess {
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
pub(crate) enum CudaType {
    Number(Number),
    Struct(String),
}

/// The number types of CUDA C++.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    BF16,
    F32,
    F64,
}

/// One parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) element: CudaType,
    /// `None` for a value.
    pub(crate) pointer: Option<PointerAccess>,
    /// The name of the macro that the parameter comes from.
    pub(crate) macro_name: Option<String>,
}

/// A kernel's declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    pub(crate) name: String,
    pub(crate) parameters: Vec<Parameter>,
    /// The largest block that `__launch_bounds__` allows; `None` without it, or if it is not a
    /// product of integer constants.
    pub(crate) block_threads: Option<u32>,
}

/// A struct as CUDA C++ lays it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StructLayout {
    pub(crate) bytes: usize,
    pub(crate) align: usize,
    /// Its pointers: offset in bytes, access, element type.
    pub(crate) pointers: Vec<(usize, PointerAccess, CudaType)>,
}

/// Why a text cannot be read, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignatureError {
    /// The line of the text, from 1.
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl fmt::Display for SignatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// How deeply structs and constants may be nested.
const NESTING_MAX: usize = 8;

type Result<T> = std::result::Result<T, SignatureError>;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Word(String),
    Sign(char),
    /// The comment `/* updated */`.
    Updated,
}

#[derive(Clone, Debug)]
struct Token {
    kind: Kind,
    line: usize,
}

impl Token {
    fn is(&self, sign: char) -> bool {
        self.kind == Kind::Sign(sign)
    }

    fn word(&self) -> Option<&str> {
        match &self.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T> {
        let (line, message) = (self.line, message.into());
        Err(SignatureError { line, message })
    }
}

/// The declarations in a text.
#[derive(Debug)]
pub(crate) struct Declarations {
    tokens: Vec<Token>,
    /// Macros without parameters.
    macros: BTreeMap<String, Vec<Token>>,
    /// Macros with parameters that turn the function after them into a kernel; their first argument
    /// is its launch bound.
    kernel_macros: Vec<String>,
}

impl Declarations {
    /// Reads a text.
    pub(crate) fn of(text: &str) -> Self {
        let mut all = Declarations {
            tokens: Vec::new(),
            macros: BTreeMap::new(),
            kernel_macros: Vec::new(),
        };
        for token in tokens(text) {
            match token {
                Lexed::Token(token) => all.tokens.push(token),
                Lexed::Directive(line, text) => all.define(line, &text),
            }
        }
        all
    }

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
                self.kernel_macros.push(name.to_owned());
            }
            return;
        }
        let body = tokens(body).filter_map(|token| match token {
            Lexed::Token(token) => Some(Token { line, ..token }),
            Lexed::Directive(..) => None,
        });
        let body = body.collect();
        self.macros.entry(name.to_owned()).or_insert(body);
    }

    /// The kernels, in the order of the text.
    ///
    /// # Errors
    /// For a parameter of a type that cannot be passed.
    pub(crate) fn kernels(&self) -> Result<Vec<Signature>> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(token) = self.tokens.get(at) {
            at += 1;
            let Some(word) = token.word() else { continue };
            let is_macro = self.kernel_macros.iter().any(|name| name == word);
            if word == "__global__" || is_macro {
                let bounds = if is_macro { self.group(&mut at) } else { None };
                found.extend(self.kernel(&mut at, bounds)?);
            }
        }
        Ok(found)
    }

    /// Reads the kernel whose return type starts at `at`; `None` if no parameter list follows.
    fn kernel(&self, at: &mut usize, bounds: Option<&[Token]>) -> Result<Option<Signature>> {
        let mut bounds = bounds;
        let mut name: Option<&Token> = None;
        while let Some(token) = self.tokens.get(*at) {
            match token.word() {
                Some("__launch_bounds__") => {
                    *at += 1;
                    bounds = self.group(at);
                }
                Some(_) => {
                    name = Some(token);
                    *at += 1;
                }
                None if token.is('(') => break,
                None if token.is('*') => *at += 1,
                None => return Ok(None),
            }
        }
        let (Some(name), Some(list)) = (name, self.group(at)) else {
            return Ok(None);
        };
        let mut parameters = Vec::new();
        for part in split(list, ',') {
            self.add_parameters(part, None, &mut parameters)?;
        }
        let first = bounds.and_then(|list| split(list, ',').next());
        Ok(Some(Signature {
            name: name.word().unwrap_or_default().to_owned(),
            parameters,
            block_threads: first.and_then(|tokens| self.product(tokens)),
        }))
    }

    /// The tokens between the parentheses that open at `at`. Moves `at` behind them.
    fn group(&self, at: &mut usize) -> Option<&[Token]> {
        let (start, mut depth) = (*at + 1, 0);
        while let Some(token) = self.tokens.get(*at) {
            *at += 1;
            depth += i32::from(token.is('(')) - i32::from(token.is(')'));
            if depth == 0 {
                return self.tokens.get(start..*at - 1);
            }
        }
        None
    }

    fn add_parameters(
        &self,
        tokens: &[Token],
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
                return split(body, ',')
                    .try_for_each(|part| self.add_parameters(part, Some(name), parameters));
            }
        }
        if tokens.is_empty() {
            return Ok(());
        }
        let declared = declare(tokens)?;
        let Some(name) = declared.name else {
            return tokens[0].error("the parameter has no name");
        };
        parameters.push(Parameter {
            name,
            element: declared.element,
            pointer: declared.pointer,
            macro_name: macro_name.map(str::to_owned),
        });
        Ok(())
    }

    /// The product of integer constants and literals; `None` for any other expression.
    fn product(&self, tokens: &[Token]) -> Option<u32> {
        self.product_within(tokens, 0)
    }

    fn product_within(&self, tokens: &[Token], depth: usize) -> Option<u32> {
        let mut product: u32 = 1;
        for factor in split(tokens, '*') {
            // `a::b::NAME` is looked up as NAME.
            let is_path = |(at, token): (usize, &Token)| match at % 3 {
                0 => token.word().is_some(),
                _ => token.is(':'),
            };
            if factor.len() % 3 != 1 || !factor.iter().enumerate().all(is_path) {
                return None;
            }
            let word = factor.last()?.word()?;
            let value = match word.trim_end_matches(['u', 'U']).parse() {
                Ok(value) => value,
                Err(_) => self.constant(word, depth)?,
            };
            product = product.checked_mul(value)?;
        }
        Some(product)
    }

    /// The value of `constexpr ... name = value;`. The last definition counts.
    fn constant(&self, name: &str, depth: usize) -> Option<u32> {
        if depth == NESTING_MAX {
            return None;
        }
        let mut found = None;
        for (at, token) in self.tokens.iter().enumerate() {
            let is_defined = token.word() == Some(name)
                && self.tokens.get(at + 1).is_some_and(|next| next.is('='));
            if is_defined {
                let value = self.tokens.get(at + 2..)?;
                let end = value
                    .iter()
                    .position(|token| token.is(';') || token.is(','))?;
                found = self.product_within(&value[..end], depth + 1).or(found);
            }
        }
        found
    }

    /// The layout of a struct that the text defines: numbers, pointers, other such structs, and
    /// arrays of these.
    ///
    /// # Errors
    /// If the text does not define the struct, or it has other members.
    pub(crate) fn layout(&self, name: &str) -> Result<StructLayout> {
        self.layout_within(name, 0)
    }

    fn layout_within(&self, name: &str, depth: usize) -> Result<StructLayout> {
        let Some((start, open)) = self.struct_named(name) else {
            let message = format!("the text does not define struct {name}");
            return Err(SignatureError { line: 1, message });
        };
        if depth == NESTING_MAX {
            return self.tokens[start].error(format!("struct {name} is nested too deeply"));
        }
        let close = self.tokens[open..].iter().position(|token| token.is('}'));
        let Some(close) = close else {
            return self.tokens[open].error(format!("struct {name} has no end"));
        };
        let mut layout = StructLayout {
            bytes: 0,
            align: 1,
            pointers: Vec::new(),
        };
        // alignas(16)
        let head = &self.tokens[start..open];
        if let Some(at) = head
            .iter()
            .position(|token| token.word() == Some("alignas"))
            && let Some(align) = head
                .get(at + 2)
                .and_then(|token| self.product(std::slice::from_ref(token)))
        {
            layout.align = align as usize;
        }
        for member in split(&self.tokens[open + 1..open + close], ';') {
            if !member.is_empty() {
                self.add_member(member, &mut layout, depth)?;
            }
        }
        layout.bytes = layout.bytes.next_multiple_of(layout.align);
        Ok(layout)
    }

    /// The indices of a struct's definition and of its opening brace.
    fn struct_named(&self, name: &str) -> Option<(usize, usize)> {
        let is_struct = |&at: &usize| self.tokens[at].word() == Some("struct");
        (0..self.tokens.len()).filter(is_struct).find_map(|start| {
            let rest = &self.tokens[start..];
            let ends_head = |token: &Token| "{;,*>".chars().any(|end| token.is(end));
            let open = start + rest.iter().position(ends_head)?;
            let mut head = self.tokens[start..open].iter();
            let is_named =
                self.tokens[open].is('{') && head.any(|token| token.word() == Some(name));
            is_named.then_some((start, open))
        })
    }

    /// Adds the members of a declaration such as `T a, *b, c[3]`.
    fn add_member(&self, tokens: &[Token], layout: &mut StructLayout, depth: usize) -> Result<()> {
        if tokens.iter().any(|token| token.is('(')) {
            return tokens[0].error("a struct that is passed by value has data members alone");
        }
        let mut parts = split(tokens, ',');
        let first = parts.next().unwrap_or_default();
        let words = first
            .iter()
            .rposition(|token| token.word().is_some())
            .unwrap_or(0);
        let of_type: Vec<Token> = first[..words]
            .iter()
            .take_while(|token| token.word().is_some())
            .cloned()
            .collect();
        let rest = parts.map(|part| [&of_type[..], part].concat());
        for declarator in std::iter::once(first.to_vec()).chain(rest) {
            let (declarator, length) = match declarator.iter().position(|token| token.is('[')) {
                None => (&declarator[..], 1),
                Some(at) => match self.product(&declarator[at + 1..declarator.len() - 1]) {
                    Some(length) => (&declarator[..at], length as usize),
                    None => return declarator[at].error("the array's length is no constant"),
                },
            };
            let declared = declare(declarator)?;
            let (bytes, align) = match (&declared.pointer, &declared.element) {
                (Some(_), _) => (8, 8),
                (None, CudaType::Number(number)) => (number.bytes(), number.bytes()),
                (None, CudaType::Struct(name)) => match vector_bytes(name) {
                    Some((bytes, align)) => (bytes, align),
                    None => {
                        let inner = self.layout_within(name, depth + 1)?;
                        if !inner.pointers.is_empty() {
                            return declarator[0].error("a struct with pointers inside another");
                        }
                        (inner.bytes, inner.align)
                    }
                },
            };
            let offset = layout.bytes.next_multiple_of(align);
            if let Some(access) = declared.pointer {
                let pointers =
                    (0..length).map(|at| (offset + 8 * at, access, declared.element.clone()));
                layout.pointers.extend(pointers);
            }
            layout.bytes = offset + length * bytes;
            layout.align = layout.align.max(align);
        }
        Ok(())
    }
}

/// Size and alignment of CUDA's own vector types.
pub(crate) fn vector_bytes(name: &str) -> Option<(usize, usize)> {
    let digit = name.find(|c: char| c.is_ascii_digit())?;
    let (number, count) = (
        number(&[&name[..digit]])?,
        name[digit..].parse::<usize>().ok()?,
    );
    let bytes = number.bytes() * count;
    match count {
        2 | 4 => Some((bytes, bytes.min(16))),
        1 | 3 => Some((bytes, number.bytes())),
        _ => None,
    }
}

struct Declared {
    name: Option<String>,
    element: CudaType,
    pointer: Option<PointerAccess>,
}

/// Reads `const T* name`.
fn declare(tokens: &[Token]) -> Result<Declared> {
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
    let updated = tokens.iter().any(|token| token.kind == Kind::Updated);
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
    let is_const = |tokens: &[Token]| tokens.iter().any(|token| token.word() == Some("const"));
    let mut words: Vec<&str> = tokens
        .iter()
        .filter_map(Token::word)
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
    Ok(Declared {
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

impl Number {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Number::U8 | Number::I8 => 1,
            Number::U16 | Number::I16 | Number::F16 | Number::BF16 => 2,
            Number::U32 | Number::I32 | Number::F32 => 4,
            Number::U64 | Number::I64 | Number::F64 => 8,
        }
    }
}

/// The number type that these words name. `long` alone is none, because its size depends on the
/// platform.
fn number(words: &[&str]) -> Option<Number> {
    let count = |word: &str| words.iter().filter(|other| **other == word).count();
    let (short, long) = (count("short"), count("long"));
    let unsigned = count("unsigned") > 0;
    let integer = |narrow, wide| if unsigned { wide } else { narrow };
    if !words.is_empty() && words.iter().all(|word| is_number_word(word)) {
        return match words {
            ["float"] => Some(Number::F32),
            ["double"] => Some(Number::F64),
            ["bool"] => Some(Number::U8),
            _ if count("float") + count("double") + count("bool") > 0 || long == 1 => None,
            _ if count("char") == 1 => Some(integer(Number::I8, Number::U8)),
            _ if short == 1 => Some(integer(Number::I16, Number::U16)),
            _ if long == 2 => Some(integer(Number::I64, Number::U64)),
            _ => Some(integer(Number::I32, Number::U32)),
        };
    }
    let [word] = words else { return None };
    Some(match *word {
        "uint8_t" | "uchar" => Number::U8,
        "int8_t" => Number::I8,
        "uint16_t" | "ushort" => Number::U16,
        "int16_t" => Number::I16,
        "uint32_t" | "uint" => Number::U32,
        "int32_t" => Number::I32,
        "uint64_t" | "ulonglong" | "size_t" => Number::U64,
        "int64_t" | "longlong" => Number::I64,
        "half" | "__half" => Number::F16,
        "nv_bfloat16" | "__nv_bfloat16" => Number::BF16,
        _ => return None,
    })
}

/// Splits at each `sign` outside of brackets.
fn split(tokens: &[Token], sign: char) -> impl Iterator<Item = &[Token]> {
    let mut depth = 0;
    tokens.split(move |token| {
        depth += i32::from("([{<".chars().any(|open| token.is(open)));
        depth -= i32::from(")]}>".chars().any(|close| token.is(close)));
        depth == 0 && token.is(sign)
    })
}

enum Lexed {
    Token(Token),
    /// A preprocessor line without its `#`, continued lines joined.
    Directive(usize, String),
}

fn tokens(text: &str) -> impl Iterator<Item = Lexed> {
    let bytes = text.as_bytes();
    let (mut at, mut line, mut line_start) = (0, 1, true);
    std::iter::from_fn(move || {
        loop {
            let rest = &text[at..];
            let c = rest.chars().next()?;
            // The length of the token that ends with `end`.
            let until = |end: &str| rest.find(end).map_or(rest.len(), |found| found + end.len());
            let (length, found) = if c == '\n' {
                (line, line_start) = (line + 1, true);
                at += 1;
                continue;
            } else if c.is_whitespace() || c == '\\' {
                at += c.len_utf8();
                continue;
            } else if rest.starts_with("//") {
                (rest.find('\n').unwrap_or(rest.len()), None)
            } else if rest.starts_with("/*") {
                let length = 2 + rest[2..]
                    .find("*/")
                    .map_or(rest.len() - 2, |found| found + 2);
                let is_updated = rest[..length].trim_matches(['/', '*', ' ']) == "updated";
                (length, is_updated.then_some(Kind::Updated))
            } else if c == '#' && line_start {
                let mut length = until("\n");
                while rest[..length].trim_end().ends_with('\\') && length < rest.len() {
                    length += rest[length..]
                        .find('\n')
                        .map_or(rest.len() - length, |end| end + 1);
                }
                let directive = Lexed::Directive(line, rest[1..length].replace("\\\n", " "));
                line += rest[..length].matches('\n').count();
                at += length;
                return Some(directive);
            } else if c == '"' || c == '\'' {
                let mut end = at + 1;
                while end < bytes.len() && bytes[end] != c as u8 && bytes[end] != b'\n' {
                    end += 1 + usize::from(bytes[end] == b'\\');
                }
                // Do not cut a character of several bytes.
                let mut length = (end + 1).min(bytes.len()) - at;
                while !rest.is_char_boundary(length) {
                    length += 1;
                }
                (length, None)
            } else if c.is_alphanumeric() || c == '_' {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                let word = &rest[..end.unwrap_or(rest.len())];
                (word.len(), Some(Kind::Word(word.to_owned())))
            } else {
                (c.len_utf8(), Some(Kind::Sign(c)))
            };
            let token = found.map(|kind| Lexed::Token(Token { kind, line }));
            line += rest[..length].matches('\n').count();
            line_start = false;
            at += length;
            if token.is_some() {
                return token;
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernels(text: &str) -> Vec<Signature> {
        Declarations::of(text).kernels().unwrap()
    }

    fn described(parameter: &Parameter) -> String {
        let access = match parameter.pointer {
            None => "value",
            Some(PointerAccess::Read) => "read",
            Some(PointerAccess::Write) => "write",
            Some(PointerAccess::Update) => "update",
        };
        format!("{} {:?} {access}", parameter.name, parameter.element)
    }

    #[test]
    fn parameters_have_the_type_and_the_access_that_the_text_gives_them() {
        let text = r#"
            // A kernel in a comment: __global__ void no(int a);
            #define UNUSED __global__
            struct Particle { float x; };
            extern "C" __global__ void __launch_bounds__(4 * 32) step(
                const Particle* __restrict__ from, Particle *to, /* masses */ float const * mass,
                unsigned long long int* count /* updated */, const unsigned n, bool flag,
                half *low, uint8_t bytes[])
            { if (n < 3) to[0] = from[0]; }
        "#;
        let [kernel] = &kernels(text)[..] else {
            panic!("one kernel")
        };
        assert_eq!((&*kernel.name, kernel.block_threads), ("step", Some(128)));
        let found: Vec<String> = kernel.parameters.iter().map(described).collect();
        assert_eq!(
            found,
            [
                "from Struct(\"Particle\") read",
                "to Struct(\"Particle\") write",
                "mass Number(F32) read",
                "count Number(U64) update",
                "n Number(U32) value",
                "flag Number(U8) value",
                "low Number(F16) write",
                "bytes Number(U8) write",
            ]
        );
    }

    #[test]
    fn macros_are_parameters_and_name_kernels_and_constants_give_the_block() {
        let text = "
            #define KERNEL(...) extern \"C\" __global__ void __launch_bounds__(__VA_ARGS__)
            #define CELL_PARAMS const unsigned *cell_start, \\
                const int *cell_x
            constexpr unsigned WARPS = 4;
            constexpr unsigned ROWS = 2048 / WARPS;
            namespace areas { constexpr int THREADS = 32 * WARPS; }
            KERNEL(areas::THREADS, 2)
            near(const unsigned* header, CELL_PARAMS, float* out) {}
            KERNEL(ROWS) other(void) {}
        ";
        let kernels = kernels(text);
        assert_eq!(kernels[0].block_threads, Some(128));
        let names: Vec<_> = kernels[0]
            .parameters
            .iter()
            .map(|it| (&*it.name, it.macro_name.as_deref()))
            .collect();
        let cells = Some("CELL_PARAMS");
        assert_eq!(
            names,
            [
                ("header", None),
                ("cell_start", cells),
                ("cell_x", cells),
                ("out", None)
            ]
        );
        assert_eq!(
            (kernels[1].parameters.len(), kernels[1].block_threads),
            (0, None)
        );
    }

    #[test]
    fn what_a_kernel_cannot_take_is_an_error_with_its_line() {
        let error = |parameter: &str| {
            let text = format!("\n__global__ void k(int a,\n{parameter}) {{}}");
            Declarations::of(&text).kernels().unwrap_err().to_string()
        };
        assert!(error("float** b").starts_with("line 3: a pointer to pointers"));
        assert!(error("float& b").starts_with("line 3: a kernel takes numbers"));
        assert!(error("long b").starts_with("line 3: the type long has no fixed size"));
        assert!(error("float*").starts_with("line 3: the parameter has no name"));
        assert!(error("int b /* updated */").starts_with("line 3: only what a pointer"));
        assert!(error("const int* b /* updated */").starts_with("line 3: only what a pointer"));
    }

    #[test]
    fn structs_are_laid_out_as_cuda_does() {
        let text = "
            constexpr int N = 3;
            struct Inner { short a, b; char c; };
            struct alignas(16) Outer {
                char first;
                const float *x, *y; double z[N];
                Inner inner; float4 vector;
                int* counts /* updated */;
            };
            struct Bad { int f(); };
            struct Endless { Endless again; };
        ";
        let text = Declarations::of(text);
        let inner = text.layout("Inner").unwrap();
        assert_eq!((inner.bytes, inner.align), (6, 2));
        let outer = text.layout("Outer").unwrap();
        let float = CudaType::Number(Number::F32);
        assert_eq!(
            outer.pointers,
            [
                (8, PointerAccess::Read, float.clone()),
                (16, PointerAccess::Read, float),
                (80, PointerAccess::Update, CudaType::Number(Number::I32)),
            ]
        );
        assert_eq!((outer.bytes, outer.align), (96, 16));
        assert!(text.layout("Bad").is_err());
        assert!(text.layout("Endless").is_err());
        let error = text.layout("Other").unwrap_err().to_string();
        assert!(error.contains("does not define struct Other"), "{error}");
    }

    #[test]
    fn no_text_makes_the_reader_panic() {
        let text = "#define K(x) __global__ void\nK(1) a(const int* b[], S c) { \"\\é\" } /* é";
        for from in 0..text.len() {
            for to in from..=text.len() {
                if let Some(part) = text.get(from..to) {
                    let read = Declarations::of(part);
                    let _ = (read.kernels(), read.layout("S"));
                }
            }
        }
    }
}
