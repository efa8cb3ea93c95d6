//! The arguments of `tapeloop pack` and `tapeloop inspect`.

use super::options::{ReadingArgs, SetArgs};
use super::{config_and_inputs, path_text};
use clap::Args;
use std::path::PathBuf;
use tapeloop::error::{Error, Result};
use tapeloop_cli::config::{Config, RawConfig};
use tapeloop_inputs::packed::READER_KEYS;

pub(super) const EXAMPLES: &str = "\
A set holds the structures as they are after reading: chains, residues, atoms and what was rejected.
A run over it gives the tables that a run over the files gives, as long as the settings that decide
what is read are the same: models, chains.split, nucleic, assembly, b_factor, strict.

Examples:
  tapeloop pack structures/ -o set                pack a folder
  tapeloop pack more/ -o set                      append to the set
  tapeloop pack ensembles/ -o set-all --models all
  tapeloop inspect set                            what the set holds
  tapeloop run set -o out                         compute features
  tapeloop run set --members '1ubi*' -o out       of the inputs with these names

Exit codes: 0 all good, 1 nothing could be packed or it failed, 2 config or usage,
3 packed, with more rejected inputs than --max-rejects, 130 interrupted, and the set is as it was.";

/// The keys that `tapeloop pack` takes, besides limits and those of the reader.
const PACK_KEYS: [&str; 8] = [
    "input",
    "members",
    "shard",
    "output",
    "annotations",
    "annotations_unmatched",
    "smooth.channels",
    "threads",
];

#[derive(Debug, Args)]
pub(crate) struct PackArgs {
    /// Structure files, folders, globs, archives, packed sets, @lists of them, or - for standard
    /// input; a name that ends in .toml is the config file.
    #[arg(value_name = "INPUT", value_parser = path_text())]
    paths: Vec<String>,
    /// Folder of the set. The structures are appended if it is a set already.
    #[arg(short, long, value_name = "SET", value_parser = path_text())]
    output: Option<String>,
    /// Members of archives to read, by their names: "*.cif.gz".
    #[arg(long, value_name = "GLOB")]
    members: Option<String>,
    /// Read a part of the inputs: "3/16" is the third of sixteen.
    #[arg(long, value_name = "K/N")]
    shard: Option<String>,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Number of threads; 0 for one for each core.
    #[arg(long, value_name = "N")]
    threads: Option<i64>,
    /// Config file, with settings of reading alone; options override it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    set: SetArgs,
    /// End with exit code 0 although up to N inputs were rejected; with more it is 3.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) max_rejects: u64,
    /// Print no summary; errors are printed.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// Folder of a packed set, or one of its files.
    pub(crate) set: PathBuf,
    /// Show the chains and sequences of the structures with this name: 1ubi, 1ubi.cif, or the whole
    /// path that was packed. Reads the names in the set, and of the rest only what it shows.
    pub(crate) name: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl PackArgs {
    /// The config of the file and the options.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](tapeloop::ErrorKind::Config) if a key of the file or an option is not
    /// valid, if a key is set that does not affect reading, or if no folder is given.
    pub(crate) fn resolve(self) -> Result<Config> {
        let (config, inputs) = config_and_inputs(self.config, self.paths)?;
        let mut raw = self.set.raw_config(config.as_deref())?;
        self.reading.set(&mut raw);
        raw.set("--threads", "threads", self.threads);
        raw.set("--members", "members", self.members);
        raw.set("--shard", "shard", self.shard);
        raw.set("--output", "output", self.output);
        raw.set_list("INPUT", "input", inputs);
        let others = others_in(&raw);
        let output = raw.text("output").map(str::to_owned);
        let config = Config::resolve(raw)?;
        if !others.is_empty() {
            let error = Error::config(others.join("\n"));
            return Err(error.fix("leave out what decides how features are computed and written"));
        }
        match output.as_deref() {
            Some("-") => {
                let error = Error::config("a packed set is a folder, and not standard output");
                Err(error.fix("name one: tapeloop pack structures/ -o set"))
            }
            Some(_) => Ok(config),
            None => {
                let error = Error::config("no folder is given for the set");
                Err(error.fix("name one: tapeloop pack structures/ -o set"))
            }
        }
    }
}

/// A message for each key that a packed set does not depend on.
fn others_in(raw: &RawConfig) -> Vec<String> {
    let is_known = |key: &str| PACK_KEYS.contains(&key) || READER_KEYS.contains(&key);
    let is_other = |key: &str| !is_known(key) && !key.starts_with("limits.");
    let others = raw.keys().filter(|(key, _)| is_other(key));
    others
        .map(|(key, origin)| format!("{origin}: `{key}` is a setting of runs, not of packed sets"))
        .collect()
}
