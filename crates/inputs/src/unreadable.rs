//! Files that people have and the readers do not read.

use std::path::Path;
use tapeloop_error::{Error, ErrorKind};
use tapeloop_structure::internal::Compression;

/// Endings of names, what such files are, and the fix: a program that makes a file of it that is read, or where it
/// can be given.
const UNREADABLE: [(&[&str], &str, &str); 10] = [
    (&["mmtf"], "MMTF", PDB_OR_MMCIF),
    (&["xml"], "PDBML", PDB_OR_MMCIF),
    (
        &[
            "gro", "mol2", "sdf", "mol", "xyz", "pqr", "psf", "top", "crd",
        ],
        "a file without the records of PDB or mmCIF",
        "convert it, for example with MDAnalysis or Open Babel",
    ),
    (
        &["xtc", "dcd"],
        "a trajectory by its name",
        "unpack it if it is compressed or in an archive, and give `tapeloop run` its structure with \
         --topology",
    ),
    (
        &["trr", "nc"],
        "a trajectory",
        "write it as XTC or DCD, for example with MDAnalysis",
    ),
    (
        &["fasta", "fa", "faa", "a3m"],
        "a file of sequences",
        "give a structure; a sequence has no coordinates",
    ),
    (
        &["bz2", "xz", "z"],
        "compressed in a way other than gzip and zstd",
        "unpack it, or compress it with gzip or zstd",
    ),
    (
        &["zip", "tar", "tgz", "tzst"],
        "an archive",
        "give it to `tapeloop run`, or unpack it if it is inside another archive",
    ),
    (
        &["arrow", "feather"],
        "an Arrow file",
        "give packed sets to `tapeloop run`; other tables hold no structures",
    ),
    (
        &["7z", "rar"],
        "an archive",
        "unpack it into a folder, or make it a .tar or .zip",
    ),
];

const PDB_OR_MMCIF: &str = "fetch the entry as PDB or mmCIF";

/// The error of an input that could not be read, which says what the file is if its name shows a
/// format that no reader reads. Other kinds of errors than `Input`, such as that of a missing file, stay.
pub fn explained(path: &Path, error: Error) -> Error {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_lowercase();
    let ending = |name: &str| name.rsplit_once('.').map(|(_, ending)| ending.to_owned());
    let plain = Compression::unpacked_name(&name);
    let Some(ending) = ending(plain) else {
        return error;
    };
    let known = UNREADABLE
        .iter()
        .find(|(endings, ..)| endings.contains(&&*ending));
    match known {
        Some((_, what, fix)) if error.kind() == ErrorKind::Input => {
            Error::input(format!("this is {what}, which cannot be read")).fix(*fix)
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_that_is_not_read_is_named_by_its_ending() {
        let said = |name: &str| explained(Path::new(name), Error::input("junk")).to_string();
        assert!(said("a/1ubi.mmtf.gz").starts_with("this is MMTF"));
        assert!(said("set.TAR.gz").contains("an archive"));
        assert!(said("1ubi.pdb.xz").contains("zstd"));
        assert_eq!(said("1ubi.pdb"), "junk");
        let io = Error::new(ErrorKind::Io, "gone");
        assert_eq!(explained(Path::new("1ubi.mmtf"), io).message(), "gone");
    }
}
