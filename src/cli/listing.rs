//! `tapeloop features` and `tapeloop doctor`.

use super::config::Config;
use super::plan::{cuda_options, thread_pool};
use super::{FAILED, GOOD, say};
use crate::backend::doctor::{KernelBuild, Status, examine};
use crate::error::Result;
use crate::features::{ColumnDecl, ColumnKind, KERNEL_TARGETS, NVCC_VERSION};

/// Prints the feature columns of `config`, and returns the exit code.
pub(super) fn features(config: &Config) -> u8 {
    let tables = [
        ("residues", config.features.residue_columns()),
        ("structures", config.features.structure_columns()),
    ];
    for (table, columns) in tables {
        say(&format!("{table}, one row each:\n"));
        for column in columns {
            say(&format!("  {}\n", describe(&column)));
        }
    }
    say("docs/CONFIG.md lists the columns that name residues and structures.\n");
    GOOD
}

fn describe(column: &ColumnDecl) -> String {
    let kind = match column.kind {
        ColumnKind::Count => "int32",
        ColumnKind::Real => "float32",
    };
    let unit = if column.unit.is_empty() {
        "-"
    } else {
        column.unit
    };
    format!("{:<12} {kind:<8} {unit:<6} {}", column.name, column.about)
}

/// Prints what a run would find on this machine, and returns the exit code.
///
/// # Errors
/// The threads of the config cannot be started.
pub(super) fn doctor(config: &Config) -> Result<u8> {
    let pool = thread_pool(config.threads)?;
    let kernels = KernelBuild {
        nvcc_version: NVCC_VERSION,
        targets: KERNEL_TARGETS,
    };
    let findings = examine(&cuda_options(config), kernels, &pool);
    for finding in &findings {
        say(&format!("{finding}\n"));
    }
    // The last one is what `backend = "auto"` would do.
    let usable = findings
        .last()
        .is_some_and(|auto| auto.status == Status::Good);
    Ok(if usable { GOOD } else { FAILED })
}
