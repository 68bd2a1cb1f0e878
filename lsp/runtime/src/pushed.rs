//! What a server told us unasked, and when that counts as its answer.
//!
//! Servers that push publish without a version, an empty list before the real one, again for dependents of what
//! changed, or not at all when nothing changed. [`Pushed::verdict`] decides from what was seen; it does no I/O.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::uri;

/// Files whose lists are kept; a server may publish for a whole workspace nobody asked about.
const MAX_FILES: usize = 20_000;
/// Progress that was begun but not heard of for this long is taken for forgotten.
const PROGRESS_FORGOTTEN: Duration = Duration::from_secs(30);
/// How many quiet times a server must rest before an empty list, or one from before a change elsewhere, counts: some
/// begin to work only a fifth of a second after the last change.
const REST: u32 = 2;
/// Without a new list, how many quiet times a server must rest before the old one counts for a changed text.
const SILENCE: u32 = 5;

/// The latest list for one file.
#[derive(Debug, Clone)]
pub(crate) struct Published {
    version: Option<i64>,
    pub(crate) items: Vec<Value>,
    seq: u64,
    at: Instant,
}

/// All that came in by notification. Times are ordered by a counter, so that equal instants do not matter.
#[derive(Debug, Default)]
pub(crate) struct Pushed {
    seq: u64,
    files: HashMap<String, Published>,
    /// What pulls said about other files: file, then the file it came with.
    related: HashMap<String, BTreeMap<String, Vec<Value>>>,
    progress: BTreeMap<String, (String, Instant)>,
    progress_ended: Option<Instant>,
    starting: bool,
    changed: Option<(u64, Instant)>,
    /// How often the server asked to pull again.
    pub(crate) refreshes: u64,
    /// Lists received in all.
    pub(crate) publishes: u64,
}

/// A document as the question about it needs it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// Absolute.
    pub(crate) path: &'a str,
    pub(crate) version: i64,
    /// When the server got it first, and its present text; from [`Pushed::tick`].
    pub(crate) opened: u64,
    pub(crate) synced: u64,
    pub(crate) synced_at: Instant,
}

/// Whether the server is done with a document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Verdict {
    /// The list in [`Pushed::list`] is the answer.
    Settled,
    /// Not yet; look again at the instant, or when something comes in.
    Wait(Option<Instant>),
}

impl Pushed {
    /// The next point of the order of events.
    pub(crate) fn tick(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    /// Notes that a text or a file changed, which may change what is said about other files.
    pub(crate) fn mark_change(&mut self) -> u64 {
        let seq = self.tick();
        self.changed = Some((seq, Instant::now()));
        seq
    }

    pub(crate) fn publish(&mut self, params: &mut Value) {
        let Some(path) = params["uri"].as_str().and_then(uri::to_path) else { return };
        if self.files.len() >= MAX_FILES && !self.files.contains_key(&path) {
            return;
        }
        let items = match params["diagnostics"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        };
        let seq = self.tick();
        self.publishes += 1;
        let published = Published { version: params["version"].as_i64(), items, seq, at: Instant::now() };
        // An answer to an older text must not hide the one to the newer.
        let stale = self
            .files
            .get(&path)
            .is_some_and(|known| published.version < known.version && published.version.is_some());
        if !stale {
            self.files.insert(path, published);
        }
    }

    /// Takes `$/progress` of a token of the server's own.
    pub(crate) fn progress(&mut self, params: &Value) {
        let token = params["token"].to_string();
        let value = &params["value"];
        match value["kind"].as_str() {
            Some("begin") if self.progress.len() < 1000 => {
                let title = value["title"].as_str().unwrap_or("its work").to_owned();
                self.progress.insert(token, (title, Instant::now()));
            }
            Some("report") => {
                if let Some((_, at)) = self.progress.get_mut(&token) {
                    *at = Instant::now();
                }
            }
            Some("end") if self.progress.remove(&token).is_some() => {
                self.progress_ended = Some(Instant::now())
            }
            _ => {}
        }
    }

    /// Takes `experimental/serverStatus`.
    pub(crate) fn server_status(&mut self, params: &Value) {
        let starting = params["quiescent"] == false;
        if self.starting && !starting {
            self.progress_ended = Some(Instant::now());
        }
        self.starting = starting;
    }

    /// What the server says it is busy with.
    pub(crate) fn busy(&self) -> Option<&str> {
        let now = Instant::now();
        let current = |(_, at): &&(String, Instant)| now.duration_since(*at) < PROGRESS_FORGOTTEN;
        self.progress
            .values()
            .find(current)
            .map(|(title, _)| title.as_str())
            .or(self.starting.then_some("reading the project"))
    }

    /// Forgets a file that was closed.
    pub(crate) fn forget(&mut self, path: &str) {
        self.files.remove(path);
        self.related.remove(path);
    }

    /// What a pull of `from` said about other files; replaces what an earlier one said.
    pub(crate) fn relate(&mut self, from: &str, reports: Vec<(String, Vec<Value>)>) {
        self.related.retain(|_, sources| {
            sources.remove(from);
            !sources.is_empty()
        });
        for (path, items) in reports {
            if self.related.len() < MAX_FILES {
                self.related.entry(path).or_default().insert(from.to_owned(), items);
            }
        }
    }

    /// What pulls of other files said about a file.
    pub(crate) fn related(&self, path: &str) -> impl Iterator<Item = &Value> {
        self.related.get(path).into_iter().flat_map(BTreeMap::values).flatten()
    }

    /// The list that speaks of the present text, if one came.
    pub(crate) fn list(&self, asked: Asked<'_>) -> Option<&Published> {
        self.files.get(asked.path).filter(|published| match published.version {
            Some(version) => version >= asked.version,
            None => published.seq > asked.synced,
        })
    }

    /// The list of an earlier text of the same open document.
    fn older_list(&self, asked: Asked<'_>) -> Option<&Published> {
        self.files.get(asked.path).filter(|published| published.seq > asked.opened)
    }

    /// The list to give once [`Verdict::Settled`].
    pub(crate) fn answer(&self, asked: Asked<'_>) -> Option<&Published> {
        self.list(asked).or_else(|| self.older_list(asked))
    }

    /// Whether the server is done with a document. `resting` is since when its processes do nothing, where known.
    pub(crate) fn verdict(&self, asked: Asked<'_>, resting: Option<Instant>, quiet: Duration) -> Verdict {
        let now = Instant::now();
        let soon = Some(now + quiet / 4);
        let rests = |since: Instant, long: Duration| now.duration_since(since) >= long;
        let changed_at = self.changed.map(|(_, at)| at);
        let busy = self.busy().is_some();
        let Some(list) = self.list(asked) else {
            // Some servers do not repeat a list that did not change. Only one that visibly rests can mean that.
            let silent = self.older_list(asked).is_some() && !busy;
            let Some(resting) = resting.filter(|_| silent) else { return Verdict::Wait(None) };
            let since = [Some(resting), Some(asked.synced_at), changed_at].into_iter().flatten().max();
            let long_enough = since.is_some_and(|since| rests(since, quiet * SILENCE));
            return if long_enough { Verdict::Settled } else { Verdict::Wait(soon) };
        };
        let last =
            [Some(list.at), changed_at, self.progress_ended].into_iter().flatten().max().unwrap_or(list.at);
        if !rests(last, quiet) {
            return Verdict::Wait(Some(last + quiet));
        }
        let versioned = list.version.is_some();
        if busy && (!versioned || list.items.is_empty()) {
            return Verdict::Wait(None);
        }
        // An empty list may be the early one, and a list from before a change elsewhere may be about to be replaced.
        let before_change = self.changed.is_some_and(|(seq, _)| list.seq < seq);
        if before_change || (!versioned && list.items.is_empty()) {
            return match resting {
                Some(since) if rests(since, quiet * REST) => Verdict::Settled,
                Some(_) => Verdict::Wait(soon),
                None if rests(last, quiet * SILENCE) => Verdict::Settled,
                None => Verdict::Wait(Some(last + quiet * SILENCE)),
            };
        }
        Verdict::Settled
    }

    /// What to answer when time is over before the verdict: a list, or why there is none.
    pub(crate) fn last_word(
        &self,
        asked: Asked<'_>,
        resting: Option<Instant>,
        quiet: Duration,
    ) -> Result<&Published, String> {
        let at_work = || resting.is_some_and(|since| Instant::now().duration_since(since) < quiet);
        match (self.list(asked), self.busy()) {
            (Some(list), _) if !list.items.is_empty() || list.version.is_some() => Ok(list),
            (_, Some(title)) => Err(format!("it was still busy with \u{201c}{title}\u{201d}")),
            (Some(_), None) if at_work() => Err("it was still computing".to_owned()),
            (Some(list), None) => Ok(list),
            (None, None) => Err("it published nothing for the file".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const QUIET: Duration = Duration::from_millis(300);

    fn publish(pushed: &mut Pushed, version: Option<i64>, count: usize) {
        let items = vec![json!({}); count];
        pushed.publish(&mut json!({"uri": "file:///w/a%20b", "version": version, "diagnostics": items}));
    }

    fn asked(pushed: &mut Pushed, version: i64) -> Asked<'static> {
        let now = pushed.tick();
        Asked { path: "/w/a b", version, opened: now, synced: now, synced_at: Instant::now() }
    }

    fn settled(pushed: &Pushed, asked: Asked<'_>, resting: Option<Instant>) -> bool {
        pushed.verdict(asked, resting, QUIET) == Verdict::Settled
    }

    async fn pass(time: Duration) {
        tokio::time::advance(time).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_settles_after_the_quiet_time_and_an_empty_one_only_when_the_server_rests() {
        let mut pushed = Pushed::default();
        let asked = asked(&mut pushed, 1);
        assert_eq!(pushed.verdict(asked, None, QUIET), Verdict::Wait(None));
        publish(&mut pushed, None, 0);
        let busy_until_now = Instant::now() + QUIET * 2;
        pass(QUIET * 2).await;
        assert!(!settled(&pushed, asked, Some(busy_until_now)));
        assert!(!settled(&pushed, asked, Some(busy_until_now - QUIET)));
        assert!(settled(&pushed, asked, Some(busy_until_now - QUIET * REST)));
        publish(&mut pushed, None, 1);
        assert!(!settled(&pushed, asked, Some(busy_until_now)));
        pass(QUIET).await;
        assert!(settled(&pushed, asked, None));
        assert_eq!(pushed.answer(asked).unwrap().items.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn progress_holds_the_answer_back_until_it_ends_or_is_forgotten() {
        let mut pushed = Pushed::default();
        let asked = asked(&mut pushed, 1);
        pushed.progress(&json!({"token": 7, "value": {"kind": "begin", "title": "Indexing"}}));
        publish(&mut pushed, None, 2);
        pass(QUIET * 10).await;
        assert!(!settled(&pushed, asked, None));
        pushed.progress(&json!({"token": 8, "value": {"kind": "end"}}));
        pass(QUIET * 10).await;
        assert!(!settled(&pushed, asked, None));
        pushed.progress(&json!({"token": 7, "value": {"kind": "end"}}));
        assert!(!settled(&pushed, asked, None), "what the progress led to may still come");
        pass(QUIET).await;
        assert!(settled(&pushed, asked, None));
        pushed.progress(&json!({"token": "x", "value": {"kind": "begin"}}));
        assert!(pushed.busy().is_some());
        pass(PROGRESS_FORGOTTEN).await;
        assert_eq!(pushed.busy(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn versions_are_matched_where_they_are_given() {
        let mut pushed = Pushed::default();
        let asked = asked(&mut pushed, 3);
        publish(&mut pushed, Some(2), 1);
        pass(QUIET * 20).await;
        assert!(pushed.list(asked).is_none() && !settled(&pushed, asked, None));
        publish(&mut pushed, Some(3), 0);
        publish(&mut pushed, Some(2), 1);
        pass(QUIET).await;
        assert!(settled(&pushed, asked, None));
        assert!(pushed.answer(asked).unwrap().items.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_from_before_a_change_elsewhere_waits_for_the_server_to_rest() {
        let mut pushed = Pushed::default();
        let asked = asked(&mut pushed, 1);
        publish(&mut pushed, None, 1);
        pass(QUIET).await;
        assert!(settled(&pushed, asked, None));
        pushed.mark_change();
        assert!(!settled(&pushed, asked, None));
        pass(QUIET).await;
        assert!(!settled(&pushed, asked, Some(Instant::now())));
        pass(QUIET).await;
        assert!(settled(&pushed, asked, Some(Instant::now() - QUIET * REST)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_rests_and_repeats_nothing_stands_by_its_last_list() {
        let mut pushed = Pushed::default();
        let mut asked = asked(&mut pushed, 1);
        publish(&mut pushed, None, 0);
        asked.version = 2;
        asked.synced = pushed.mark_change();
        asked.synced_at = Instant::now();
        pass(QUIET * SILENCE).await;
        assert!(!settled(&pushed, asked, None), "nobody can tell whether it rests");
        assert!(settled(&pushed, asked, Some(asked.synced_at)));
        // Opened anew, the list of the earlier opening says nothing.
        asked.opened = pushed.tick();
        assert!(!settled(&pushed, asked, Some(asked.synced_at)));
    }

    #[tokio::test(start_paused = true)]
    async fn when_time_is_over_an_early_empty_list_is_no_clean_answer() {
        let mut pushed = Pushed::default();
        let asked = asked(&mut pushed, 1);
        let word =
            |pushed: &Pushed, resting| pushed.last_word(asked, resting, QUIET).map(|list| list.items.len());
        assert_eq!(word(&pushed, None), Err("it published nothing for the file".to_owned()));
        publish(&mut pushed, None, 0);
        assert_eq!(word(&pushed, Some(Instant::now())), Err("it was still computing".to_owned()));
        assert_eq!(word(&pushed, None), Ok(0));
        pushed.server_status(&json!({"health": "ok", "quiescent": false}));
        assert!(word(&pushed, None).unwrap_err().contains("reading the project"));
        publish(&mut pushed, None, 3);
        assert_eq!(word(&pushed, None), Ok(3));
    }
}
