//! Finding a model by its name.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use agents_domain::ports::model::{ChatModel, ModelFailure, ModelFailureKind, Models, Provider};
use genai::Client;
use genai::adapter::AdapterKind;

use super::attempts::{Attempts, Patience};
use super::cassette::{Cassette, Recorded, Replayed};
use super::prices::Prices;
use super::providers::{Custom, KNOWN, Known, canonical};
use super::schema::Fitting;
use super::wire::{Target, Wire};

/// The provider that plays a cassette back.
pub(crate) const REPLAY: &str = "replay";

/// What the configuration says about models. Keys are given by the configuration key that names them.
#[derive(Clone, Default)]
pub struct Settings {
    /// Values of configuration keys such as `provider.openai.api-key`; empty ones count as unset.
    pub keys: BTreeMap<String, String>,
    /// Providers of the person's own, by name.
    pub custom: BTreeMap<String, Custom>,
    /// How often a call is tried again.
    pub max_retries: u32,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// How long nothing may come during an attempt.
    pub stall: Option<Duration>,
    /// Tokens of an answer at most, whoever asks.
    pub max_tokens: Option<u32>,
    /// Prices that go before ours.
    pub prices: Prices,
    /// Where cassettes are that are named without a path.
    pub cassettes: PathBuf,
    /// Every call is kept in this cassette.
    pub record: Option<PathBuf>,
    /// What is wrong in the configuration of a provider of the person's own, by its name. It fails when it is used, not
    /// before: the command that puts it right must work.
    pub refused: BTreeMap<String, String>,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Keys are secrets.
        f.debug_struct("Settings").field("custom", &self.custom.keys()).finish_non_exhaustive()
    }
}

impl Settings {
    fn value(&self, key: &str) -> Option<&str> {
        self.keys.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }
}

/// All models that the settings allow.
pub struct Catalogue {
    settings: Settings,
    client: OnceLock<Result<Client, ModelFailure>>,
    /// Cassettes that are being played or recorded, so that one is read once and has one writer.
    cassettes: Mutex<BTreeMap<PathBuf, Arc<Cassette>>>,
}

impl Catalogue {
    /// Nothing is opened or asked before a model is found.
    pub fn new(settings: Settings) -> Self {
        Self { settings, client: OnceLock::new(), cassettes: Mutex::default() }
    }

    /// The prices in force.
    pub fn prices(&self) -> &Prices {
        &self.settings.prices
    }

    /// Made once: its connections are shared.
    fn client(&self) -> Result<Client, ModelFailure> {
        let made = self.client.get_or_init(|| {
            let web = genai::WebConfig::default().with_connect_timeout(Duration::from_secs(20));
            Client::builder().with_web_config(web).build().map_err(|error| {
                ModelFailure::new(
                    ModelFailureKind::Unavailable,
                    format!("no HTTP client can be made: {error}"),
                )
            })
        });
        made.clone()
    }

    fn cassette(&self, path: PathBuf, existing: bool) -> Result<Arc<Cassette>, ModelFailure> {
        let mut known = self.cassettes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cassette) = known.get(&path) {
            return Ok(cassette.clone());
        }
        let cassette = Arc::new(if existing { Cassette::open(&path)? } else { Cassette::record(&path)? });
        known.insert(path, cassette.clone());
        Ok(cassette)
    }

    /// Where the cassette of a name is: a path as it is, a bare name in the folder of cassettes.
    pub fn cassette_path(&self, name: &str) -> PathBuf {
        let path = PathBuf::from(name);
        if path.components().count() > 1 || path.is_absolute() {
            return path;
        }
        let file = if name.ends_with(".jsonl") { name.to_owned() } else { format!("{name}.jsonl") };
        self.settings.cassettes.join(file)
    }

    fn target(&self, provider: &str, model: &str) -> Result<Target, ModelFailure> {
        if let Some(why) = self.settings.refused.get(provider) {
            return Err(ModelFailure::new(
                ModelFailureKind::Unknown,
                format!("provider `{provider}` cannot be used: {why}"),
            )
            .hint("agents config list provider.*"));
        }
        if let Some(custom) = self.settings.custom.get(provider) {
            return Ok(Target {
                provider: provider.to_owned(),
                model: model.to_owned(),
                kind: custom.protocol.kind(),
                base_url: Some(custom.base_url.clone()),
                url: None,
                key: custom.api_key.clone(),
                headers: Vec::new(),
            });
        }
        let known = KNOWN.iter().find(|known| known.name == canonical(provider)).ok_or_else(|| {
            let names: Vec<&str> = KNOWN
                .iter()
                .map(|known| known.name)
                .chain(self.settings.custom.keys().map(String::as_str))
                .collect();
            ModelFailure::new(
                ModelFailureKind::Unknown,
                format!("there is no provider `{provider}` of models; there is {}", names.join(", ")),
            )
            .hint(format!(
                "a server of your own: agents config set provider.custom.{provider}.base-url <URL>"
            ))
        })?;
        if let Some(missing) = self.missing(known) {
            let failure = ModelFailure::new(
                ModelFailureKind::Unknown,
                format!("provider `{}` is not set up: {}", known.name, missing[0]),
            );
            return Err(missing.into_iter().skip(1).fold(failure, ModelFailure::hint));
        }
        let named = format!("provider.{}.base-url", known.name);
        let base_url = self.settings.value(&named).map(str::to_owned);
        let mut target = Target {
            provider: known.name.to_owned(),
            model: model.to_owned(),
            kind: match (known.name, known.kind) {
                ("openai", kind) if base_url.is_none() && only_responses(model) => responses(kind),
                (_, kind) => kind,
            },
            base_url: base_url.or_else(|| known.base_url.map(str::to_owned)),
            url: None,
            key: self.key(known).map(str::to_owned),
            headers: Vec::new(),
        };
        let organisation = self.settings.value("provider.openai.org-id").filter(|_| known.name == "openai");
        target.headers.extend(organisation.map(|id| ("OpenAI-Organization".to_owned(), id.to_owned())));
        if known.name == "azure" {
            let endpoint = self.settings.value("provider.azure.endpoint").unwrap_or_default();
            let version = self.settings.value("provider.azure.api-version").unwrap_or("2024-02-01");
            let endpoint = endpoint.trim_end_matches('/');
            target.url =
                Some(format!("{endpoint}/openai/deployments/{model}/chat/completions?api-version={version}"));
        }
        Ok(target)
    }

    fn key(&self, known: &Known) -> Option<&str> {
        let key = known.key.and_then(|(key, _)| self.settings.value(key));
        match known.name {
            "google" => key.or_else(|| self.settings.value("provider.google.gemini-api-key")),
            _ => key,
        }
    }

    /// What a provider lacks, then what to do about it.
    fn missing(&self, known: &Known) -> Option<Vec<String>> {
        let mut missing = Vec::new();
        if let Some((key, variable)) = known.key
            && self.key(known).is_none()
        {
            missing.push("it has no key".to_owned());
            missing.push(format!("export {variable}=<KEY>"));
            missing.push(format!("agents config set {key} <KEY>"));
        }
        if known.name == "azure" && self.settings.value("provider.azure.endpoint").is_none() {
            if missing.is_empty() {
                missing.push("it has no endpoint".to_owned());
            }
            missing.push(
                "agents config set provider.azure.endpoint https://<RESOURCE>.openai.azure.com".to_owned(),
            );
        }
        (!missing.is_empty()).then_some(missing)
    }

    fn replayed(&self, cassette: &str) -> Result<Arc<dyn ChatModel>, ModelFailure> {
        let path = self.cassette_path(cassette);
        Ok(Arc::new(Replayed::new(self.cassette(path, true)?)))
    }
}

/// Models that OpenAI offers through its newer protocol alone.
fn only_responses(model: &str) -> bool {
    model.contains("codex")
        || model.ends_with("-pro")
        || model.contains("-pro-")
        || model.contains("deep-research")
}

fn responses(kind: AdapterKind) -> AdapterKind {
    if kind == AdapterKind::OpenAI { AdapterKind::OpenAIResp } else { kind }
}

impl Models for Catalogue {
    fn find(&self, name: &str) -> Result<Arc<dyn ChatModel>, ModelFailure> {
        let (provider, model) =
            name.split_once('/').filter(|(p, m)| !p.is_empty() && !m.is_empty()).ok_or_else(|| {
                ModelFailure::new(
                    ModelFailureKind::Unknown,
                    format!("`{name}` names no model: it must be <provider>/<model>, such as openai/gpt-4.1"),
                )
            })?;
        if provider == REPLAY {
            return self.replayed(model);
        }
        let target = self.target(provider, model)?;
        let patience = Patience {
            retries: self.settings.max_retries,
            timeout: self.settings.timeout,
            stall: self.settings.stall,
        };
        let wire = Wire { client: self.client()?, prices: self.settings.prices.clone(), target };
        let model =
            Fitting { inner: Attempts { inner: wire, patience }, max_tokens: self.settings.max_tokens };
        Ok(match &self.settings.record {
            Some(path) => {
                let cassette = self.cassette(path.clone(), false)?;
                Arc::new(Recorded::new(model, name, cassette))
            }
            None => Arc::new(model),
        })
    }

    fn providers(&self) -> Vec<Provider> {
        let known = KNOWN.iter().map(|known| Provider {
            name: known.name.to_owned(),
            missing: self.missing(known).map(|missing| {
                let (what, todo) = missing.split_first().map_or(("", &[][..]), |(w, t)| (w.as_str(), t));
                format!("{what}: {}", todo.join(", or "))
            }),
        });
        let custom = self.settings.custom.keys().map(|name| Provider { name: name.clone(), missing: None });
        let refused = self.settings.refused.iter();
        let refused = refused.map(|(name, why)| Provider { name: name.clone(), missing: Some(why.clone()) });
        let custom = custom.chain(refused);
        let mut all: Vec<Provider> = known.chain(custom).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }
}
