//! A structure of one of its chains.

use super::assembly;
use super::model::Structure;
use super::text::quoted;
use crate::{Error, Result};

/// Chain names that a message lists.
const LISTED_MAX: usize = 20;

impl Structure {
    /// Removes all chains but the one with this author's id, or with this label id if no author's
    /// id is the same. Features are then those of the chain alone.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) if no chain with residues has the name,
    /// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if there is no memory for the chain.
    pub fn keep_chain(&mut self, name: &str) -> Result<()> {
        let chains = self.row_chains();
        let by_author = chains.iter().position(|chain| &*chain.auth_asym_id == name);
        let by_label = || {
            chains
                .iter()
                .position(|chain| chain.label_asym_id.as_deref() == Some(name))
        };
        let Some(kept) = by_author.or_else(by_label) else {
            let names = chains
                .iter()
                .take(LISTED_MAX)
                .map(|chain| &*chain.auth_asym_id);
            let names: Vec<&str> = names.collect();
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
        // All chains with the author's id: the chains of an mmCIF file are split by entity.
        let kept: Vec<u32> = match by_author {
            Some(_) => (0..)
                .zip(&self.chains)
                .filter(|(_, chain)| &*chain.auth_asym_id == name)
                .map(|(at, _)| at)
                .collect(),
            None => vec![kept as u32],
        };
        *self = assembly::of_chains(self, kept)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::structure::{Assembly, Channel, Format, ReadOptions, Reader, Structure};

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
    fn a_chain_that_is_not_there_is_named_with_those_that_are() {
        let mut structure = read(&text("AB"));
        let error = structure.keep_chain("C").unwrap_err().to_string();
        assert!(
            error.contains("called \"C\"") && error.contains("A, B"),
            "{error}"
        );
    }
}
