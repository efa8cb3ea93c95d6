//! What every feature declares.

use super::columns::ColumnDecl;
use super::cutoff::Cutoff;
use super::recorder::FeatureRecorder;
use crate::error::{Error, Result};
use std::ops::RangeInclusive;

/// A feature: its settings, its columns, and its part of a recording.
///
/// A feature's file has all three and the CPU twins of its kernels, which are in `kernels/`.
pub(super) trait Feature: std::any::Any {
    /// What it is.
    fn about(&self) -> About;

    /// Its settings by the key that a config has for each (`sasa.probe`).
    fn settings(&self) -> Vec<(&'static str, Setting)> {
        Vec::new()
    }

    /// Changes a setting. It is given only keys and types that [`Feature::settings`] lists.
    ///
    /// # Errors
    /// A value that it cannot take.
    fn set(&mut self, key: &str, _: &Setting) -> Result<()> {
        Err(unknown(key))
    }

    /// Its columns, in order.
    fn columns(&self) -> Vec<ColumnDecl>;

    /// Records its launches, and one result for each of its columns, in order.
    fn record(&self, recorder: &mut FeatureRecorder<'_>);

    /// Whether its settings make sense together.
    ///
    /// # Errors
    /// What is wrong with them.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// A feature in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// What it is, in one sentence.
    pub summary: &'static str,
    /// The formula.
    pub formula: &'static str,
    /// Where it is from.
    pub source: &'static str,
    /// The names of features whose results it needs; they are computed with it, and their columns
    /// are written only where they are asked for.
    pub needs: &'static [&'static str],
}

/// A setting of a feature.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// A distance within [`Cutoff`]'s range, in A.
    Length(Cutoff),
    /// Several.
    Lengths(Vec<Cutoff>),
    /// A whole number, and those that it may be.
    Integer(i64, RangeInclusive<i64>),
    /// Yes or no.
    Flag(bool),
    /// One of these words.
    Choice(&'static str, &'static [&'static str]),
    /// Any words.
    Texts(Vec<String>),
}

impl Setting {
    /// Refuses an integer outside of its range.
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

/// The error of a key or type that a feature does not list.
pub(super) fn unknown(key: &str) -> Error {
    Error::config(format!("there is no setting {key} of this type"))
}
