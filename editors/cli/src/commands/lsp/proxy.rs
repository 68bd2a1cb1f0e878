//! Which registered servers `lsp serve --proxy` serves, and in which order.

use agents_domain::language_server::LanguageServerDefinition;
use agents_domain::ports::store::{RegisteredServer, StoreExt};
use agents_domain::{Error, ErrorKind, QualifiedName};
use agents_engine::Engine;
use agents_lsp_server::{ProxyOptions, ProxyTiming};

use crate::compose::{self, Environment};

/// What `--proxy` asks for; `None` is none.
pub fn options(
    engine: &Engine,
    environment: &Environment,
    asked: &[String],
) -> Result<Option<ProxyOptions>, Error> {
    if asked == ["off"] {
        return Ok(None);
    }
    let mut registered = engine.store().view(|r| r.language_servers())?;
    registered.sort_by_key(|server| server.created_at);
    let servers = chosen(registered, asked)?;
    Ok(Some(ProxyOptions {
        servers,
        launcher: compose::launcher(environment),
        timing: ProxyTiming::default(),
    }))
}

/// `auto` is all in the order registered, names are those in their order.
fn chosen(
    registered: Vec<RegisteredServer>,
    asked: &[String],
) -> Result<Vec<LanguageServerDefinition>, Error> {
    let definitions: Vec<_> = registered.into_iter().map(|server| server.definition).collect();
    if asked == ["auto"] {
        return Ok(definitions);
    }
    let mut chosen: Vec<LanguageServerDefinition> = Vec::new();
    for name in asked {
        if name == "off" || name == "auto" {
            let words = format!("`--proxy {name}` stands alone; it cannot be combined with other servers");
            return Err(Error::new(ErrorKind::Usage, words));
        }
        let full = if name.contains('/') { name.clone() } else { format!("local/{name}") };
        let found = full.parse::<QualifiedName>().ok();
        let found = found.and_then(|name| definitions.iter().find(|definition| definition.name == name));
        let Some(found) = found else {
            let known: Vec<String> =
                definitions.iter().map(|definition| definition.name.to_string()).collect();
            let known = if known.is_empty() { "none is".to_owned() } else { known.join(", ") };
            let words = format!("--proxy {name}: no language server of that name is registered ({known})");
            return Err(Error::not_found(words)
                .suggest("agents lsp list")
                .suggest("agents lsp add --config <FILE>"));
        };
        if !chosen.contains(found) {
            chosen.push(found.clone());
        }
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registered(name: &str) -> RegisteredServer {
        let text = format!("name: {name}\nlanguages: [python]\ncommand: x\n");
        let definition = agents_config::load_language_server(&text, "x.yaml").unwrap().value;
        let now = agents_domain::Timestamp::from_micros(0);
        RegisteredServer {
            definition,
            config_path: String::new(),
            source: text,
            created_at: now,
            updated_at: now,
        }
    }

    fn names(asked: &[&str]) -> Result<Vec<String>, Error> {
        let registered = vec![registered("local/a"), registered("local/b")];
        let asked: Vec<String> = asked.iter().map(|name| (*name).to_owned()).collect();
        Ok(chosen(registered, &asked)?.iter().map(|definition| definition.name.to_string()).collect())
    }

    #[test]
    fn servers_come_in_the_order_they_are_named() {
        assert_eq!(names(&["auto"]).unwrap(), ["local/a", "local/b"]);
        assert_eq!(names(&["b", "local/a", "b"]).unwrap(), ["local/b", "local/a"]);
        let error = names(&["b", "auto"]).unwrap_err();
        assert!(error.kind == ErrorKind::Usage && error.message.contains("stands alone"), "{error}");
        let error = names(&["c"]).unwrap_err();
        assert!(error.message.contains("local/a, local/b"), "{error}");
    }
}
