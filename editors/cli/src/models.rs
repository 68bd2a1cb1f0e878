//! What the configuration says about models, in the words of the crate that asks them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agents_actors::agent::{ModelActorSettings, Prompts};
use agents_actors::models::{Custom, Prices, Protocol, Settings};
use agents_config::{Config, KEYS};
use serde_json::Value;

/// The folder of cassettes in the data directory.
pub fn cassettes(data_dir: &Path) -> PathBuf {
    data_dir.join("cassettes")
}

/// What models may be asked, and how. What is wrong in it is said when a model is asked.
pub fn settings(config: &Config, data_dir: &Path, record: Option<PathBuf>) -> Settings {
    let keys = KEYS.iter().filter(|key| key.name.starts_with("provider.") && !key.name.ends_with('*'));
    let keys = keys.map(|key| (key.name.to_owned(), config.text(key.name, None))).collect();
    let seconds = |key: &str| u64::try_from(config.integer(key, None)).ok().map(Duration::from_secs);
    let prices = Prices::parse(config.get("provider.prices.*", None).value).unwrap_or_else(|why| {
        tracing::warn!("the configuration key `provider.prices` is wrong and left out: {why}");
        Prices::default()
    });
    let (custom, refused) = custom(&config.get("provider.custom.*", None).value);
    Settings {
        keys,
        custom,
        refused,
        max_retries: u32::try_from(config.integer("provider.max-retries", None)).unwrap_or(0),
        timeout: seconds("provider.timeout-seconds"),
        stall: seconds("provider.stall-seconds"),
        max_tokens: config.number("actor.max-tokens-per-call", None).map(|most| most as u32),
        prices,
        cassettes: cassettes(data_dir),
        record,
    }
}

/// What the built-in model actors are told.
pub fn actor_settings(config: &Config, data_dir: &Path) -> ModelActorSettings {
    let model = config.text("actor.default.model", None);
    ModelActorSettings {
        model: Some(model).filter(|model| !model.is_empty()),
        max_calls_per_step: usize::try_from(config.integer("plan.tool.max-calls-per-step", None))
            .unwrap_or(1),
        prompts: Prompts { folder: Some(data_dir.join("prompts")) },
    }
}

/// The providers of the person's own that make sense, and what is wrong with the others.
fn custom(providers: &Value) -> (BTreeMap<String, Custom>, BTreeMap<String, String>) {
    let (mut good, mut refused) = (BTreeMap::new(), BTreeMap::new());
    for (name, provider) in providers.as_object().into_iter().flatten() {
        match one(name, provider) {
            Ok(custom) => _ = good.insert(name.clone(), custom),
            Err(why) => {
                let why = format!("the configuration key `provider.custom.{name}` is wrong: {why}");
                refused.insert(name.clone(), why);
            }
        }
    }
    (good, refused)
}

fn one(name: &str, provider: &Value) -> Result<Custom, String> {
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
        return Err("a provider's name has letters, digits, `-` and `_`".to_owned());
    }
    let text = |field: &str| provider[field].as_str().unwrap_or_default();
    for (field, _) in provider.as_object().into_iter().flatten() {
        if !["base-url", "api-key", "protocol"].contains(&field.as_str()) {
            return Err(format!("there is no `{field}`; there is base-url, api-key, protocol"));
        }
    }
    if !text("base-url").starts_with("http://") && !text("base-url").starts_with("https://") {
        return Err("`base-url` must be where it is, such as http://localhost:8000/v1".to_owned());
    }
    let protocol = Protocol::named(text("protocol"))
        .ok_or("`protocol` must be `openai`, `openai-responses` or `anthropic`")?;
    let api_key = Some(text("api-key").to_owned()).filter(|key| !key.is_empty());
    Ok(Custom { base_url: text("base-url").to_owned(), api_key, protocol })
}
