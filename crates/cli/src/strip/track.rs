//! A column along the sequence: what its values stand for, and the colours that they have.

use super::style::STEPS;
use super::{HALF_TURN, colour_class, range, short};
use tapeloop::features::FeatureName;

/// What the values of a column stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Plain numbers.
    Numbers,
    /// Numbers that name a residue or a ligand, which no colour can show.
    Indices,
    /// Indices into these words.
    Words(Vec<String>),
    /// Indices into these names of chains, which have the colours of the chains.
    Chains(Vec<String>),
}

/// A column along the sequence.
pub struct Track {
    pub(super) name: String,
    pub(super) group: &'static str,
    pub(super) unit: String,
    pub(super) values: Vec<Option<f64>>,
    pub(super) range: Option<(f64, f64)>,
    /// The word for each value, by index; empty if the values are plain numbers.
    pub(super) words: Vec<String>,
    /// Whether the words are chains.
    pub(super) is_chains: bool,
    /// Whether the values name something and are not drawn.
    pub(super) is_indices: bool,
    /// Whether values are on a circle, where -180 is 180.
    pub(super) is_angle: bool,
}

impl Track {
    /// A column with a value for each residue, `None` for null. `unit` is empty if it has none, and
    /// `feature` is the one that computes the column, if that is known.
    pub fn new(
        name: &str,
        feature: Option<FeatureName>,
        unit: &str,
        values: Vec<Option<f64>>,
        meaning: Meaning,
    ) -> Self {
        let is_chains = matches!(meaning, Meaning::Chains(_));
        let is_indices = meaning == Meaning::Indices
            || feature.is_some_and(|feature| is_partner(feature, name, unit));
        let range = range(values.iter().copied());
        // In degrees, features have dihedral angles, which may be negative, and `ca_angle`, which cannot. Of other
        // columns the values tell.
        let is_signed = range.is_some_and(|(min, _)| min < 0.0);
        let is_angle =
            unit == "degrees" && (is_signed || feature.is_some_and(|_| name != "ca_angle"));
        let mut track = Track {
            name: name.to_owned(),
            group: feature.map_or(OTHER, |feature| group(feature, name)),
            unit: signs_of(unit),
            range,
            values,
            words: match meaning {
                Meaning::Numbers | Meaning::Indices => Vec::new(),
                Meaning::Words(words) | Meaning::Chains(words) => words,
            },
            is_chains,
            is_indices,
            is_angle,
        };
        track.number_words();
        track
    }

    /// Numbers the words anew, in the order in which they occur, if two of those that occur would
    /// have the same colour. Words whose colours differ keep them, so that drawings of several
    /// structures agree. Colours of chains stay those of the chains' bars.
    fn number_words(&mut self) {
        if self.is_chains || !self.repeats_colours() {
            return;
        }
        let mut words: Vec<String> = Vec::new();
        for value in self.values.iter_mut().flatten() {
            let word = &self.words[*value as usize];
            let number = words.iter().position(|known| known == word);
            *value = number.unwrap_or_else(|| {
                words.push(word.clone());
                words.len() - 1
            }) as f64;
        }
        self.words = words;
        self.range = range(self.values.iter().copied());
    }

    /// Whether two of the words that occur have the same colour.
    fn repeats_colours(&self) -> bool {
        let classes = self.occurring_words().into_iter();
        let mut classes: Vec<String> = classes.map(|word| self.word_class(word)).collect();
        let count = classes.len();
        classes.sort_unstable();
        classes.dedup();
        classes.len() < count
    }

    /// Whether the column is drawn, rather than named in the header.
    pub(super) fn is_drawn(&self) -> bool {
        let has_colours = self.is_chains || !self.repeats_colours();
        self.range.is_some() && self.constant().is_none() && !self.is_indices && has_colours
    }

    /// Whether the lowest values are the strongest, as those of energies are.
    pub(super) fn is_energy(&self) -> bool {
        self.unit.starts_with("kcal")
    }

    /// The style of a residue's cell, `None` without a value.
    pub(super) fn class(&self, residue: usize) -> Option<String> {
        let (value, (min, max)) = (self.values[residue]?, self.range?);
        if !self.words.is_empty() {
            return Some(self.word_class(value as usize));
        }
        if self.is_angle {
            let turn = (value + HALF_TURN).rem_euclid(2.0 * HALF_TURN) / (2.0 * HALF_TURN);
            return Some(format!("a{}", (turn * STEPS as f64) as usize % STEPS));
        }
        let share = if max > min {
            (value - min) / (max - min)
        } else {
            0.5
        };
        let step = ((share * STEPS as f64) as usize).min(STEPS - 1);
        let step = if self.is_energy() {
            STEPS - 1 - step
        } else {
            step
        };
        Some(format!("v{step}"))
    }

    /// The value that all residues have, if a structure of several has the same at each.
    pub(super) fn constant(&self) -> Option<f64> {
        let (min, max) = self.range?;
        let same = min == max && self.values.len() > 1 && !self.values.contains(&None);
        same.then_some(min)
    }

    /// A value with its unit, or its word.
    pub(super) fn text(&self, value: f64) -> String {
        match self.words.get(value as usize) {
            Some(word) => word.clone(),
            None => with_unit(&short(value), &self.unit),
        }
    }

    /// `no`, and no structure in `ss8` and `ss3`, are hardly more than the ground; other words have
    /// a colour each.
    pub(super) fn word_class(&self, word: usize) -> String {
        match self.words[word].as_str() {
            "-" | "C" | "no" if !self.is_chains => "plain".to_owned(),
            _ => colour_class(word),
        }
    }

    /// The indices of the words that occur.
    pub(super) fn occurring_words(&self) -> Vec<usize> {
        let is_there = |word: &usize| self.values.contains(&Some(*word as f64));
        (0..self.words.len()).filter(is_there).collect()
    }
}

/// The heading of columns that have none of their own.
const OTHER: &str = "Other columns";

/// The heading under which the columns of a feature are drawn.
fn group(feature: FeatureName, column: &str) -> &'static str {
    match feature {
        FeatureName::ContactNumber | FeatureName::Wcn | FeatureName::HseA | FeatureName::HseB => {
            "Packing"
        }
        FeatureName::Torsions | FeatureName::CaGeometry => "Backbone",
        FeatureName::SideChains => "Side chains",
        FeatureName::Dssp | FeatureName::Sheets if column.starts_with("hb_") => "Hydrogen bonds",
        FeatureName::Dssp | FeatureName::Sheets => "Secondary structure",
        FeatureName::Sasa | FeatureName::Rsa => "Solvent accessibility",
        FeatureName::InterfaceResidues => "Interface",
        FeatureName::Protrusion => "Protrusion",
        FeatureName::ContactOrder | FeatureName::Centrality => "Contact graph",
        FeatureName::Cluster => "Clusters",
        FeatureName::Smooth => "Smoothed",
        FeatureName::BFactor | FeatureName::Plddt => "B factors",
        FeatureName::Ligands => "Ligands",
        _ => OTHER,
    }
}

/// Whether a column has the partners of hydrogen bonds, whose energies have a unit, or of bridges.
fn is_partner(feature: FeatureName, column: &str, unit: &str) -> bool {
    match feature {
        FeatureName::Dssp => column.starts_with("hb_") && unit.is_empty(),
        FeatureName::Sheets => ["bridge1", "bridge2"].contains(&column),
        _ => false,
    }
}

/// A unit with its signs: `A^2` as `Å²`.
fn signs_of(unit: &str) -> String {
    unit.replace("A^2", "Å²")
        .replace("A^3", "Å³")
        .replace('A', "Å")
}

pub(super) fn with_unit(value: &str, unit: &str) -> String {
    match unit {
        "" => value.to_owned(),
        unit => format!("{value} {unit}"),
    }
}
