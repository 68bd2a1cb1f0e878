//! Clients that pull diagnostics: one report of ours and of all servers, pushed or pulled, with a result id.

use serde_json::{Value, json};
use tower_lsp::jsonrpc::Error;

use super::board::hash;
use super::{Proxy, State, Working};
use crate::documents::DocumentUri;
use crate::front::message::RequestId;
use crate::front::reply;
use crate::requests::diagnostic;

/// A report the client waits for.
pub(crate) struct Report {
    id: RequestId,
    uri: DocumentUri,
    /// The result the client has.
    previous: Option<String>,
    /// Our own diagnostics are on the board.
    own: bool,
    /// Servers were waited for long enough; a refresh follows what they say later.
    overdue: bool,
}

impl Proxy {
    /// Whether the client asks for the diagnostics of what it has open.
    pub(super) fn client_pulls(&self) -> bool {
        diagnostic::pulls(self.session.latest().client())
    }

    /// Takes a request for a report; our own part is to be given to [`Self::own_report`].
    pub(super) fn report(
        &self,
        state: &mut State,
        id: &RequestId,
        uri: DocumentUri,
        params: Option<&str>,
    ) -> u64 {
        let params: Value = params.and_then(|params| serde_json::from_str(params).ok()).unwrap_or_default();
        let previous = params["previousResultId"].as_str().map(str::to_owned);
        let number = state.next_gather;
        state.next_gather += 1;
        state.reports.insert(number, Report { id: id.clone(), uri, previous, own: false, overdue: false });
        state.working.insert(id.clone(), Working::Report(number));
        self.later(self.timing.slow, move |proxy| {
            let mut state = proxy.state();
            if let Some(report) = state.reports.get_mut(&number) {
                report.overdue = true;
                proxy.try_report(&mut state, number);
            }
        });
        number
    }

    /// Our own report.
    pub(super) fn own_report(&self, number: u64, outcome: Result<Value, Error>) {
        let mut state = self.state();
        let Some(report) = state.reports.get_mut(&number) else { return };
        report.own = true;
        let uri = report.uri.clone();
        let items = outcome.ok().map(|mut own| own["items"].take());
        let items = items.and_then(|items| serde_json::from_value(items).ok()).unwrap_or_default();
        state.board.take_own(&uri, items);
        self.try_report(&mut state, number);
    }

    /// Answers the reports on a document that wait for nothing any more.
    pub(super) fn try_reports(&self, state: &mut State, uri: &DocumentUri) {
        let numbers: Vec<u64> = state
            .reports
            .iter()
            .filter(|(_, report)| report.uri == *uri)
            .map(|(number, _)| *number)
            .collect();
        numbers.into_iter().for_each(|number| self.try_report(state, number));
    }

    fn try_report(&self, state: &mut State, number: u64) {
        let Some(report) = state.reports.get(&number) else { return };
        if !report.own || (!report.overdue && state.pulls.is_asking(&report.uri)) {
            return;
        }
        let Some(report) = state.reports.remove(&number) else { return };
        state.working.remove(&report.id);
        let items = state.board.reported(&report.uri);
        let result_id = format!("{:016x}", hash(&items));
        let result = if report.previous.as_ref() == Some(&result_id) {
            json!({ "kind": "unchanged", "resultId": result_id }).to_string()
        } else {
            ["{\"kind\":\"full\",\"resultId\":\"", &result_id, "\",\"items\":", &items, "}"].concat()
        };
        self.client.post(reply::raw(&report.id, Ok(&result)));
    }
}
