//! The residues and atoms of structures, in tables that the Python scripts read.
//!
//! `residues.tsv` has a row for each residue and `atoms.tsv` one for each atom of a polymer, with tabs between
//! the fields; an empty field is a missing value. If there are ligands, `ligands.tsv` has their atoms.
//! `oracles/tables.py` describes the columns.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tapeloop::error::{Context, Result};
use tapeloop::structure::{BFactorKind, Structure};
use tapeloop_files::{Existing, open_to_write, shown};

const RESIDUES: &str = "source\tmodel\tres_index\tchain\tchain_id\tauth_seq\tposition\tins\tcomp\tparent\taa\t\
                        break_before\tnx\tny\tnz\tcax\tcay\tcaz\tcx\tcy\tcz\tox\toy\toz\tcbx\tcby\tcbz\t\
                        atom_start\tatom_count\tpredicted";
const LIGANDS: &str =
    "source\tmodel\tligand\tkind\tchain_id\tcomp\tseq\tins\tx\ty\tz\telement\tradius";
const ATOMS: &str =
    "source\tmodel\tatom\tchain\tres_index\tname\tx\ty\tz\telement\tradius\tside\tpolar\tb";

/// Writes the tables.
pub(super) struct Dump {
    residues: BufWriter<File>,
    atoms: BufWriter<File>,
    /// The atoms of ligands; created with the first one.
    ligands: Option<BufWriter<File>>,
    folder: PathBuf,
}

impl Dump {
    /// Creates `folder` and the tables in it.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop::ErrorKind::Io) if the tables cannot be written.
    pub(super) fn create(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder).within(|| shown(folder))?;
        Ok(Dump {
            residues: create(folder, "residues.tsv", RESIDUES)?,
            atoms: create(folder, "atoms.tsv", ATOMS)?,
            ligands: None,
            folder: folder.to_owned(),
        })
    }

    /// Appends a structure.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop::ErrorKind::Io) if the tables cannot be written.
    pub(super) fn append(&mut self, source: &str, structure: &Structure) -> Result<()> {
        append_residues(source, structure, &mut self.residues)?;
        append_atoms(source, structure, &mut self.atoms)?;
        if !structure.ligands.is_empty() {
            let file = match &mut self.ligands {
                Some(file) => file,
                none => none.insert(create(&self.folder, "ligands.tsv", LIGANDS)?),
            };
            append_ligands(source, structure, file)?;
        }
        Ok(())
    }

    /// Flushes the tables.
    ///
    /// # Errors
    /// The tables cannot be written.
    pub(super) fn finish(mut self) -> Result<()> {
        self.residues.flush()?;
        self.atoms.flush()?;
        self.ligands.as_mut().map_or(Ok(()), Write::flush)?;
        Ok(())
    }
}

/// Creates a table with its header.
fn create(folder: &Path, name: &str, header: &str) -> Result<BufWriter<File>> {
    let file = open_to_write(&folder.join(name), Existing::Emptied)?;
    let mut file = BufWriter::new(file);
    writeln!(file, "{header}")?;
    Ok(file)
}

/// Appends a line for each residue of a structure.
fn append_residues(source: &str, s: &Structure, out: &mut impl Write) -> io::Result<()> {
    for (index, residue) in s.residues.iter().enumerate() {
        let chain = &s.chains[residue.chain as usize];
        let chain_id = chain.label_asym_id.as_ref().unwrap_or(&chain.auth_asym_id);
        let backbone = [residue.n, residue.ca, residue.c, residue.o, residue.cb];
        let backbone = backbone.map(|atom| position(s, atom)).join("\t");
        let start = s.atom_start[index];
        writeln!(
            out,
            "{source}\t{}\t{index}\t{}\t{chain_id}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{backbone}\t{start}\t{}\t{}",
            s.model,
            residue.chain,
            residue.auth_seq_id,
            field(residue.sequence_position),
            text(&[residue.ins_code]),
            text(&residue.comp_id),
            text(&residue.parent_comp_id),
            char::from(residue.aa),
            u8::from(residue.break_before),
            s.atom_start[index + 1] - start,
            u8::from(s.b_factor_kind == BFactorKind::Plddt),
        )?;
    }
    Ok(())
}

/// Appends a line for each atom of a polymer, with its owner.
fn append_atoms(source: &str, s: &Structure, out: &mut impl Write) -> io::Result<()> {
    for (atom, (chain, residue)) in owners(s).enumerate() {
        let ([x, y, z], class, b_factor) = (s.xyz[atom], s.class[atom], s.b_factor[atom]);
        let b_factor = Some(b_factor).filter(|b_factor| !b_factor.is_nan());
        writeln!(
            out,
            "{source}\t{}\t{atom}\t{chain}\t{}\t{}\t{x}\t{y}\t{z}\t{}\t{}\t{}\t{}\t{}",
            s.model,
            field(residue),
            s.atom_name.get(atom).map_or("", |name| name.as_str()),
            s.element[atom],
            s.radii.milli_angstrom(class),
            u8::from(class.is_side()),
            u8::from(class.is_polar()),
            field(b_factor),
        )?;
    }
    Ok(())
}

/// Appends a line for each atom of a ligand.
fn append_ligands(source: &str, s: &Structure, out: &mut impl Write) -> io::Result<()> {
    for (index, ligand) in s.ligands.iter().enumerate() {
        let kind = ligand.kind.name();
        for atom in ligand.atoms.iter() {
            let [x, y, z] = atom.xyz;
            writeln!(
                out,
                "{source}\t{}\t{index}\t{kind}\t{}\t{}\t{}\t{}\t{x}\t{y}\t{z}\t{}\t{}",
                s.model,
                ligand.auth_asym_id,
                ligand.component(),
                field(ligand.auth_seq_id),
                text(&[ligand.ins_code]),
                atom.element,
                s.radii.milli_angstrom(atom.class),
            )?;
        }
    }
    Ok(())
}

/// The chain of each atom, and its residue if it has one.
fn owners(s: &Structure) -> impl Iterator<Item = (u32, Option<usize>)> {
    let residues = s.residues.iter().zip(s.atom_start.windows(2)).enumerate();
    let in_rows = residues.flat_map(|(index, (residue, span))| {
        (span[0]..span[1]).map(move |_| (residue.chain, Some(index)))
    });
    let loose = s.loose.iter();
    in_rows.chain(loose.flat_map(|span| (0..span.atom_count).map(|_| (span.chain, None))))
}

fn text(id: &[u8]) -> String {
    let text = String::from_utf8_lossy(id);
    text.trim_end_matches([' ', '\0']).to_owned()
}

fn position(s: &Structure, atom: u32) -> String {
    match s.position(atom) {
        Some([x, y, z]) => format!("{x}\t{y}\t{z}"),
        None => "\t\t".to_owned(),
    }
}

fn field<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
