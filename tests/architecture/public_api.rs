//! The public names and signatures of the crates, as `public_api.txt` lists them. A change of the API shows
//! as a change of that file. What the documentation hides is for the other crates of tapeloop, and is not
//! listed; nor are the crates that are parts of the program.
//!
//! The lint `unreachable_pub` makes sure that what is `pub` can be reached from outside, so the list
//! follows from the text: every `pub` item, field and method by its file, the bodies of enums and traits,
//! implementations of traits for public types, and calls of macros that make public items.

use crate::imports::tokens;
use crate::sources;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Crates whose names are for the program and for tests alone.
const UNLISTED: &str = "annotations conformance files inputs svg test-support";

/// Attributes that belong to the API.
const ATTRIBUTES: &[&str] = &["derive", "non_exhaustive", "deprecated"];

/// What the crates define.
#[derive(Default)]
struct Names {
    /// Items by module and name that a hidden module re-exports, and no other.
    of_sisters: BTreeSet<(String, String)>,
    /// Structs, enums, unions and traits that are `pub`.
    public: BTreeSet<String>,
    /// Traits that are not.
    private_traits: BTreeSet<String>,
    /// Macros whose text has a `pub` item.
    macros: BTreeSet<String>,
}

impl Names {
    fn add(&mut self, module: &str, tokens: &[String]) {
        for (at, token) in tokens.iter().enumerate() {
            let name = tokens.get(at + 1).cloned().unwrap_or_default();
            match &**token {
                "struct" | "enum" | "union" | "trait" => {
                    let start = &tokens[at.saturating_sub(2)..at];
                    let is_public =
                        start.last().is_some_and(|it| it == "pub") || start == ["pub", "unsafe"];
                    let item = (module.to_owned(), name.clone());
                    if is_public && self.of_sisters.contains(&item) {
                        continue;
                    }
                    if is_public {
                        self.public.insert(name);
                    } else if token == "trait" {
                        self.private_traits.insert(name);
                    }
                }
                "macro_rules" => {
                    let body = &tokens[at + 3..end(tokens, at + 3)];
                    if (0..body.len()).any(|at| is_pub(body, at)) {
                        self.macros.insert(tokens[at + 2].clone());
                    }
                }
                _ => {}
            }
        }
    }
}

/// Whether the token is a `pub` without a restriction.
fn is_pub(tokens: &[String], at: usize) -> bool {
    tokens[at] == "pub" && tokens.get(at + 1).is_none_or(|next| next != "(")
}

/// The end of the group that begins at `at` with a bracket, behind its last token.
fn end(tokens: &[String], at: usize) -> usize {
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        match &**token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    tokens.len()
}

/// Where the item or field that begins at `at` ends: behind its signature, before its body or value.
fn signature_end(tokens: &[String], at: usize) -> usize {
    let is_use = tokens.get(at + 1).is_some_and(|it| it == "use");
    let (mut index, mut angles) = (at, 0_i32);
    while index < tokens.len() {
        match &*tokens[index] {
            "(" | "[" => index = end(tokens, index) - 1,
            "{" if is_use => index = end(tokens, index) - 1,
            "<" => angles += 1,
            ">" if tokens[index - 1] != "-" && tokens[index - 1] != "=" => angles -= 1,
            "," if angles == 0 => return index,
            ";" | "{" | "}" => return index,
            // A value; the target of a type is a part of its signature.
            "=" if angles == 0 && !tokens[at..index].iter().any(|it| it == "type") => return index,
            _ => {}
        }
        index += 1;
    }
    index
}

/// The tokens of a trait's body, with `{ }` for the bodies of its methods.
fn trait_body(tokens: &[String]) -> Vec<String> {
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        if tokens[at] == "{" {
            kept.extend(["{", "}"].map(str::to_owned));
            at = end(tokens, at);
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// The last name of the path that ends a type, without its arguments.
fn type_name(tokens: &[String]) -> &str {
    let path = tokens
        .split(|token| token == "<")
        .next()
        .unwrap_or_default();
    path.last().map_or("", String::as_str)
}

/// The name of the type that an `impl` is for, and that of its trait.
fn implementation(header: &[String]) -> (&str, Option<&str>) {
    let mut rest = &header[1..];
    if rest.first().is_some_and(|it| it == "<") {
        let mut depth = 0;
        let close = rest.iter().enumerate().position(|(at, token)| {
            depth += i32::from(token == "<") - i32::from(token == ">" && rest[at - 1] != "-");
            depth == 0
        });
        rest = &rest[close.map_or(rest.len(), |close| close + 1)..];
    }
    let rest = rest
        .split(|token| token == "where")
        .next()
        .unwrap_or_default();
    match rest.iter().position(|token| token == "for") {
        Some(at) => (type_name(&rest[at + 1..]), Some(type_name(&rest[..at]))),
        None => (type_name(rest), None),
    }
}

fn text(tokens: &[String]) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut text = String::new();
    for token in tokens {
        let begins_word = token.starts_with(is_word);
        let is_spaced = ["=", "+", "-", "{", "}"].contains(&&**token);
        let follows_space = text.ends_with([',', ';', '=', '+', '{', '}'])
            || text.ends_with(':') && !text.ends_with("::");
        let is_apart = match token.as_str() {
            "," | ";" | ":" | "::" | ")" | "]" | ">" => false,
            _ if text.is_empty() || text.ends_with("::") => false,
            _ => {
                is_spaced
                    || follows_space
                    || begins_word && text.ends_with(|c| is_word(c) || c == '>')
            }
        };
        if is_apart {
            text.push(' ');
        }
        text.push_str(token);
    }
    text
}

/// `backend::op` for `src/backend/op.rs`, behind the crate's name for a file of another crate than the root.
fn module_name(path: &str) -> String {
    let (of_crate, file) = match path.strip_prefix("crates/") {
        Some(rest) => {
            let (name, file) = rest.split_once("/src/").unwrap();
            (format!("tapeloop_{}::", name.replace('-', "_")), file)
        }
        None => (String::new(), path.trim_start_matches("src/")),
    };
    let module = file.trim_end_matches(".rs").trim_end_matches("/mod");
    of_crate + &module.replace('/', "::")
}

/// Where the item or field at `at`, which its documentation hides, ends.
fn hidden_end(tokens: &[String], at: usize) -> usize {
    let mut at = at;
    while tokens.get(at).is_some_and(|token| token == "#") {
        at = end(tokens, at + 1);
    }
    let is_use = tokens[at..].iter().take(2).any(|token| token == "use");
    let close = signature_end(tokens, at);
    match tokens.get(close).map(String::as_str) {
        Some("{") if !is_use => end(tokens, close),
        // A constant or static.
        Some("=") => close + tokens[close..].iter().position(|it| it == ";").unwrap_or(0) + 1,
        _ => close + 1,
    }
}

/// Modules of other files that the documentation hides, as their paths start: `src/cli/config`.
fn hidden_modules(path: &str, tokens: &[String]) -> Vec<String> {
    let folder = path.trim_end_matches("/mod.rs").trim_end_matches("/lib.rs");
    let hides = "# [ doc ( hidden ) ] pub mod".split(' ');
    let starts =
        (0..tokens.len()).filter(|&at| tokens[at..].iter().zip(hides.clone()).all(|(a, b)| a == b));
    starts
        .filter_map(|at| tokens.get(at + 9))
        .map(|name| format!("{folder}/{name}"))
        .collect()
}

/// The items that the hidden module `internal` of a `lib.rs` re-exports, by module and name.
fn of_sisters(path: &str, tokens: &[String]) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    let is_start =
        |at: &usize| tokens[*at..].starts_with(&["mod", "internal", "{"].map(String::from));
    let Some(start) = (0..tokens.len()).find(is_start) else {
        return found;
    };
    let name = module_name(path);
    let of_crate = name.trim_end_matches("lib");
    for one in tokens[start..end(tokens, start + 2)].split(|token| token == ";") {
        let uses_crate = |at: &usize| one[*at..].starts_with(&["use", "crate"].map(String::from));
        let Some(at) = (0..one.len()).find(uses_crate) else {
            continue;
        };
        let words = one[at + 2..]
            .iter()
            .filter(|token| *token != "::" && *token != ",");
        let words: Vec<&str> = words.map(String::as_str).collect();
        // The item is listed under its own name.
        let renamed = words.iter().position(|word| *word == "as");
        let words = &words[..renamed.unwrap_or(words.len())];
        let (modules, names) = match words.iter().position(|word| *word == "{") {
            Some(open) => (&words[..open], &words[open + 1..words.len() - 1]),
            None => words.split_at(words.len() - 1),
        };
        let module = of_crate.to_owned() + &modules.join("::");
        found.extend(
            names
                .iter()
                .map(|name| (module.clone(), (*name).to_owned())),
        );
    }
    found
}

/// Adds the lines of a file.
fn list(path: &str, tokens: &[String], names: &Names, lines: &mut Vec<String>) {
    let module = module_name(path);
    // What each open brace belongs to, and what the next one does.
    let (mut owners, mut next): (Vec<String>, String) = (Vec::new(), String::new());
    let (mut attributes, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let token = &*tokens[at];
        let follows =
            |offset: usize, what: &str| tokens.get(at + offset).is_some_and(|it| it == what);
        if token == "#" && follows(1, "[") {
            let close = end(tokens, at + 1);
            let is_field = tokens.get(close + 2).is_some_and(|it| it == ":");
            if tokens[at + 2..close].concat() == "doc(hidden)]" && !is_field {
                attributes.clear();
                at = hidden_end(tokens, close);
                continue;
            }
            if ATTRIBUTES.contains(&&*tokens[at + 2]) {
                attributes.push(text(&tokens[at..close]));
            }
            at = close;
            continue;
        }
        if token == "macro_rules" {
            at = end(tokens, at + 3);
            continue;
        }
        let owner = owners.iter().rev().find(|owner| !owner.is_empty());
        let is_of_sister = |name: &str| {
            let is = |name: &str| (module.clone(), name.to_owned());
            [name, "*"]
                .iter()
                .any(|name| names.of_sisters.contains(&is(name)))
        };
        if owner.is_some_and(|owner| is_of_sister(owner)) && is_pub(tokens, at) {
            at += 1;
            continue;
        }
        let owner = owner.map(|owner| format!("{owner}: ")).unwrap_or_default();
        let mut line = |what: String| {
            let attributes: String = attributes.drain(..).map(|it: String| it + " ").collect();
            lines.push(format!("{module}: {owner}{attributes}{what}"));
        };
        if follows(1, "!") && names.macros.contains(token) {
            let close = end(tokens, at + 2);
            line(text(&tokens[at..close]));
            at = close;
        } else if is_pub(tokens, at) {
            let close = signature_end(tokens, at);
            let signature = &tokens[at..close];
            let kind = signature
                .iter()
                .find(|it| ["enum", "trait", "struct", "union", "fn", "mod"].contains(&&***it));
            let name = kind.and_then(|kind| {
                let kind = signature.iter().position(|it| it == kind)?;
                signature.get(kind + 1).cloned()
            });
            let has_body = tokens.get(close).is_some_and(|it| it == "{");
            let of_sister = name.as_deref().is_some_and(is_of_sister);
            let mut line = |what| {
                if !of_sister {
                    line(what)
                }
            };
            match kind.map(String::as_str) {
                Some("enum" | "trait") if has_body => {
                    let body_end = end(tokens, close);
                    let body = trait_body(&tokens[close + 1..body_end - 1]);
                    let body = if kind.is_some_and(|kind| kind == "enum") {
                        tokens[close + 1..body_end - 1].to_vec()
                    } else {
                        body
                    };
                    line(format!("{} {{ {} }}", text(signature), text(&body)));
                    at = body_end;
                }
                Some("fn") if has_body => {
                    line(text(signature));
                    at = end(tokens, close);
                }
                _ => {
                    line(text(signature));
                    next = name.unwrap_or_default();
                    at = close;
                }
            }
        } else if token == "impl"
            && (at == 0
                || ["}", ";", "]", "unsafe"].contains(&&*tokens[at - 1])
                || tokens[at - 1] == "{")
        {
            let close = tokens[at..]
                .iter()
                .position(|it| it == "{")
                .map_or(tokens.len(), |it| at + it);
            let header = &tokens[at..close];
            let (own, of_trait) = implementation(header);
            next = own.to_owned();
            if let Some(of_trait) = of_trait
                && names.public.contains(own)
                && !names.private_traits.contains(of_trait)
                && !is_of_sister(own)
            {
                line(text(header));
                at = end(tokens, close);
            } else {
                at = close;
            }
        } else {
            match token {
                "{" => owners.push(std::mem::take(&mut next)),
                "}" => drop(owners.pop()),
                ";" => next.clear(),
                _ => {}
            }
            attributes.clear();
            at += 1;
        }
    }
}

/// The lines of sources by path and text.
fn public_api<'a>(sources: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let sources: Vec<_> = sources.map(|(path, text)| (path, tokens(text))).collect();
    let mut names = Names::default();
    let sisters = sources.iter().filter(|(path, _)| path.ends_with("lib.rs"));
    names.of_sisters = sisters
        .flat_map(|(path, tokens)| of_sisters(path, tokens))
        .collect();
    for (path, tokens) in &sources {
        names.add(&module_name(path), tokens);
    }
    let modules = sources.iter();
    let hidden: Vec<String> = modules
        .flat_map(|(path, tokens)| hidden_modules(path, tokens))
        .collect();
    let is_hidden = |path: &str| {
        let rest = hidden
            .iter()
            .find_map(|module| path.strip_prefix(&**module));
        rest.is_some_and(|rest| rest.starts_with(['.', '/']))
    };
    let mut lines = Vec::new();
    for (path, tokens) in sources.iter().filter(|(path, _)| !is_hidden(path)) {
        list(path, tokens, &names, &mut lines);
    }
    lines
}

#[test]
fn the_public_api_is_the_listed_one() {
    let sources = sources();
    let sources = sources.iter().map(|(path, text)| (&**path, &**text));
    let of_program = |path: &str| {
        let mut crates = UNLISTED.split(" ");
        path.contains("src/bin/") || crates.any(|name| path.starts_with(&format!("crates/{name}/")))
    };
    let api = public_api(sources.filter(|(path, _)| !of_program(path)));
    let file = Path::new(super::ROOT).join("tests/architecture/public_api.txt");
    if std::env::var_os("TAPELOOP_BLESS").is_some() {
        fs::write(&file, api.join("\n") + "\n").unwrap();
    }
    let listed = fs::read_to_string(&file).unwrap();
    let listed: Vec<&str> = listed.lines().collect();
    let gone = listed
        .iter()
        .filter(|line| !api.iter().any(|it| it == *line));
    let new = api.iter().filter(|line| !listed.contains(&&***line));
    let changes: Vec<String> = gone
        .map(|line| format!("- {line}"))
        .chain(new.map(|line| format!("+ {line}")))
        .collect();
    assert!(
        changes.is_empty() && listed.len() == api.len(),
        "the public API has changed:\n{}\nIf that is meant, add a line to CHANGELOG.md, and write the list \
         anew:\nTAPELOOP_BLESS=1 cargo test --test architecture public_api",
        changes.join("\n")
    );
}

#[test]
fn the_list_has_what_a_program_can_name() {
    let source = r#"
        pub use a::{B, C};
        #[derive(Clone, Debug)] #[non_exhaustive] pub struct S<T: Into<u8>> { pub x: Map<T, u8>, hidden: u8, pub(crate) own: u8 }
        pub struct Pair(pub u8, u8);
        pub enum E { One(u8), Two { deep: u8 } }
        pub unsafe trait Tr: Send { type Item; fn given(&self) -> u8 { let s = S { x: 1 }; 7 } fn needed(&self); }
        trait Hidden {}
        impl<T: Into<u8>> S<T> { pub const MAX: u8 = 7; pub fn new(x: &'static str, f: impl Fn(u8) -> u8) -> Self where T: Copy { pub_looking(); } fn inner() {} }
        impl<T: Into<u8>> Tr for S<T> { fn needed(&self) {} }
        impl Hidden for E {}
        impl From<u8> for Private { fn from(x: u8) -> Self { Private } }
        macro_rules! make { ($name:ident) => { pub struct $name; } }
        macro_rules! check { ($name:ident) => { $name() } }
        make! { Made }
        check!(inner);
        pub type Alias = Vec<u8>;
        mod m { pub(super) fn f() {} pub static ONE: u8 = 1; }
        #[doc(hidden)] pub mod sisters { pub use a::D; pub fn f() {} }
        #[doc(hidden)] pub mod inner;
        impl Pair { #[doc(hidden)] pub fn hidden(&self) -> u8 { 1 } #[doc(hidden)] #[inline] pub fn other() {} pub fn seen(&self) {} }
        pub struct Options { #[doc(hidden)] pub later: u8, pub first: u8 }
    "#;
    let sources = [
        ("src/a/mod.rs", source),
        ("src/a/inner.rs", "pub fn f() {}"),
        ("src/a/inner/deep.rs", "pub fn f() {}"),
        (
            "crates/b-c/src/lib.rs",
            "pub use d::E; #[doc(hidden)] pub mod internal { pub use crate::d::{F, g}; #[cfg(x)] pub use crate::d::h as other; }",
        ),
        (
            "crates/b-c/src/d/mod.rs",
            "pub struct E; pub struct F; impl F { pub fn f(&self) {} } impl Drop for F {} pub fn g() {} pub fn h() {}",
        ),
        ("crates/b-c/src/i.rs", "pub struct F;"),
    ];
    let lines = public_api(sources.into_iter());
    let expected = [
        "a: pub use a::{ B, C }",
        "a: #[derive(Clone, Debug)] #[non_exhaustive] pub struct S<T: Into<u8>>",
        "a: S: pub x: Map<T, u8>",
        "a: pub struct Pair(pub u8, u8)",
        "a: pub enum E { One(u8), Two { deep: u8 } }",
        "a: pub unsafe trait Tr: Send { type Item; fn given(&self) -> u8 { } fn needed(&self); }",
        "a: S: pub const MAX: u8",
        "a: S: pub fn new(x: &static str, f: impl Fn(u8) -> u8) -> Self where T: Copy",
        "a: impl<T: Into<u8>> Tr for S<T>",
        "a: make! { Made }",
        "a: pub type Alias = Vec<u8>",
        "a: pub static ONE: u8",
        "a: Pair: pub fn seen(&self)",
        "a: pub struct Options",
        "a: Options: pub later: u8",
        "a: Options: pub first: u8",
        "tapeloop_b_c::lib: pub use d::E",
        "tapeloop_b_c::d: pub struct E",
        "tapeloop_b_c::i: pub struct F",
    ];
    assert_eq!(lines, expected);
}
