//! Whether servers that say nothing still live: they are probed now and then, and one that shows no sign of life ends, to be
//! started again as one that died.

use std::time::{Duration, Instant};

use super::{Proxy, State, To};

impl Proxy {
    /// Probes a server after a while, if its entry wants that. LSP-010
    pub(super) fn probe_later(&self, state: &State, ix: usize) {
        let server = &state.servers[ix];
        let health = &server.definition.health_check;
        if !health.enabled {
            return;
        }
        let registered = Duration::from_secs(health.interval_seconds.max(10).into());
        let generation = server.generation;
        self.later(self.timing.probe_interval.unwrap_or(registered), move |proxy| {
            proxy.probe(ix, generation)
        });
    }

    fn probe(&self, ix: usize, generation: u64) {
        let mut state = self.state();
        if state.ended || state.servers[ix].generation != generation || !state.servers[ix].is_running() {
            return;
        }
        let asked = Instant::now();
        // No server knows it; that it says so is enough.
        let id = state.ask(ix, "$/agents/probe", None, To::Probe);
        if let Some(link) = &state.servers[ix].link {
            link.process.computes();
        }
        drop(state);
        self.later(self.timing.probe, move |proxy| proxy.probed(ix, generation, id, asked));
    }

    fn probed(&self, ix: usize, generation: u64, id: i64, asked: Instant) {
        let mut state = self.state();
        state.asked.remove(&id);
        let server = &mut state.servers[ix];
        if server.generation != generation || !server.is_running() {
            return;
        }
        let works = server.link.as_ref().is_some_and(|link| link.process.computes());
        let alive = server.heard >= asked;
        server.deaf = if alive { None } else { Some(server.deaf.unwrap_or(asked)) };
        // One that computes hard may be deaf for a while, and is not dead.
        if alive || works && server.deaf.is_none_or(|since| since.elapsed() < self.timing.deaf) {
            return self.probe_later(&state, ix);
        }
        server.deaf = None;
        drop(state);
        self.gone(ix, generation, "did not answer and showed no sign of life");
    }
}
