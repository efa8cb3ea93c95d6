//! The program's log.

use std::io::{self, IsTerminal, Write};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// Standard error, which may be closed; errors of writing are ignored.
struct Stderr;

impl Write for Stderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let _ = io::stderr().write_all(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Logs to standard error, filtered by `TAPELOOP_LOG`, else by `RUST_LOG`.
pub(super) fn start() {
    let filter = ["TAPELOOP_LOG", "RUST_LOG"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok())
        .unwrap_or_else(|| "info".to_owned());
    let lines = fmt::layer()
        .with_writer(|| Stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .with_filter(EnvFilter::new(filter));
    let subscriber = tracing_subscriber::registry().with(lines);
    #[cfg(feature = "nvtx")]
    let subscriber = subscriber.with(ranges());
    subscriber.init();
}

/// A layer of NVTX ranges, if a profiler runs the program: it sets `NVTX_INJECTION64_PATH`.
/// Without a profiler spans are disabled.
#[cfg(feature = "nvtx")]
fn ranges<S>() -> Option<impl Layer<S>>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    use super::terminal::complain;
    use crate::backend::cuda::NvtxLayer;
    use tracing_subscriber::filter::filter_fn;

    std::env::var_os("NVTX_INJECTION64_PATH")?;
    let layer = NvtxLayer::find().inspect_err(|error| complain(&format!("warning: {error}")));
    let spans =
        filter_fn(|metadata| metadata.is_span() && metadata.target().starts_with("tapeloop"));
    Some(layer.ok()?.with_filter(spans))
}
