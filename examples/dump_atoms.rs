//! Prints what the readers take from files, for scripts that compare it with other programs.
//!
//! Each line is a record of columns separated by tabs: `F` file, `E` error, `S` structure, `R`
//! residue, `A` atom; `O` precedes the atoms without a residue.
//!
//! ```sh
//! cargo run --release --example dump_atoms -- [--all-models] FILE...
//! ```

use std::io::{BufWriter, Write};
use std::path::Path;

use tapeloop::structure::{Models, ReadOptions, Reader, Structure};

fn main() -> std::io::Result<()> {
    let (flags, files): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|arg| arg.starts_with("--"));
    let mut options = ReadOptions::default();
    if flags.iter().any(|flag| flag == "--all-models") {
        options.models = Models::All;
    }
    let mut reader = Reader::new(options);
    let mut out = BufWriter::new(std::io::stdout().lock());
    for file in files {
        writeln!(out, "F\t{file}")?;
        match reader.read_path(Path::new(&file)) {
            Ok(structures) => structures
                .iter()
                .try_for_each(|structure| dump(&mut out, structure))?,
            Err(error) => writeln!(out, "E\t{:?}\t{error}", error.kind())?,
        }
    }
    out.flush()
}

fn dump(out: &mut impl Write, structure: &Structure) -> std::io::Result<()> {
    let entry = structure.entry_id.as_deref().unwrap_or("");
    writeln!(
        out,
        "S\t{}\t{entry}\t{}",
        structure.model, structure.rounded_atoms
    )?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
    let spans = structure.atom_start.windows(2);
    for (residue, span) in structure.residues.iter().zip(spans) {
        let chain = &structure.chains[residue.chain as usize];
        let ins_code = match residue.ins_code {
            0 => ' ',
            code => char::from(code),
        };
        let uniprot = residue.uniprot.map_or(String::new(), |uniprot| {
            let accession = &structure.uniprot[uniprot.accession as usize];
            format!("{accession}:{}", uniprot.position)
        });
        writeln!(
            out,
            "R\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
            chain.auth_asym_id,
            chain.label_asym_id.as_deref().unwrap_or(""),
            residue.auth_seq_id,
            ins_code,
            text(&residue.comp_id),
            text(&residue.parent_comp_id),
            char::from(residue.aa),
            u8::from(residue.break_before),
            uniprot,
        )?;
        dump_atoms(out, structure, span[0]..span[1])?;
    }
    writeln!(out, "O")?;
    let rows_end = structure.atom_start.last().copied().unwrap_or(0);
    dump_atoms(out, structure, rows_end..structure.xyz.len() as u32)
}

fn dump_atoms(
    out: &mut impl Write,
    structure: &Structure,
    atoms: std::ops::Range<u32>,
) -> std::io::Result<()> {
    for atom in atoms.start as usize..atoms.end as usize {
        let [x, y, z] = structure.xyz[atom];
        writeln!(
            out,
            "A\t{x}\t{y}\t{z}\t{}\t{}",
            structure.element[atom], structure.b_factor[atom]
        )?;
    }
    Ok(())
}
