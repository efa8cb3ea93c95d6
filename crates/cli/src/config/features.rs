//! The keys that choose features, and the settings that each feature declares.

use super::components::{NO_COMPONENTS, read_components};
use super::radii::read_radii;
use super::raw::names_in;
use super::resolver::Resolver;
use serde_json::{Value as Json, json};
use std::ops::RangeInclusive;
use tapeloop::features::{
    ColumnDecl, ColumnKind, Cutoff, FeatureConfig, FeatureName, Fusion, Reals, Setting, TableName,
};
use tapeloop::structure::Components;
use tapeloop_error::internal::excerpt;
use tapeloop_files::did_you_mean;

/// Range of a cutoff, in angstrom.
const LENGTH: RangeInclusive<f64> = 0.001..=Cutoff::MAX_ANGSTROM;

/// Resolves `features` and every setting of every feature. A file may keep the settings of
/// features that it does not choose.
pub(super) fn resolve_features(keys: &mut Resolver) -> FeatureConfig {
    let (features, named) = resolve_names(keys);
    let mut config = FeatureConfig {
        features,
        fusion: keys.choice("fusion", &Fusion::NAMES),
        reals: keys.choice("reals", &Reals::NAMES),
        ..FeatureConfig::default()
    };
    // Comes before the settings are read, which then have the last word.
    for name in named {
        if is_switched_on_by_name(name) {
            config.let_compute(name);
        }
    }
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

/// What a name in `features` chooses.
enum Chosen {
    Preset(&'static [FeatureName]),
    /// By its own name, or by that of one of its columns.
    Feature(FeatureName),
}

/// What a name in `features` stands for: a preset, a feature, or the feature of a column.
fn chosen(name: &str) -> Option<Chosen> {
    let mut presets = FeatureName::PRESETS.iter();
    if let Some((_, members)) = presets.find(|(preset, _)| *preset == name) {
        return Some(Chosen::Preset(members));
    }
    let mut all = FeatureName::ALL.iter().copied();
    let feature = all.find(|feature| feature.name() == name);
    let feature = feature.or_else(|| Some(feature_of_column(name)?.feature));
    feature.map(Chosen::Feature)
}

/// Whether all names in a list are those of features, presets and columns of features.
pub fn are_features(list: &str) -> bool {
    names_in(list).all(|name| chosen(name).is_some())
}

/// The features that `features` lists by name, preset or column, in the order of their columns, and those
/// that it does not list by preset alone.
fn resolve_names(keys: &mut Resolver) -> (Vec<FeatureName>, Vec<FeatureName>) {
    let Some((texts, _)) = keys.texts("features") else {
        let all = FeatureName::ALL.to_vec();
        keys.record("features", names_json(&all));
        return (all, Vec::new());
    };
    let names: Vec<&str> = texts.iter().flat_map(|text| names_in(text)).collect();
    if names.is_empty() {
        keys.problem("features", "is empty");
    }
    let (mut features, mut named) = (Vec::new(), Vec::new());
    for (index, name) in names.iter().enumerate() {
        if keys.has_many_problems() {
            break;
        }
        if names[..index].contains(name) {
            keys.problem("features", format!("{name:?} is there twice"));
        }
        match chosen(name) {
            Some(Chosen::Preset(members)) => features.extend_from_slice(members),
            Some(Chosen::Feature(feature)) => named.push(feature),
            None => keys.problem(
                "features",
                format!("unknown name `{}`{}", excerpt(name), instead_of(name)),
            ),
        }
    }
    features.extend_from_slice(&named);
    let all = FeatureName::ALL.iter().copied();
    let features: Vec<FeatureName> = all.filter(|feature| features.contains(feature)).collect();
    keys.record("features", names_json(&features));
    (features, named)
}

fn names_json(features: &[FeatureName]) -> Json {
    features.iter().map(|feature| feature.name()).collect()
}

/// Names that are mistaken for features, each with what it is and how to set it.
const NOT_FEATURES: [(&str, &str); 6] = [
    (
        "coordinates",
        "a key, and no feature: coordinates = [\"ca\"]",
    ),
    ("interface", "its name is `interface_residues` now"),
    ("seqres", "a key, and no feature: seqres = true"),
    ("unobserved", "a key, and no feature: unobserved = true"),
    ("variants", "a table that `annotations` bring"),
    (
        "water_bridges",
        "a table of `interactions`: interaction.waters = true",
    ),
];

/// What to write in place of a name that no feature has, in parentheses; else empty.
fn instead_of(name: &str) -> String {
    if let Some((_, instead)) = NOT_FEATURES.iter().find(|(other, _)| *other == name) {
        return format!(" ({instead})");
    }
    let mut parts = name.split([';', '+', '|', '/', '&']);
    if parts.clone().nth(1).is_some() && parts.all(|part| chosen(part).is_some()) {
        return " (commas separate names)".to_owned();
    }
    let names = FeatureName::ALL.iter().map(|feature| feature.name());
    let presets = FeatureName::PRESETS.iter().map(|(name, _)| *name);
    did_you_mean(name, &names.chain(presets).collect::<Vec<_>>())
}

/// The feature that a column belongs to.
pub struct ColumnPlace {
    pub feature: FeatureName,
    /// The meaning of its values.
    pub kind: ColumnKind,
    table: TableName,
    /// A key and the value that gives the feature the column, if it lacks the column by default.
    pub setting: Option<(&'static str, Json)>,
}

impl ColumnPlace {
    /// Whether the column is of this table.
    pub fn is_of(&self, table: TableName) -> bool {
        self.table == table
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
    place_of_column(|column| column.name == name)
}

/// As [`feature_of_column`], for a column of `table`.
pub fn feature_of_column_in(table: TableName, name: &str) -> Option<ColumnPlace> {
    place_of_column(|column| column.table == table && column.name == name)
}

/// Where the first column is that `is_wanted` accepts, and what switches it on.
fn place_of_column(is_wanted: impl Fn(&ColumnDecl) -> bool) -> Option<ColumnPlace> {
    all_columns().find_map(|(feature, setting, columns)| {
        let column = columns.iter().find(|column| is_wanted(column))?;
        Some(ColumnPlace {
            feature,
            kind: column.kind,
            table: column.table,
            setting,
        })
    })
}

/// The names of the columns of all features, those included that a feature lacks by default.
pub fn column_names() -> Vec<String> {
    let columns = all_columns().flat_map(|(.., columns)| columns);
    columns.map(|column| column.name).collect()
}

/// All features with their columns. One that has none by default comes with the setting that gives it some.
fn all_columns()
-> impl Iterator<Item = (FeatureName, Option<(&'static str, Json)>, Vec<ColumnDecl>)> {
    let mut config = FeatureConfig::default();
    FeatureName::ALL.iter().map(move |&feature| {
        let setting = config.let_compute(feature);
        let setting = setting.map(|(key, setting)| (key, setting_json(&setting)));
        (feature, setting, config.columns_of(feature))
    })
}

/// Whether a feature that computes nothing by default computes something if it is named. Which atoms are in
/// contact, and which residues form clusters, is for the user to say.
fn is_switched_on_by_name(feature: FeatureName) -> bool {
    !matches!(feature, FeatureName::Contacts | FeatureName::Cluster)
}

/// What to do so that a feature that computes nothing by default computes something, for messages.
pub(super) fn how_to_switch_on(feature: FeatureName) -> String {
    let named = format!("name the feature {}", feature.name());
    let settings = FeatureConfig::default().settings(feature);
    let Some((key, Setting::Choice(default, words))) = settings.first() else {
        return named;
    };
    let others: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| word != default)
        .collect();
    match others.split_last() {
        Some((last, before)) if !is_switched_on_by_name(feature) => {
            format!("{named}, and set {key} to {} or {last}", before.join(", "))
        }
        _ => named,
    }
}

/// The value of a feature's setting, of the type of its default, if the key is set.
fn read_setting(keys: &mut Resolver, key: &'static str, default: &Setting) -> Option<Setting> {
    // Every number of the range is a cutoff.
    let cutoff = |angstrom: f64| Cutoff::from_angstrom(angstrom).ok();
    Some(match default {
        Setting::Length(_, max) => {
            let range = *LENGTH.start()..=*max;
            Setting::Length(cutoff(keys.real(key, &range)?)?, *max)
        }
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
        Setting::Flag(_) => Setting::Flag(keys.flag_if_set(key)?),
        Setting::Choice(_, words) => {
            let choices: Vec<_> = words.iter().map(|word| (*word, ())).collect();
            Setting::Choice(keys.choice_if_set(key, &choices)?.0, words)
        }
        Setting::Texts(_) => Setting::Texts(keys.texts(key)?.0),
        Setting::Radii(_) => Setting::Radii(read_radii(keys, key)?),
        Setting::Components(_) => Setting::Components(read_components(keys, key)?),
    })
}

/// A setting's value as JSON, which is TOML too.
pub fn setting_json(setting: &Setting) -> Json {
    match setting {
        Setting::Length(length, _) => json!(length.angstrom()),
        Setting::Lengths(lengths) => {
            let angstrom: Vec<f64> = lengths.iter().map(|length| length.angstrom()).collect();
            json!(angstrom)
        }
        Setting::Integer(integer, _) => json!(integer),
        Setting::Flag(flag) => json!(flag),
        Setting::Choice(word, _) => json!(word),
        Setting::Texts(texts) => json!(texts),
        Setting::Radii(radii) => json!(radii.name()),
        Setting::Components(components) => {
            json!(components.map_or(NO_COMPONENTS, Components::name))
        }
    }
}
