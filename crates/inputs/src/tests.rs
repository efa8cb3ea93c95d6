use super::*;
use std::fs;

fn sources(items: Vec<String>) -> Sources {
    Sources::new(items, Archives::Unknown, Shard::WHOLE)
}

fn walked(items: &[&Path]) -> Vec<(PathBuf, bool)> {
    let items = items.iter().map(|item| item.display().to_string());
    let sources: Vec<Source> = sources(items.collect()).collect();
    for (source, ordinal) in sources.iter().zip(0..) {
        assert_eq!(source.ordinal, ordinal);
    }
    let seen = |source: Source| (source.path, source.content.is_ok());
    sources.into_iter().map(seen).collect()
}

fn folder_with(names: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    folder
}

#[test]
fn a_directory_gives_its_structure_files_sorted_by_name() {
    let names = [
        "b.cif.gz",
        "a.PDB",
        "c/d.ent",
        "readme.md",
        ".hidden.pdb",
        "z.gz",
    ];
    let folder = folder_with(&names);
    let expected = ["a.PDB", "b.cif.gz", "c/d.ent"];
    let expected: Vec<_> = expected.map(|name| (folder.path().join(name), true)).into();
    assert_eq!(walked(&[folder.path()]), expected);
}

#[test]
fn lines_of_a_list_start_from_its_folder_and_need_no_known_ending() {
    let folder = folder_with(&["odd", "x/1.pdb", "x/2.pdb"]);
    let list = folder.path().join("list.txt");
    fs::write(&list, "# which\nodd\r\n\nx\nmissing.pdb\n").unwrap();
    let item = PathBuf::from(format!("@{}", list.display()));
    let path = |name: &str| folder.path().join(name);
    assert_eq!(
        walked(&[&item]),
        [
            (path("odd"), true),
            (path("x/1.pdb"), true),
            (path("x/2.pdb"), true),
            (path("missing.pdb"), false)
        ]
    );
}

#[test]
fn globs_expand_and_items_without_files_are_errors_in_order() {
    let folder = folder_with(&["1.pdb", "2.pdb", "empty/x.txt", "a[b].pdb"]);
    let path = |name: &str| folder.path().join(name);
    let items = ["?.pdb", "*.cif", "empty", "a[b].pdb"].map(path);
    let items: Vec<&Path> = items.iter().map(PathBuf::as_path).collect();
    assert_eq!(
        walked(&items),
        [
            (path("1.pdb"), true),
            (path("2.pdb"), true),
            (path("*.cif"), false),
            (path("empty"), false),
            (path("a[b].pdb"), true)
        ]
    );
}

#[test]
fn an_item_without_structures_names_its_own_skipped_files() {
    let names = [
        "a/1.pdb", "a/x.txt", "a/y.txt", "b/z.txt", "c/v.txt", "c/w.txt",
    ];
    let folder = folder_with(&names);
    let item = |name: &str| folder.path().join(name).display().to_string();
    let found: Vec<Source> = sources(["a", "b", "c"].map(item).into()).collect();
    let said = |index: usize| {
        found[index]
            .content
            .as_ref()
            .unwrap_err()
            .message()
            .to_owned()
    };
    let z = shown(&folder.path().join("b/z.txt"));
    let of_b = format!("no structure file was found here among 1 file, such as {z}");
    assert_eq!(said(1), of_b);
    // The names of those in `a` and `b` are all that are kept.
    assert_eq!(said(2), "no structure file was found here among 2 files");
}

#[test]
fn a_glob_of_any_depth_takes_each_file_once_in_the_order_of_names() {
    let names = ["a.pdb", "x/b.pdb", "x/y/a.pdb", "x/y/c.cif", "z/a.pdb"];
    let folder = folder_with(&names);
    let found = |glob: &str| -> Vec<String> {
        let sources = walked(&[&folder.path().join(glob)]);
        let paths = sources.into_iter().map(|(path, _)| path);
        let names = paths.map(|path| path.strip_prefix(folder.path()).unwrap().to_owned());
        names
            .map(|name| name.to_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(found("**/a.pdb"), ["a.pdb", "x/y/a.pdb", "z/a.pdb"]);
    assert_eq!(found("**/**/a.pdb"), ["a.pdb", "x/y/a.pdb", "z/a.pdb"]);
    assert_eq!(found("**/*"), names);
    assert_eq!(found("**"), names);
    assert_eq!(found("x/**/*.pdb"), ["x/b.pdb", "x/y/a.pdb"]);
    assert_eq!(found("*/y/?.cif"), ["x/y/c.cif"]);
    // `x/y/a.pdb` matches in three ways.
    assert_eq!(found("**/*/**/*.pdb"), ["x/b.pdb", "x/y/a.pdb", "z/a.pdb"]);
    assert_eq!(found("**/[xy]/**"), ["x/b.pdb", "x/y/a.pdb", "x/y/c.cif"]);
    assert_eq!(found("**/x/**/y/*.cif"), ["x/y/c.cif"]);
    assert_eq!(
        found("[xz]"),
        ["x/b.pdb", "x/y/a.pdb", "x/y/c.cif", "z/a.pdb"]
    );
}

#[test]
fn an_invalid_pattern_is_an_error() {
    for glob in ["a**b.pdb", "[.pdb"] {
        let source = sources(vec![glob.to_owned()]).next().unwrap();
        assert!(
            source
                .content
                .unwrap_err()
                .message()
                .starts_with("not a glob")
        );
    }
}

#[test]
#[cfg(unix)]
fn linked_folders_are_not_followed() {
    let folder = folder_with(&["sets/1.pdb", "far/2.pdb"]);
    let path = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink(folder.path(), path("sets/up")).unwrap();
    std::os::unix::fs::symlink(path("far"), path("near")).unwrap();
    let one = [(path("sets/1.pdb"), true)];
    assert_eq!(walked(&[&path("sets/**/*.pdb")]), one);
    assert_eq!(walked(&[&path("sets")]), one);
    // A folder that one pattern names is the user's choice.
    assert_eq!(walked(&[&path("nea?/*.pdb")]), [(path("near/2.pdb"), true)]);
}

#[test]
#[cfg(unix)]
fn fifos_are_skipped_in_folders_and_refused_as_items() {
    let folder = folder_with(&["1.pdb"]);
    let path = |name: &str| folder.path().join(name);
    let made = std::process::Command::new("mkfifo")
        .arg(path("2.pdb"))
        .status();
    assert!(made.unwrap().success());
    for item in [folder.path().to_owned(), path("*.pdb")] {
        let mut sources = sources(vec![item.to_str().unwrap().to_owned()]);
        let paths: Vec<PathBuf> = sources.by_ref().map(|source| source.path).collect();
        assert_eq!(paths, [path("1.pdb")]);
        assert_eq!(sources.skipped().specials, 1);
    }
    let item = path("2.pdb").to_str().unwrap().to_owned();
    let problem = sources(vec![item]).next().unwrap().content.unwrap_err();
    assert_eq!(problem.kind(), tapeloop_error::ErrorKind::Input);
    assert!(problem.message().contains("FIFO"), "{problem}");
}

/// The paths that the lines of a list give, from a folder with `names`.
fn listed(text: &[u8], names: &[&str]) -> Vec<String> {
    let folder = folder_with(names);
    let list = folder.path().join("list.txt");
    fs::write(&list, text).unwrap();
    let sources = walked(&[Path::new(&format!("@{}", list.display()))]);
    let names = sources.iter().map(|(path, _)| path.file_name().unwrap());
    names
        .map(|name| name.to_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_list_may_have_a_byte_order_mark_blanks_and_quotes() {
    let text = b"\xef\xbb\xbf1.pdb \t\r\n \"2 3.pdb\"\n'4.pdb'\n'5'\n6.pdb \n";
    let names = ["1.pdb", "2 3.pdb", "4.pdb", "'5'", "6.pdb "];
    assert_eq!(listed(text, &names), names);
}

#[test]
fn a_file_that_is_no_list_is_an_error() {
    let folder = folder_with(&[]);
    let list = folder.path().join("list.txt");
    let problem = |text: &[u8]| {
        fs::write(&list, text).unwrap();
        let item = format!("@{}", list.display());
        let sources: Vec<Source> = sources(vec![item]).collect();
        assert_eq!(sources.len(), 1);
        assert_eq!(sources[0].path, list);
        sources[0].content.as_ref().unwrap_err().to_string()
    };
    let utf16: Vec<u8> = [0xff, 0xfe, b'1', 0].into();
    assert!(problem(&utf16).contains("UTF-16"));
    let long = vec![b'x'; 1 << 20];
    assert!(problem(&long).contains("more than 65536 bytes"));
}

#[test]
fn a_list_may_have_lines_as_long_as_the_limit() {
    let comment = format!("#{}", "x".repeat(65_535));
    let text = format!("{comment}\n1.pdb\n{comment}");
    assert_eq!(listed(text.as_bytes(), &["1.pdb"]), ["1.pdb"]);
}

#[test]
#[cfg(unix)]
fn names_that_are_not_utf_8_are_found_in_folders_globs_lists_and_items() {
    use std::os::unix::ffi::OsStrExt;
    use tapeloop_files::text_of;
    let folder = folder_with(&[]);
    let [a, b] =
        [b"a\xff.pdb", b"a\xfe.pdb"].map(|name| folder.path().join(OsStr::from_bytes(name)));
    fs::write(&a, "").unwrap();
    fs::write(&b, "").unwrap();
    let list = folder.path().join("list.txt");
    fs::write(&list, [b"a\xfe.pdb\n".as_slice(), b"a\xff.pdb"].concat()).unwrap();
    let both = [(b.clone(), true), (a.clone(), true)];
    let list = PathBuf::from(format!("@{}", list.display()));
    for item in [folder.path(), &folder.path().join("a?.pdb"), &list] {
        assert_eq!(walked(&[item]), both);
    }
    let sources = sources([&b, &a].map(|path| text_of(path)).into());
    let found: Vec<_> = sources
        .map(|source| (source.path, source.content.is_ok()))
        .collect();
    assert_eq!(found, both);
}

#[test]
fn structures_are_named_by_the_stem() {
    assert_eq!(structure_name("x/1abc.pdb.gz"), "1abc");
    assert_eq!(structure_name("pdb1abc.ent"), "pdb1abc");
    assert_eq!(structure_name("AF-P1.model.v4.cif"), "AF-P1.model.v4");
    assert_eq!(structure_name("x/frame.txt"), "frame");
}

#[test]
fn a_line_of_a_list_may_choose_a_chain() {
    let folder = folder_with(&["1abc.cif.gz", "2xyz.pdb", "with,comma.pdb", "x/3.pdb"]);
    let list = folder.path().join("list.txt");
    let lines = ["1abc,A", "2xyz.pdb , BB", "with,comma.pdb", "gone,A", "x,A"];
    fs::write(&list, lines.join("\n")).unwrap();
    let items = vec![format!("@{}", list.display())];
    let found = sources(items).map(|source| {
        let name = source.path.strip_prefix(folder.path()).unwrap();
        let is_good = source.content.is_ok();
        (name.display().to_string(), source.chain, is_good)
    });
    let expected = [
        ("1abc.cif.gz", Some("A"), true),
        ("2xyz.pdb", Some("BB"), true),
        ("with,comma.pdb", None, true),
        ("gone,A", None, false),
        ("x,A", None, false),
    ];
    let expected =
        expected.map(|(name, chain, is_good)| (name.to_owned(), chain.map(str::to_owned), is_good));
    assert_eq!(found.collect::<Vec<_>>(), expected);
}
