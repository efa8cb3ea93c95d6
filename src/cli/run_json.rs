//! What `run.json` says while the run goes on.

use super::path_text::text_of;
use super::plan::Plan;
use super::sink::Kept;
use serde_json::{Map, Value as Json, json};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// What `run.json` says of a run from its start.
#[derive(Clone)]
pub(super) struct Heading(pub(super) Map<String, Json>);

impl Heading {
    /// The heading of a run that starts.
    pub(super) fn new(plan: &Plan, started: SystemTime) -> Self {
        let device = plan.selected.backend.device();
        let started = started.duration_since(UNIX_EPOCH).unwrap_or_default();
        let arguments = std::env::args_os().skip(1);
        let arguments: Vec<String> = arguments.map(|it| text_of(Path::new(&it))).collect();
        let config: Map<String, Json> = plan
            .config
            .settings
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone()))
            .collect();
        let values: Map<String, Json> = plan
            .provenance()
            .into_iter()
            .map(|(key, value)| (key.to_owned(), json!(value)))
            .collect();
        let heading = [
            ("started_unix_s", json!(started.as_secs_f64())),
            ("arguments", json!(arguments)),
            ("config", json!(config)),
            ("values_follow_from", json!(values)),
            (
                "backend",
                json!({
                    "name": device.backend,
                    "reason": plan.selected.reason,
                    "device": device.name,
                    "uuid": device.uuid,
                    "pci_bus_id": device.pci_bus_id,
                    "compute_capability": device.compute_capability,
                    "driver_version": device.driver_version,
                }),
            ),
            ("mode", json!(plan.config.policy.mode.name())),
            ("threads", json!(plan.pool.current_num_threads())),
        ];
        Heading(
            heading
                .map(|(key, value)| (key.to_owned(), value))
                .into_iter()
                .collect(),
        )
    }

    /// `run.json` of a run that has not ended.
    pub(super) fn running(&self, kept: &Kept) -> Json {
        let mut record = self.0.clone();
        record.insert("state".to_owned(), json!("running"));
        record.insert("written".to_owned(), kept.json());
        Json::Object(record)
    }
}

impl Kept {
    /// What `run.json` says of the parts that count.
    pub(super) fn json(&self) -> Json {
        let Kept { parts, counts } = self;
        json!({
            "parts": parts,
            "inputs": counts.inputs,
            "structures": counts.structures,
            "residues": counts.residues,
            "rejected": counts.rejected,
        })
    }
}
