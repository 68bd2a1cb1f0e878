//! Which servers an actor is lent: those it names, those for its languages, or those for the project's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Capability, LanguageServerDefinition};
use crate::QualifiedName;

/// An actor's `lsp`, its template (if it is one) rendered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Binding {
    /// Servers by name, in order of preference.
    Explicit(Vec<QualifiedName>),
    /// Servers by what they serve.
    By(Rule),
}

/// `{languages: [...]}` or `{auto: true}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// All registered servers for each of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub languages: Vec<String>,
    /// All registered servers for the languages of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto: Option<bool>,
}

/// What of the language servers an actor is lent; everything unless it says otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lent {
    /// Which servers: an actor's `lsp`.
    pub servers: Option<Binding>,
    /// For what: an actor's `lsp_capabilities`.
    pub capabilities: Option<Vec<Capability>>,
}

impl Lent {
    /// Reads what an actor's definition says; a value that is missing or null is everything.
    ///
    /// # Errors
    /// Which of the two is wrong, and what would be right.
    pub fn read(servers: &Value, capabilities: &Value) -> Result<Self, String> {
        let all = |value: &Value| value.is_null() || value == "all";
        let capabilities = match capabilities {
            value if all(value) => None,
            value => Some(serde_json::from_value(value.clone()).map_err(|error| {
                format!("`lsp_capabilities` is `all` or a list of capabilities: {error}")
            })?),
        };
        let servers = match servers {
            Value::Null => None,
            value => {
                let binding: Binding = serde_json::from_value(value.clone()).map_err(|_| {
                    "`lsp` is a list of servers, `{languages: [...]}` or `{auto: true}`".to_owned()
                })?;
                binding.check()?;
                Some(binding)
            }
        };
        Ok(Self { servers, capabilities })
    }
}

/// How a binding is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the words of `agents lsp show`")]
pub enum Mode {
    Explicit,
    LanguageBased,
    AutoDiscovery,
}

/// The servers a binding comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// In order of preference, each once.
    pub servers: Vec<QualifiedName>,
    /// How they were found; `None` when the binding is none.
    pub mode: Option<Mode>,
    /// What is to be said about it: the actor runs all the same.
    pub warnings: Vec<String>,
}

impl Binding {
    /// Checks what no registry is needed for.
    ///
    /// # Errors
    /// `languages` together with `auto: true`, or neither.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::By(Rule { languages, auto: Some(true) }) if !languages.is_empty() => {
                Err("`lsp` has both `languages` and `auto: true`; keep one of them".to_owned())
            }
            Self::By(Rule { languages, auto: None }) if languages.is_empty() => {
                Err("`lsp` is empty; give a list of servers, `languages: [...]`, or `auto: true`".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Whether the languages of the project decide.
    pub fn wants_project(&self) -> bool {
        matches!(self, Self::By(Rule { auto: Some(true), .. }))
    }

    /// The servers it comes to, given what is registered and which languages the project has.
    ///
    /// # Errors
    /// A named server that is not registered, or what [`check`](Self::check) finds.
    pub fn resolve(
        &self,
        registered: &[LanguageServerDefinition],
        project: &[String],
    ) -> Result<Bound, String> {
        self.check()?;
        let (languages, mode) = match self {
            Self::Explicit(names) => {
                for name in names {
                    if !registered.iter().any(|server| server.name == *name) {
                        return Err(format!(
                            "the language server {name} is not registered; `agents lsp list` shows those that are"
                        ));
                    }
                }
                let mode = (!names.is_empty()).then_some(Mode::Explicit);
                return Ok(Bound { servers: once(names.clone()), mode, warnings: Vec::new() });
            }
            Self::By(Rule { languages, .. }) if !languages.is_empty() => {
                (languages.as_slice(), Mode::LanguageBased)
            }
            Self::By(Rule { auto: Some(true), .. }) => (project, Mode::AutoDiscovery),
            Self::By(_) => return Ok(Bound { servers: Vec::new(), mode: None, warnings: Vec::new() }),
        };
        let mut servers = Vec::new();
        let mut warnings = Vec::new();
        for language in languages {
            let mut of: Vec<QualifiedName> = registered
                .iter()
                .filter(|server| server.languages.iter().any(|one| one.eq_ignore_ascii_case(language)))
                .map(|server| server.name.clone())
                .collect();
            of.sort_by_key(ToString::to_string);
            if of.is_empty() && mode == Mode::LanguageBased {
                warnings.push(format!("no language server is registered for {language}"));
            }
            servers.extend(of);
        }
        if mode == Mode::AutoDiscovery && servers.is_empty() {
            warnings.push(match project.is_empty() {
                true => "no language was found in the project, so no language server is bound".to_owned(),
                false => format!("no language server is registered for any of {}", project.join(", ")),
            });
        }
        Ok(Bound { servers: once(servers), mode: Some(mode), warnings })
    }
}

fn once(names: Vec<QualifiedName>) -> Vec<QualifiedName> {
    let mut out: Vec<QualifiedName> = Vec::with_capacity(names.len());
    for name in names {
        if !out.contains(&name) {
            out.push(name);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn registry() -> Vec<LanguageServerDefinition> {
        let entry = |name: &str, languages: Value| {
            serde_json::from_value(json!({"name": name, "languages": languages, "command": "x"})).unwrap()
        };
        vec![
            entry("local/ruff", json!(["python"])),
            entry("local/clangd", json!(["c", "cpp"])),
            entry("local/basedpyright", json!(["Python"])),
        ]
    }

    fn resolve(binding: Value, project: &[&str]) -> Result<(Vec<String>, Option<Mode>, usize), String> {
        let binding: Binding = serde_json::from_value(binding).unwrap();
        let project: Vec<String> = project.iter().map(|one| (*one).to_owned()).collect();
        let bound = binding.resolve(&registry(), &project)?;
        Ok((bound.servers.iter().map(ToString::to_string).collect(), bound.mode, bound.warnings.len()))
    }

    // LSP-012, LSP-013, LSP-014, 3.2
    #[test]
    fn servers_are_bound_by_name_by_language_or_by_the_project() {
        let names = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        let explicit = resolve(json!(["local/ruff", "local/clangd", "local/ruff"]), &[]).unwrap();
        assert_eq!(explicit, (names(&["local/ruff", "local/clangd"]), Some(Mode::Explicit), 0));
        let unknown = resolve(json!(["local/gopls"]), &[]).unwrap_err();
        assert!(unknown.contains("local/gopls is not registered"), "{unknown}");
        let by = resolve(json!({"languages": ["c", "python", "go"]}), &[]).unwrap();
        let expected = names(&["local/clangd", "local/basedpyright", "local/ruff"]);
        assert_eq!(by, (expected, Some(Mode::LanguageBased), 1));
        let auto = resolve(json!({"auto": true}), &["python", "rust"]).unwrap();
        assert_eq!(auto, (names(&["local/basedpyright", "local/ruff"]), Some(Mode::AutoDiscovery), 0));
        assert_eq!(resolve(json!({"auto": true}), &[]).unwrap(), (vec![], Some(Mode::AutoDiscovery), 1));
        assert_eq!(resolve(json!({"auto": false}), &["c"]).unwrap(), (vec![], None, 0));
        assert_eq!(resolve(json!([]), &["c"]).unwrap(), (vec![], None, 0));
        assert!(resolve(json!({"auto": true, "languages": ["c"]}), &[]).unwrap_err().contains("keep one"));
        assert!(resolve(json!({}), &[]).unwrap_err().contains("is empty"));
    }

    // LSP-017
    #[test]
    fn what_is_lent_is_everything_unless_a_definition_says_otherwise() {
        let everything = Lent::default();
        assert_eq!(Lent::read(&Value::Null, &Value::Null), Ok(everything.clone()));
        assert_eq!(Lent::read(&Value::Null, &json!("all")), Ok(everything));
        let some = Lent::read(&json!(["local/ruff"]), &json!(["hover", "symbols"])).unwrap();
        assert_eq!(some.capabilities, Some(vec![Capability::Hover, Capability::Symbols]));
        for (servers, capabilities, why) in [
            (json!(null), json!(["hoover"]), "unknown variant `hoover`"),
            (json!("local/ruff"), json!(null), "a list of servers"),
            (json!({"language": ["c"]}), json!(null), "{languages: [...]}"),
            (json!({}), json!(null), "is empty"),
        ] {
            let error = Lent::read(&servers, &capabilities).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
