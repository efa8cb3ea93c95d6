//! pLDDT of `_ma_qa_metric_local`.

use super::lexer::contains;
use crate::atom_table::{AtomTable, NO_NAME, NameId};
use crate::decimal::{self, int};

/// Replaces the B factors of atoms, which some programs leave at 0, by the pLDDT of their residues.
///
/// `metrics` are the rows of `_ma_qa_metric`: id, name, type and mode. `local` are those of
/// `_ma_qa_metric_local`: label chain, label number, metric id, value and model.
pub(super) fn set_plddt<'a>(
    metrics: impl Iterator<Item = [&'a [u8]; 4]>,
    local: impl Iterator<Item = [&'a [u8]; 5]>,
    table: &mut AtomTable,
) {
    let is_local = |[.., mode]: &[&[u8]; 4]| !mode.eq_ignore_ascii_case(b"global");
    let plddt_metrics = metrics.filter(|metric| is_plddt(metric) && is_local(metric));
    let plddt_ids: Vec<&[u8]> = plddt_metrics.map(|[id, ..]| id).collect();
    let mut last_chain: (&[u8], NameId) = (b"", NO_NAME);
    let mut values = Vec::new();
    for [chain, number, metric, value, model] in local {
        let value = decimal::b_factor(value);
        if let (true, Some(number), false) =
            (plddt_ids.contains(&metric), int(number), value.is_nan())
        {
            if last_chain.0 != chain {
                last_chain = (chain, table.names.intern(chain));
            }
            let key = (int(model).unwrap_or(1), last_chain.1, number);
            values.push((key, value));
        }
    }
    // If the atoms and the values are of one model each, it is the same model, whatever its two numbers.
    if let (&[model], Some(&((first, ..), _))) = (&table.models[..], values.first())
        && values.iter().all(|((model, ..), _)| *model == first)
    {
        values
            .iter_mut()
            .for_each(|((value_model, ..), _)| *value_model = model);
    }
    if !values.is_sorted_by_key(|(key, _)| *key) {
        // The sort is stable: the first value of a residue counts.
        values.sort_by_key(|(key, _)| *key);
    }
    let mut next = 0;
    // A run ends where the next one starts, and the last one at the last atom.
    let ends = table.runs.iter().skip(1).map(|run| run.atoms.start);
    let ends = ends.chain([table.atoms.len() as u32]);
    for (run, end) in table.runs.iter().zip(ends) {
        let Some(number) = run.label_seq.filter(|_| !values.is_empty()) else {
            continue;
        };
        let chain = table.chains[run.chain as usize].label;
        let key = (table.models[run.model as usize], chain, number);
        // Residues and values mostly have the same order.
        if values
            .get(next)
            .is_none_or(|(value_key, _)| *value_key != key)
        {
            next = values.partition_point(|(value_key, _)| *value_key < key);
        }
        if let Some((_, value)) = values.get(next).filter(|(value_key, _)| *value_key == key) {
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
