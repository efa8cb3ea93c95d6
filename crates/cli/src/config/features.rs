//! The keys that choose features, and the settings that each feature declares.

use super::resolver::Resolver;
use serde_json::{Value as Json, json};
use std::ops::RangeInclusive;
use tapeloop::features::{Cutoff, FeatureConfig, FeatureName, Fusion, Reals, Setting, TableName};

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
    let set = keys.names("features", &known, instead_of);
    let is_chosen = |feature: &FeatureName| {
        let Some(set) = &set else {
            return true;
        };
        let has = |name: &str| set.iter().any(|text| text == name);
        let mut presets = presets.iter();
        has(feature.name()) || presets.any(|(name, members)| has(name) && members.contains(feature))
    };
    let features: Vec<FeatureName> = FeatureName::ALL.iter().copied().filter(is_chosen).collect();
    let names: Vec<&str> = features.iter().map(|feature| feature.name()).collect();
    keys.record("features", json!(names));
    features
}

/// Names that are mistaken for features, each with what it is and how to set it.
const NOT_FEATURES: [(&str, &str); 4] = [
    (
        "coordinates",
        "a key, and no feature: coordinates = [\"ca\"]",
    ),
    ("seqres", "a key, and no feature: seqres = true"),
    ("unobserved", "a key, and no feature: unobserved = true"),
    ("variants", "a table that `annotations` bring"),
];

/// What to write in place of a name that no feature has, in parentheses; else empty.
fn instead_of(name: &str) -> String {
    if let Some((_, instead)) = NOT_FEATURES.iter().find(|(other, _)| *other == name) {
        return format!(" ({instead})");
    }
    feature_of_column(name).map_or(String::new(), |place| {
        let feature = place.feature.name();
        format!(" (a column of the feature `{feature}`: name that)")
    })
}

/// The feature that a column belongs to.
pub struct ColumnPlace {
    pub feature: FeatureName,
    table: TableName,
    /// A key and the value that gives the feature the column, if it lacks the column by default.
    pub setting: Option<(&'static str, Json)>,
}

impl ColumnPlace {
    /// Whether the column is of the table of residues.
    pub fn is_of_residues(&self) -> bool {
        self.table == TableName::Residues
    }

    /// What a config has to say for the column to be computed.
    pub fn how_to_compute(&self) -> String {
        let feature = self.feature.name();
        match &self.setting {
            None => format!("let `features` name `{feature}`"),
            Some((key, value)) => {
                format!("set {key} = {value}; a list of features has to name `{feature}` too")
            }
        }
    }
}

/// The feature that has a column of this name, if one has it by default, or if the setting that
/// lets the feature compute anything is set.
pub fn feature_of_column(name: &str) -> Option<ColumnPlace> {
    let mut config = FeatureConfig::default();
    FeatureName::ALL.iter().find_map(|&feature| {
        let setting = if config.columns_of(feature).is_empty() {
            let_compute(&mut config, feature)
        } else {
            None
        };
        let columns = config.columns_of(feature);
        let column = columns.iter().find(|column| column.name == name)?;
        Some(ColumnPlace {
            feature,
            table: column.table,
            setting,
        })
    })
}

/// Sets the first setting of a feature that has nothing to compute by default. Returns its key and
/// value.
fn let_compute(config: &mut FeatureConfig, feature: FeatureName) -> Option<(&'static str, Json)> {
    let (key, setting) = config.settings(feature).into_iter().next()?;
    let setting = match setting {
        Setting::Choice(default, words) => {
            let word = words.iter().copied().find(|word| *word != default)?;
            Setting::Choice(word, words)
        }
        Setting::Texts(_) => Setting::Texts(vec!["H".to_owned()]),
        Setting::Flag(default) => Setting::Flag(!default),
        _ => return None,
    };
    let value = setting_json(&setting);
    config.set(feature, key, &setting).ok()?;
    Some((key, value))
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
            let repeated =
                (1..lengths.len()).find(|&index| lengths[..index].contains(&lengths[index]));
            if let Some(index) = repeated {
                keys.problem(key, format!("{} is there twice", lengths[index].angstrom()));
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
pub fn setting_json(setting: &Setting) -> Json {
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
