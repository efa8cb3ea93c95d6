//! The declaration of a feature.

use super::columns::ColumnDecl;
use super::cutoff::Cutoff;
use super::recorder::FeatureRecorder;
use crate::error::{Error, Result};
use crate::structure::{Components, Radii};
use std::ops::RangeInclusive;

/// A feature: its settings, its columns, and its launches.
///
/// A feature's file has these and the CPU twins of its kernels. The kernels themselves are in
/// `kernels/`.
pub(super) trait Feature: std::any::Any {
    /// Its description.
    fn about(&self) -> About;

    /// Its settings: the field of each, by its key in a config (`sasa.probe`).
    fn settings(&mut self) -> Vec<(&'static str, SettingField<'_>)> {
        Vec::new()
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
    /// A distance, and the largest that the setting takes, in A.
    Length(Cutoff, f64),
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
    /// A set of radii.
    Radii(Radii),
    /// A dictionary of components, if there is one.
    Components(Option<Components>),
}

impl Setting {
    /// Checks that an integer or a distance is in its range; other types have none. Else an
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) error.
    pub(super) fn check(&self, key: &str) -> Result<()> {
        match self {
            Setting::Length(length, max) if length.angstrom() > *max => {
                let message = format!("{key} of {} A is more than {max} A", length.angstrom());
                Err(Error::config(message))
            }
            Setting::Integer(value, range) if !range.contains(value) => {
                let (low, high) = (range.start(), range.end());
                let message = format!("{key} of {value} is not {low} to {high}");
                Err(Error::config(message))
            }
            _ => Ok(()),
        }
    }
}

/// The field of a feature that holds a setting.
pub(super) enum SettingField<'a> {
    /// With the largest that it takes, in A.
    Length(&'a mut Cutoff, f64),
    Lengths(&'a mut Vec<Cutoff>),
    /// With its range.
    Integer(&'a mut u32, RangeInclusive<i64>),
    Flag(&'a mut bool),
    /// False is the first word, true the second.
    Either(&'a mut bool, &'static [&'static str; 2]),
    Choice(&'a mut dyn ConfigWords),
    Texts(&'a mut Vec<String>),
    Radii(&'a mut Radii),
    Components(&'a mut Option<Components>),
}

impl SettingField<'_> {
    /// The value of the field.
    pub(super) fn value(&self) -> Setting {
        match self {
            SettingField::Length(length, max) => Setting::Length(**length, *max),
            SettingField::Lengths(lengths) => Setting::Lengths(lengths.to_vec()),
            SettingField::Integer(value, range) => {
                Setting::Integer(i64::from(**value), range.clone())
            }
            SettingField::Flag(flag) => Setting::Flag(**flag),
            SettingField::Either(is_second, words) => {
                Setting::Choice(words[usize::from(**is_second)], *words)
            }
            SettingField::Choice(choice) => Setting::Choice(choice.word(), choice.words()),
            SettingField::Texts(texts) => Setting::Texts(texts.to_vec()),
            SettingField::Radii(radii) => Setting::Radii(**radii),
            SettingField::Components(components) => Setting::Components(**components),
        }
    }

    /// Sets the field, whose key is `key`, to a value of its type.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a value of another type, an integer or a length
    /// out of range, or an unknown word.
    pub(super) fn set(self, key: &str, value: &Setting) -> Result<()> {
        match (self, value) {
            (SettingField::Length(field, max), Setting::Length(length, _)) => {
                Setting::Length(*length, max).check(key)?;
                *field = *length;
            }
            (SettingField::Lengths(field), Setting::Lengths(lengths)) => field.clone_from(lengths),
            (SettingField::Integer(field, range), Setting::Integer(integer, _)) => {
                Setting::Integer(*integer, range).check(key)?;
                *field = u32::try_from(*integer).expect("ranges of settings are within u32");
            }
            (SettingField::Flag(field), Setting::Flag(flag)) => *field = *flag,
            (SettingField::Either(field, words), Setting::Choice(word, _)) => {
                let index = words.iter().position(|known| known == word);
                *field = index.ok_or_else(|| unknown_word_error(key, word, &*words))? == 1;
            }
            (SettingField::Choice(field), Setting::Choice(word, _)) => {
                if !field.choose(word) {
                    return Err(unknown_word_error(key, word, field.words()));
                }
            }
            (SettingField::Texts(field), Setting::Texts(texts)) => field.clone_from(texts),
            (SettingField::Radii(field), Setting::Radii(radii)) => *field = *radii,
            (SettingField::Components(field), Setting::Components(components)) => {
                *field = *components
            }
            _ => return Err(unknown_setting_error(key)),
        }
        Ok(())
    }
}

/// An enum whose variants are words of the config.
pub(super) trait ConfigWords {
    /// All words, in the order of the variants.
    fn words(&self) -> &'static [&'static str];

    /// The word of this variant.
    fn word(&self) -> &'static str;

    /// Takes the variant of this word. Returns whether there is one.
    fn choose(&mut self, word: &str) -> bool;
}

/// Implements [`ConfigWords`] for an enum: each variant and its word, in their order.
macro_rules! choice {
    ($type:ident: $($variant:ident $word:literal),+) => {
        impl $crate::features::feature::ConfigWords for $type {
            fn words(&self) -> &'static [&'static str] {
                &[$($word),+]
            }

            fn word(&self) -> &'static str {
                match self { $($type::$variant => $word,)+ }
            }

            fn choose(&mut self, word: &str) -> bool {
                *self = match word {
                    $($word => $type::$variant,)+
                    _ => return false,
                };
                true
            }
        }
    };
}
pub(super) use choice;

/// The setting that chooses which residues and atoms are neighbours: those of all chains of the
/// model, or of the own chain alone.
pub(super) fn own_chain(own_chain: &mut bool) -> SettingField<'_> {
    SettingField::Either(own_chain, &["all", "own"])
}

/// The set that neighbours belong to, for descriptions.
pub(super) fn neighbours_of(own_chain: bool) -> &'static str {
    if own_chain { "chain" } else { "model" }
}

/// The error for a word that a setting does not have.
fn unknown_word_error(key: &str, word: &str, words: &[&str]) -> Error {
    let error = Error::config(format!("{key} has no word {word:?}"));
    error.fix(format!("its words are {}", words.join(", ")))
}

/// The error for a key or type that a feature does not list.
pub(super) fn unknown_setting_error(key: &str) -> Error {
    Error::config(format!("there is no setting {key} of this type"))
}
