//! Distance cutoffs.

use super::layout::REACH;
use crate::error::{Error, Result};

/// A distance cutoff, in units of 0.001 A. A pair is within the cutoff if its distance is strictly
/// less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cutoff {
    milli_angstrom: u32,
}

impl Cutoff {
    /// The largest cutoff, in A.
    pub const MAX_ANGSTROM: f64 = REACH as f64 / 1000.0;

    /// A cutoff of `angstrom`, rounded to the nearest 0.001 A.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the rounded cutoff is below 0.001 A, above 37 A
    /// ([`Cutoff::MAX_ANGSTROM`]), as kernels compare squared distances in 32 bits, or no number.
    pub fn from_angstrom(angstrom: f64) -> Result<Self> {
        let milli = (angstrom * 1000.0).round();
        if milli >= 1.0 && milli <= f64::from(REACH) {
            Ok(Cutoff {
                milli_angstrom: milli as u32,
            })
        } else {
            let max = Cutoff::MAX_ANGSTROM;
            Err(Error::config(format!(
                "a cutoff of {angstrom} A is not between 0.001 and {max} A"
            )))
        }
    }

    /// A cutoff of whole A, up to 37.
    pub(super) const fn of_angstrom(angstrom: u32) -> Self {
        Cutoff::of_milli_angstrom(angstrom * 1000)
    }

    /// A cutoff in units of 0.001 A, up to 37,000.
    pub(super) const fn of_milli_angstrom(milli_angstrom: u32) -> Self {
        assert!(milli_angstrom > 0 && milli_angstrom <= REACH);
        Cutoff { milli_angstrom }
    }

    /// The cutoff in A.
    pub fn angstrom(self) -> f64 {
        f64::from(self.milli_angstrom) / 1000.0
    }

    /// The cutoff in 0.001 A.
    pub fn milli_angstrom(self) -> u32 {
        self.milli_angstrom
    }

    /// The cutoff in A as part of a column's name: `8`, `8_5`.
    pub(super) fn label(self) -> String {
        self.angstrom().to_string().replace('.', "_")
    }
}
