//! Cassettes: calls of models as they were, kept in a file of JSON lines, and played back without anybody being asked.
//!
//! A line is a [`Taken`]. Ids that are new in each run (ULIDs) are kept as numbers of their first appearance, so that the
//! same work on another day makes the same request; in the answer they become the ids of the present run again.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use agents_domain::changes::content_hash;
use agents_domain::ports::BoxFuture;
use agents_domain::ports::model::{
    ChatDelta, ChatModel, ChatReply, ChatRequest, ModelFailure, ModelFailureKind,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Bytes of a cassette that is read.
const LARGEST: u64 = 256 << 20;

/// A call on a cassette.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taken {
    /// SHA-256 of the request with its ids numbered.
    pub hash: String,
    /// The model that was asked.
    pub model: String,
    /// What it was asked, ids numbered.
    pub request: Value,
    /// What it answered, ids numbered; what it failed with, instead.
    pub reply: Outcome,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// An answer.
    Answered(Value),
    /// None.
    Failed(ModelFailure),
}

/// A file of calls, to be written or read.
#[derive(Debug)]
pub struct Cassette {
    path: PathBuf,
    taken: Vec<Taken>,
    /// Those that were played.
    played: Mutex<BTreeSet<usize>>,
    file: Option<Mutex<std::fs::File>>,
}

impl Cassette {
    /// A cassette to record on; what it holds stays, new calls come after it.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn record(path: &Path) -> Result<Self, ModelFailure> {
        let told = |error: std::io::Error| {
            failure(format!("the cassette {} cannot be written: {error}", path.display()))
        };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(told)?;
        }
        let mut open = std::fs::OpenOptions::new();
        open.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut open, 0o600);
        let file = open.open(path).map_err(told)?;
        Ok(Self {
            path: path.to_owned(),
            taken: Vec::new(),
            played: Mutex::default(),
            file: Some(Mutex::new(file)),
        })
    }

    /// A cassette to play back.
    ///
    /// # Errors
    /// A file that is not there or no cassette, with the line that is wrong. A last line that was not written to its end is
    /// left out.
    pub fn open(path: &Path) -> Result<Self, ModelFailure> {
        let told =
            |what: String| failure(format!("the cassette {} cannot be played: {what}", path.display()));
        let size = std::fs::metadata(path).map_err(|error| told(error.to_string()))?.len();
        if size > LARGEST {
            return Err(told(format!("it has {size} bytes, more than {LARGEST}")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| told(error.to_string()))?;
        let mut taken = Vec::new();
        for (index, line) in text.split_inclusive('\n').enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            match serde_json::from_str(line) {
                Ok(call) => taken.push(call),
                Err(_) if !line.ends_with('\n') => {}
                Err(error) => return Err(told(format!("line {} is no recorded call: {error}", index + 1))),
            }
        }
        Ok(Self { path: path.to_owned(), taken, played: Mutex::default(), file: None })
    }

    /// The calls it held when it was opened.
    pub fn calls(&self) -> &[Taken] {
        &self.taken
    }

    fn keep(&self, call: &Taken) -> Result<(), ModelFailure> {
        let Some(file) = &self.file else { return Ok(()) };
        let told = |error: String| {
            failure(format!("the call was not kept in the cassette {}: {error}", self.path.display()))
        };
        let mut line = serde_json::to_string(call).map_err(|error| told(error.to_string()))?;
        line.push('\n');
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes()).map_err(|error| told(error.to_string()))
    }

    /// The answer to a request: the first of its calls that was not played yet, else the last that was.
    fn play(&self, asked: &Numbered) -> Result<Outcome, ModelFailure> {
        let hash = asked.hash();
        let mut played = self.played.lock().unwrap_or_else(PoisonError::into_inner);
        let mut same = self.taken.iter().enumerate().filter(|(_, call)| call.hash == hash);
        let fresh = same.clone().find(|(index, _)| !played.contains(index));
        if let Some((index, call)) = fresh.or_else(|| same.next_back()) {
            played.insert(index);
            return Ok(call.reply.clone());
        }
        let next = self.taken.iter().enumerate().find(|(index, _)| !played.contains(index));
        let difference = match next {
            None => format!("all of its {} calls were played", self.taken.len()),
            Some((index, call)) => {
                format!(
                    "call {} differs: {}",
                    index + 1,
                    difference(&call.request, &asked.value, "").unwrap_or_default()
                )
            }
        };
        Err(failure(format!(
            "the cassette {} has no answer to this request; {difference}",
            self.path.display()
        ))
        .hint("record it again: the work, its prompts or its tools are not what they were"))
    }
}

fn failure(message: String) -> ModelFailure {
    ModelFailure::new(ModelFailureKind::Invalid, message)
}

/// A model whose calls are kept.
pub(super) struct Recorded<M> {
    inner: M,
    name: String,
    cassette: Arc<Cassette>,
}

impl<M> Recorded<M> {
    pub fn new(inner: M, name: &str, cassette: Arc<Cassette>) -> Self {
        Self { inner, name: name.to_owned(), cassette }
    }
}

impl<M: ChatModel> ChatModel for Recorded<M> {
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        watch: &'a mut (dyn FnMut(ChatDelta) + Send),
    ) -> BoxFuture<'a, Result<ChatReply, ModelFailure>> {
        Box::pin(async move {
            let mut asked = Numbered::of(request)?;
            let answered = self.inner.chat(request, watch).await;
            let reply = match &answered {
                Ok(reply) => Outcome::Answered(asked.number(to_value(reply)?)),
                Err(failed) => Outcome::Failed(failed.clone()),
            };
            let hash = asked.hash();
            self.cassette.keep(&Taken { hash, model: self.name.clone(), request: asked.value, reply })?;
            answered
        })
    }
}

/// A model that is played back.
pub(super) struct Replayed {
    cassette: Arc<Cassette>,
}

impl Replayed {
    pub fn new(cassette: Arc<Cassette>) -> Self {
        Self { cassette }
    }
}

impl ChatModel for Replayed {
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        watch: &'a mut (dyn FnMut(ChatDelta) + Send),
    ) -> BoxFuture<'a, Result<ChatReply, ModelFailure>> {
        Box::pin(async move {
            let asked = Numbered::of(request)?;
            let reply = match self.cassette.play(&asked)? {
                Outcome::Answered(reply) => asked.restore(reply),
                Outcome::Failed(failed) => return Err(failed),
            };
            let reply: ChatReply = serde_json::from_value(reply)
                .map_err(|error| failure(format!("a recorded answer cannot be read: {error}")))?;
            if !reply.text.is_empty() {
                watch(ChatDelta::Text(reply.text.clone()));
            }
            for call in &reply.calls {
                watch(ChatDelta::Call(call.clone()));
            }
            Ok(reply)
        })
    }
}

/// SHA-256 of a request, with its ids numbered.
pub fn request_hash(request: &ChatRequest) -> String {
    Numbered::of(request).map(|asked| asked.hash()).unwrap_or_default()
}

fn to_value<T: Serialize>(value: &T) -> Result<Value, ModelFailure> {
    serde_json::to_value(value).map_err(|error| failure(format!("a call cannot be written: {error}")))
}

/// A request whose ULIDs are numbered in the order they first appear.
struct Numbered {
    value: Value,
    ids: Vec<String>,
}

impl Numbered {
    fn of(request: &ChatRequest) -> Result<Self, ModelFailure> {
        let mut numbered = Self { value: Value::Null, ids: Vec::new() };
        let value = to_value(request)?;
        numbered.value = numbered.number(value);
        Ok(numbered)
    }

    fn hash(&self) -> String {
        content_hash(self.value.to_string().as_bytes())
    }

    fn number(&mut self, value: Value) -> Value {
        each_text(value, &mut |text| {
            replaced(&text, ulids(&text), |id| {
                let known = self.ids.iter().position(|known| known == id);
                let index = known.unwrap_or_else(|| {
                    self.ids.push(id.to_owned());
                    self.ids.len() - 1
                });
                format!("«{index}»")
            })
        })
    }

    fn restore(&self, value: Value) -> Value {
        each_text(value, &mut |text| {
            let places: Vec<_> = numbers(&text).collect();
            replaced(&text, places.into_iter(), |number| {
                let index: Option<usize> = number.trim_matches(['«', '»']).parse().ok();
                index.and_then(|index| self.ids.get(index)).cloned().unwrap_or_else(|| number.to_owned())
            })
        })
    }
}

fn each_text(value: Value, change: &mut dyn FnMut(String) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(change(text)),
        Value::Array(items) => items.into_iter().map(|item| each_text(item, change)).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(key, member)| (key, each_text(member, change))).collect()
        }
        other => other,
    }
}

fn replaced(
    text: &str,
    places: impl Iterator<Item = std::ops::Range<usize>>,
    mut by: impl FnMut(&str) -> String,
) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for place in places {
        out.push_str(&text[done..place.start]);
        out.push_str(&by(&text[place.clone()]));
        done = place.end;
    }
    out + &text[done..]
}

/// Where ULIDs stand in a text: 26 characters of their alphabet, of this age, and no more of it around them.
fn ulids(text: &str) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
    let of_it = |b: u8| b.is_ascii_digit() || (b.is_ascii_uppercase() && !b"ILOU".contains(&b));
    let mut found = Vec::new();
    let mut start = None;
    for (index, byte) in text.bytes().chain([b' ']).enumerate() {
        match (byte.is_ascii_alphanumeric(), start) {
            (true, None) => start = Some(index),
            (false, Some(from)) => {
                let word = &text.as_bytes()[from..index];
                if word.len() == 26 && word.starts_with(b"0") && word.iter().all(|b| of_it(*b)) {
                    found.push(from..index);
                }
                start = None;
            }
            _ => {}
        }
    }
    found.into_iter()
}

/// Where numbers of ids stand in a text.
fn numbers(text: &str) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
    text.match_indices('«').filter_map(|(start, _)| {
        let end = start + text[start..].find('»')?;
        let digits = &text[start + '«'.len_utf8()..end];
        let fits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        fits.then_some(start..end + '»'.len_utf8())
    })
}

/// The first place where two values differ, with what stands there.
fn difference(kept: &Value, asked: &Value, at: &str) -> Option<String> {
    match (kept, asked) {
        (Value::Object(kept), Value::Object(asked)) => {
            for (key, value) in kept {
                match asked.get(key) {
                    Some(other) => {
                        if let Some(found) = difference(value, other, &format!("{at}/{key}")) {
                            return Some(found);
                        }
                    }
                    None => return Some(format!("{at}/{key} was there and is not")),
                }
            }
            asked
                .keys()
                .find(|key| !kept.contains_key(*key))
                .map(|key| format!("{at}/{key} was not there and is"))
        }
        (Value::Array(kept), Value::Array(asked)) => {
            let mut pairs = kept.iter().zip(asked).enumerate();
            let inside = pairs.find_map(|(index, (a, b))| difference(a, b, &format!("{at}/{index}")));
            inside.or_else(|| {
                (kept.len() != asked.len())
                    .then(|| format!("{at} had {} parts and has {}", kept.len(), asked.len()))
            })
        }
        (Value::String(kept), Value::String(asked)) if kept != asked => {
            Some(text_difference(kept, asked, at))
        }
        (kept, asked) if kept != asked => Some(format!("{at} was {kept} and is {asked}")),
        _ => None,
    }
}

/// Where two texts part, with some of what follows there.
fn text_difference(kept: &str, asked: &str, at: &str) -> String {
    const SHOWN: usize = 120;
    let same = kept.chars().zip(asked.chars()).take_while(|(a, b)| a == b).count();
    let line = kept.chars().take(same).filter(|c| *c == '\n').count() + 1;
    let from = same.saturating_sub(20);
    let part = |text: &str| text.chars().skip(from).take(SHOWN).collect::<String>();
    format!("{at}, line {line}: was {:?} and is {:?}", part(kept), part(asked))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agents_domain::ports::model::{ChatMessage, StopReason, Usage};

    fn asks(text: &str) -> ChatRequest {
        let messages = vec![ChatMessage::User { text: text.to_owned() }];
        ChatRequest { messages, ..ChatRequest::default() }
    }

    /// Says again what it was told last.
    struct Echo;

    impl ChatModel for Echo {
        fn chat<'a>(
            &'a self,
            request: &'a ChatRequest,
            _: &'a mut (dyn FnMut(ChatDelta) + Send),
        ) -> BoxFuture<'a, Result<ChatReply, ModelFailure>> {
            let text = match request.messages.last() {
                Some(ChatMessage::User { text }) => text.clone(),
                _ => String::new(),
            };
            let (stop, usage) = (StopReason::Done, Usage::default());
            let (model, kept) = ("echo".to_owned(), Value::Null);
            Box::pin(async move {
                Ok(ChatReply { text, calls: Vec::new(), stop, usage, model, kept, retries: 0 })
            })
        }
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        futures::executor::block_on(future)
    }

    #[test]
    fn a_call_is_played_back_with_the_ids_of_the_present_run_and_another_one_is_refused_with_the_difference()
    {
        let folder = std::env::temp_dir().join(format!("cassette-{}", std::process::id()));
        let path = folder.join("a.jsonl");
        let _ = std::fs::remove_file(&path);
        let recorded = Recorded::new(Echo, "echo/echo", Arc::new(Cassette::record(&path).unwrap()));
        let (then, now) = ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "01BX5ZZKBKACTAV9WEVGEMMVRZ");
        run(recorded.chat(&asks(&format!("look at {then}")), &mut |_| {})).unwrap();

        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains(then), "{text}");
        let cassette = Arc::new(Cassette::open(&path).unwrap());
        assert_eq!(cassette.calls().len(), 1);
        let replayed = Replayed::new(cassette);
        let reply = run(replayed.chat(&asks(&format!("look at {now}")), &mut |_| {})).unwrap();
        assert_eq!(reply.text, format!("look at {now}"));
        // Once more is the same again: a worker that died asks twice.
        assert!(run(replayed.chat(&asks(&format!("look at {now}")), &mut |_| {})).is_ok());
        let refused = run(replayed.chat(&asks("look at something else"), &mut |_| {})).unwrap_err();
        assert!(refused.message.contains("all of its 1 calls were played"), "{refused}");

        let again = Replayed::new(Arc::new(Cassette::open(&path).unwrap()));
        let refused = run(again.chat(&asks("look at something else"), &mut |_| {})).unwrap_err();
        assert!(refused.message.contains("/messages/0/text, line 1"), "{refused}");
        // A line that was not written to its end is left out; a wrong one is named.
        std::fs::write(&path, format!("{text}{{\"ha")).unwrap();
        assert_eq!(Cassette::open(&path).unwrap().calls().len(), 1);
        std::fs::write(&path, format!("{text}nonsense\n")).unwrap();
        assert!(Cassette::open(&path).unwrap_err().message.contains("line 2"));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
