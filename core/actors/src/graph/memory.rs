//! What an agent remembers from message to message, within its limits (ACTOR-021, ACTOR-031).

use agents_domain::actor::Remembers;
use agents_domain::ports::model::ChatMessage;

/// The beginning of the message that stands for those that were summed up.
const SUMMARY: &str = "What was said before, in short:";

/// Characters of what is summed up of one message.
const LINE: usize = 160;

/// Adds a turn and keeps the memory within its limits.
pub(super) fn remember(memory: &mut Vec<ChatMessage>, limits: Remembers, question: &str, answer: &str) {
    if !limits.enabled {
        return;
    }
    memory.push(ChatMessage::User { text: question.to_owned() });
    memory.push(assistant(answer));
    let mut dropped: Vec<ChatMessage> = Vec::new();
    let too_many = |memory: &[ChatMessage]| {
        let turns = memory.iter().filter(|m| matches!(m, ChatMessage::User { .. }) && !is_summary(m)).count();
        let messages = memory.iter().filter(|m| !is_summary(m)).count();
        let tokens: usize = memory.iter().map(tokens).sum();
        limits.turns.is_some_and(|most| turns > most as usize)
            || limits.messages.is_some_and(|most| messages > most as usize)
            || limits.tokens.is_some_and(|most| tokens > most as usize)
    };
    // What was said last stays, whatever its size.
    while memory.len() > 2 && too_many(memory) {
        let first = usize::from(memory.first().is_some_and(is_summary));
        if memory.len() <= first + 2 {
            break;
        }
        dropped.push(memory.remove(first));
        // An answer without its question says nothing.
        if memory.get(first).is_some_and(|m| matches!(m, ChatMessage::Assistant { .. }))
            && memory.len() > first + 2
        {
            dropped.push(memory.remove(first));
        }
    }
    if limits.summarize && !dropped.is_empty() {
        sum_up(memory, &dropped);
    }
}

/// One line for each message that was dropped, without asking a model: deterministic and free.
fn sum_up(memory: &mut Vec<ChatMessage>, dropped: &[ChatMessage]) {
    let mut text = match memory.first() {
        Some(ChatMessage::User { text }) if text.starts_with(SUMMARY) => {
            let text = text.clone();
            memory.remove(0);
            text
        }
        _ => SUMMARY.to_owned(),
    };
    for message in dropped {
        let (who, said) = match message {
            ChatMessage::User { text } => ("asked", text),
            ChatMessage::Assistant { text, .. } => ("answered", text),
            ChatMessage::Tool { .. } => continue,
        };
        let line: String = said.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(LINE).collect();
        text.push_str(&format!("\n- {who}: {line}"));
    }
    // The summary of summaries stays small, too: its newest lines.
    let lines: Vec<&str> = text.lines().skip(1).collect();
    let from = lines.len().saturating_sub(40);
    let text = format!("{SUMMARY}\n{}", lines[from..].join("\n"));
    memory.insert(0, ChatMessage::User { text });
}

fn is_summary(message: &ChatMessage) -> bool {
    matches!(message, ChatMessage::User { text } if text.starts_with(SUMMARY))
}

/// About four characters are a token.
fn tokens(message: &ChatMessage) -> usize {
    match message {
        ChatMessage::User { text } | ChatMessage::Assistant { text, .. } | ChatMessage::Tool { text, .. } => {
            text.len().div_ceil(4)
        }
    }
}

/// An answer without calls.
fn assistant(text: &str) -> ChatMessage {
    ChatMessage::Assistant { text: text.to_owned(), calls: Vec::new(), kept: serde_json::Value::Null }
}
