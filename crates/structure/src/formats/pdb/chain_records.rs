//! Records other than atoms that name residues: SEQRES, LINK and DBREF. Their columns are those of
//! version 3.3 of the format, counted from 0.

use std::ops::Range;

use super::PdbReader;
use super::columns::{Columns, ResidueKey, atom_name, padded, residue_number, take};
use crate::Result;
use crate::atom_table::NO_NAME;
use crate::components;
use crate::decimal::int;
use crate::text8::text8;

impl PdbReader<'_> {
    /// Reads the components of a SEQRES line: up to thirteen, with blanks between them.
    pub(super) fn read_sequence(&mut self, line: &[u8]) {
        let columns = padded(line);
        let chain = self.table.names.intern(columns[10..12].trim_ascii());
        let comps = columns[18..70].split(u8::is_ascii_whitespace);
        for comp in comps.filter(|comp| !comp.is_empty()) {
            let comp = text8(comp);
            let kind = components::lookup(comp).map(|known| known.kind);
            self.table.sequences.add(chain, comp, kind);
            self.seqres.add(chain, comp);
        }
    }

    /// Reads LINK, or LINKR, which REFMAC writes. Atom and residue are in the columns of atom lines,
    /// and 30 columns further on. A link of two different symmetry operators is to a copy in the crystal,
    /// and left out.
    pub(super) fn read_link(&mut self, columns: &Columns) -> Result<()> {
        // The symmetry operators of both.
        if columns[59..65].trim_ascii() != columns[66..72].trim_ascii() {
            return Ok(());
        }
        let link = [0, 30].map(|first| {
            let key: ResidueKey = take(columns, 17 + first);
            let (comp, chain) = self.names(&key);
            let (comp, chain) = (text8(comp.trim_ascii()), chain.trim_ascii());
            let chain = self.table.names.intern(chain);
            let ins_code = if key[9] == b' ' { 0 } else { key[9] };
            let residue = (chain, residue_number(&key[5..9]), ins_code, comp);
            (residue, atom_name(take(columns, 12 + first)))
        });
        self.table.add_link(link)
    }

    /// Reads DBREF, or DBREF1 and DBREF2, which together hold longer names. Databases other than
    /// UniProt are left out.
    pub(super) fn read_reference(&mut self, columns: &Columns) {
        let field = |range: Range<usize>| columns[range].trim_ascii();
        let half = match columns[5] {
            b'2' => self.half_reference.take(),
            _ if field(26..32) == b"UNP" => {
                let chain = self.table.names.intern(field(11..13));
                let [first, last] =
                    [14, 20].map(|column| residue_number(&columns[column..column + 4]));
                first.zip(last).map(|(first, last)| (chain, first, last))
            }
            _ => None,
        };
        let (accession, position, end) = match columns[5] {
            b'1' => {
                self.half_reference = half;
                return;
            }
            b'2' => (18..40, 45..55, 57..67),
            _ => (33..41, 55..60, 62..67),
        };
        if let (Some((chain, first, last)), Some(position), Some(end)) =
            (half, int(field(position)), int(field(end)))
        {
            let (names, accession) = ([chain, NO_NAME], field(accession));
            self.table
                .add_reference(names, false, first..=last, accession, position..=end);
        }
    }
}
