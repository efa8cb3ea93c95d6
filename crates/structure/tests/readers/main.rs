//! Reading structure files.

mod message_pack;
use tapeloop_test_support::random;
#[cfg(unix)]
mod assemblies;
mod binary_cif;
mod binary_cif_errors;
mod chain_splits;
mod damaged_files;
mod entry_headers;
mod hand_made_files;
mod joined_models;
mod ligands;
mod limits;
#[cfg(unix)]
mod linear_time;
mod links;
mod mmcif;
mod names;
mod pdb;
mod polymers;
mod predicted_models;
mod real_files;
mod sequence;
mod truncation;

/// Whether a text has these parts in their order, which " .. " separates: the place that a message names, and
/// the words that tell its cause from others.
pub(crate) fn has_parts(text: &str, parts: &str) -> bool {
    let mut rest = text;
    parts.split(" .. ").all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}
