//! Which language a file is in, from its name and, where the name says nothing, from its first lines.

use std::path::Path;

use crate::LanguageId;
use crate::language::TABLE;

/// Vim looks for a mode line in as many lines at a file's start.
const MODE_LINES: usize = 5;
/// No first line worth reading is longer: what comes after is data.
const MAX_LOOK: usize = 4096;

/// The language of a file: by its name or ending; else by its `#!` line; else by a mode line of Vim
/// (`# vim: ft=python`) or Emacs (`-*- mode: python -*-`) in its first lines.
///
/// `path` may be relative and need not exist. `first_bytes` is the beginning of the file, as much as is at hand (one
/// or two kilobytes do; none is fine), in any encoding that extends ASCII.
pub fn detect(path: &Path, first_bytes: &[u8]) -> Option<LanguageId> {
    let by_name = path.file_name().and_then(|name| TABLE.file_name(&name.to_string_lossy()));
    by_name.or_else(|| by_content(first_bytes))
}

fn by_content(bytes: &[u8]) -> Option<LanguageId> {
    let bytes = &bytes[..bytes.len().min(MAX_LOOK)];
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes);
    let lines = || text.lines().take(MODE_LINES);
    let first = lines().next()?;
    let by_interpreter = first.strip_prefix("#!").and_then(interpreter);
    by_interpreter
        // Emacs reads the first line, or the second below a `#!` line.
        .or_else(|| lines().take(if first.starts_with("#!") { 2 } else { 1 }).find_map(emacs_mode))
        .or_else(|| lines().find_map(vim_mode))
}

/// The language of a `#!` line, given what follows the `#!`: `/usr/bin/env -S FOO=1 python3.11 -u`, `/bin/sh -e`.
fn interpreter(command: &str) -> Option<LanguageId> {
    let base = |word: &str| word.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
    let mut words = command.split_whitespace();
    let mut program = base(words.next()?);
    if program == "env" {
        program = base(words.find(|word| !word.starts_with('-') && !word.contains('='))?);
    }
    let program = program.strip_suffix(".exe").unwrap_or(&program);
    let unversioned = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    TABLE.interpreter(program).or_else(|| TABLE.interpreter(unversioned))
}

/// The mode of an Emacs line: `-*- python -*-` or `-*- coding: utf-8; mode: python -*-`.
fn emacs_mode(line: &str) -> Option<LanguageId> {
    let (_, rest) = line.split_once("-*-")?;
    let (inside, _) = rest.split_once("-*-")?;
    let mut variables = inside.split(';').filter_map(|pair| pair.split_once(':'));
    let mode = variables.find(|(name, _)| name.trim().eq_ignore_ascii_case("mode")).map(|(_, mode)| mode);
    let mode = mode.or_else(|| (!inside.contains(':')).then_some(inside))?;
    let mode = mode.trim();
    TABLE.name(mode.strip_suffix("-mode").unwrap_or(mode))
}

/// The file type of a Vim line: `# vim: set ft=python sw=4:` or `# vim: ft=python:sw=4`.
fn vim_mode(line: &str) -> Option<LanguageId> {
    let starts = ["vim:", "vi:", "ex:", "Vim:"];
    let options = starts.iter().find_map(|start| {
        let at = line.find(start)?;
        // `vi:` alone at the line's start counts, in the middle of a word it does not.
        let apart = line[..at].chars().next_back().is_none_or(char::is_whitespace);
        apart.then_some(&line[at + start.len()..])
    })?;
    options.split([':', ' ', '\t']).find_map(|option| {
        let (name, value) = option.split_once('=')?;
        // Vim takes several types, a dot between: the first is the language unless the whole is a name.
        let known = || TABLE.name(value).or_else(|| TABLE.name(value.split('.').next()?));
        matches!(name, "ft" | "filetype" | "syn" | "syntax").then(known)?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected(path: &str, first_bytes: &str) -> Option<&'static str> {
        detect(Path::new(path), first_bytes.as_bytes()).map(LanguageId::as_str)
    }

    // LSP-033: the table of endings.
    #[test]
    fn the_ending_says_the_language() {
        let table = [
            ("a.py", "python"),
            ("stubs/a.pyi", "python"),
            ("src/main.rs", "rust"),
            ("a.ts", "typescript"),
            ("a.mts", "typescript"),
            ("a.d.ts", "typescript"),
            ("App.tsx", "typescriptreact"),
            ("a.js", "javascript"),
            ("a.mjs", "javascript"),
            ("a.jsx", "javascriptreact"),
            ("a.c", "c"),
            ("a.h", "c"),
            ("a.hpp", "cpp"),
            ("a.C", "cpp"),
            ("A.CPP", "cpp"),
            ("SCRIPT.PY", "python"),
            ("a.go", "go"),
            ("a.sh", "shellscript"),
            ("a.yml", "yaml"),
            ("a.json", "json"),
            ("a.toml", "toml"),
            ("README.md", "markdown"),
            ("a.java", "java"),
            ("a.rb", "ruby"),
            ("a.R", "r"),
            ("a.test.min.js", "javascript"),
        ];
        for (path, id) in table {
            assert_eq!(detected(path, ""), Some(id), "{path}");
        }
    }

    #[test]
    fn the_file_name_goes_before_the_ending() {
        assert_eq!(detected("x/Dockerfile", ""), Some("dockerfile"));
        assert_eq!(detected("Dockerfile.dev", ""), Some("dockerfile"));
        assert_eq!(detected("CMakeLists.txt", ""), Some("cmake"));
        assert_eq!(detected("notes.txt", ""), Some("plaintext"));
        assert_eq!(detected("tsconfig.json", ""), Some("jsonc"));
        assert_eq!(detected("tsconfig.build.json", ""), Some("jsonc"));
        assert_eq!(detected("Cargo.lock", ""), Some("toml"));
        assert_eq!(detected("go.mod", ""), Some("go.mod"));
        assert_eq!(detected(".bashrc", ""), Some("shellscript"));
        assert_eq!(detected("Gemfile", ""), Some("ruby"));
    }

    #[test]
    fn a_hidden_file_without_an_ending_has_none() {
        assert_eq!(detected(".py", ""), None);
        assert_eq!(detected(".hidden.py", ""), Some("python"));
    }

    #[test]
    fn nothing_known_is_none() {
        for (path, text) in [
            ("a.unknown", "text"),
            ("", ""),
            ("/", ""),
            ("..", "x"),
            ("a", ""),
            ("a.", "\0\0"),
            ("run", "echo"),
        ] {
            assert_eq!(detected(path, text), None, "{path:?}");
        }
    }

    // LSP-033: content where the name says nothing.
    #[test]
    fn the_interpreter_line_says_the_language() {
        let table = [
            ("#!/usr/bin/env python3\n", "python"),
            ("#!/usr/bin/python3.11 -u\n", "python"),
            ("#! /bin/sh -e\n", "shellscript"),
            ("#!/bin/bash\r\necho", "shellscript"),
            ("#!/usr/bin/env -S LANG=C node --no-warnings\n", "javascript"),
            ("#!/usr/bin/env -S deno run\n", "typescript"),
            ("#!/usr/bin/env tsx\n", "typescript"),
            ("\u{feff}#!/usr/bin/perl\n", "perl"),
            ("#!/usr/bin/env ruby", "ruby"),
            ("#!/usr/local/bin/Rscript\n", "r"),
            ("#!C:\\Python\\python.exe\n", "python"),
        ];
        for (text, id) in table {
            assert_eq!(detected("bin/tool", text), Some(id), "{text}");
        }
        for text in ["#!", "#!/usr/bin/env", "#!/usr/bin/env -S", "#!/opt/own-thing\n", "\n#!/bin/sh\n"] {
            assert_eq!(detected("bin/tool", text), None, "{text}");
        }
    }

    #[test]
    fn a_mode_line_of_an_editor_says_the_language() {
        let table = [
            ("# -*- mode: python; coding: utf-8 -*-\n", "python"),
            ("# -*- coding: utf-8; mode: Python -*-", "python"),
            ("// -*- C++ -*-\n", "cpp"),
            ("; -*- emacs-lisp -*-", "emacs-lisp"),
            ("# -*- mode: sh-mode -*-", "shellscript"),
            ("#!/opt/own-thing\n# -*- mode: ruby -*-\n", "ruby"),
            ("# vim: set ft=python sw=4:\n", "python"),
            ("/* vim: ft=c:sw=2: */\n", "c"),
            ("first\nsecond\n\" vim: filetype=vim\n", "viml"),
            ("vi: syntax=yaml", "yaml"),
            ("# vim: ft=yaml.ansible", "yaml"),
            ("# vim: ft=typescript.tsx", "typescriptreact"),
        ];
        for (text, id) in table {
            assert_eq!(detected("some/file", text), Some(id), "{text}");
        }
        let none = [
            "# -*- coding: utf-8 -*-\n",
            "a\n# -*- mode: ruby -*-\n",
            "1\n2\n3\n4\n5\n# vim: ft=python",
            "# previ: ft=python",
            "# vim: ft=",
            "-*-",
        ];
        for text in none {
            assert_eq!(detected("some/file", text), None, "{text}");
        }
    }

    #[test]
    fn the_name_goes_before_the_content() {
        assert_eq!(detected("a.py", "#!/bin/sh\n"), Some("python"));
    }
}
