//! The names of chains, and [`Structure::keep_chain`], which reduces a structure to one chain.

use std::collections::HashMap;

use super::assembly;
use super::model::{MISSING, Residue, Structure};
use super::text::quoted;
use crate::{Error, Result};

/// The chain names that a message lists at most: large assemblies have hundreds.
const LISTED_MAX: usize = 20;

/// A name for each of a structure's chains, by its author's id and its label id: the author's id. Where chains share that, as the parts of a
/// chain that is split do, it is the label id, if there is one that is no author's id.
pub fn distinct_chain_names<'a>(ids: &[(&'a str, Option<&'a str>)]) -> Vec<&'a str> {
    let mut counts: HashMap<&str, u32> = HashMap::new();
    for (auth, _) in ids {
        *counts.entry(auth).or_insert(0) += 1;
    }
    let names = ids.iter().map(|&(auth, label)| {
        let label = label.filter(|label| counts[auth] > 1 && !counts.contains_key(label));
        label.unwrap_or(auth)
    });
    names.collect()
}

impl Structure {
    /// The author's id of each of [`Structure::chains`].
    #[doc(hidden)]
    pub fn author_chain_names(&self) -> Vec<&str> {
        let chains = self.chains.iter();
        chains.map(|chain| &*chain.auth_asym_id).collect()
    }

    /// A name for each of [`Structure::chains`], by [`distinct_chain_names`].
    #[doc(hidden)]
    pub fn distinct_chain_names(&self) -> Vec<&str> {
        let chains = self.chains.iter();
        let ids: Vec<_> = chains
            .map(|chain| (&*chain.auth_asym_id, chain.label_asym_id.as_deref()))
            .collect();
        distinct_chain_names(&ids)
    }

    /// Removes all chains but those with this author's id, or but the one with this label id if no chain
    /// with residues has the author's id. Features are then those of what is left alone, with the ligands
    /// of the author's id.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) if no chain with residues has the name, or if
    /// the structure's columns do not fit each other, which only a caller's own structure can have;
    /// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if there is no memory for the chain.
    pub fn keep_chain(&mut self, name: &str) -> Result<()> {
        if !self.has_matching_columns() {
            let error = Error::input(
                "the structure's columns do not have the lengths that its residues and atoms need",
            );
            return Err(error.fix("give each residue its atoms and a value of each channel"));
        }
        let chains = self.row_chains();
        let by_author = chains.iter().position(|chain| &*chain.auth_asym_id == name);
        let by_label = || {
            chains
                .iter()
                .position(|chain| chain.label_asym_id.as_deref() == Some(name))
        };
        let Some(kept) = by_author.or_else(by_label) else {
            let mut names = self.distinct_chain_names();
            names.truncate(chains.len().min(LISTED_MAX));
            let more = if chains.len() > LISTED_MAX {
                ", ..."
            } else {
                ""
            };
            let message = format!(
                "no chain with residues is called {}",
                quoted(name.as_bytes())
            );
            return Err(
                Error::input(message).fix(format!("name one of: {}{more}", names.join(", ")))
            );
        };
        // All chains with the author's id: those of an mmCIF file differ by entity, and the chain of a PDB
        // file may have been split.
        let kept: Vec<u32> = match by_author {
            Some(_) => (0..)
                .zip(&self.chains)
                .filter(|(_, chain)| &*chain.auth_asym_id == name)
                .map(|(index, _)| index)
                .collect(),
            None => vec![kept as u32],
        };
        let mut ligands = std::mem::take(&mut self.ligands);
        let author = std::sync::Arc::clone(&self.chains[kept[0] as usize].auth_asym_id);
        ligands.retain(|ligand| ligand.auth_asym_id == author);
        // Numbered from 0 again, as those of other chains are gone.
        let mut molecules = HashMap::new();
        for ligand in &mut ligands {
            let next = molecules.len() as u32;
            ligand.molecule = *molecules.entry(ligand.molecule).or_insert(next);
        }
        let mut waters = std::mem::take(&mut self.waters);
        waters.retain(|water| water.auth_asym_id == author);
        let chemistry = self.chemistry.take();
        *self = assembly::extract_chains(self, kept)?;
        (self.ligands, self.waters) = (ligands, waters);
        if let Some(chemistry) = chemistry {
            let described = chemistry.described_components().cloned();
            self.find_chemistry(chemistry.components(), described, chemistry.water_reach());
        }
        Ok(())
    }

    /// Whether the columns have the lengths that [`Structure`] states, and all indices that a copy
    /// of a chain changes are valid. The readers guarantee both.
    fn has_matching_columns(&self) -> bool {
        let (atoms, chains) = (self.xyz.len(), self.chains.len());
        let columns = [self.element.len(), self.class.len(), self.b_factor.len()];
        let starts = &self.atom_start;
        let loose: u64 = self
            .loose
            .iter()
            .map(|span| u64::from(span.atom_count))
            .sum();
        let residue_atoms = starts.last().map_or(0, |&end| u64::from(end));
        columns == [atoms; 3]
            && [0, atoms].contains(&self.atom_name.len())
            && [0, atoms].contains(&self.atom_details.len())
            && starts.len() == self.residues.len() + 1
            && starts[0] == 0
            && starts.is_sorted()
            && residue_atoms + loose == atoms as u64
            && self.loose.iter().all(|span| (span.chain as usize) < chains)
            && self.has_matching_loose_residues()
            && self
                .residues
                .iter()
                .zip(starts.windows(2))
                .all(|(residue, ends)| {
                    let atoms = ends[0]..ends[1];
                    let is_valid = |atom: &u32| *atom == MISSING || atoms.contains(atom);
                    let Residue {
                        n, ca, c, o, cb, ..
                    } = residue;
                    (residue.chain as usize) < chains && [n, ca, c, o, cb].into_iter().all(is_valid)
                })
            && (self.channels.iter()).all(|channel| channel.values.len() == self.residues.len())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Assembly, Channel, Format, ReadOptions, Reader, Structure};

    fn read(text: &str) -> Structure {
        let mut reader = Reader::new(ReadOptions::default());
        reader
            .read_bytes(text.as_bytes(), Format::Pdb)
            .unwrap()
            .remove(0)
    }

    fn line(serial: u32, atom: &str, residue: &str, chain: char, number: u32) -> String {
        let (x, y) = (serial as f32 * 1.5, number as f32 * 3.8);
        format!(
            "ATOM  {serial:5}  {atom:<3} {residue:>3} {chain}{number:4}    {x:8.3}{y:8.3}   0.000  1.00  9.00\n"
        )
    }

    /// Two chains of residues with their atoms in turns, and nucleotides of both.
    fn text(chains: &str) -> String {
        let mut text = String::new();
        let mut serial = 0;
        let mut add = |atom: &str, residue: &str, chain: char, number: u32| {
            serial += 1;
            if chains.contains(chain) {
                text += &line(serial, atom, residue, chain, number);
            }
        };
        for chain in ['A', 'B'] {
            for number in 1..4 {
                for atom in ["N", "CA", "C", "O"] {
                    add(atom, "ALA", chain, number);
                }
            }
            add("P", "DA", chain, 9);
            add("C1'", "DA", chain, 9);
        }
        text + "END\n"
    }

    #[test]
    fn a_chosen_chain_is_the_structure_of_a_file_with_this_chain_alone() {
        for chain in ["A", "B"] {
            let mut chosen = read(&text("AB"));
            assert_eq!(chosen.residues.len(), 6);
            chosen.keep_chain(chain).unwrap();
            assert_eq!(chosen, read(&text(chain)), "{chain}");
        }
    }

    #[test]
    fn a_chosen_chain_keeps_its_annotations_and_says_what_assembly_it_is_of() {
        let mut chosen = read(&text("AB"));
        chosen.assembly = Assembly::First;
        let channel = |values: &[f32]| Channel {
            name: "conservation".to_owned(),
            values: values.to_vec(),
        };
        chosen.channels = vec![channel(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])];
        chosen.keep_chain("B").unwrap();
        assert_eq!(chosen.assembly, Assembly::First);
        assert_eq!(chosen.channels, [channel(&[4.0, 5.0, 6.0])]);
    }

    #[test]
    fn chains_have_their_label_as_name_only_where_the_author_s_is_of_several() {
        let mut structure = read(&text("AB"));
        for (chain, label) in structure.chains.iter_mut().zip(["X", "Y"]) {
            chain.label_asym_id = Some(label.into());
        }
        assert_eq!(structure.distinct_chain_names(), ["A", "B"]);
        structure.chains[1].auth_asym_id = "A".into();
        assert_eq!(structure.distinct_chain_names(), ["X", "Y"]);
    }

    #[test]
    fn a_structure_whose_columns_do_not_fit_is_an_error() {
        type Change = fn(&mut Structure);
        let changes: [Change; 8] = [
            |structure| {
                structure.channels.push(Channel {
                    name: "short".to_owned(),
                    values: vec![1.0],
                })
            },
            |structure| structure.residues[1].chain = 9,
            |structure| structure.residues[1].ca = 0,
            |structure| structure.loose[0].chain = 9,
            |structure| structure.loose[0].atom_count = u32::MAX,
            |structure| structure.atom_start.clear(),
            |structure| structure.atom_start[1] = 99,
            |structure| structure.b_factor.clear(),
        ];
        for change in changes {
            let mut structure = read(&text("AB"));
            change(&mut structure);
            let error = structure.keep_chain("A").unwrap_err().to_string();
            assert!(error.contains("columns"), "{error}");
        }
    }

    #[test]
    fn a_chain_that_is_not_there_is_named_with_those_that_are() {
        let mut structure = read(&text("AB"));
        let error = structure.keep_chain("C").unwrap_err().to_string();
        assert!(
            error.contains("called \"C\"") && error.contains("A, B"),
            "{error}"
        );
    }
}
