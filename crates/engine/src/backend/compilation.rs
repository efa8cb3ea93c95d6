//! What a backend compiled.

use std::iter::Sum;

/// What a backend compiled since it was opened, apart from what a cache had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Compilation {
    /// Images that had to be compiled.
    pub images: u64,
    /// The images among them whose compilation has ended.
    pub done: u64,
    /// Wall time of compiling in nanoseconds, until now if it goes on.
    pub ns: u64,
}

/// What several backends compiled, one after the other.
impl Sum for Compilation {
    fn sum<I: Iterator<Item = Compilation>>(all: I) -> Compilation {
        all.fold(Compilation::default(), |sum, one| Compilation {
            images: sum.images + one.images,
            done: sum.done + one.done,
            ns: sum.ns + one.ns,
        })
    }
}
