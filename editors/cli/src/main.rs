//! The `agents` command.

fn main() -> std::process::ExitCode {
    agents_cli::main()
}
