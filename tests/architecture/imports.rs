//! What the files of `src/` import from each other, read from their `use` declarations and from
//! paths that start with `crate`, `super` or a child module. Tests in `src/` are left out.

use std::collections::{BTreeMap, BTreeSet};

/// A file of `src/` by its module path: `["backend", "cpu"]` for `src/backend/cpu/mod.rs`.
pub(crate) type Module = Vec<String>;

/// The imports between the files of a source tree.
pub(crate) struct Imports {
    files: BTreeMap<Module, File>,
}

struct File {
    path: String,
    /// Every name that a `use` brings into the module, and the path it stands for.
    names: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    /// The items that the file defines.
    items: BTreeSet<String>,
    /// The paths that the file names, and whether by a re-export.
    uses: Vec<(Vec<String>, bool)>,
}

/// One file that imports from another.
pub(crate) struct Import<'a> {
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    /// Whether it is a re-export (`pub use`) and no more.
    pub(crate) is_reexport: bool,
}

impl Imports {
    /// Of files by path and text.
    pub(crate) fn of<'a>(sources: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let read = |(path, text)| (module(path), path, tokens(text));
        let read: Vec<_> = sources.into_iter().map(read).collect();
        let known: BTreeSet<Module> = read.iter().map(|(module, ..)| module.clone()).collect();
        let mut tests = BTreeSet::new();
        let mut files = BTreeMap::new();
        for (module, path, tokens) in read {
            let mut scan = Scan {
                tokens: &tokens,
                at: 0,
                module: &module,
                known: &known,
                tests: &mut tests,
                file: File {
                    path: path.to_owned(),
                    names: BTreeMap::new(),
                    globs: Vec::new(),
                    items: BTreeSet::new(),
                    uses: Vec::new(),
                },
            };
            scan.items(&[]);
            let file = scan.file;
            files.insert(module, file);
        }
        let is_test = |module: &Module| (0..=module.len()).any(|n| tests.contains(&module[..n]));
        files.retain(|module, _| !is_test(module));
        Imports { files }
    }

    pub(crate) fn all(&self) -> Vec<Import<'_>> {
        let mut imports = Vec::new();
        for file in self.files.values() {
            for (path, is_reexport) in &file.uses {
                let to = self.home(path, 0);
                let to = self.files.get(&to).map(|to| &*to.path);
                if let Some(to) = to.filter(|to| *to != file.path) {
                    imports.push(Import {
                        from: &file.path,
                        to,
                        is_reexport: *is_reexport,
                    });
                }
            }
        }
        imports
    }

    /// The module that defines what a path from the crate's root names, through re-exports.
    fn home(&self, path: &[String], hops: usize) -> Module {
        let mut at = Module::new();
        for (n, segment) in path.iter().enumerate() {
            let mut child = at.clone();
            child.push(segment.clone());
            if self.files.contains_key(&child) {
                at = child;
                continue;
            }
            let Some(file) = self.files.get(&at) else {
                break;
            };
            if hops > 20 || file.items.contains(segment) {
                break;
            }
            if let Some(target) = file.names.get(segment) {
                return self.home(&[target, &path[n + 1..]].concat(), hops + 1);
            }
            for glob in &file.globs {
                let target = self.home(glob, hops + 1);
                let is_there =
                    |file: &File| file.items.contains(segment) || file.names.contains_key(segment);
                if target != at && self.files.get(&target).is_some_and(is_there) {
                    return self.home(&[&target, &path[n..]].concat(), hops + 1);
                }
            }
            break;
        }
        at
    }

    /// The circles of more than `files_max` files that import each other, re-exports aside: the
    /// strongly connected components, the largest first.
    pub(crate) fn circles(&self, files_max: usize) -> Vec<Vec<&str>> {
        let mut graph: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for import in self.all().iter().filter(|import| !import.is_reexport) {
            graph.entry(import.from).or_default().insert(import.to);
        }
        let reached = |start: &str| {
            let mut seen = BTreeSet::new();
            let mut next = vec![start];
            while let Some(file) = next.pop() {
                for to in graph.get(file).into_iter().flatten() {
                    if seen.insert(*to) {
                        next.push(to);
                    }
                }
            }
            seen
        };
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            graph.keys().map(|file| (*file, reached(file))).collect();
        let mut circles = BTreeSet::new();
        for (file, others) in &reached {
            let back = |other: &&&str| reached.get(**other).is_some_and(|r| r.contains(file));
            let circle: Vec<&str> = others.iter().filter(back).copied().collect();
            if circle.len() > files_max {
                circles.insert(circle);
            }
        }
        let mut circles: Vec<_> = circles.into_iter().collect();
        circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
        circles
    }
}

/// `src/record/mod.rs` and `src/record.rs` are both `["record"]`.
fn module(path: &str) -> Module {
    let path = path.trim_start_matches("src/").trim_end_matches(".rs");
    let mut module: Module = path.split('/').map(str::to_owned).collect();
    if ["mod", "lib"].contains(&module.last().map_or("", |last| last)) {
        module.pop();
    }
    module
}

/// Identifiers, `::` and single signs, without comments, strings and lifetimes.
pub(crate) fn tokens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let starts = |at: usize, what: &str| {
        what.chars()
            .eq(chars[at..].iter().copied().take(what.len()))
    };
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        let hashes = chars[at..]
            .iter()
            .skip(1)
            .take_while(|c| **c == '#')
            .count();
        if starts(at, "//") {
            at += chars[at..].iter().take_while(|c| **c != '\n').count();
        } else if starts(at, "/*") {
            while at < chars.len() && !starts(at, "*/") {
                at += 1;
            }
            at += 2;
        } else if c == 'r' && chars.get(at + 1 + hashes) == Some(&'"') {
            let end = format!("\"{}", "#".repeat(hashes));
            at += 2 + hashes;
            while !starts(at, &end) {
                at += 1;
            }
            at += end.len();
        } else if c == '"' {
            at += 1;
            while chars[at] != '"' {
                at += 1 + usize::from(chars[at] == '\\');
            }
            at += 1;
        } else if c == '\'' && chars[at + 1] == '\\' {
            at += 3;
            at += chars[at..].iter().take_while(|c| **c != '\'').count() + 1;
        } else if c == '\'' {
            at += if chars.get(at + 2) == Some(&'\'') {
                3
            } else {
                1
            };
        } else if is_word(c) {
            let word: String = chars[at..].iter().take_while(|c| is_word(**c)).collect();
            at += word.chars().count();
            // A prefix of a string, as in `b"..."`, is no name.
            if !(["b", "c", "br"].contains(&&*word) && chars.get(at) == Some(&'"')) {
                tokens.push(word);
            }
        } else if starts(at, "::") {
            tokens.push("::".to_owned());
            at += 2;
        } else {
            if !c.is_whitespace() {
                tokens.push(c.to_string());
            }
            at += 1;
        }
    }
    tokens
}

struct Scan<'a> {
    tokens: &'a [String],
    at: usize,
    module: &'a Module,
    known: &'a BTreeSet<Module>,
    /// Modules that are compiled for tests alone.
    tests: &'a mut BTreeSet<Module>,
    file: File,
}

impl Scan<'_> {
    fn token(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| token)
    }

    /// Reads until the bracket that closes the inline modules `inside`, or to the end.
    fn items(&mut self, inside: &[String]) {
        let mut depth = 0;
        while self.at < self.tokens.len() {
            match self.token(self.at) {
                "#" => {
                    let start = self.at;
                    self.at += 1 + usize::from(self.token(self.at + 1) == "!");
                    self.skip_group();
                    let attribute = self.tokens[start..self.at].concat();
                    if attribute.starts_with("#[cfg(test)")
                        || attribute.starts_with("#[cfg(all(test")
                    {
                        self.skip_item();
                    }
                }
                // The path of a visibility imports nothing.
                "pub" if self.token(self.at + 1) == "(" => {
                    self.at += 1;
                    self.skip_group();
                }
                "mod" if self.token(self.at + 2) == "{" => {
                    let inside = [inside, &[self.token(self.at + 1).to_owned()]].concat();
                    self.at += 3;
                    self.items(&inside);
                }
                "use" => {
                    let before = self.at.checked_sub(1).map_or("", |at| self.token(at));
                    let is_reexport = [")", "pub"].contains(&before);
                    self.at += 1;
                    self.tree(&[], inside, is_reexport);
                }
                "struct" | "enum" | "union" | "fn" | "trait" | "const" | "static" | "type"
                | "!"
                    if depth == 0 && inside.is_empty() =>
                {
                    let name = match self.token(self.at + 1) {
                        "fn" | "mut" | "unsafe" => self.token(self.at + 2).to_owned(),
                        name => name.to_owned(),
                    };
                    self.file.items.insert(name);
                    self.at += 1;
                }
                "{" => (depth, self.at) = (depth + 1, self.at + 1),
                "}" if depth == 0 => {
                    self.at += 1;
                    return;
                }
                "}" => (depth, self.at) = (depth - 1, self.at + 1),
                _ if self.token(self.at + 1) == "::"
                    && (self.at == 0 || self.token(self.at - 1) != "::") =>
                {
                    let mut path = vec![self.token(self.at).to_owned()];
                    self.at += 1;
                    while self.token(self.at) == "::" && is_name(self.token(self.at + 1)) {
                        path.push(self.token(self.at + 1).to_owned());
                        self.at += 2;
                    }
                    if let Some(path) = self.absolute(&path, inside) {
                        self.file.uses.push((path, false));
                    }
                    // The sign after the path, as in `Vec::<u8>`.
                    if self.token(self.at) == "::" {
                        self.at += 1;
                    }
                }
                _ => self.at += 1,
            }
        }
    }

    /// From an opening bracket to after its closing one.
    fn skip_group(&mut self) {
        let mut depth = 0;
        loop {
            match self.token(self.at) {
                "[" | "(" | "{" => depth += 1,
                "]" | ")" | "}" => depth -= 1,
                "" => return,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }

    /// An item that is compiled for tests alone.
    fn skip_item(&mut self) {
        loop {
            match self.token(self.at) {
                "mod" if self.token(self.at + 2) == ";" => {
                    let mut test = self.module.clone();
                    test.push(self.token(self.at + 1).to_owned());
                    self.tests.insert(test);
                    self.at += 3;
                    return;
                }
                ";" | "," | "" => {
                    self.at += 1;
                    return;
                }
                "{" => return self.skip_group(),
                "[" | "(" => self.skip_group(),
                _ => self.at += 1,
            }
        }
    }

    /// A tree of `use`, up to after its `;`, `,` or before its `}`.
    fn tree(&mut self, prefix: &[String], inside: &[String], is_reexport: bool) {
        let mut path = prefix.to_owned();
        loop {
            match self.token(self.at) {
                "{" => {
                    self.at += 1;
                    while self.token(self.at) != "}" {
                        self.tree(&path, inside, is_reexport);
                        if self.token(self.at) == "," {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    return;
                }
                "*" => {
                    self.at += 1;
                    if let Some(path) = self.absolute(&path, inside) {
                        self.file.uses.push((path.clone(), is_reexport));
                        if inside.is_empty() {
                            self.file.globs.push(path);
                        }
                    }
                    return;
                }
                "::" => self.at += 1,
                "self" if !path.is_empty() => self.at += 1,
                name if is_name(name) && name != "as" => {
                    path.push(name.to_owned());
                    self.at += 1;
                }
                end => {
                    let mut name = path.last().cloned().unwrap_or_default();
                    if end == "as" {
                        name = self.token(self.at + 1).to_owned();
                        self.at += 2;
                    }
                    if let Some(path) = self.absolute(&path, inside) {
                        self.file.uses.push((path.clone(), is_reexport));
                        if inside.is_empty() && self.file.names.get(&name) != Some(&path) {
                            self.file.names.insert(name, path);
                        }
                    }
                    return;
                }
            }
        }
    }

    /// A path from the crate's root; none for one into another crate.
    fn absolute(&self, path: &[String], inside: &[String]) -> Option<Vec<String>> {
        let mut base = [self.module, inside].concat();
        let first = path.first()?;
        let rest = match &**first {
            "crate" => {
                base.clear();
                &path[1..]
            }
            "self" => &path[1..],
            "super" => {
                let ups = path.iter().take_while(|name| *name == "super").count();
                base.truncate(base.len().checked_sub(ups)?);
                &path[ups..]
            }
            _ => {
                let child = [&base[..], std::slice::from_ref(first)].concat();
                return self
                    .known
                    .contains(&child)
                    .then(|| [base, path.to_vec()].concat());
            }
        };
        Some([&base, rest].concat())
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}
