//! The contents of `run.json` while a run goes on.

use super::output::{Committed, RESUME};
use super::plan::Plan;
use super::run_counters::WrittenParts;
use serde_json::{Map, Value as Json, json};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use tapeloop::backend::DeviceInfo;
use tapeloop_files::{current_folder, text_of};

/// The keys of `run.json` that are known at the start.
#[derive(Clone)]
pub struct RunHeader(Map<String, Json>);

impl RunHeader {
    /// The keys of a run that starts at `started`.
    pub fn new(plan: &Plan, started: SystemTime) -> Self {
        let started = started.duration_since(UNIX_EPOCH).unwrap_or_default();
        let arguments = std::env::args_os().skip(1);
        let arguments: Vec<String> = arguments
            .map(|argument| text_of(Path::new(&argument)))
            .collect();
        let config = object(plan.config.settings.iter().cloned());
        let provenance = plan.provenance().into_iter();
        let values = object(provenance.map(|(key, value)| (key, json!(value))));
        let header = [
            ("started_unix_s", json!(started.as_secs_f64())),
            ("arguments", json!(arguments)),
            ("current_folder", json!(current_folder())),
            ("config", json!(config)),
            ("values_follow_from", json!(values)),
            ("backend", backend_json(plan)),
            ("mode", json!(plan.config.policy.mode.name())),
            ("threads", json!(plan.pool.current_num_threads())),
        ];
        RunHeader(object(header))
    }

    /// The config.
    pub fn config(&self) -> &Json {
        &self.0["config"]
    }

    /// `run.json` of a run whose complete parts are `committed`.
    pub fn running(&self, committed: &Committed) -> Json {
        let mut record = self.0.clone();
        record.insert("state".to_owned(), json!("running"));
        record.insert("written".to_owned(), committed.written().json());
        record.insert(RESUME.to_owned(), json!(committed));
        Json::Object(record)
    }

    /// The keys and their values.
    pub fn into_keys(self) -> Map<String, Json> {
        self.0
    }

    /// The keys that are known at the start.
    pub fn json(&self) -> Json {
        Json::Object(self.0.clone())
    }
}

/// The backend and its device: the first one, and a list of all if there are several.
fn backend_json(plan: &Plan) -> Json {
    let of_device = |device: &DeviceInfo| {
        [
            ("device", json!(device.name)),
            ("uuid", json!(device.uuid)),
            ("pci_bus_id", json!(device.pci_bus_id)),
            ("compute_capability", json!(device.compute_capability)),
            ("driver_version", json!(device.driver_version)),
        ]
    };
    let first = plan.first_device();
    let mut backend = object([
        ("name", json!(first.backend)),
        ("reason", json!(plan.reason)),
    ]);
    backend.extend(object(of_device(first)));
    if plan.backends.len() > 1 {
        let all = plan.backends.iter();
        let all = all.map(|backend| object(of_device(backend.device())));
        backend.insert("devices".to_owned(), json!(all.collect::<Vec<_>>()));
    }
    Json::Object(backend)
}

/// A JSON object of keys and values.
pub fn object(entries: impl IntoIterator<Item = (&'static str, Json)>) -> Map<String, Json> {
    let entries = entries.into_iter();
    entries
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

impl WrittenParts {
    /// The key `written` of `run.json`.
    pub fn json(&self) -> Json {
        let WrittenParts { parts, counts } = self;
        json!({
            "parts": parts,
            "inputs": counts.inputs,
            "structures": counts.structures,
            "residues": counts.residues,
            "residues_left_out": counts.residues_left_out,
            "rejected": counts.rejected,
        })
    }
}
