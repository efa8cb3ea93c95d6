//! The `tapeloop` program.

fn main() -> std::process::ExitCode {
    tapeloop::cli::main()
}
