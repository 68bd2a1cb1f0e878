//! What the configuration says about models, in the words of the crate that asks them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agents_actors::agent::{ModelActorSettings, Prompts};
use agents_actors::models::{Custom, Prices, Protocol, Settings};
use agents_config::{Config, KEYS};
use agents_domain::{Error, ErrorKind, Result};
use serde_json::Value;

/// The folder of cassettes in the data directory.
pub fn cassettes(data_dir: &Path) -> PathBuf {
    data_dir.join("cassettes")
}

/// What models may be asked, and how.
///
/// # Errors
/// A provider or a price that does not fit, with its key.
pub fn settings(config: &Config, data_dir: &Path, record: Option<PathBuf>) -> Result<Settings> {
    let keys = KEYS.iter().filter(|key| key.name.starts_with("provider.") && !key.name.ends_with('*'));
    let keys = keys.map(|key| (key.name.to_owned(), config.text(key.name, None))).collect();
    let seconds = |key: &str| u64::try_from(config.integer(key, None)).ok().map(Duration::from_secs);
    let prices = config.get("provider.prices.*", None).value;
    Ok(Settings {
        keys,
        custom: custom(&config.get("provider.custom.*", None).value)?,
        max_retries: u32::try_from(config.integer("provider.max-retries", None)).unwrap_or(0),
        timeout: seconds("provider.timeout-seconds"),
        stall: seconds("provider.stall-seconds"),
        max_tokens: config.number("actor.max-tokens-per-call", None).map(|most| most as u32),
        prices: Prices::parse(prices).map_err(|why| wrong("provider.prices", &why))?,
        cassettes: cassettes(data_dir),
        record,
    })
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

fn custom(providers: &Value) -> Result<BTreeMap<String, Custom>> {
    let mut all = BTreeMap::new();
    for (name, provider) in providers.as_object().into_iter().flatten() {
        let key = format!("provider.custom.{name}");
        let word = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        if !word {
            return Err(wrong(&key, "a provider's name has letters, digits, `-` and `_`"));
        }
        let text = |field: &str| provider[field].as_str().unwrap_or_default();
        for field in provider.as_object().into_iter().flatten().map(|(field, _)| field) {
            if !["base-url", "api-key", "protocol"].contains(&field.as_str()) {
                return Err(wrong(
                    &key,
                    &format!("there is no `{field}`; there is base-url, api-key, protocol"),
                ));
            }
        }
        if !text("base-url").starts_with("http://") && !text("base-url").starts_with("https://") {
            return Err(wrong(&key, "`base-url` must be where it is, such as http://localhost:8000/v1"));
        }
        let protocol = Protocol::named(text("protocol"))
            .ok_or_else(|| wrong(&key, "`protocol` must be `openai`, `openai-responses` or `anthropic`"))?;
        let api_key = Some(text("api-key").to_owned()).filter(|key| !key.is_empty());
        all.insert(name.clone(), Custom { base_url: text("base-url").to_owned(), api_key, protocol });
    }
    Ok(all)
}

fn wrong(key: &str, why: &str) -> Error {
    Error::new(ErrorKind::Configuration, format!("the configuration key `{key}` is wrong: {why}"))
        .suggest("agents config list provider.*")
}
