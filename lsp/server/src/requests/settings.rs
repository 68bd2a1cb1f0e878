//! Settings, from `initializationOptions`, from `workspace/didChangeConfiguration` and from `workspace/configuration`.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::Shared;

/// The section of a client's settings that is ours.
pub(crate) const SECTION: &str = "cleveragents";

/// What a person can turn off.
#[derive(Debug)]
pub(crate) struct Settings {
    notifications: AtomicBool,
    inlay_hints: AtomicBool,
    syntax: AtomicBool,
}

impl Default for Settings {
    fn default() -> Self {
        let on = || AtomicBool::new(true);
        Self { notifications: on(), inlay_hints: on(), syntax: on() }
    }
}

impl Settings {
    /// Messages when a plan waits for a person or ends.
    pub fn notifications(&self) -> bool {
        self.notifications.load(Ordering::Relaxed)
    }

    /// The mark of a decision at the end of its first line.
    pub fn inlay_hints(&self) -> bool {
        self.inlay_hints.load(Ordering::Relaxed)
    }

    /// Symbols, definitions, references, hover and syntax errors from syntax alone.
    pub fn syntax(&self) -> bool {
        self.syntax.load(Ordering::Relaxed)
    }

    /// Takes what a client sent, whether it is the section itself or holds it; whether anything is another way now.
    pub fn take(&self, value: &Value) -> bool {
        let section = value.get(SECTION).unwrap_or(value);
        let one = |name: &str, setting: &AtomicBool| {
            let dotted = value.get(format!("{SECTION}.{name}"));
            let said = dotted.or_else(|| section.get(name)).and_then(Value::as_bool);
            said.is_some_and(|said| setting.swap(said, Ordering::Relaxed) != said)
        };
        // All are read, whatever the first says.
        one("notifications", &self.notifications)
            | one("inlayHints", &self.inlay_hints)
            | one("syntax", &self.syntax)
    }
}

impl Shared {
    /// Asks the client for our section; whether anything is another way now.
    pub async fn ask_settings(&self) -> bool {
        if !self.session.latest().client().supports("/workspace/configuration") {
            return false;
        }
        let params = json!({ "items": [{ "section": SECTION }] });
        match self.client.request_raw::<Vec<Value>>("workspace/configuration", params).await {
            Ok(sections) => sections.first().is_some_and(|section| self.settings.take(section)),
            Err(error) => {
                tracing::warn!(%error, "the client's settings are not known");
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_found_however_a_client_wraps_it() {
        for off in [
            json!({ "notifications": false, "inlayHints": false }),
            json!({ "cleveragents": { "notifications": false, "inlayHints": false } }),
            json!({ "cleveragents.notifications": false, "cleveragents.inlayHints": false }),
        ] {
            let settings = Settings::default();
            assert!(settings.notifications() && settings.inlay_hints());
            assert!(settings.take(&off), "{off}");
            assert!(!settings.notifications() && !settings.inlay_hints(), "{off}");
            assert!(!settings.take(&off));
        }
    }

    #[test]
    fn what_is_not_said_or_no_truth_value_stays() {
        let settings = Settings::default();
        for value in [json!(null), json!({}), json!({ "notifications": "no" }), json!([1])] {
            assert!(!settings.take(&value));
        }
        assert!(settings.notifications());
    }
}
