//! `tapeloop graph`.

use super::config::Config;
use super::plan::{cuda_options, engine_config, thread_pool};
use super::{GOOD, say};
use crate::backend::select_with;
use crate::error::Result;
use crate::features::Features;
use crate::pipeline;

/// Prints what the batches of a bucket replay, in Graphviz's DOT, and returns the
/// exit code.
///
/// # Errors
/// What is wrong with the config, a backend that cannot be used, a bucket that is
/// not there.
pub(super) fn graph(config: &Config, bucket: Option<usize>) -> Result<u8> {
    let workload = Features::new(config.features.clone())?;
    let pool = thread_pool(config.threads)?;
    let backend = select_with(config.backend, &pool, &cuda_options(config))?.backend;
    let engine = engine_config(config);
    say(&pipeline::dot(&workload, &backend, &engine, bucket)?);
    Ok(GOOD)
}
