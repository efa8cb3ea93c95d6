//! Writes what the readers selected, for the oracle in `tests/oracles`:
//! `dump_residues OUT_DIR FILE...` makes `OUT_DIR/residues.tsv` and `atoms.tsv`.
//! A file that cannot be read is named and left out.
//!
//! Both are tables of tab-separated columns under a header; an empty field is
//! missing. Positions and radii are in 0.001 A, `chain` and `atom` count from 0
//! in the structure, and an atom without `res_index` is of no residue. Where
//! `predicted` is 1, `b` is pLDDT.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use tapeloop::structure::{BFactorKind, ReadOptions, Reader, Structure};

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

fn dump_residues(source: &str, s: &Structure, out: &mut impl Write) -> std::io::Result<()> {
    for (index, r) in s.residues.iter().enumerate() {
        let chain = &s.chains[r.chain as usize];
        let chain_id = chain.label_asym_id.as_ref().unwrap_or(&chain.auth_asym_id);
        let backbone = [r.n, r.ca, r.c, r.o, r.cb]
            .map(|atom| position(s, atom))
            .join("\t");
        let start = s.atom_start[index];
        writeln!(
            out,
            "{source}\t{}\t{index}\t{}\t{chain_id}\t{}\t{}\t{}\t{}\t{}\t{}\t{backbone}\t{start}\t{}\t{}",
            s.model,
            r.chain,
            r.auth_seq_id,
            text(&[r.ins_code]),
            text(&r.comp_id),
            text(&r.parent_comp_id),
            char::from(r.aa),
            u8::from(r.break_before),
            s.atom_start[index + 1] - start,
            u8::from(s.b_factor_kind == BFactorKind::Plddt),
        )?;
    }
    Ok(())
}

/// The chain of each atom, and its residue where it has one.
fn owners(s: &Structure) -> impl Iterator<Item = (u32, Option<usize>)> {
    let residues = s.residues.iter().zip(s.atom_start.windows(2)).enumerate();
    let in_rows = residues.flat_map(|(index, (residue, span))| {
        (span[0]..span[1]).map(move |_| (residue.chain, Some(index)))
    });
    let loose = s.loose.iter();
    in_rows.chain(loose.flat_map(|span| (0..span.atom_count).map(|_| (span.chain, None))))
}

fn dump_atoms(source: &str, s: &Structure, out: &mut impl Write) -> std::io::Result<()> {
    for (atom, (chain, residue)) in owners(s).enumerate() {
        let ([x, y, z], class, b) = (s.xyz[atom], s.class[atom], s.b_factor[atom]);
        let b = Some(b).filter(|b| !b.is_nan()).map(|b| b.to_string());
        writeln!(
            out,
            "{source}\t{}\t{atom}\t{chain}\t{}\t{x}\t{y}\t{z}\t{}\t{}\t{}\t{}\t{}",
            s.model,
            residue.map(|index| index.to_string()).unwrap_or_default(),
            s.element[atom],
            class.radius_milli_angstrom(),
            u8::from(class.is_side()),
            u8::from(class.is_polar()),
            b.unwrap_or_default(),
        )?;
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
        "source\tmodel\tres_index\tchain\tchain_id\tauth_seq\tins\tcomp\tparent\taa\tbreak_before\t\
         {xyz}\tatom_start\tatom_count\tpredicted"
    )?;
    writeln!(
        atoms,
        "source\tmodel\tatom\tchain\tres_index\tx\ty\tz\telement\tradius\tside\tpolar\tb"
    )?;
    let mut reader = Reader::new(ReadOptions::default());
    for source in arguments {
        match reader.read_path(Path::new(&source)) {
            Ok(structures) => {
                for structure in &structures {
                    dump_residues(&source, structure, &mut residues)?;
                    dump_atoms(&source, structure, &mut atoms)?;
                }
            }
            Err(error) => eprintln!("{source}: {error}"),
        }
    }
    residues.flush()?;
    atoms.flush()
}
