//! The `agents` command under its long name.

fn main() -> std::process::ExitCode {
    agents_cli::main()
}
