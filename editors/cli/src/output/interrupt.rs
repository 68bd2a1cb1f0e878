//! Ctrl+C: the first one ends the run with a whole document, the second one at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use super::session::Output;

/// From now on SIGINT ends the process with exit code 130 and SIGTERM with 143, after `before` ran and the session was
/// cancelled; what `before` returns are the session's last words instead of the usual. A second signal ends the process
/// without waiting for either.
///
/// # Errors
/// When the handlers cannot be installed.
pub fn watch(output: &Output, before: impl FnOnce() -> Option<String> + Send + 'static) -> io::Result<()> {
    let armed = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Registered first, so that it only acts on the signal after the one that arms it.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&armed))?;
        flag::register(signal, Arc::clone(&armed))?;
    }
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let output = output.clone();
    std::thread::Builder::new().name("interrupt".into()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let word = before();
            let code = output.cancel_with(if signal == SIGTERM { 143 } else { 130 }, word);
            std::process::exit(code.into());
        }
    })?;
    Ok(())
}
