//! The keys that choose features, and those that each feature has of its own.
//!
//! Nothing here knows a single feature: names, presets and settings are what the
//! features list.

use super::form::Form;
use crate::features::{Cutoff, FeatureConfig, FeatureName, Fusion, Reals, Setting};
use serde_json::{Value as Json, json};
use std::ops::RangeInclusive;

/// Distances that a feature may look at, in A.
const LENGTH: RangeInclusive<f64> = 0.001..=Cutoff::MAX_ANGSTROM;

/// The key that chooses features, and every setting of every feature: one that
/// is not chosen may keep its settings in the file.
pub(super) fn resolve_features(form: &mut Form) -> FeatureConfig {
    let mut config = FeatureConfig {
        features: chosen(form),
        fusion: form.choice("fusion", &Fusion::NAMES),
        reals: form.choice("reals", &Reals::NAMES),
        ..FeatureConfig::default()
    };
    for &name in FeatureName::ALL {
        for (key, default) in config.settings(name) {
            let written = answer(form, key, &default);
            let outcome = written.map(|setting| config.set(name, key, &setting));
            if let Some(Err(error)) = outcome {
                form.problem(key, error.message());
            }
        }
        for (key, setting) in config.settings(name) {
            form.note(key, setting_json(&setting));
        }
    }
    config
}

/// The features that names and presets stand for, in the order of their columns.
fn chosen(form: &mut Form) -> Vec<FeatureName> {
    let features = FeatureName::ALL.iter().map(|feature| feature.name());
    let presets = FeatureName::PRESETS.iter().map(|(preset, _)| *preset);
    let known: Vec<&'static str> = features.chain(presets).collect();
    let written = form.names("features", &known);
    let is_wanted = |feature: &FeatureName| {
        let Some(written) = &written else {
            return true;
        };
        let has = |name: &str| written.iter().any(|text| text == name);
        let mut presets = FeatureName::PRESETS.iter();
        has(feature.name()) || presets.any(|(name, of)| has(name) && of.contains(feature))
    };
    let all = FeatureName::ALL.iter().copied();
    let features: Vec<FeatureName> = all.filter(is_wanted).collect();
    let names: Vec<&str> = features.iter().map(|feature| feature.name()).collect();
    form.note("features", json!(names));
    features
}

/// What is written for a setting, of the setting's own type.
fn answer(form: &mut Form, key: &'static str, default: &Setting) -> Option<Setting> {
    // The range is checked before, so every number is a cutoff.
    let cutoff = |angstrom: f64| Cutoff::from_angstrom(angstrom).ok();
    match default {
        Setting::Length(_) => form
            .written_real(key, &LENGTH)
            .and_then(cutoff)
            .map(Setting::Length),
        Setting::Lengths(_) => {
            let written = form.written_reals(key, &LENGTH)?;
            let lengths: Vec<Cutoff> = written.into_iter().filter_map(cutoff).collect();
            let repeated = (1..lengths.len()).find(|&at| lengths[..at].contains(&lengths[at]));
            if let Some(at) = repeated {
                form.problem(key, format!("{} is there twice", lengths[at].angstrom()));
                return None;
            }
            Some(Setting::Lengths(lengths))
        }
        Setting::Integer(_, range) => {
            let written = form.written_integer(key, range.clone())?;
            Some(Setting::Integer(written, range.clone()))
        }
        Setting::Flag(_) => form.written_flag(key).map(Setting::Flag),
        Setting::Choice(_, words) => {
            let choices: Vec<_> = words.iter().map(|word| (*word, *word)).collect();
            let written = form.written_choice(key, &choices)?;
            Some(Setting::Choice(written.1, words))
        }
        Setting::Texts(_) => form.texts(key).map(|(texts, _)| Setting::Texts(texts)),
    }
}

/// A setting's value as a config file has it.
pub(in super::super) fn setting_json(setting: &Setting) -> Json {
    match setting {
        Setting::Length(length) => json!(length.angstrom()),
        Setting::Lengths(lengths) => {
            let angstrom: Vec<f64> = lengths.iter().map(|length| length.angstrom()).collect();
            json!(angstrom)
        }
        Setting::Integer(integer, _) => json!(integer),
        Setting::Flag(flag) => json!(flag),
        Setting::Choice(word, _) => json!(word),
        Setting::Texts(texts) => json!(texts),
    }
}
