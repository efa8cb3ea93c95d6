//! Files, paths and words for messages, for the parts of the program that read inputs and write results.
//!
//! Parts of the program use it, and it may change with every version.

mod files;
mod lock;
mod paths;
mod quiet_panics;
mod reading;
mod suggest;

pub use files::{
    Existing, FileId, Temporary, check_name, kind_of, open_to_write, replace, replace_result,
    sync_folder, temporary_name,
};
pub use lock::{LOCK, lock};
pub use paths::{current_folder, path_of, shown, text_of};
pub use quiet_panics::quietly;
pub use reading::{OpenStream, open_file, open_stream, read_all, read_text};
pub use suggest::{did_you_mean, nearest};
