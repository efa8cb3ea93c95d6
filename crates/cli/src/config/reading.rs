//! The keys that decide what is read from a structure file.

use super::resolver::Resolver;
use super::setting_values::SettingValues;
use serde_json::json;
use tapeloop::structure::{
    Assembly, BFactorKind, ChainSplit, Check, CheckSet, Format, Models, Radii, ReadLimits,
    ReadOptions,
};
use tapeloop_error::internal::LaterFields;

const MODELS: [(&str, Models); 3] = [
    ("first", Models::First),
    ("all", Models::All),
    ("joined", Models::Joined),
];

const CHAIN_SPLITS: [(&str, ChainSplit); 5] = [
    ("auto", ChainSplit::Auto),
    ("id", ChainSplit::Id),
    ("ter", ChainSplit::Ter),
    ("segid", ChainSplit::Segid),
    ("number", ChainSplit::Number),
];

pub const ASSEMBLIES: [(&str, Assembly); 2] =
    [("deposited", Assembly::Deposited), ("1", Assembly::First)];

/// What the column of B factors holds; `auto` leaves that to the reader.
const B_FACTORS: [(&str, Option<BFactorKind>); 3] = [
    ("auto", None),
    ("b", Some(BFactorKind::Temperature)),
    ("plddt", Some(BFactorKind::Plddt)),
];

/// The format of the inputs; `auto` leaves that to their contents and names.
const INPUT_FORMATS: [(&str, Option<Format>); 4] = [
    ("auto", None),
    ("pdb", Some(Format::Pdb)),
    ("mmcif", Some(Format::Mmcif)),
    ("bcif", Some(Format::BinaryCif)),
];

/// What is read, without what the features ask for.
pub(super) fn resolve_reading(keys: &mut Resolver, has_topology: bool) -> ReadOptions {
    let reading = ReadOptions {
        models: keys.choice("models", &MODELS),
        chain_split: keys.choice("chains.split", &CHAIN_SPLITS),
        nucleic: keys.flag("nucleic", true),
        // Set later, when the features are resolved.
        ligands: false,
        sequences: false,
        atom_details: false,
        chemistry: false,
        components: None,
        water_reach: 0,
        radii: Radii::default(),
        agents: false,
        assembly: keys.choice("assembly", &ASSEMBLIES),
        b_factor_kind: keys.choice("b_factor", &B_FACTORS),
        strict: resolve_strict(keys),
        format: keys.choice("input_format", &INPUT_FORMATS),
        limits: resolve_limits(keys),
        later: LaterFields::NONE,
    };
    check_trajectories(keys, has_topology, &reading);
    check_assembly(keys, &reading);
    reading
}

/// The checks that reject a file. `strict` is true for [`Check::Truncated`] alone, or names checks.
fn resolve_strict(keys: &mut Resolver) -> CheckSet {
    let truncated = CheckSet::NONE.with(Check::Truncated);
    let names: Vec<&str> = Check::ALL.iter().map(|check| check.name()).collect();
    let checks = SettingValues::Choice(names.clone()).or_list();
    keys.takes(
        "strict",
        SettingValues::OneOf(vec![SettingValues::Flag, checks]),
    );
    let flag = keys.entry("strict").and_then(|entry| entry.value.as_bool());
    if let Some(flag) = flag {
        keys.record("strict", json!(flag));
        return if flag { truncated } else { CheckSet::NONE };
    }
    let names = keys.names("strict", &names);
    keys.record(
        "strict",
        names.as_ref().map_or(json!(false), |names| json!(names)),
    );
    let is_named = |check: &&Check| names.iter().flatten().any(|name| name == check.name());
    Check::ALL.iter().filter(is_named).copied().collect()
}

/// A trajectory has the atoms of its topology's first model, and no others.
fn check_trajectories(keys: &mut Resolver, has_topology: bool, reading: &ReadOptions) {
    if !has_topology && keys.entry("frames").is_some() {
        keys.problem("frames", "is for trajectories, and `topology` is not set");
    }
    if has_topology && reading.models != Models::First {
        keys.problem(
            "models",
            "chooses among the models of files, and trajectories are read; leave it out",
        );
    }
    if has_topology && reading.assembly != Assembly::Deposited {
        let text = "trajectories have the chains of their topology; leave it out";
        keys.problem("assembly", text);
    }
}

/// Checks that models which are joined are not copied again.
fn check_assembly(keys: &mut Resolver, reading: &ReadOptions) {
    if reading.models == Models::Joined && reading.assembly != Assembly::Deposited {
        let text = "makes copies of chains, and models = \"joined\" are an assembly already; leave one out";
        keys.problem("assembly", text);
    }
}

/// Checks that what is read has ligands, if they are kept.
pub(super) fn check_ligands(keys: &mut Resolver, has_topology: bool, reading: &ReadOptions) {
    if reading.ligands && has_topology {
        let text = "\"keep\" is for files, and trajectories are read; leave it out";
        keys.problem("ligands", text);
    }
}

/// Checks that bridges of water are those of files with chemistry.
pub(super) fn check_waters(keys: &mut Resolver, has_topology: bool, reading: &ReadOptions) {
    const KEY: &str = "interaction.waters";
    if reading.water_reach > 0 && !reading.chemistry {
        keys.problem(
            KEY,
            "is for interactions; set interactions = true, or leave it out",
        );
    }
    if reading.water_reach > 0 && has_topology {
        keys.problem(KEY, "is for files, and trajectories are read; leave it out");
    }
}

/// The limits of one file.
fn resolve_limits(keys: &mut Resolver) -> ReadLimits {
    let default = ReadLimits::default();
    let mut limit = |key, default: u32| {
        let range = 1..=i64::from(u32::MAX);
        keys.integer(key, default.into(), range) as u32
    };
    ReadLimits {
        text_bytes_max: limit("limits.text_bytes_max", default.text_bytes_max),
        unpack_ratio_max: limit("limits.unpack_ratio_max", default.unpack_ratio_max),
        name_bytes_max: limit("limits.name_bytes_max", default.name_bytes_max),
        atoms_max: limit("limits.atoms_max", default.atoms_max),
        residues_max: limit("limits.residues_max", default.residues_max),
        models_max: limit("limits.models_max", default.models_max),
        chains_max: limit("limits.chains_max", default.chains_max),
        operators_max: limit("limits.operators_max", default.operators_max),
        assembly_atoms_max: limit("limits.assembly_atoms_max", default.assembly_atoms_max),
        assembly_residues_max: limit(
            "limits.assembly_residues_max",
            default.assembly_residues_max,
        ),
        row_names_bytes_max: limit("limits.row_names_bytes_max", default.row_names_bytes_max),
        later: LaterFields::NONE,
    }
}
