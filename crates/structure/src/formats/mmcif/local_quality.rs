//! pLDDT of `_ma_qa_metric_local`.

use super::lexer::contains;
use crate::atom_table::{AtomTable, NO_NAME, NameId};
use crate::decimal::{self, int};

/// Gives the atoms of residues the pLDDT that `_ma_qa_metric_local` states instead of their B factors,
/// which some programs leave at 0. `metrics` and `local` are the rows of the categories.
pub(super) fn set_plddt<'a>(
    metrics: impl Iterator<Item = [&'a [u8]; 4]>,
    local: impl Iterator<Item = [&'a [u8]; 5]>,
    table: &mut AtomTable,
) {
    let is_local = |metric: &[&[u8]; 4]| !metric[3].eq_ignore_ascii_case(b"global");
    let ids = metrics.filter(|metric| is_plddt(metric) && is_local(metric));
    let ids: Vec<&[u8]> = ids.map(|[id, ..]| id).collect();
    let mut last: (&[u8], NameId) = (b"", NO_NAME);
    let mut values = Vec::new();
    for [chain, number, metric, value, model] in local {
        let value = decimal::b_factor(value);
        if let (true, Some(number), false) = (ids.contains(&metric), int(number), value.is_nan()) {
            if last.0 != chain {
                last = (chain, table.names.intern(chain));
            }
            let key = (int(model).unwrap_or(1), last.1, number);
            values.push((key, value));
        }
    }
    // The models of other files may have other numbers than the atoms state.
    if let (&[model], Some(&((first, ..), _))) = (&table.models[..], values.first())
        && values.iter().all(|((model, ..), _)| *model == first)
    {
        values
            .iter_mut()
            .for_each(|((number, ..), _)| *number = model);
    }
    if !values.is_sorted_by_key(|(key, _)| *key) {
        // The sort is stable: the first value of a residue counts.
        values.sort_by_key(|(key, _)| *key);
    }
    let mut next = 0;
    // The last run has not ended yet.
    let ends = table.runs.iter().skip(1).map(|run| run.atoms.start);
    let ends = ends.chain([table.atoms.len() as u32]);
    for (run, end) in table.runs.iter().zip(ends) {
        let Some(number) = run.label_seq.filter(|_| !values.is_empty()) else {
            continue;
        };
        let chain = table.chains[run.chain as usize].label;
        let key = (table.models[run.model as usize], chain, number);
        // Residues and values mostly have the same order.
        if values.get(next).is_none_or(|(known, _)| *known != key) {
            next = values.partition_point(|(known, _)| *known < key);
        }
        if let Some((_, value)) = values.get(next).filter(|(known, _)| *known == key) {
            let atoms = run.atoms.start as usize..end as usize;
            table.atoms[atoms]
                .iter_mut()
                .for_each(|atom| atom.b_factor = *value);
            next += 1;
        }
    }
}

/// Whether a row of `_ma_qa_metric` is of pLDDT, by its name or type.
pub(super) fn is_plddt([_, name, kind, _]: &[&[u8]; 4]) -> bool {
    contains(name, b"plddt") || contains(kind, b"plddt")
}
