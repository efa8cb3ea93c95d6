//! What the rows of the table of atoms are made from.

use arrow_buffer::BooleanBuffer;
use std::ops::Range;
use tapeloop::structure::{AtomClass, AtomDetails, Radii, Structure};

/// Bytes of an atom in [`AtomRows`], and of its areas.
pub(super) const ATOM_BYTES: usize = size_of::<[i32; 3]>()
    + size_of::<u8>()
    + size_of::<AtomClass>()
    + size_of::<f32>()
    + size_of::<AtomDetails>()
    + 2 * size_of::<f32>();

/// The atoms of a structure, in the order of the results of features: those of residues, those
/// without a residue, and those of ligands, glycans first.
#[derive(Debug, Default)]
pub(super) struct AtomRows {
    pub(super) xyz: Vec<[i32; 3]>,
    pub(super) element: Vec<u8>,
    /// The set that the classes are of.
    pub(super) radii: Radii,
    pub(super) class: Vec<AtomClass>,
    pub(super) b_factor: Vec<f32>,
    pub(super) details: Vec<AtomDetails>,
    /// Index of the first atom of each residue, then the end of the last residue's atoms.
    starts: Vec<u32>,
    /// The atoms of each ligand.
    of_ligands: Vec<Range<usize>>,
    /// The atoms that have rows, and how many a condition was applied to; `None` for all.
    selected: Option<(BooleanBuffer, usize)>,
}

impl AtomRows {
    /// Takes the atoms out of a structure, and leaves ligands as they are.
    pub(super) fn take(structure: &mut Structure) -> Self {
        let mut rows = AtomRows {
            xyz: std::mem::take(&mut structure.xyz),
            element: std::mem::take(&mut structure.element),
            radii: structure.radii,
            class: std::mem::take(&mut structure.class),
            b_factor: std::mem::take(&mut structure.b_factor),
            details: std::mem::take(&mut structure.atom_details),
            starts: std::mem::take(&mut structure.atom_start),
            of_ligands: vec![0..0; structure.ligands.len()],
            selected: None,
        };
        if rows.starts.is_empty() {
            rows.starts.push(0);
        }
        // A structure of a program's own may have none.
        rows.details.resize(rows.xyz.len(), AtomDetails::default());
        for (index, ligand) in structure.ligands_by_atoms() {
            let (start, atoms) = (rows.xyz.len(), || ligand.atoms.iter());
            rows.of_ligands[index] = start..start + ligand.atoms.len();
            rows.xyz.extend(atoms().map(|atom| atom.xyz));
            rows.element.extend(atoms().map(|atom| atom.element));
            rows.class.extend(atoms().map(|atom| atom.class));
            rows.b_factor.extend(atoms().map(|atom| atom.b_factor));
            rows.details.extend(atoms().map(|atom| atom.details));
        }
        rows
    }

    /// Selects atoms: `selected` has a value for each atom in these ranges, one after the other, and
    /// no other atom is selected.
    pub(super) fn select(&mut self, ranges: &[Range<usize>], selected: &BooleanBuffer) {
        let mut all = vec![false; self.xyz.len()];
        let mut values = selected.iter();
        for range in ranges {
            let of_range = all[range.clone()].iter_mut().zip(&mut values);
            of_range.for_each(|(is_selected, value)| *is_selected = value);
        }
        self.selected = Some((BooleanBuffer::from(all), selected.len()));
    }

    /// The number of atoms that a condition was applied to, and of those that meet it; `None` without one.
    pub(super) fn tested(&self) -> Option<(u64, u64)> {
        let (selected, tested) = self.selected.as_ref()?;
        Some((*tested as u64, selected.count_set_bits() as u64))
    }

    /// The atoms that have rows, as ranges: those of the residues that are selected, and those of all
    /// ligands in the ligands' order. No range has atoms of two ligands.
    pub(super) fn ranges(&self, selected: Option<&BooleanBuffer>) -> Vec<Range<usize>> {
        let atoms =
            |start: usize, end: usize| self.starts[start] as usize..self.starts[end] as usize;
        let of_residues: Vec<_> = match selected {
            None => vec![atoms(0, self.starts.len() - 1)],
            // Residues that were not observed follow the others, and have no atoms.
            Some(selected) => selected
                .slice(0, self.starts.len() - 1)
                .set_slices()
                .map(|(start, end)| atoms(start, end))
                .collect(),
        };
        let ranges = of_residues.into_iter().chain(self.of_ligands.clone());
        let ranges = ranges.filter(|range| !range.is_empty());
        match &self.selected {
            None => ranges.collect(),
            Some((selected, _)) => ranges
                .flat_map(|range| selected_in(selected, range))
                .collect(),
        }
    }

    /// Whether an atom is one of a residue.
    pub(super) fn is_of_residue(&self, atom: usize) -> bool {
        self.starts.last().is_some_and(|&end| atom < end as usize)
    }

    /// The residues or ligands that some atoms belong to, by index (residues come first, and ligands
    /// follow), each with the
    /// number of these atoms. The atoms are those of residues or of one ligand.
    pub(super) fn owners(&self, atoms: Range<usize>) -> (Range<usize>, Vec<usize>) {
        let residues = self.starts.len() - 1;
        if !self.is_of_residue(atoms.start) {
            let mut ligands = self.of_ligands.iter();
            let ligand = ligands.position(|range| range.contains(&atoms.start));
            let owner = residues + ligand.expect("rows are of residues or of ligands");
            return (owner..owner + 1, vec![atoms.len()]);
        }
        let first = self
            .starts
            .partition_point(|&start| start as usize <= atoms.start)
            - 1;
        let mut lengths = Vec::new();
        let (mut residue, mut start) = (first, atoms.start);
        while start < atoms.end {
            let end = atoms.end.min(self.starts[residue + 1] as usize);
            lengths.push(end - start);
            (residue, start) = (residue + 1, end);
        }
        (first..residue, lengths)
    }
}

/// The parts of `range` that are selected.
pub(super) fn selected_in(selected: &BooleanBuffer, range: Range<usize>) -> Vec<Range<usize>> {
    let part = selected.slice(range.start, range.len());
    let ranges = part.set_slices();
    let moved = ranges.map(|(start, end)| range.start + start..range.start + end);
    moved.collect()
}
