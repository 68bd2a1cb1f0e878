//! What tokens cost: data of ours, with the configuration's before it. What is not known is not guessed.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use agents_domain::ports::model::Usage;
use serde::Deserialize;

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Price {
    input: f64,
    /// Of what comes from the provider's cache; as `input` unless given.
    cached: Option<f64>,
    output: f64,
}

/// Prices by `<provider>/<model>`; a `*` at the end stands for any rest.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    own: BTreeMap<String, Price>,
}

#[derive(Deserialize)]
struct File {
    models: BTreeMap<String, Price>,
}

/// The prices that come with the program.
fn ours() -> &'static BTreeMap<String, Price> {
    static OURS: OnceLock<BTreeMap<String, Price>> = OnceLock::new();
    OURS.get_or_init(|| {
        let file: Result<File, _> = serde_json::from_str(include_str!("prices.json"));
        file.map(|file| file.models).unwrap_or_default()
    })
}

impl Prices {
    /// Prices of the configuration: `{"<provider>/<model>": {"input": .., "cached": .., "output": ..}}`.
    ///
    /// # Errors
    /// What does not fit, with its place.
    pub fn parse(own: serde_json::Value) -> Result<Self, String> {
        if own.is_null() {
            return Ok(Self::default());
        }
        serde_json::from_value(own).map(|own| Self { own }).map_err(|error| {
            format!("prices are {{\"input\": .., \"output\": ..}} per million tokens: {error}")
        })
    }

    /// The usage with its cost, where the price is known.
    pub(super) fn priced(&self, model: &str, usage: Usage) -> Usage {
        let Some(price) = find(&self.own, model).or_else(|| find(ours(), model)) else { return usage };
        let cached = usage.cached.min(usage.input);
        let tokens = |n: u64| n as f64 / 1_000_000.0;
        let usd = tokens(usage.input - cached) * price.input
            + tokens(cached) * price.cached.unwrap_or(price.input)
            + tokens(usage.output) * price.output;
        Usage { usd: Some(usd), ..usage }
    }
}

/// The price of a model: under its name, else under the longest pattern that fits.
fn find<'p>(prices: &'p BTreeMap<String, Price>, model: &str) -> Option<&'p Price> {
    prices.get(model).or_else(|| {
        let fitting = prices.iter().filter_map(|(name, price)| {
            let start = name.strip_suffix('*')?;
            model.starts_with(start).then_some((start.len(), price))
        });
        fitting.max_by_key(|(length, _)| *length).map(|(_, price)| price)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn usage() -> Usage {
        Usage { input: 1_000_000, cached: 400_000, output: 100_000, usd: None }
    }

    #[test]
    fn what_is_known_is_priced_and_the_configuration_goes_first() {
        assert!(ours().len() > 10, "the file of prices can be read");
        let none = Prices::default();
        let usd = none.priced("openai/gpt-4.1", usage()).usd.unwrap();
        assert!((usd - (0.6 * 2.0 + 0.4 * 0.5 + 0.1 * 8.0)).abs() < 1e-9, "{usd}");
        assert_eq!(none.priced("openai/something-new", usage()).usd, None);
        assert!(none.priced("anthropic/claude-sonnet-4-20250514", usage()).usd.is_some());
        let own = Prices::parse(json!({"openai/*": {"input": 1.0, "output": 1.0}})).unwrap();
        assert!((own.priced("openai/something-new", usage()).usd.unwrap() - 1.1).abs() < 1e-9);
        assert!(Prices::parse(json!({"a/b": {"input": "x"}})).is_err());
    }
}
