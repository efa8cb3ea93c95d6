//! The keys that choose features, and the settings that each feature declares.

use super::resolver::Resolver;
use crate::features::{Cutoff, FeatureConfig, FeatureName, Fusion, Reals, Setting};
use serde_json::{Value as Json, json};
use std::ops::RangeInclusive;

/// Range of a cutoff, in angstrom.
const LENGTH: RangeInclusive<f64> = 0.001..=Cutoff::MAX_ANGSTROM;

/// Resolves `features` and every setting of every feature. A file may keep the settings of
/// features that it does not choose.
pub(super) fn resolve_features(keys: &mut Resolver) -> FeatureConfig {
    let mut config = FeatureConfig {
        features: resolve_names(keys),
        fusion: keys.choice("fusion", &Fusion::NAMES),
        reals: keys.choice("reals", &Reals::NAMES),
        ..FeatureConfig::default()
    };
    for &name in FeatureName::ALL {
        for (key, default) in config.settings(name) {
            let set = read_setting(keys, key, &default);
            if let Some(Err(error)) = set.map(|setting| config.set(name, key, &setting)) {
                keys.problem(key, error.message());
            }
        }
        for (key, setting) in config.settings(name) {
            keys.record(key, setting_json(&setting));
        }
    }
    config
}

/// The features that `features` lists by name or preset, in the order of their columns.
fn resolve_names(keys: &mut Resolver) -> Vec<FeatureName> {
    let presets = FeatureName::PRESETS;
    let names = FeatureName::ALL.iter().map(|feature| feature.name());
    let known: Vec<&'static str> = names.chain(presets.iter().map(|(name, _)| *name)).collect();
    let set = keys.names("features", &known, feature_of_column);
    let is_chosen = |feature: &FeatureName| {
        let Some(set) = &set else {
            return true;
        };
        let has = |name: &str| set.iter().any(|text| text == name);
        let mut presets = presets.iter();
        has(feature.name()) || presets.any(|(name, of)| has(name) && of.contains(feature))
    };
    let features: Vec<FeatureName> = FeatureName::ALL.iter().copied().filter(is_chosen).collect();
    let names: Vec<&str> = features.iter().map(|feature| feature.name()).collect();
    keys.record("features", json!(names));
    features
}

/// ` (a column of `torsions`)`, if the name is a column's under default settings; else empty.
fn feature_of_column(name: &str) -> String {
    let config = FeatureConfig::default();
    let has_column = |feature: &&FeatureName| {
        let columns = config.columns_of(**feature);
        columns.iter().any(|column| column.name == name)
    };
    let feature = FeatureName::ALL.iter().find(has_column);
    feature.map_or(String::new(), |feature| {
        format!(" (a column of the feature `{}`: name that)", feature.name())
    })
}

/// The value of a feature's setting, of the type of its default, if the key is set.
fn read_setting(keys: &mut Resolver, key: &'static str, default: &Setting) -> Option<Setting> {
    // Every number of the range is a cutoff.
    let cutoff = |angstrom: f64| Cutoff::from_angstrom(angstrom).ok();
    Some(match default {
        Setting::Length(_) => Setting::Length(cutoff(keys.real(key, &LENGTH)?)?),
        Setting::Lengths(_) => {
            let lengths = keys.reals(key, &LENGTH)?;
            let lengths: Vec<Cutoff> = lengths.into_iter().filter_map(cutoff).collect();
            let repeated = (1..lengths.len()).find(|&at| lengths[..at].contains(&lengths[at]));
            if let Some(at) = repeated {
                keys.problem(key, format!("{} is there twice", lengths[at].angstrom()));
                return None;
            }
            Setting::Lengths(lengths)
        }
        Setting::Integer(_, range) => {
            Setting::Integer(keys.integer_if_set(key, range.clone())?, range.clone())
        }
        Setting::Flag(_) => Setting::Flag(keys.value(key, "true or false")?),
        Setting::Choice(_, words) => {
            let choices: Vec<_> = words.iter().map(|word| (*word, ())).collect();
            Setting::Choice(keys.choice_if_set(key, &choices)?.0, words)
        }
        Setting::Texts(_) => Setting::Texts(keys.texts(key)?.0),
    })
}

/// A setting's value as JSON, which is TOML too.
pub(crate) fn setting_json(setting: &Setting) -> Json {
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
