//! `tapeloop graph`.

use super::args::GraphFormat;
use tapeloop::backend::{device_options, select_with};
use tapeloop::error::{Error, Result};
use tapeloop::features::Features;
use tapeloop::pipeline;
use tapeloop_cli::config::Config;
use tapeloop_cli::exit_codes::GOOD;
use tapeloop_cli::plan::{engine_config, thread_pool};
use tapeloop_cli::selection::cuda_options;
use tapeloop_cli::terminal::say;

/// Prints the graph of a bucket's batches as `format` says, and returns the exit code.
///
/// # Errors
/// [`ErrorKind::Config`](tapeloop::ErrorKind::Config) if the config is wrong or there is no such
/// bucket, and those of a backend that cannot be used.
pub(super) fn graph(config: &Config, bucket: Option<usize>, format: GraphFormat) -> Result<u8> {
    let workload = Features::new(config.features.clone())?;
    let pool = thread_pool(config.threads)?;
    let options = device_options(config.backend, &config.devices, &cuda_options(config))?;
    let [options] = &options[..] else {
        let error = Error::config(
            "tapeloop graph draws the graph of one device, and `devices` names several",
        );
        return Err(error.fix("give one of them: tapeloop graph --devices 0"));
    };
    let backend = select_with(config.backend, &pool, options)?.backend;
    let engine = engine_config(config, backend.device(), pool.current_num_threads());
    let draw = match format {
        GraphFormat::Dot => pipeline::dot::<Features>,
        GraphFormat::Svg => pipeline::graph_svg::<Features>,
    };
    say(&draw(&workload, &backend, &engine, bucket)?);
    Ok(GOOD)
}
