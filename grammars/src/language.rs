//! The names of languages: people, registries and editors spell them differently, the protocol spells them once.

use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

/// A language known by name: the `languageId` that the Language Server Protocol gives a text document.
///
/// Values come from [`detect`](crate::detect) and [`LanguageId::from_name`]; there is none for a language that
/// `languages.txt` does not list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LanguageId(&'static str);

impl LanguageId {
    /// The language that a name means, in any case: its `languageId` (`typescriptreact`) or another name that it goes
    /// by in registries and mode lines (`tsx`, `bash`, `pyi`, `C++`).
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.name(name)
    }

    /// The `languageId` as the protocol writes it.
    pub fn as_str(self) -> &'static str {
        self.0
    }

    /// Every name that [`from_name`](Self::from_name) takes for this language, the `languageId` first.
    pub fn names(self) -> &'static [&'static str] {
        TABLE.names_of.get(self.0).map_or(&[], Vec::as_slice)
    }

    /// All languages known by name, in the order of their `languageId`s.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.ids.iter().copied()
    }
}

impl fmt::Display for LanguageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for LanguageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// A language that this crate can parse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Language {
    /// Python 3, `.pyi` stubs included.
    Python,
    /// Rust.
    Rust,
    /// TypeScript.
    TypeScript,
    /// TypeScript with elements of React in it.
    TypeScriptReact,
    /// JavaScript, elements of React included.
    JavaScript,
    /// JavaScript in files that say that there are elements of React in it.
    JavaScriptReact,
}

impl Language {
    /// All languages that can be parsed.
    pub const ALL: &'static [Self] = &[
        Self::Python,
        Self::Rust,
        Self::TypeScript,
        Self::TypeScriptReact,
        Self::JavaScript,
        Self::JavaScriptReact,
    ];

    /// The parsed language with this `languageId`, if there is one.
    pub fn from_id(id: LanguageId) -> Option<Self> {
        Self::ALL.iter().copied().find(|language| language.id_str() == id.as_str())
    }

    /// The parsed language that a name means, see [`LanguageId::from_name`].
    pub fn from_name(name: &str) -> Option<Self> {
        LanguageId::from_name(name).and_then(Self::from_id)
    }

    /// The `languageId` of the Language Server Protocol.
    pub fn id(self) -> LanguageId {
        LanguageId(self.id_str())
    }

    /// What stands between the parts of a qualified name: `Shape.area`, `Shape::area`.
    pub fn path_separator(self) -> &'static str {
        match self {
            Self::Rust => "::",
            _ => ".",
        }
    }

    /// All queries of this language: what is derived from texts is to be derived anew when this is another.
    pub fn query_source(self) -> &'static str {
        match self {
            Self::Python => concat!(
                include_str!("../queries/python/symbols.scm"),
                include_str!("../queries/python/imports.scm"),
                include_str!("../queries/python/references.scm"),
            ),
            Self::Rust => concat!(
                include_str!("../queries/rust/symbols.scm"),
                include_str!("../queries/rust/imports.scm"),
                include_str!("../queries/rust/references.scm"),
            ),
            Self::TypeScript | Self::TypeScriptReact => concat!(
                include_str!("../queries/ecmascript/symbols.scm"),
                include_str!("../queries/typescript/symbols.scm"),
                include_str!("../queries/ecmascript/imports.scm"),
                include_str!("../queries/ecmascript/references.scm"),
                include_str!("../queries/typescript/references.scm"),
            ),
            Self::JavaScript | Self::JavaScriptReact => concat!(
                include_str!("../queries/ecmascript/symbols.scm"),
                include_str!("../queries/javascript/symbols.scm"),
                include_str!("../queries/ecmascript/imports.scm"),
                include_str!("../queries/ecmascript/references.scm"),
                include_str!("../queries/javascript/references.scm"),
            ),
        }
    }

    /// The queries for symbols alone.
    pub(crate) fn symbol_queries(self) -> &'static str {
        match self {
            Self::Python => include_str!("../queries/python/symbols.scm"),
            Self::Rust => include_str!("../queries/rust/symbols.scm"),
            Self::TypeScript | Self::TypeScriptReact => concat!(
                include_str!("../queries/ecmascript/symbols.scm"),
                include_str!("../queries/typescript/symbols.scm"),
            ),
            Self::JavaScript | Self::JavaScriptReact => concat!(
                include_str!("../queries/ecmascript/symbols.scm"),
                include_str!("../queries/javascript/symbols.scm"),
            ),
        }
    }

    const fn id_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Rust => "rust",
            Self::TypeScript => "typescript",
            Self::TypeScriptReact => "typescriptreact",
            Self::JavaScript => "javascript",
            Self::JavaScriptReact => "javascriptreact",
        }
    }
}

/// `languages.txt`, read once.
pub(crate) static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(include_str!("languages.txt")));

#[derive(Default)]
pub(crate) struct Table {
    ids: Vec<LanguageId>,
    names_of: HashMap<&'static str, Vec<&'static str>>,
    /// By name in lower case.
    names: HashMap<String, LanguageId>,
    /// By ending, as listed.
    endings: HashMap<&'static str, LanguageId>,
    file_names: HashMap<&'static str, LanguageId>,
    /// What a file name must begin with, from the entries that end in `*`, and what it must end with.
    file_name_patterns: Vec<(&'static str, &'static str, LanguageId)>,
    interpreters: HashMap<&'static str, LanguageId>,
}

impl Table {
    fn read(text: &'static str) -> Self {
        let mut table = Self::default();
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in lines {
            let mut fields = line.split(';').map(str::split_whitespace);
            let mut field = || fields.next().into_iter().flatten();
            let Some(name) = field().next() else { continue };
            let id = LanguageId(name);
            let names: Vec<&str> = std::iter::once(name).chain(field()).collect();
            table.names.extend(names.iter().map(|name| (name.to_lowercase(), id)));
            table.names_of.insert(name, names);
            table.endings.extend(field().map(|ending| (ending, id)));
            for file_name in field() {
                match file_name.split_once('*') {
                    Some((before, after)) => table.file_name_patterns.push((before, after, id)),
                    None => _ = table.file_names.insert(file_name, id),
                }
            }
            table.interpreters.extend(field().map(|interpreter| (interpreter, id)));
            table.ids.push(id);
        }
        table.ids.sort_unstable();
        table
    }

    pub(crate) fn name(&self, name: &str) -> Option<LanguageId> {
        self.names.get(&name.trim().to_lowercase()).copied()
    }

    /// By the whole name first, then by its longest listed ending.
    pub(crate) fn file_name(&self, name: &str) -> Option<LanguageId> {
        let by_name = || self.file_names.get(name).copied();
        let by_pattern = || {
            let fits = |before: &str, after: &str| {
                name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
            };
            self.file_name_patterns.iter().find(|(before, after, _)| fits(before, after)).map(|found| found.2)
        };
        // A leading dot hides a file, it does not begin an ending: `.gitignore` has none.
        let endings =
            || name.char_indices().skip(1).filter(|(_, c)| *c == '.').map(|(at, _)| &name[at + 1..]);
        let by_ending = || endings().find_map(|ending| self.endings.get(ending).copied());
        let by_ending_in_any_case =
            || endings().find_map(|ending| self.endings.get(ending.to_lowercase().as_str()).copied());
        by_name().or_else(by_pattern).or_else(by_ending).or_else(by_ending_in_any_case)
    }

    pub(crate) fn interpreter(&self, name: &str) -> Option<LanguageId> {
        self.interpreters.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_entry_of_the_table_belongs_to_two_languages() {
        let mut seen = HashMap::new();
        for line in
            include_str!("languages.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            let fields: Vec<&str> = line.split(';').collect();
            assert_eq!(fields.len(), 5, "five fields: {line}");
            let id = fields[0].trim();
            assert!(!id.is_empty() && !id.contains(' '), "one id: {line}");
            for (column, field) in fields.iter().enumerate() {
                // Ids and other names are one space of names.
                let space = column.max(1);
                for entry in field.split_whitespace() {
                    let key = if space == 1 { entry.to_lowercase() } else { entry.to_owned() };
                    let before = seen.insert((space, key), id);
                    assert_eq!(before, None, "`{entry}` is listed for {id} as well");
                }
            }
        }
        assert!(LanguageId::all().count() >= 40);
    }

    #[test]
    fn every_name_leads_back_to_its_language() {
        for id in LanguageId::all() {
            assert_eq!(id.names()[0], id.as_str());
            for name in id.names() {
                assert_eq!(LanguageId::from_name(name), Some(id), "{name}");
                assert_eq!(LanguageId::from_name(&name.to_uppercase()), Some(id), "{name}");
            }
        }
    }

    // The map between names in the registry and languageIds.
    #[test]
    fn registry_names_mean_the_languages_of_the_protocol() {
        let pairs = [
            ("tsx", "typescriptreact"),
            ("jsx", "javascriptreact"),
            ("pyi", "python"),
            ("py", "python"),
            ("Python", "python"),
            ("bash", "shellscript"),
            ("shell", "shellscript"),
            ("shellscript", "shellscript"),
            ("c++", "cpp"),
            ("C#", "csharp"),
            ("golang", "go"),
            (" rust ", "rust"),
        ];
        for (name, id) in pairs {
            assert_eq!(LanguageId::from_name(name).map(LanguageId::as_str), Some(id), "{name}");
        }
        assert_eq!(LanguageId::from_name("no such language"), None);
        assert_eq!(LanguageId::from_name(""), None);
    }

    #[test]
    fn parsed_languages_are_known_by_name() {
        for language in Language::ALL {
            assert_eq!(LanguageId::from_name(language.id_str()), Some(language.id()));
            assert_eq!(Language::from_id(language.id()), Some(*language));
        }
        assert_eq!(Language::from_name("pyi"), Some(Language::Python));
        assert_eq!(Language::from_name("toml"), None);
    }
}
