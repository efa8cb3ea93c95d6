//! The protein model and its readers.

mod model;

pub use model::{Chain, MISSING, Residue, Structure, Uniprot};
