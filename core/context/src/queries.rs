//! Questions to an index.

use std::collections::HashSet;

use agents_domain::ports::code_index::{CodeSymbol, Found, Import, IndexStatus, Occurrence};
use rusqlite::{Connection, Row, params};

use crate::codec::{bare, places_of, unpack_place};
use crate::database::meta;
use crate::names::{matches, parts};

/// Names that fit a query, of which the shortest are taken.
const MOST_NAMES: i64 = 2000;

const SYMBOL: &str = "s.name, s.kind, s.container, s.place, s.signature, s.doc";
const FILE: &str = "f.path, f.language, f.ascii";

fn symbol(row: &Row<'_>) -> rusqlite::Result<CodeSymbol> {
    let place = row.get_ref(3)?.as_blob().ok().and_then(unpack_place);
    let (range, name_range) = place.unwrap_or_default();
    Ok(CodeSymbol {
        name: row.get(0)?,
        kind: row.get(1)?,
        container: row.get(2)?,
        range,
        name_range,
        signature: row.get(4)?,
        doc: row.get(5)?,
    })
}

/// A row of [`SYMBOL`] and [`FILE`].
fn found(row: &Row<'_>) -> rusqlite::Result<Found<CodeSymbol>> {
    Ok(Found {
        what: symbol(row)?,
        path: row.get(6)?,
        language: row.get::<_, Option<String>>(7)?.unwrap_or_default(),
        ascii: row.get(8)?,
    })
}

pub(crate) fn status(conn: &Connection) -> rusqlite::Result<IndexStatus> {
    let count = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs);
    let grouped = |sql: &str| {
        let mut statement = conn.prepare(sql)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs())))?;
        rows.collect::<rusqlite::Result<Vec<(String, u64)>>>()
    };
    Ok(IndexStatus {
        complete: meta(conn, "complete")?.is_some(),
        files: count("SELECT count(*) FROM files")?,
        parsed: count("SELECT count(*) FROM occurrences")?,
        skipped: grouped(
            "SELECT skipped, count(*) FROM files WHERE skipped IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1",
        )?,
        languages: grouped(
            "SELECT f.language, count(*) FROM occurrences o JOIN files f USING (file_id)
                 GROUP BY 1 ORDER BY 2 DESC, 1",
        )?,
        symbols: count("SELECT count(*) FROM symbols")?,
        imports: count("SELECT count(*) FROM imports")?,
        ..IndexStatus::default()
    })
}

pub(crate) fn symbols_of(conn: &Connection, path: &str) -> rusqlite::Result<Vec<CodeSymbol>> {
    let sql = format!(
        "SELECT {SYMBOL} FROM symbols s JOIN files f USING (file_id) WHERE f.path = ?1 ORDER BY s.nth"
    );
    conn.prepare_cached(&sql)?.query_map([path], symbol)?.collect()
}

pub(crate) fn imports_of(conn: &Connection, path: &str) -> rusqlite::Result<Vec<Import>> {
    let sql = "SELECT i.module, i.name, i.alias, i.line FROM imports i JOIN files f USING (file_id)
        WHERE f.path = ?1 ORDER BY i.nth";
    let import = |row: &Row<'_>| {
        Ok(Import { module: row.get(0)?, name: row.get(1)?, alias: row.get(2)?, line: row.get(3)? })
    };
    conn.prepare_cached(sql)?.query_map([path], import)?.collect()
}

pub(crate) fn importers_of(conn: &Connection, module: &str, limit: usize) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT DISTINCT f.path FROM imports i JOIN files f USING (file_id)
        WHERE i.module = ?1 ORDER BY f.path LIMIT ?2";
    conn.prepare_cached(sql)?.query_map(params![module, limit as i64], |row| row.get(0))?.collect()
}

pub(crate) fn symbols_named(
    conn: &Connection,
    name: &str,
    limit: usize,
) -> rusqlite::Result<Vec<Found<CodeSymbol>>> {
    let sql = format!(
        "SELECT {SYMBOL}, {FILE} FROM symbols s JOIN files f USING (file_id)
            WHERE s.name = ?1 LIMIT ?2"
    );
    conn.prepare_cached(&sql)?.query_map(params![bare(name), limit as i64], found)?.collect()
}

pub(crate) fn search_symbols(
    conn: &Connection,
    query: &str,
    limit: usize,
) -> rusqlite::Result<Vec<Found<CodeSymbol>>> {
    let query = query.trim();
    if query.is_empty() {
        let sql = format!("SELECT {SYMBOL}, {FILE} FROM symbols s JOIN files f USING (file_id) LIMIT ?1");
        return conn.prepare_cached(&sql)?.query_map([limit as i64], found)?.collect();
    }
    // The names first: symbols are read for those alone that are shown.
    let mut names: Vec<rusqlite::Result<Vec<String>>> = Vec::new();
    let sql = "SELECT name FROM names WHERE name COLLATE NOCASE >= ?1 AND name COLLATE NOCASE < ?1 || char(0x10ffff)
        LIMIT ?2";
    let beginning =
        conn.prepare_cached(sql)?.query_map(params![query, MOST_NAMES], |row| row.get(0))?.collect();
    names.push(beginning);
    let wanted = parts(query);
    if !wanted.is_empty() {
        let every: Vec<String> = wanted.iter().map(|part| format!("{} *", quoted(part))).collect();
        let sql = "SELECT n.name FROM name_parts p JOIN names n ON n.name_id = p.rowid WHERE name_parts MATCH ?1 LIMIT ?2";
        let words = params![every.join(" AND "), MOST_NAMES];
        names.push(conn.prepare_cached(sql)?.query_map(words, |row| row.get(0))?.collect());
    }
    let mut seen = HashSet::new();
    let mut all = Vec::new();
    for (nth, names) in names.into_iter().enumerate() {
        let mut names: Vec<String> = names?;
        if nth > 0 {
            names.retain(|name| matches(&wanted, name));
        }
        names.sort_by_cached_key(|name| (name.len(), name != query, name.clone()));
        for name in names {
            if all.len() >= limit {
                return Ok(all);
            }
            if seen.insert(name.clone()) {
                all.extend(symbols_named(conn, &name, limit - all.len())?);
            }
        }
    }
    Ok(all)
}

pub(crate) fn search_text(conn: &Connection, words: &str, limit: usize) -> rusqlite::Result<Vec<String>> {
    let words = words.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let every: Vec<String> = words.map(quoted).collect();
    if every.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "SELECT f.path FROM words w JOIN files f ON f.file_id = w.rowid WHERE w.words MATCH ?1
        ORDER BY w.rank LIMIT ?2";
    conn.prepare_cached(sql)?
        .query_map(params![every.join(" AND "), limit as i64], |row| row.get(0))?
        .collect()
}

pub(crate) fn occurrences(
    conn: &Connection,
    name: &str,
    limit: usize,
) -> rusqlite::Result<Vec<Found<Vec<Occurrence>>>> {
    let name = bare(name);
    // The index of words knows single words: what is none stands nowhere.
    if name.is_empty() || name.chars().any(|c| !c.is_alphanumeric() && c != '_') {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT o.places, {FILE} FROM words w JOIN occurrences o ON o.file_id = w.rowid
            JOIN files f ON f.file_id = w.rowid WHERE w.words MATCH ?1"
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query([format!("names : {}", quoted(name))])?;
    let (mut all, mut left) = (Vec::new(), limit);
    while left > 0
        && let Some(row) = rows.next()?
    {
        let mut what = places_of(name, row.get_ref(0)?.as_blob().unwrap_or_default());
        what.truncate(left);
        left -= what.len();
        if !what.is_empty() {
            let language = row.get::<_, Option<String>>(2)?.unwrap_or_default();
            all.push(Found { what, path: row.get(1)?, language, ascii: row.get(3)? });
        }
    }
    Ok(all)
}

/// A word as a query of the index of words has it.
fn quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('"', "\"\""))
}
