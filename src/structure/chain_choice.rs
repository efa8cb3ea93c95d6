//! A structure of one of its chains.

use super::model::{MISSING, Structure};
use super::text::quoted;
use crate::{Error, Result};

/// Chain names that a message lists.
const LISTED_MAX: usize = 20;

impl Structure {
    /// Removes all chains but the one with this author's id, or with this label id if no author's
    /// id is the same. Features are then those of the chain alone.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) if no chain with residues has the name.
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
        // All copies of the author's id: the chains of an mmCIF file are split by entity.
        let author = self.chains[kept].auth_asym_id.clone();
        let by_author = by_author.is_some();
        let keeps = |chain: u32| match by_author {
            true => self.chains[chain as usize].auth_asym_id == author,
            false => chain as usize == kept,
        };
        let mut atoms = Vec::new();
        let mut chain_of = vec![u32::MAX; self.chains.len()];
        let mut chains = Vec::new();
        let mut number = |chain: u32, chains: &mut Vec<_>| {
            let number = &mut chain_of[chain as usize];
            if *number == u32::MAX {
                *number = chains.len() as u32;
                chains.push(self.chains[chain as usize].clone());
            }
            *number
        };
        let (mut residues, mut atom_start, mut rows) = (Vec::new(), vec![0], Vec::new());
        for (row, residue) in self.residues.iter().enumerate() {
            if !keeps(residue.chain) {
                continue;
            }
            let span = self.atom_start[row]..self.atom_start[row + 1];
            let shift = span.start - atoms.len() as u32;
            let mut residue = *residue;
            residue.chain = number(residue.chain, &mut chains);
            let named = [
                &mut residue.n,
                &mut residue.ca,
                &mut residue.c,
                &mut residue.o,
                &mut residue.cb,
            ];
            for atom in named {
                if *atom != MISSING {
                    *atom -= shift;
                }
            }
            atoms.extend(span);
            atom_start.push(atoms.len() as u32);
            residues.push(residue);
            rows.push(row);
        }
        let mut start = self.atom_start.last().copied().unwrap_or(0);
        let mut loose = Vec::new();
        for span in &self.loose {
            let end = start + span.atom_count;
            if keeps(span.chain) {
                atoms.extend(start..end);
                let mut span = *span;
                span.chain = number(span.chain, &mut chains);
                loose.push(span);
            }
            start = end;
        }
        let at = |&atom: &u32| atom as usize;
        self.xyz = atoms.iter().map(|atom| self.xyz[at(atom)]).collect();
        self.element = atoms.iter().map(|atom| self.element[at(atom)]).collect();
        self.class = atoms.iter().map(|atom| self.class[at(atom)]).collect();
        self.b_factor = atoms.iter().map(|atom| self.b_factor[at(atom)]).collect();
        for channel in &mut self.channels {
            channel.values = rows.iter().map(|&row| channel.values[row]).collect();
        }
        (self.residues, self.atom_start) = (residues, atom_start);
        (self.loose, self.chains) = (loose, chains);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::structure::{Format, ReadOptions, Reader, Structure};

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
    fn a_chain_that_is_not_there_is_named_with_those_that_are() {
        let mut structure = read(&text("AB"));
        let error = structure.keep_chain("C").unwrap_err().to_string();
        assert!(
            error.contains("called \"C\"") && error.contains("A, B"),
            "{error}"
        );
    }
}
