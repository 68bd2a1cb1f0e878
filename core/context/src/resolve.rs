//! What a name may mean where it stands, from syntax alone: local names, the file's own, imported ones, then any of that
//! name.

use agents_domain::ports::code_index::{CodeSymbol, Found, Import, IndexResult, NamedPlace, Outline};
use agents_domain::text::Position;

/// Symbols of one name that are looked at.
pub(crate) const MOST: usize = 500;
/// What is offered when all that is known is the name.
const OFFERED: usize = 20;

pub(crate) fn definitions(
    path: &str,
    from: &Outline,
    at: Position,
    named: impl Fn(&str) -> IndexResult<Vec<Found<CodeSymbol>>>,
) -> IndexResult<Vec<Found<CodeSymbol>>> {
    let Some(name) = from.name_at(at) else { return Ok(Vec::new()) };
    let here = |what: CodeSymbol| Found {
        path: path.to_owned(),
        language: from.language.clone(),
        // The text is the caller's: it knows.
        ascii: false,
        what,
    };
    let member = name.place.role.starts_with("member");
    if !member && let Some(local) = local(from, name, at) {
        return Ok(vec![here(local)]);
    }
    let own = own(from, name, at, member);
    if !own.is_empty() && (!member || own.iter().any(|symbol| !symbol.container.is_empty())) {
        return Ok(own.into_iter().cloned().map(here).collect());
    }
    let binding = from.imports.iter().find(|import| {
        let bound = import.alias.as_deref().or(import.name.as_deref()).unwrap_or(&import.module);
        *bound == *name.name
    });
    let meant = binding.and_then(|import| import.name.as_deref()).unwrap_or(&name.name);
    let mut found = named(meant)?;
    found.retain(|found| family(&found.language) == family(&from.language) && found.path != path);
    if let Some(import) = binding.filter(|_| !member) {
        let imported: Vec<_> = found.iter().filter(|found| is_in(found, import, path)).cloned().collect();
        if !imported.is_empty() {
            return Ok(imported);
        }
    }
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    found.sort_by_cached_key(|found| {
        let imports = from.imports.iter().any(|import| is_in(found, import, path));
        let beside = found.path.rsplit_once('/').map_or("", |(folder, _)| folder) == folder;
        (!imports, found.what.container.is_empty() == member, !beside, found.path.clone())
    });
    found.truncate(OFFERED);
    Ok(found)
}

/// The first place that binds a local name, in the innermost function around that binds it.
fn local(from: &Outline, name: &NamedPlace, at: Position) -> Option<CodeSymbol> {
    let functions = from.around(at).filter(|symbol| matches!(symbol.kind.as_str(), "function" | "method"));
    functions.rev().find_map(|function| {
        let inside = |place: &&NamedPlace| {
            let start = place.place.range.start;
            place.name == name.name && function.name_range.end <= start && start < function.range.end
        };
        let places = from.names.iter().filter(inside);
        let bound = places.into_iter().find(|place| matches!(place.place.role, "parameter" | "write"))?;
        let container = match function.container.as_str() {
            "" => function.name.clone(),
            container => format!("{container}.{}", function.name),
        };
        Some(CodeSymbol {
            name: name.name.to_string(),
            kind: if bound.place.role == "parameter" { "parameter" } else { "variable" }.to_owned(),
            container,
            range: bound.place.range,
            name_range: bound.place.range,
            signature: String::new(),
            doc: String::new(),
        })
    })
}

/// The file's own symbols of that name, as scopes have it: those declared around the place, the innermost first. For a
/// member those of the class around it, else those of any.
fn own<'o>(from: &'o Outline, name: &NamedPlace, at: Position, member: bool) -> Vec<&'o CodeSymbol> {
    let same: Vec<&CodeSymbol> = from.symbols.iter().filter(|symbol| *symbol.name == *name.name).collect();
    // On the declaration itself.
    if let Some(this) = same.iter().find(|symbol| symbol.name_range == name.place.range) {
        return vec![this];
    }
    let scopes: Vec<String> = from
        .around(at)
        .map(|symbol| {
            let own = symbol.name.rsplit(" for ").next().unwrap_or(&symbol.name);
            let own = own.strip_prefix("impl ").unwrap_or(own);
            match symbol.container.as_str() {
                "" => own.to_owned(),
                container => format!("{container}{}{own}", if from.language == "rust" { "::" } else { "." }),
            }
        })
        .collect();
    for scope in scopes.iter().rev().map(String::as_str).chain([""]) {
        let inside: Vec<&CodeSymbol> = same
            .iter()
            .copied()
            .filter(|symbol| symbol.container == scope && (!member || !scope.is_empty()))
            .collect();
        if !inside.is_empty() {
            return inside;
        }
    }
    // Variants, fields and methods are named through what holds them.
    same
}

/// Languages whose files import from each other.
fn family(language: &str) -> &str {
    match language {
        "typescriptreact" | "javascript" | "javascriptreact" => "typescript",
        other => other,
    }
}

/// The folder that a path means from within another one: `../lib/a` from `src/app` is `src/lib/a`.
fn joined(folder: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The same for languages of the web: a path from the importing file, without its ending as a rule.
fn is_script(file: &str, module: &str, importer: &str) -> bool {
    const ENDINGS: [&str; 9] = [".d.ts", ".tsx", ".ts", ".mts", ".cts", ".jsx", ".js", ".mjs", ".cjs"];
    let plain = |path: &str| {
        let stem = ENDINGS.iter().find_map(|ending| path.strip_suffix(ending)).unwrap_or(path).to_owned();
        stem.strip_suffix("/index").map(str::to_owned).unwrap_or(stem)
    };
    let file = plain(file);
    if module.starts_with('.') {
        let folder = importer.rsplit_once('/').map_or("", |(folder, _)| folder);
        return file == plain(&joined(folder, module));
    }
    // Of a package or an alias nothing is known but how its name ends.
    let end = module.trim_start_matches(['@', '~', '#']).trim_start_matches('/');
    let end = plain(end);
    file == end || file.ends_with(&format!("/{end}"))
}

/// Whether a symbol may be what an import brings in, by the path of its file or by what it is declared in.
fn is_in(found: &Found<CodeSymbol>, import: &Import, importer: &str) -> bool {
    let rust = found.language == "rust";
    if rust {
        let segments: Vec<&str> =
            import.module.split("::").filter(|s| !matches!(*s, "crate" | "self" | "super" | "")).collect();
        let Some(last) = segments.last() else { return true };
        let file = found.path.trim_end_matches(".rs").trim_end_matches("/mod").trim_end_matches("/lib");
        let file = file.trim_end_matches("/src");
        let stem = file.rsplit('/').next().unwrap_or(file).replace('-', "_");
        return stem == **last || found.what.container.rsplit("::").next() == Some(last);
    }
    if family(&found.language) == "typescript" {
        return is_script(&found.path, &import.module, importer);
    }
    let file = found.path.trim_end_matches(".pyi").trim_end_matches(".py").trim_end_matches("/__init__");
    let dots = import.module.chars().take_while(|c| *c == '.').count();
    let module = import.module[dots..].replace('.', "/");
    if dots == 0 {
        return file == module || file.ends_with(&format!("/{module}"));
    }
    let mut folder = importer;
    for _ in 0..dots {
        folder = folder.rsplit_once('/').map_or("", |(folder, _)| folder);
    }
    let whole = [folder, &module].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
    file == whole
}
