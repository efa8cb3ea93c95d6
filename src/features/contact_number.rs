//! Contact numbers around C-alphas and C-betas.

use super::columns::{ColumnDecl, ColumnKind, TableName};
use super::config::Cutoff;
use super::cpu;
use super::feature::{About, Feature, Setting, unknown};
use super::kernels::around_residues;
use super::layout::RESIDUES;
use super::recording::{Recording, args};
use crate::error::{Error, Result};
use crate::record::Kernel;

/// Cutoffs around one kind of atom at most: a kernel keeps a count of each.
pub(super) const CUTOFFS_MAX: usize = 8;

/// Settings of contact numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContactNumber {
    /// Cutoffs around C-alphas, at most eight.
    pub ca: Vec<Cutoff>,
    /// Cutoffs around C-betas, at most eight.
    pub cb: Vec<Cutoff>,
    /// Whether only residues of the same chain count.
    pub own_chain: bool,
}

/// Whose residues count, as a config names it.
const CHAINS: &[&str] = &["all", "own"];

impl Default for ContactNumber {
    /// 8, 10 and 12 A around C-alphas, 8 and 10 A around C-betas; all chains.
    fn default() -> Self {
        ContactNumber {
            ca: [8, 10, 12].map(Cutoff::of_angstrom).to_vec(),
            cb: [8, 10].map(Cutoff::of_angstrom).to_vec(),
            own_chain: false,
        }
    }
}

impl ContactNumber {
    fn around(&self) -> [(&'static str, &'static str, &[Cutoff]); 2] {
        [
            ("ca", "C-alpha", &self.ca),
            (
                "cb",
                "C-beta, built from N, CA and C where it is missing",
                &self.cb,
            ),
        ]
    }
}

pub(super) fn contact_number() -> Kernel {
    around_residues("contact_number")
        .writes::<i32>("counts")
        .scalar::<u32>("values")
        .scalar::<u32>("first")
        .scalar::<u32>("own_chain")
        .twin(cpu::contact_number)
}

impl Feature for ContactNumber {
    fn about(&self) -> About {
        About {
            summary: "How many other C-alphas, or C-betas, are near.",
            formula: "cn_i = |{ j != i : d(i, j) < R }|; a C-beta that glycine lacks, or the \
                      file, lies at -0.58273431 a + 0.56802827 b - 0.54067466 c + CA, with \
                      b = CA - N, c = C - CA, a = b x c",
            source: "Nishikawa and Ooi 1980",
            needs: &[],
        }
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        vec![
            ("contact_number.ca", Setting::Lengths(self.ca.clone())),
            ("contact_number.cb", Setting::Lengths(self.cb.clone())),
            (
                "contact_number.chains",
                Setting::Choice(CHAINS[usize::from(self.own_chain)], CHAINS),
            ),
        ]
    }

    fn set(&mut self, key: &str, value: &Setting) -> Result<()> {
        match (key, value) {
            ("contact_number.ca", Setting::Lengths(cutoffs)) => self.ca.clone_from(cutoffs),
            ("contact_number.cb", Setting::Lengths(cutoffs)) => self.cb.clone_from(cutoffs),
            ("contact_number.chains", Setting::Choice("all", _)) => self.own_chain = false,
            ("contact_number.chains", Setting::Choice("own", _)) => self.own_chain = true,
            _ => return Err(unknown(key)),
        }
        Ok(())
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let column = |atom: &str, what: &str, cutoff: &Cutoff| {
            let angstrom = cutoff.angstrom();
            let of = if self.own_chain { "chain" } else { "model" };
            let about = format!("Other residues of the {of} within {angstrom} A of the {what}.");
            let name = format!("cn_{atom}_{}", cutoff.label());
            ColumnDecl::residue(name, ColumnKind::Count, "", about)
        };
        let of = |(atom, what, cutoffs): (&'static str, &'static str, &[Cutoff])| -> Vec<_> {
            cutoffs
                .iter()
                .map(|cutoff| column(atom, what, cutoff))
                .collect()
        };
        self.around().into_iter().flat_map(of).collect()
    }

    fn record(&self, r: &mut Recording<'_>) {
        for (atom, _, cutoffs) in self.around() {
            if cutoffs.is_empty() {
                continue;
            }
            let (atoms, cells) = match atom {
                "ca" => (r.ca(), r.ca_cells()),
                _ => (r.cb(), r.cb_cells()),
            };
            let values = cutoffs.iter().map(|cutoff| cutoff.milli_angstrom());
            let first = r.constants(&format!("cn_{atom}"), values);
            let counts =
                r.results::<i32>(TableName::Residues, &format!("cn_{atom}"), cutoffs.len());
            let values = cutoffs.len() as u32;
            let args = args![r.header(), r.structures(), r.residues(), atoms; cells;
                counts, values, first as u32, u32::from(self.own_chain)];
            r.launch_warps(contact_number(), RESIDUES, &args);
            (0..cutoffs.len()).for_each(|at| r.column(counts, at));
        }
    }

    fn check(&self) -> Result<()> {
        if self.ca.is_empty() && self.cb.is_empty() {
            return Err(Error::config("contact_number has no cutoff"));
        }
        if self.ca.len().max(self.cb.len()) > CUTOFFS_MAX {
            let message = format!("contact_number has more than {CUTOFFS_MAX} cutoffs");
            return Err(Error::config(message));
        }
        Ok(())
    }
}
