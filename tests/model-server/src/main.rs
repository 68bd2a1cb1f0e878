//! `agents-model-server SCRIPT [PORT]`: plays a script on the loopback interface until it is ended.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program of one line")]

use std::process::ExitCode;

use agents_model_server::{Script, Server};

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(file) = args.next() else {
        eprintln!("usage: agents-model-server SCRIPT [PORT]");
        return ExitCode::from(2);
    };
    let script: Script = match std::fs::read_to_string(&file).map(|text| serde_json::from_str(&text)) {
        Ok(Ok(script)) => script,
        Ok(Err(error)) => {
            eprintln!("{file}: {error}");
            return ExitCode::FAILURE;
        }
        Err(error) => {
            eprintln!("{file}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let server = Server::with(script, args.next().and_then(|port| port.parse().ok()).unwrap_or(0));
    println!("{}", server.base());
    loop {
        std::thread::park();
    }
}
