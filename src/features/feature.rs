//! The declaration of a feature.

use super::columns::ColumnDecl;
use super::cutoff::Cutoff;
use super::recorder::FeatureRecorder;
use crate::error::{Error, Result};
use std::ops::RangeInclusive;

/// A feature: its settings, its columns, and its launches.
///
/// A feature's file has these and the CPU twins of its kernels. The kernels themselves are in
/// `kernels/`.
pub(super) trait Feature: std::any::Any {
    /// Its description.
    fn about(&self) -> About;

    /// Its settings, each with its key in a config (`sasa.probe`).
    fn settings(&self) -> Vec<(&'static str, Setting)> {
        Vec::new()
    }

    /// Changes a setting. `key` and the type of the value are among those that
    /// [`Feature::settings`] lists.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a value that is out of range.
    fn set(&mut self, key: &str, _: &Setting) -> Result<()> {
        Err(unknown(key))
    }

    /// Its columns, in order.
    fn columns(&self) -> Vec<ColumnDecl>;

    /// Records its launches, and one result for each of its columns, in order.
    fn record(&self, recorder: &mut FeatureRecorder<'_>);

    /// Checks that its settings fit together.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if they do not.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// The description of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// A sentence on what it measures.
    pub summary: &'static str,
    /// The formula.
    pub formula: &'static str,
    /// The publication that defines it.
    pub source: &'static str,
    /// The names of features whose results it needs. They are computed too, but their columns are
    /// written only if they are requested.
    pub needs: &'static [&'static str],
}

/// A setting of a feature.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// A distance within [`Cutoff`]'s range, in A.
    Length(Cutoff),
    /// Several distances.
    Lengths(Vec<Cutoff>),
    /// An integer, and its range.
    Integer(i64, RangeInclusive<i64>),
    /// A switch.
    Flag(bool),
    /// One of several words, and all of them.
    Choice(&'static str, &'static [&'static str]),
    /// A list of texts.
    Texts(Vec<String>),
}

impl Setting {
    /// Checks that an integer is in its range.
    pub(super) fn check(&self, key: &str) -> Result<()> {
        match self {
            Setting::Integer(value, range) if !range.contains(value) => {
                let (low, high) = (range.start(), range.end());
                let message = format!("{key} of {value} is not {low} to {high}");
                Err(Error::config(message))
            }
            _ => Ok(()),
        }
    }
}

/// The words of the settings that choose which residues and atoms are neighbours.
const CHAINS: &[&str] = &["all", "own"];

/// The setting that chooses which residues and atoms are neighbours: those of all chains of the
/// model, or of the own chain alone.
pub(super) fn chains(own_chain: bool) -> Setting {
    Setting::Choice(CHAINS[usize::from(own_chain)], CHAINS)
}

/// Whether the word of a setting of [`chains`] means the own chain alone.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if the word is none of the setting's.
pub(super) fn is_own_chain(key: &str, word: &str) -> Result<bool> {
    match CHAINS.iter().position(|choice| *choice == word) {
        Some(index) => Ok(index == 1),
        None => Err(unknown(key)),
    }
}

/// The set that neighbours belong to, for descriptions.
pub(super) fn neighbours_of(own_chain: bool) -> &'static str {
    if own_chain { "chain" } else { "model" }
}

/// The error for a key or type that a feature does not list.
pub(super) fn unknown(key: &str) -> Error {
    Error::config(format!("there is no setting {key} of this type"))
}
