//! A conversation as data: what was said, what it took, and how it is kept small.

use agents_domain::ports::actor::StepCost;
use agents_domain::ports::model::{ChatMessage, ModelCall, Usage};
use serde::{Deserialize, Serialize};

use super::fence::shown;

/// Characters of one result of a tool.
const LONGEST_RESULT: usize = 24_000;
/// Characters of a conversation that is kept; models with more room gain little by it.
const LONGEST: usize = 600_000;
/// A result that is shorter is not worth leaving out.
const WORTH: usize = 400;

const LEFT_OUT: &str = "[left out to save room; ask again if you still need it]";

const EARLIER: &str = "[earlier turns are left out to save room]";

/// A conversation with a model. Texts that come from people, files and tools are masked and bounded on their way in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Talk {
    /// What was said, oldest first; the first message is the task.
    pub messages: Vec<ChatMessage>,
    /// What it took since [`Talk::take_cost`].
    pub usage: Usage,
    /// Turns of the model.
    pub turns: u32,
}

impl Talk {
    /// Says something to the model.
    pub fn say(&mut self, text: impl Into<String>) {
        self.messages.push(ChatMessage::User { text: text.into() });
    }

    /// Answers a call of the model's last turn.
    pub fn answer(&mut self, call_id: &str, text: &str) {
        let text = bounded(&shown(text), LONGEST_RESULT);
        self.messages.push(ChatMessage::Tool { call_id: call_id.to_owned(), text });
    }

    /// The calls of the last turn that have no answer yet, in order.
    pub fn open_calls(&self) -> Vec<&ModelCall> {
        let last = self.messages.iter().rposition(|m| matches!(m, ChatMessage::Assistant { .. }));
        let Some(last) = last else { return Vec::new() };
        let ChatMessage::Assistant { calls, .. } = &self.messages[last] else { return Vec::new() };
        let answered = |id: &str| {
            self.messages[last..]
                .iter()
                .any(|m| matches!(m, ChatMessage::Tool { call_id, .. } if call_id == id))
        };
        calls.iter().filter(|call| !answered(&call.call_id)).collect()
    }

    /// What was spent since this was asked last.
    pub fn take_cost(&mut self) -> StepCost {
        let usage = std::mem::take(&mut self.usage);
        StepCost { usd: usage.usd.unwrap_or(0.0), tokens: usage.input + usage.output }
    }

    pub(super) fn spend(&mut self, usage: Usage) {
        let usd = match (self.usage.usd, usage.usd) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
        };
        self.usage = Usage {
            input: self.usage.input + usage.input,
            cached: self.usage.cached + usage.cached,
            output: self.usage.output + usage.output,
            usd,
        };
    }

    /// Keeps the first message and the last `turns` things that were said to the model; results belong to their turn.
    pub fn keep_turns(&mut self, turns: usize) {
        let said: Vec<usize> = (1..self.messages.len())
            .filter(|index| matches!(self.messages[*index], ChatMessage::User { .. }))
            .collect();
        if let Some(from) = said.len().checked_sub(turns.max(1)).filter(|n| *n > 0).and_then(|n| said.get(n))
        {
            self.messages.drain(1..*from);
        }
    }

    /// Makes a conversation that has grown too long shorter.
    pub(super) fn bound(&mut self) {
        while self.size() > LONGEST && self.shrink() {}
    }

    fn size(&self) -> usize {
        self.messages.iter().map(size).sum()
    }

    /// Leaves out about a quarter: the oldest results first, then the oldest turns; never the task, nor the last turn.
    /// `false` when there is nothing to leave out any more.
    pub(super) fn shrink(&mut self) -> bool {
        let goal = self.size() / 4;
        let last =
            self.messages.iter().rposition(|m| matches!(m, ChatMessage::Assistant { .. })).unwrap_or(0);
        let mut saved = 0;
        for message in &mut self.messages[..last] {
            if let ChatMessage::Tool { text, .. } = message
                && text.len() > WORTH
                && saved < goal
            {
                saved += text.len();
                LEFT_OUT.clone_into(text);
            }
        }
        while saved < goal.max(1) {
            // A turn: from one answer of the model up to the next.
            let turns: Vec<usize> = (1..self.messages.len())
                .filter(|index| matches!(self.messages[*index], ChatMessage::Assistant { .. }))
                .collect();
            let [first, next, ..] = turns[..] else { break };
            // What people said in between stays.
            let (said, gone): (Vec<_>, Vec<_>) = self
                .messages
                .drain(first..next)
                .partition(|message| matches!(message, ChatMessage::User { .. }));
            saved += gone.iter().map(size).sum::<usize>();
            self.messages.splice(first..first, said);
            let marker = ChatMessage::User { text: EARLIER.to_owned() };
            if self.messages.get(1) != Some(&marker) {
                self.messages.insert(1, marker);
            }
        }
        saved > 0
    }
}

fn size(message: &ChatMessage) -> usize {
    match message {
        ChatMessage::User { text } | ChatMessage::Tool { text, .. } => text.len(),
        ChatMessage::Assistant { text, calls, kept } => {
            let calls: usize = calls.iter().map(|call| call.arguments.to_string().len() + 40).sum();
            text.len() + calls + if kept.is_null() { 0 } else { kept.to_string().len() }
        }
    }
}

/// The beginning of a text, with a word on what is missing.
pub(super) fn bounded(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}\n[cut here: {} more bytes]", &text[..end], text.len() - end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn turn(talk: &mut Talk, id: &str, result: &str) {
        let call =
            ModelCall { call_id: id.to_owned(), tool: "read".to_owned(), arguments: json!({"path": "a"}) };
        talk.messages.push(ChatMessage::Assistant {
            text: String::new(),
            calls: vec![call],
            kept: serde_json::Value::Null,
        });
        talk.answer(id, result);
    }

    #[test]
    fn old_results_go_first_then_old_turns_and_never_the_task_nor_the_last_turn() {
        let mut talk = Talk::default();
        talk.say("the task");
        for id in ["1", "2", "3", "4"] {
            turn(&mut talk, id, &"x".repeat(5_000));
        }
        assert!(talk.shrink());
        let text = |talk: &Talk, index: usize| match &talk.messages[index] {
            ChatMessage::Tool { text, .. } => text.clone(),
            other => format!("{other:?}"),
        };
        assert_eq!(text(&talk, 2), LEFT_OUT);
        assert_eq!(text(&talk, 8).len(), 5_000);
        while talk.shrink() {}
        assert_eq!(talk.messages[0], ChatMessage::User { text: "the task".to_owned() });
        assert_eq!(text(&talk, talk.messages.len() - 1).len(), 5_000, "the last result stays");
        // Every result that is left has its call before it.
        for (index, message) in talk.messages.iter().enumerate() {
            if let ChatMessage::Tool { call_id, .. } = message {
                let called = talk.messages[..index].iter().any(|m| {
                    matches!(m, ChatMessage::Assistant { calls, .. } if calls.iter().any(|c| c.call_id == *call_id))
                });
                assert!(called, "{call_id}");
            }
        }
    }

    // ACTOR-021
    #[test]
    fn the_oldest_turn_falls_when_one_too_many_was_said() {
        let mut talk = Talk::default();
        for n in 0..5 {
            talk.say(format!("{n}"));
            turn(&mut talk, &n.to_string(), "r");
        }
        talk.keep_turns(2);
        let said: Vec<&str> = talk
            .messages
            .iter()
            .filter_map(|m| if let ChatMessage::User { text } = m { Some(text.as_str()) } else { None })
            .collect();
        assert_eq!(said, ["0", "3", "4"]);
    }

    #[test]
    fn calls_without_an_answer_are_known() {
        let mut talk = Talk::default();
        talk.say("x");
        turn(&mut talk, "1", "r");
        assert!(talk.open_calls().is_empty());
        talk.messages.pop();
        assert_eq!(talk.open_calls().len(), 1);
    }
}
