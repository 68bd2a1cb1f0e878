//! Several answers to one request: whom it waits for, when it is enough, and what the client gets.

use serde_json::{Value, json};
use tower_lsp::jsonrpc::Error;

use super::features::{Feature, Strategy};
use super::merge::{self, Answer};
use super::server::Status;
use super::{Proxy, State, To};
use crate::documents::DocumentUri;
use crate::front::message::RequestId;
use crate::front::reply;

/// A request of the client that more than one may answer.
pub(crate) struct Gather {
    id: RequestId,
    feature: &'static Feature,
    params: Option<Value>,
    uri: Option<DocumentUri>,
    parts: Vec<Part>,
    /// Where the client takes pieces of the answer.
    token: Option<Value>,
    /// Pieces were sent; the answer itself is empty then.
    streamed: bool,
    /// Slow ones were waited for long enough.
    overdue: bool,
    /// Those that start were.
    starts_overdue: bool,
}

struct Part {
    /// `None` is our own features.
    server: Option<usize>,
    answer: Standing,
}

/// Where one answer stands.
#[derive(Debug, PartialEq)]
enum Standing {
    /// Not asked yet: the server is being started, or it is another's turn.
    Waiting,
    Asked(i64),
    Answered(String),
    Refused(String),
    /// There is and will be none.
    Nothing,
}

impl Gather {
    /// A gather that has asked nobody yet, but counts on our own features where `own` says so.
    pub fn new(
        id: RequestId,
        feature: &'static Feature,
        params: Option<&str>,
        uri: Option<DocumentUri>,
        own: bool,
        servers: &[usize],
    ) -> Self {
        let mut params: Option<Value> = params.and_then(|params| serde_json::from_str(params).ok());
        // Tokens are the client's; several servers would speak under one.
        let fields = params.as_mut().and_then(Value::as_object_mut);
        let token = fields.and_then(|fields| {
            fields.remove("workDoneToken");
            fields.remove("partialResultToken")
        });
        let ours = own.then_some(Part { server: None, answer: Standing::Asked(0) });
        let theirs = servers.iter().map(|ix| Part { server: Some(*ix), answer: Standing::Waiting });
        let parts = ours.into_iter().chain(theirs).collect();
        Self {
            id,
            feature,
            params,
            uri,
            parts,
            token,
            streamed: false,
            overdue: false,
            starts_overdue: false,
        }
    }

    fn is_pending(&self) -> bool {
        self.parts.iter().any(|part| matches!(part.answer, Standing::Waiting | Standing::Asked(_)))
    }

    fn has_useful(&self) -> bool {
        self.parts.iter().any(|part| matches!(&part.answer, Standing::Answered(raw) if merge::is_useful(raw)))
    }

    /// Whether the answer can be given now.
    fn is_complete(&self) -> bool {
        match self.feature.strategy {
            Strategy::Owner => {
                let first = self.parts.iter().find(|part| part.answer != Standing::Nothing);
                first.is_none_or(|part| matches!(part.answer, Standing::Answered(_) | Standing::Refused(_)))
            }
            Strategy::First => !self.is_pending() || self.has_useful(),
            Strategy::Merge => {
                let enough = self.overdue && self.feature.is_impatient() && !self.streams();
                let asked = self.parts.iter().any(|part| matches!(part.answer, Standing::Asked(_)));
                let enough = enough || self.starts_overdue && !asked;
                !self.is_pending() || enough && self.has_useful()
            }
        }
    }

    /// Whether what comes late can follow later.
    fn streams(&self) -> bool {
        self.token.is_some() && self.feature.is_list()
    }
}

impl Proxy {
    /// Asks whoever can be asked now, and answers the client when that is all.
    pub(super) fn advance(&self, state: &mut State, id: u64) {
        let Some(mut gather) = state.gathers.remove(&id) else { return };
        for at in 0..gather.parts.len() {
            let Part { server: Some(ix), answer: Standing::Waiting } = gather.parts[at] else {
                if gather.feature.strategy == Strategy::Owner && gather.parts[at].answer != Standing::Nothing
                {
                    break;
                }
                continue;
            };
            let server = &state.servers[ix];
            gather.parts[at].answer = match server.status {
                Status::Running if server.provider(gather.feature).is_some() => {
                    let params = self.params_for(state, &gather, ix);
                    let to = To::Part { gather: id, part: at };
                    Standing::Asked(state.ask(ix, gather.feature.method, params.as_deref(), to))
                }
                Status::Starting => Standing::Waiting,
                _ => Standing::Nothing,
            };
            // One owner at a time.
            if gather.feature.strategy == Strategy::Owner && gather.parts[at].answer != Standing::Nothing {
                break;
            }
        }
        let complete = gather.is_complete();
        state.gathers.insert(id, gather);
        if complete {
            self.finish(state, id);
        }
    }

    /// All gathers once more: a server came up, or is given up.
    pub(super) fn advance_all(&self, state: &mut State) {
        let ids: Vec<u64> = state.gathers.keys().copied().collect();
        ids.into_iter().for_each(|id| self.advance(state, id));
    }

    /// The parameters as one server gets them: of the diagnostics in a context only its own.
    fn params_for(&self, state: &State, gather: &Gather, ix: usize) -> Option<String> {
        let mut params = gather.params.clone()?;
        if let (Some(uri), Some(found)) =
            (&gather.uri, params.pointer_mut("/context/diagnostics").and_then(Value::as_array_mut))
        {
            found.retain(|one| {
                let same = |item: &Value| {
                    ["range", "message", "code", "source"].iter().all(|key| item.get(key) == one.get(key))
                };
                let of = state.board.whose(uri, same);
                one["source"] != crate::requests::diagnostic::SOURCE && (of.is_empty() || of.contains(&ix))
            });
        }
        Some(params.to_string())
    }

    pub(super) fn part_answered(
        &self,
        state: &mut State,
        id: u64,
        part: usize,
        outcome: Result<String, String>,
    ) {
        let Some(gather) = state.gathers.get_mut(&id) else { return };
        gather.parts[part].answer = match outcome {
            Ok(result) => Standing::Answered(result),
            Err(error) => Standing::Refused(error),
        };
        if gather.overdue && gather.streams() {
            self.stream(state, id);
        }
        self.advance(state, id);
    }

    pub(super) fn part_is_gone(&self, state: &mut State, id: u64, part: usize) {
        if let Some(gather) = state.gathers.get_mut(&id) {
            gather.parts[part].answer = Standing::Nothing;
        }
        self.advance(state, id);
    }

    /// The answer of our own features.
    pub(super) fn own_answered(&self, id: u64, outcome: Result<Value, Error>) {
        let outcome = match outcome {
            Ok(value) => Ok(value.to_string()),
            Err(error) => Err(serde_json::to_string(&error).unwrap_or_else(|_| "{}".to_owned())),
        };
        let mut state = self.state();
        let own = state
            .gathers
            .get(&id)
            .and_then(|gather| gather.parts.iter().position(|part| part.server.is_none()));
        // Where one answers alone, a server's turn comes when we have nothing.
        let owned = state.gathers.get(&id).is_some_and(|gather| gather.feature.strategy == Strategy::Owner);
        let nothing = owned && !outcome.as_deref().is_ok_and(merge::is_useful);
        match own {
            Some(part) if nothing => self.part_is_gone(&mut state, id, part),
            Some(part) => self.part_answered(&mut state, id, part, outcome),
            None => {}
        }
    }

    /// A server that still starts is not waited for any more, once somebody else has answered.
    pub(super) fn stop_waiting_for_starts(&self, id: u64) {
        let mut state = self.state();
        let State { gathers, servers, .. } = &mut *state;
        let Some(gather) = gathers.get_mut(&id) else { return };
        gather.starts_overdue = true;
        let starts = |part: &Part| part.server.is_some_and(|ix| servers[ix].status == Status::Starting);
        let others = gather.parts.iter().any(|part| !starts(part) && part.answer != Standing::Nothing);
        if gather.feature.strategy == Strategy::Owner && others {
            // It is the next one's turn.
            gather
                .parts
                .iter_mut()
                .filter(|part| starts(part))
                .for_each(|part| part.answer = Standing::Nothing);
        }
        self.advance(&mut state, id);
    }

    /// Slow servers are not waited for any more, or their part follows later.
    pub(super) fn is_overdue(&self, id: u64) {
        let mut state = self.state();
        let Some(gather) = state.gathers.get_mut(&id) else { return };
        gather.overdue = true;
        if gather.streams() {
            self.stream(&mut state, id);
        }
        self.advance(&mut state, id);
    }

    /// Sends what there is as a piece of the answer.
    fn stream(&self, state: &mut State, id: u64) {
        let Some(mut gather) = state.gathers.remove(&id) else { return };
        let result = result(state, &gather);
        if gather.has_useful()
            && let Some(token) = &gather.token
        {
            let params = ["{\"token\":", &token.to_string(), ",\"value\":", &result, "}"].concat();
            self.client.post(reply::notification("$/progress", Some(&params)));
            gather.streamed = true;
            for part in gather.parts.iter_mut().filter(|part| matches!(part.answer, Standing::Answered(_))) {
                part.answer = Standing::Nothing;
            }
        }
        state.gathers.insert(id, gather);
    }

    fn finish(&self, state: &mut State, id: u64) {
        if state.gathers.get(&id).is_some_and(|gather| gather.streamed) {
            self.stream(state, id);
        }
        let Some(gather) = state.drop_gather(id) else { return };
        state.working.remove(&gather.id);
        let refused = gather.parts.iter().find_map(|part| match &part.answer {
            Standing::Refused(error) => Some(error),
            _ => None,
        });
        let answered = gather.parts.iter().any(|part| matches!(part.answer, Standing::Answered(_)));
        let body = match refused {
            Some(error) if !answered && !gather.streamed => reply::raw(&gather.id, Err(error)),
            _ if gather.streamed => reply::raw(&gather.id, Ok("[]")),
            _ => {
                // Whoever answered alone is asked about its items.
                let first = gather
                    .parts
                    .iter()
                    .find(|part| matches!(&part.answer, Standing::Answered(raw) if merge::is_useful(raw)));
                match (gather.feature.strategy, first.and_then(|part| part.server)) {
                    (Strategy::Merge, _) | (_, None) => drop(state.origins.remove(gather.feature.method)),
                    (_, Some(ix)) => drop(state.origins.insert(gather.feature.method, ix)),
                }
                reply::raw(&gather.id, Ok(&result(state, &gather)))
            }
        };
        self.client.post(body);
    }
}

/// What the parts make together.
fn result(state: &State, gather: &Gather) -> String {
    let names: Vec<Option<String>> =
        gather.parts.iter().map(|part| part.server.map(|ix| state.servers[ix].name())).collect();
    let answers = gather.parts.iter().zip(&names).filter_map(|(part, name)| match &part.answer {
        Standing::Answered(raw) => Some((name.as_deref(), raw.as_str())),
        _ => None,
    });
    let answers: Vec<Answer<'_>> = answers.collect();
    if gather.feature.strategy == Strategy::Merge {
        return merge::merged(gather.feature.method, &answers, &|server, command| {
            state.runs(server, command)
        });
    }
    let useful = answers.iter().find(|(_, raw)| merge::is_useful(raw)).or(answers.first());
    let Some((name, raw)) = useful else { return "null".to_owned() };
    match name.and_then(|name| state.by_name(name)) {
        Some(ix) => super::tokens::mapped(state, ix, gather.feature.method, raw).into_owned(),
        None => (*raw).to_owned(),
    }
}

impl State {
    /// Takes a gather off the table; servers that still work on it are told to stop.
    pub(super) fn drop_gather(&mut self, id: u64) -> Option<Gather> {
        let gather = self.gathers.remove(&id)?;
        for part in &gather.parts {
            if let (Some(ix), Standing::Asked(asked)) = (part.server, &part.answer)
                && self.asked.remove(asked).is_some()
            {
                self.servers[ix].notify("$/cancelRequest", &json!({ "id": asked }));
            }
        }
        Some(gather)
    }
}
