//! The keys that say how batches are replayed.

use super::form::Form;
use crate::backend::Streams;
use crate::replay::{Build, Fallback, MAPPED_BYTES_MAX, Mode, Policy, Scope, Transfer, Verify};

/// The replay policy; settings that do not go together are a problem of the one
/// that is not the default.
pub(super) fn resolve_policy(form: &mut Form) -> Policy {
    let modes: Vec<_> = Mode::ALL.iter().map(|it| (it.name(), *it)).collect();
    let mode = form.choice("mode", &modes);
    // The kernels of many features are independent, so what may run side by side does
    // unless the file says otherwise.
    let (explicit, capture) = (Build::Explicit, Build::Capture);
    let builds = match mode {
        Mode::Graph | Mode::Auto => [explicit, capture],
        Mode::Stream => [capture, explicit],
    };
    let build = form.choice("build", &builds.map(|it| (it.name(), it)));
    let scopes: Vec<_> = Scope::ALL.iter().map(|it| (it.name(), *it)).collect();
    let scope = form.choice("scope", &scopes);
    let streams: Vec<_> = Streams::ALL.iter().map(|it| (it.name(), *it)).collect();
    let streams = form.choice("streams", &streams);
    let transfers: Vec<_> = Transfer::ALL.iter().map(|it| (it.name(), *it)).collect();
    let transfer = form.choice("transfer", &transfers);
    let mapped_bytes_max =
        form.integer("mapped_bytes_max", MAPPED_BYTES_MAX as i64, 0..=i64::MAX) as usize;
    let fallbacks: Vec<_> = Fallback::ALL.iter().map(|it| (it.name(), *it)).collect();
    let fallback = form.choice("fallback", &fallbacks);
    let verifies: Vec<_> = Verify::ALL.iter().map(|it| (it.name(), *it)).collect();
    let verify = form.choice("verify", &verifies);
    let shadow_every = form.integer("shadow_every", 0, 0..=i64::from(u32::MAX)) as u32;
    let policy = Policy {
        mode,
        build,
        scope,
        streams,
        transfer,
        mapped_bytes_max,
        fallback,
        verify,
        shadow_every,
        ..Policy::default()
    };
    if let Err(error) = policy.check() {
        let key = match streams {
            Streams::PerStage => "streams",
            Streams::PerSlot => "build",
        };
        let fix = error.fix_text().unwrap_or_default();
        form.problem(key, format!("{}; {fix}", error.message()));
    }
    policy
}
