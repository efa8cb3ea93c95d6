//! The keys `device` and `devices`.

use super::resolver::{Resolver, range_text};
use super::setting_values::SettingValues;
use serde_json::{Value as Json, json};
use std::ops::RangeInclusive;
use tapeloop::backend::{DeviceChoice, DeviceSet};
use toml::Value;

const ONE: &str = "device";
const SEVERAL: &str = "devices";
const ALL: &str = "all";
/// More than a machine has; whether there is such a device is seen when it is opened.
const ORDINALS: RangeInclusive<i64> = 0..=1023;

/// The GPUs that are used: those of `devices`, or the one of `device`. Records both keys.
pub(super) fn resolve_devices(keys: &mut Resolver) -> DeviceSet {
    let one = resolve_one(keys);
    let several = resolve_several(keys);
    if let (Some(one), Some(_)) = (keys.entry(ONE), keys.entry(SEVERAL)) {
        let text = format!(
            "excludes `{ONE}`, which {} sets; leave one of them out",
            one.origin
        );
        keys.problem(SEVERAL, text);
    }
    let recorded = match (&one, &several) {
        (None, Some(_)) => Json::Null,
        (None, None) => json_of(&DeviceChoice::default()),
        (Some(one), _) => json_of(one),
    };
    keys.record(ONE, recorded);
    keys.record(
        SEVERAL,
        match &several {
            None => Json::Null,
            Some(DeviceSet::All) => json!(ALL),
            Some(DeviceSet::Named(named)) => named.iter().map(json_of).collect(),
        },
    );
    several.or(one.map(DeviceSet::from)).unwrap_or_default()
}

/// The ordinal of a device, or its UUID or another text that names it.
fn numbers_and_names() -> SettingValues {
    SettingValues::OneOf(vec![SettingValues::Integer, SettingValues::Text])
}

/// A number, or a string that names a device.
fn resolve_one(keys: &mut Resolver) -> Option<DeviceChoice> {
    keys.takes(ONE, numbers_and_names());
    match keys.entry(ONE)?.value {
        Value::Integer(_) => {
            let ordinal = keys.integer_if_set(ONE, ORDINALS)?;
            Some(DeviceChoice::Ordinal(ordinal as usize))
        }
        _ => {
            let text = keys.value::<String>(ONE, "an integer or a string")?;
            match text.parse() {
                Ok(choice) => Some(choice),
                Err(error) => {
                    keys.error(ONE, &error);
                    None
                }
            }
        }
    }
}

/// `"all"`, or a list of different numbers and UUIDs; one of them may stand without brackets.
fn resolve_several(keys: &mut Resolver) -> Option<DeviceSet> {
    keys.takes(SEVERAL, numbers_and_names().or_list());
    let items = match keys.entry(SEVERAL)?.value {
        Value::Array(items) => items,
        single => vec![single],
    };
    if let [Value::String(text)] = &items[..]
        && text == ALL
    {
        return Some(DeviceSet::All);
    }
    let mut named: Vec<DeviceChoice> = Vec::with_capacity(items.len());
    for item in &items {
        match entry_of(item) {
            Ok(choice) if named.iter().any(|other| is_same(other, &choice)) => {
                keys.problem(SEVERAL, format!("{choice} is there twice"));
            }
            Ok(choice) => named.push(choice),
            Err(text) => keys.problem(SEVERAL, text),
        }
    }
    if items.is_empty() {
        let text = format!("is empty; name GPUs, as in [0, 1], or write {ALL:?}");
        keys.problem(SEVERAL, text);
    }
    Some(DeviceSet::Named(named))
}

/// An entry of the list, or what is wrong with it.
fn entry_of(item: &Value) -> Result<DeviceChoice, String> {
    let text = match item {
        Value::Integer(ordinal) if ORDINALS.contains(ordinal) => {
            return Ok(DeviceChoice::Ordinal(*ordinal as usize));
        }
        Value::Integer(other) => {
            return Err(format!("must be {}, not {other}", range_text(&ORDINALS)));
        }
        Value::String(text) => text,
        other => {
            let kind = other.type_str();
            return Err(format!(
                "must be {ALL:?} or a list of numbers and UUIDs, and has a value of type {kind}"
            ));
        }
    };
    match text.parse() {
        Ok(DeviceChoice::MostFree) => Err(format!(
            "{text:?} is one device; write {ONE} = {text:?} instead"
        )),
        Ok(choice) => Ok(choice),
        Err(_) if text == ALL => Err(format!("{ALL:?} leaves nothing to name; write it alone")),
        Err(_) => Err(format!(
            "{text:?} names no device; give numbers from 0, UUIDs or their beginnings (GPU-... or \
             MIG-...), or {ALL:?} alone"
        )),
    }
}

/// Whether both name one device by the same words; a number and a UUID may still be of one.
fn is_same(one: &DeviceChoice, other: &DeviceChoice) -> bool {
    match (one, other) {
        (DeviceChoice::Uuid(one), DeviceChoice::Uuid(other)) => one.eq_ignore_ascii_case(other),
        _ => one == other,
    }
}

fn json_of(device: &DeviceChoice) -> Json {
    match device {
        DeviceChoice::Ordinal(ordinal) => json!(ordinal),
        named => json!(named.to_string()),
    }
}
