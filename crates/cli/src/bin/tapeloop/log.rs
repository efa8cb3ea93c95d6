//! The program's log.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use tapeloop_cli::terminal::complain;
use tapeloop_error::internal::printable_lines;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, layer};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// What begins a sequence of control characters.
const ESCAPE: &str = "\x1b";

/// Standard error, which may be closed; errors of writing are ignored. Control characters are escaped, but for
/// the layer's own colours: the layer itself escapes those of a message.
struct Stderr {
    has_colours: bool,
}

impl Write for Stderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let mut stderr = io::stderr().lock();
        // Standard error may be closed, which is no reason to end a run.
        for (index, part) in text.split(ESCAPE).enumerate() {
            if index > 0 {
                let escape = if self.has_colours { ESCAPE } else { r"\u001b" };
                let _ = stderr.write_all(escape.as_bytes());
            }
            let _ = stderr.write_all(printable_lines(part).as_bytes());
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Lines such as `warning: the cache is not used path="..."`.
struct Plain;

impl<S, N> FormatEvent<S, N> for Plain
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let level = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            _ => "note",
        };
        write!(writer, "{level}: ")?;
        context.format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

/// Logs to standard error. Without `TAPELOOP_LOG` and `RUST_LOG`, which filter the log and add time
/// and level, it has warnings alone. `NO_COLOR` turns colours off. Comes after the command line was
/// parsed, as a mistake in it is printed without a log.
pub(super) fn start() {
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let has_colours = !is_plain && io::stderr().is_terminal();
    let lines = layer()
        .with_writer(move || Stderr { has_colours })
        .with_ansi(has_colours)
        .with_target(false);
    let lines = match filter() {
        Some(filter) => lines.with_filter(filter).boxed(),
        None => lines
            .event_format(Plain)
            .with_filter(LevelFilter::WARN)
            .boxed(),
    };
    let subscriber = tracing_subscriber::registry().with(lines);
    #[cfg(feature = "nvtx")]
    let subscriber = subscriber.with(ranges());
    subscriber.init();
}

/// The filter of the first variable that is set: a level, or levels by target, separated by
/// commas. One that cannot be read is reported.
fn filter() -> Option<Targets> {
    let mut names = ["TAPELOOP_LOG", "RUST_LOG"].into_iter();
    let (name, text) = names.find_map(|name| Some((name, std::env::var(name).ok()?)))?;
    let filter = text.parse();
    let report = |_: &_| {
        let fix = "give a level, as debug, or levels by target, as tapeloop=debug,warn";
        complain(&format!(
            "warning: {name}={text:?} is not a filter (fix: {fix})"
        ));
    };
    filter.inspect_err(report).ok()
}

/// A layer of NVTX ranges, if a profiler runs the program: it sets `NVTX_INJECTION64_PATH`.
/// Without a profiler spans are disabled.
#[cfg(feature = "nvtx")]
fn ranges<S>() -> Option<impl Layer<S>>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    use tapeloop::backend::cuda::NvtxLayer;
    use tracing_subscriber::filter::filter_fn;

    std::env::var_os("NVTX_INJECTION64_PATH")?;
    let layer = NvtxLayer::find().inspect_err(|error| complain(&format!("warning: {error}")));
    let spans =
        filter_fn(|metadata| metadata.is_span() && metadata.target().starts_with("tapeloop"));
    Some(layer.ok()?.with_filter(spans))
}
