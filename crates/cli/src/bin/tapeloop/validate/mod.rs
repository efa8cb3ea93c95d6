//! `tapeloop validate`: compares a run with what Python packages compute from the same atoms.

mod dump;
mod scripts;

use super::args::{OutputTarget, ValidateArgs};
use super::progress::Audience;
use super::run::{Destination, compute};
use dump::Dump;
use scripts::Python;
use std::io::IsTerminal;
use std::path::PathBuf;
use tapeloop::error::{Error, Result};
use tapeloop::features::Features;
use tapeloop::workload::Completion;
use tapeloop_bench::internal::format;
use tapeloop_cli::config::{Config, TableFormat};
use tapeloop_cli::exit_codes::{FAILED, GOOD, REJECTED};
use tapeloop_cli::plan::Plan;
use tapeloop_cli::terminal::{complain, say};
use tapeloop_files::shown;

/// Runs, compares, and returns the exit code: that of the run if all columns agree.
///
/// # Errors
/// The run or the comparison cannot start, or an error ends it.
pub(super) fn validate(args: ValidateArgs) -> Result<u8> {
    let mut raw = args.overrides.raw_config(args.config.as_deref())?;
    raw.set_list("INPUT", "input", args.inputs);
    let config = Config::resolve(raw)?;
    check_tables(&config)?;
    // A Python that cannot compare is an error before the run, not after it.
    let python = Python::find(&args.python)?;
    let folder = Folder::new(args.keep);
    let plan = Plan::new(config)?;
    let (run, dumped) = (folder.path.join("run"), folder.path.join("dump"));
    let target = OutputTarget::Folder(run.clone());
    let audience = std::io::stderr().is_terminal().then_some(Audience::Reader);
    let to = Destination {
        target: &target,
        overwrite: args.overwrite,
        interrupted: None,
        progress: audience,
        compiling: audience,
    };
    // Created with the first result: the run may refuse its folder before.
    let mut dump = None;
    let mut append = |completion: &Completion<Features>| {
        let dump = match &mut dump {
            Some(dump) => dump,
            none => none.insert(Dump::create(&dumped)?),
        };
        match (&completion.item.structure, &completion.result) {
            (Ok(structure), Ok(_)) => dump.append(&completion.item.source, structure),
            _ => Ok(()),
        }
    };
    let outcome = compute(&plan, to, Some(&mut append))?;
    dump.map_or(Ok(()), Dump::finish)?;
    let code = outcome.exit_code()?;
    let counts = &outcome.counts;
    say(&format!(
        "{} structures, {} residues on {} ({})\n",
        format::whole(counts.structures),
        format::whole(counts.residues),
        plan.first_device().backend,
        plan.device_names()
    ));
    if counts.rejected > 0 {
        let listed = outcome.first_rejected();
        let rejected = format::whole(counts.rejected);
        complain(&format!("rejected: {rejected}\n{}", listed.trim_end()));
    }
    if !matches!(code, GOOD | REJECTED) {
        return Ok(code);
    }
    let scripts = folder.path.join("oracles");
    let agrees = python.compare(&scripts, &dumped, &run, &args.script)?;
    Ok(if agrees { code } else { FAILED })
}

/// Checks that the scripts can read the tables, which must have all residues. Else an
/// [`ErrorKind::Config`](tapeloop::ErrorKind::Config) error.
fn check_tables(config: &Config) -> Result<()> {
    if config.condition.is_some() {
        let error = Error::config("`tables.where`: the comparison needs the rows of all residues");
        return Err(error.fix("leave tables.where out"));
    }
    if config.atom_condition.is_some() {
        let error =
            Error::config("`tables.where_atoms`: the comparison needs the rows of all atoms");
        return Err(error.fix("leave tables.where_atoms out"));
    }
    let format = config.tables.format;
    if format == TableFormat::Parquet {
        return Ok(());
    }
    let name = format.name();
    let error = Error::config(format!(
        "tables.format = {name:?}: the comparison reads Parquet tables"
    ));
    Err(error.fix("leave tables.format out, or give --set tables.format=parquet"))
}

/// The working folder; it is removed unless the user names one.
struct Folder {
    path: PathBuf,
    stays: bool,
}

impl Folder {
    /// The folder `keep`, or one for temporary files that other processes do not use.
    fn new(keep: Option<PathBuf>) -> Self {
        let stays = keep.is_some();
        let temporary =
            || std::env::temp_dir().join(format!("tapeloop-validate-{}", std::process::id()));
        Folder {
            path: keep.unwrap_or_else(temporary),
            stays,
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.stays {
            return;
        }
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            let path = shown(&self.path);
            tracing::debug!(%error, path, "cannot remove the temporary folder");
        }
    }
}
