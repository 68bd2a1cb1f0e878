//! The prompts of the built-in model actors: ours, and a person's in their place.

use std::borrow::Cow;
use std::path::PathBuf;

use minijinja::Environment;

/// The prompts by name; `boundaries` is what all of them include.
const OURS: &[(&str, &str)] = &[
    ("boundaries", include_str!("../../prompts/boundaries.md")),
    ("estimator", include_str!("../../prompts/estimator.md")),
    ("executor", include_str!("../../prompts/executor.md")),
    ("judge", include_str!("../../prompts/judge.md")),
    ("reconciler", include_str!("../../prompts/reconciler.md")),
    ("strategist", include_str!("../../prompts/strategist.md")),
];

/// Bytes of a prompt.
const LARGEST: u64 = 256 * 1024;

/// Where prompts come from.
#[derive(Debug, Clone, Default)]
pub struct Prompts {
    /// A folder whose `<name>.md` go before ours.
    pub folder: Option<PathBuf>,
}

impl Prompts {
    /// The names of all prompts.
    pub fn names() -> impl Iterator<Item = &'static str> {
        OURS.iter().map(|(name, _)| *name)
    }

    /// The text of a prompt as it is used.
    ///
    /// # Errors
    /// A file in its place that cannot be read.
    pub fn text(&self, name: &str) -> Result<Cow<'static, str>, String> {
        let ours = OURS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
        let Some(folder) = &self.folder else {
            return ours.map(Cow::Borrowed).ok_or_else(|| format!("there is no prompt `{name}`"));
        };
        let path = folder.join(format!("{name}.md"));
        match std::fs::metadata(&path) {
            Ok(found) if found.len() > LARGEST => {
                Err(format!("the prompt {} has more than {LARGEST} bytes", path.display()))
            }
            Ok(_) => std::fs::read_to_string(&path)
                .map(Cow::Owned)
                .map_err(|error| format!("the prompt {} cannot be read: {error}", path.display())),
            Err(_) => ours.map(Cow::Borrowed).ok_or_else(|| format!("there is no prompt `{name}`")),
        }
    }

    /// A prompt with its variables filled in.
    ///
    /// # Errors
    /// A prompt that cannot be read or rendered, with its line.
    pub fn render(&self, name: &str, facts: &[(&str, bool)]) -> Result<String, String> {
        let mut environment = Environment::new();
        environment.set_fuel(Some(100_000));
        for (part, _) in OURS {
            let text = self.text(part)?.into_owned();
            environment
                .add_template_owned(*part, text)
                .map_err(|error| format!("the prompt `{part}` is no template: {error}"))?;
        }
        environment
            .get_template(name)
            .and_then(|template| template.render(minijinja::Value::from_pairs(facts.iter().copied())))
            .map(|text| text.trim().to_owned())
            .map_err(|error| format!("the prompt `{name}` cannot be rendered: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prompt_renders_and_a_file_goes_before_ours() {
        let ours = Prompts::default();
        for name in Prompts::names() {
            let text = ours.render(name, &[]).unwrap();
            assert!(text.len() > 100 && !text.contains("{%"), "{name}");
        }
        assert!(ours.render("strategist", &[]).unwrap().contains("USER_CONTENT_START"));
        let folder = std::env::temp_dir().join(format!("prompts-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("executor.md"), "Mine: {% include \"boundaries\" %}").unwrap();
        let own = Prompts { folder: Some(folder.clone()) };
        assert!(own.render("executor", &[]).unwrap().starts_with("Mine: "));
        std::fs::write(folder.join("judge.md"), "{{ a").unwrap();
        assert!(own.render("judge", &[]).unwrap_err().contains("judge"));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
