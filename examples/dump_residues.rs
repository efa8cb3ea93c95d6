//! Writes what the readers selected, for the oracle in `tests/oracles`:
//! `dump_residues OUT_DIR FILE...` makes `OUT_DIR/residues.tsv` and `atoms.tsv`.
//! A file that cannot be read is named and left out.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use tapeloop::structure::{ReadOptions, Reader, Structure};

fn text(id: &[u8]) -> String {
    String::from_utf8_lossy(id)
        .trim_end_matches([' ', '\0'])
        .to_owned()
}

fn position(s: &Structure, atom: u32) -> String {
    match s.position(atom) {
        Some([x, y, z]) => format!("{x}\t{y}\t{z}"),
        None => "\t\t".to_owned(),
    }
}

fn dump(
    source: &str,
    s: &Structure,
    residues: &mut impl Write,
    atoms: &mut impl Write,
) -> std::io::Result<()> {
    for (index, r) in s.residues.iter().enumerate() {
        let chain = &s.chains[r.chain as usize];
        let chain_id = chain.label_asym_id.as_ref().unwrap_or(&chain.auth_asym_id);
        let ins = text(&[r.ins_code]);
        let b = s.b_factor.get(r.ca as usize).filter(|b| !b.is_nan());
        let backbone = [r.n, r.ca, r.c, r.o, r.cb]
            .map(|atom| position(s, atom))
            .join("\t");
        writeln!(
            residues,
            "{source}\t{}\t{index}\t{chain_id}\t{}\t{ins}\t{}\t{}\t{}\t{backbone}\t{}",
            s.model,
            r.auth_seq_id,
            text(&r.comp_id),
            char::from(r.aa),
            u8::from(r.break_before),
            b.map(f32::to_string).unwrap_or_default(),
        )?;
    }
    for ([x, y, z], element) in s.xyz.iter().zip(&s.element) {
        writeln!(atoms, "{source}\t{}\t{x}\t{y}\t{z}\t{element}", s.model)?;
    }
    Ok(())
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments
        .next()
        .expect("usage: dump_residues OUT_DIR FILE...");
    std::fs::create_dir_all(&folder)?;
    let create = |name: &str| File::create(Path::new(&folder).join(name)).map(BufWriter::new);
    let (mut residues, mut atoms) = (create("residues.tsv")?, create("atoms.tsv")?);
    let xyz = ["n", "ca", "c", "o", "cb"]
        .map(|a| format!("{a}x\t{a}y\t{a}z"))
        .join("\t");
    writeln!(
        residues,
        "source\tmodel\tres_index\tchain\tauth_seq\tins\tcomp\taa\tbreak_before\t{xyz}\tb_ca"
    )?;
    writeln!(atoms, "source\tmodel\tx\ty\tz\telement")?;
    let mut reader = Reader::new(ReadOptions::default());
    for source in arguments {
        match reader.read_path(Path::new(&source)) {
            Ok(structures) => {
                for structure in &structures {
                    dump(&source, structure, &mut residues, &mut atoms)?;
                }
            }
            Err(error) => eprintln!("{source}: {error}"),
        }
    }
    residues.flush()?;
    atoms.flush()
}
