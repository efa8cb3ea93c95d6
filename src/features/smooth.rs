//! Annotations smoothed over contacts.

use super::columns::{ColumnDecl, ColumnKind, TableName};
use super::config::Cutoff;
use super::cpu;
use super::feature::{About, Feature, Setting, unknown};
use super::kernels::around_residues;
use super::layout::RESIDUES;
use super::recording::{Recording, args};
use crate::error::{Error, Result};
use crate::record::Kernel;

/// The channel that every structure has: the file's B factor of the C-alpha.
pub const B_CA: &str = "b_ca";

/// Settings of smoothed annotations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Smooth {
    /// Which annotations: `b_ca`, or names of
    /// [`Structure::channels`](crate::structure::Structure::channels). With none
    /// there are no columns.
    pub channels: Vec<String>,
    /// C-alphas nearer than this are in contact.
    pub radius: Cutoff,
    /// Whether a contact weighs 1/d.
    pub weighted: bool,
}

impl Default for Smooth {
    /// B factors, over 10 A, all of one weight.
    fn default() -> Self {
        Smooth {
            channels: vec![B_CA.to_owned()],
            radius: Cutoff::of_angstrom(10),
            weighted: false,
        }
    }
}

pub(super) fn smooth() -> Kernel {
    around_residues("smooth")
        .reads::<f32>("values")
        .writes::<f32>("means")
        .scalar::<u32>("radius")
        .scalar::<u32>("weighted")
        .twin(cpu::smooth)
}

impl Feature for Smooth {
    fn about(&self) -> About {
        About {
            summary: "The mean of an annotation over the residues around.",
            formula: "mean of x_j over j != i with d(i, j) < R between C-alphas of the model, or \
                      sum of x_j / d over sum of 1 / d; residues without x are left out",
            source: "",
            needs: &[],
        }
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        vec![
            ("smooth.channels", Setting::Texts(self.channels.clone())),
            ("smooth.radius", Setting::Length(self.radius)),
            ("smooth.weighted", Setting::Flag(self.weighted)),
        ]
    }

    fn set(&mut self, key: &str, value: &Setting) -> Result<()> {
        match (key, value) {
            ("smooth.channels", Setting::Texts(channels)) => self.channels.clone_from(channels),
            ("smooth.radius", Setting::Length(radius)) => self.radius = *radius,
            ("smooth.weighted", Setting::Flag(weighted)) => self.weighted = *weighted,
            _ => return Err(unknown(key)),
        }
        Ok(())
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let mean = if self.weighted {
            "Mean, weighted by 1/d,"
        } else {
            "Mean"
        };
        let column = |channel: &String| {
            let radius = self.radius.angstrom();
            let about = format!(
                "{mean} of {channel} over the other C-alphas of the model within {radius} A."
            );
            ColumnDecl::residue(format!("smooth_{channel}"), ColumnKind::Real, "", about)
                .idle_when("no structure with the annotation was read")
        };
        self.channels.iter().map(column).collect()
    }

    fn record(&self, r: &mut Recording<'_>) {
        for channel in &self.channels {
            let (ca, cells) = (r.ca(), r.ca_cells());
            let values = r.channel(channel);
            let means = r.results::<f32>(TableName::Residues, &format!("smooth_{channel}"), 1);
            let args = args![r.header(), r.structures(), r.residues(), ca; cells;
                values, means, self.radius.milli_angstrom(), u32::from(self.weighted)];
            r.launch_warps(smooth(), RESIDUES, &args);
            r.column(means, 0);
        }
    }

    fn check(&self) -> Result<()> {
        let is_name = |name: &&String| {
            let known = |c: u8| c.is_ascii_alphanumeric() || c == b'_';
            !name.is_empty() && name.bytes().all(known)
        };
        match self.channels.iter().find(|name| !is_name(name)) {
            Some(name) => {
                let text = format!("smooth.channels: {name:?} cannot be part of a column's name");
                Err(Error::config(text).fix("use letters, digits and _"))
            }
            None => Ok(()),
        }
    }
}
