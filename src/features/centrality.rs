//! Eigenvector centrality.

use super::columns::{ColumnDecl, ColumnKind, TableName};
use super::config::Cutoff;
use super::cpu;
use super::feature::{About, Feature, Setting, unknown};
use super::kernels::{around_residues, kernel, reads_cells};
use super::layout::{CHAINS, RESIDUES};
use super::recording::{Recording, args};
use crate::error::Result;
use crate::record::Kernel;

/// C-alphas nearer than this are in contact.
const CONTACT: Cutoff = Cutoff::of_angstrom(8);

/// Contacts that a residue's list has room for.
pub(super) const CONTACTS_MAX: usize = 32;

/// Settings of eigenvector centrality.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Centrality {
    /// Steps of the power iteration.
    pub steps: u32,
}

/// Steps at most.
const STEPS_MAX: i64 = 100_000;

impl Default for Centrality {
    /// 200 steps.
    fn default() -> Self {
        Centrality { steps: 200 }
    }
}

pub(super) fn contact_list() -> Kernel {
    around_residues("contact_list")
        .writes::<u32>("lists")
        .writes::<u32>("degrees")
        .scalar::<u32>("radius")
        .twin(cpu::contact_list)
}

pub(super) fn eigenvector() -> Kernel {
    let kernel = kernel("eigenvector")
        .block(512)
        .reads::<u32>("header")
        .reads::<u32>("structures")
        .reads::<u32>("chains")
        .reads::<u32>("members")
        .reads::<i32>("atoms");
    reads_cells(kernel)
        .reads::<u32>("lists")
        .reads::<u32>("degrees")
        .writes::<u32>("places")
        .writes::<u32>("neighbours")
        .writes::<f64>("scratch")
        .writes::<f32>("vectors")
        .writes::<f32>("residuals")
        .scalar::<u32>("radius")
        .scalar::<u32>("steps")
        .twin(cpu::eigenvector)
}

impl Feature for Centrality {
    fn about(&self) -> About {
        About {
            summary: "How central the residue is in the network of its chain's contacts.",
            formula: "v after so many steps v <- (A + I) v / |(A + I) v| from a uniform vector, \
                      A the contacts of the chain's C-alphas within 8 A; residual: \
                      |A v - (v . A v) v|",
            source: "Bonacich 1972; del Sol et al. 2006, Mol Syst Biol 2:2006.0019",
            needs: &[],
        }
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let steps = Setting::Integer(i64::from(self.steps), 1..=STEPS_MAX);
        vec![("centrality.steps", steps)]
    }

    fn set(&mut self, key: &str, value: &Setting) -> Result<()> {
        match (key, value) {
            ("centrality.steps", Setting::Integer(steps, _)) => {
                self.steps = u32::try_from(*steps).map_err(|_| unknown(key))?;
            }
            _ => return Err(unknown(key)),
        }
        Ok(())
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let vector = format!(
            "Eigenvector centrality in the network of the chain's C-alphas within {} A, after {} \
             steps.",
            CONTACT.angstrom(),
            self.steps
        );
        let residual = "How far the eigenvector still is from one: |A v - (v . A v) v|.";
        let residual = ColumnDecl::residue("eigenvector_residual", ColumnKind::Real, "", residual);
        vec![
            ColumnDecl::residue("eigenvector", ColumnKind::Real, "", vector),
            residual.of(TableName::Chains),
        ]
    }

    fn record(&self, r: &mut Recording<'_>) {
        let lists = r.device::<u32>("centrality_lists", RESIDUES, CONTACTS_MAX);
        let degrees = r.device::<u32>("centrality_degrees", RESIDUES, 1);
        let (ca, cells) = (r.ca(), r.ca_cells());
        let radius = CONTACT.milli_angstrom();
        let args = args![r.header(), r.structures(), r.residues(), ca; cells;
            lists, degrees, radius];
        r.launch_warps(contact_list(), RESIDUES, &args);

        let places = r.device::<u32>("centrality_places", RESIDUES, 1);
        let neighbours = r.device::<u32>("centrality_neighbours", RESIDUES, CONTACTS_MAX + 1);
        let scratch = r.device::<f64>("centrality_scratch", RESIDUES, 3);
        let vectors = r.results::<f32>(TableName::Residues, "eigenvector", 1);
        let residuals = r.results::<f32>(TableName::Chains, "eigenvector_residual", 1);
        let args = args![r.header(), r.structures(), r.chains(), r.members(), ca; cells;
            lists, degrees, places, neighbours, scratch, vectors, residuals, radius, self.steps];
        r.launch_blocks(eigenvector(), CHAINS, &args);
        r.column(vectors, 0);
        r.column(residuals, 0);
    }
}
