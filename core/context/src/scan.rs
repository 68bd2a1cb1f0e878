//! Bringing an index in line with its folder: many threads read and parse, one writes.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use agents_domain::ports::code_index::{CodeSymbol, Import, IndexResult, Progress, Scan};
use agents_grammars::{Language, LanguageId, ParseError, detect};
use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};

use crate::codec::{pack_names, pack_place};
use crate::database::{Place, is_damage, meta, set_meta};
use crate::extract::{MAX_TEXT, imports, symbols};
use crate::names::parts;
use crate::walk::{Candidate, Stat, files, threads};

/// Files written in one transaction.
const BATCH: usize = 400;
/// Files that were read and wait for the writer; bounds the memory.
const WAITING: usize = 64;
/// How much of a file without an ending is read for its `#!` line.
const LOOK: u64 = 512;
/// A file written this shortly before it was read, in nanoseconds, may be written again within the same tick of its clock.
const TICK: i64 = 20_000_000;

/// A file as the index knows it.
struct Known {
    id: i64,
    stat: Stat,
}

/// What came of reading a file.
struct Seen {
    candidate: Candidate,
    known: Option<i64>,
    language: Option<LanguageId>,
    hash: Option<[u8; 32]>,
    ascii: bool,
    skipped: Option<&'static str>,
    kept: Option<Kept>,
}

/// What the index keeps of a text.
#[derive(Default)]
struct Kept {
    symbols: Vec<CodeSymbol>,
    imports: Vec<Import>,
    places: Vec<u8>,
    /// As the index of words takes them: names, then documentation.
    words: [String; 2],
}

/// Brings the index in line with the folder, or with some of it.
pub(crate) fn scan(
    place: &Place,
    root: &Path,
    only: Option<&[String]>,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> IndexResult<Scan> {
    let begun = Instant::now();
    let lock = place.lock()?;
    let (mut conn, mut rebuilt) = place.write(root)?;
    // Where there was no whole scan yet, a part of one would pass for it.
    let only = only.filter(|_| matches!(meta(&conn, "complete"), Ok(Some(_))));
    let found = files(root, only)?;
    let mut written = write(&mut conn, root, &found, only, watch);
    if let Err(error) = &written
        && is_damage(error)
    {
        rebuilt = Some(format!("it was damaged: {error}"));
        drop(conn);
        place.remove()?;
        conn = place.write(root)?.0;
        let found = if only.is_some() { files(root, None)? } else { found };
        written = write(&mut conn, root, &found, None, watch);
    }
    let scan = written.map_err(|error| place.storage(&error))?;
    drop(conn);
    drop(lock);
    Ok(Scan { rebuilt, took: begun.elapsed(), ..scan })
}

fn write(
    conn: &mut Connection,
    root: &Path,
    found: &[Candidate],
    only: Option<&[String]>,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> rusqlite::Result<Scan> {
    let mut known = known(conn, only)?;
    let mut changed: Vec<(&Candidate, Option<i64>)> = Vec::new();
    for file in found {
        match known.remove(&file.path) {
            Some(before) if before.stat == file.stat => {}
            before => changed.push((file, before.map(|known| known.id))),
        }
    }
    let mut scan = Scan { seen: found.len(), removed: known.len(), ..Scan::default() };
    let total = changed.len();
    let mut going = watch(Progress { done: 0, total });
    let tx = conn.transaction()?;
    known.into_values().try_for_each(|gone| forget(&tx, gone.id, true))?;
    tx.commit()?;
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(going.is_break()));
    let outcome = std::thread::scope(|scope| -> rusqlite::Result<()> {
        let (send, read) = sync_channel(WAITING);
        let work = || {
            let send = send.clone();
            let (changed, next, stop) = (&changed, &next, &stop);
            move || {
                while !stop.load(Ordering::Relaxed) {
                    let Some((file, known)) = changed.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        break;
                    };
                    if send.send(look(root, file, *known)).is_err() {
                        break;
                    }
                }
            }
        };
        for _ in 0..threads().min(total) {
            scope.spawn(work());
        }
        drop(send);
        let result = (|| {
            let mut read = read.iter().peekable();
            while read.peek().is_some() {
                let tx = conn.transaction()?;
                for seen in read.by_ref().take(BATCH) {
                    put(&tx, &seen)?;
                    scan.read += 1;
                    if scan.read.is_multiple_of(50) && going.is_continue() {
                        going = watch(Progress { done: scan.read, total });
                        stop.store(going.is_break(), Ordering::Relaxed);
                    }
                }
                tx.commit()?;
            }
            Ok(())
        })();
        stop.store(true, Ordering::Relaxed);
        result
    });
    outcome?;
    scan.cancelled = scan.read < total;
    if !scan.cancelled && only.is_none() {
        set_meta(conn, "complete", "yes")?;
    }
    Ok(scan)
}

fn known(conn: &Connection, only: Option<&[String]>) -> rusqlite::Result<HashMap<String, Known>> {
    const COLUMNS: &str = "SELECT path, file_id, size, mtime, ctime, inode FROM files";
    let row = |row: &rusqlite::Row<'_>| {
        let stat = Stat { size: row.get(2)?, mtime: row.get(3)?, ctime: row.get(4)?, inode: row.get(5)? };
        Ok((row.get(0)?, Known { id: row.get(1)?, stat }))
    };
    let Some(only) = only else {
        return conn.prepare_cached(COLUMNS)?.query_map([], row)?.collect();
    };
    let mut known = HashMap::new();
    let mut at_or_below = conn
        .prepare_cached(&format!("{COLUMNS} WHERE path = ?1 OR (path > ?1 || '/' AND path < ?1 || '0')"))?;
    for path in only {
        // The folder itself, when it is named, is everything.
        if path.is_empty() {
            return conn.prepare_cached(COLUMNS)?.query_map([], row)?.collect();
        }
        for found in at_or_below.query_map([path], row)? {
            let (path, file) = found?;
            known.insert(path, file);
        }
    }
    Ok(known)
}

/// Reads a file and takes from it what the index keeps.
fn look(root: &Path, file: &Candidate, known: Option<i64>) -> Seen {
    let path = root.join(&file.path);
    let mut stat = file.stat;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64);
    if now - stat.mtime.max(stat.ctime) < TICK {
        stat.ctime = 0;
    }
    let candidate = Candidate { path: file.path.clone(), stat };
    let mut seen =
        Seen { candidate, known, language: None, hash: None, ascii: false, skipped: None, kept: None };
    seen.language = detect(&path, &[]).or_else(|| by_content(&path));
    let Some(language) = seen.language.and_then(Language::from_id) else { return seen };
    if stat.size > MAX_TEXT as i64 {
        seen.skipped = Some("too large");
        return seen;
    }
    let Ok(text) = fs::read(&path) else {
        seen.skipped = Some("unreadable");
        return seen;
    };
    if text.len() > MAX_TEXT {
        seen.skipped = Some("too large");
        return seen;
    }
    seen.hash = Some(Sha256::digest(&text).into());
    seen.ascii = text.is_ascii();
    if text.contains(&0) {
        seen.skipped = Some("binary");
        return seen;
    }
    match agents_grammars::facts(language, &text) {
        Err(ParseError::TooLarge { .. }) => seen.skipped = Some("too large"),
        Err(ParseError::TooSlow) => seen.skipped = Some("not parsed in time"),
        Ok(facts) => {
            let packed = pack_names(&text, &facts.references);
            let symbols = symbols(language, &facts);
            let docs: Vec<&str> =
                symbols.iter().map(|s| s.doc.as_str()).filter(|doc| !doc.is_empty()).collect();
            let words = [packed.names.join(" "), docs.join("\n")];
            let (imports, places) = (imports(facts.imports), packed.places);
            seen.kept = Some(Kept { symbols, imports, places, words });
        }
    }
    seen
}

/// A file with an ending that says nothing is data; one without may be a script.
fn by_content(path: &Path) -> Option<LanguageId> {
    if path.extension().is_some() {
        return None;
    }
    let mut beginning = Vec::new();
    File::open(path).ok()?.take(LOOK).read_to_end(&mut beginning).ok()?;
    detect(path, &beginning)
}

/// Removes what is kept of a file's text, or the file as well.
fn forget(conn: &Connection, id: i64, file: bool) -> rusqlite::Result<()> {
    for table in ["symbols", "imports", "occurrences"] {
        conn.prepare_cached(&format!("DELETE FROM {table} WHERE file_id = ?1"))?.execute([id])?;
    }
    conn.prepare_cached("DELETE FROM words WHERE rowid = ?1")?.execute([id])?;
    if file {
        conn.prepare_cached("DELETE FROM files WHERE file_id = ?1")?.execute([id])?;
    }
    Ok(())
}

fn put(conn: &Connection, seen: &Seen) -> rusqlite::Result<()> {
    let Candidate { path, stat } = &seen.candidate;
    let language = seen.language.map(LanguageId::as_str);
    let hash = seen.hash.as_ref().map(<[u8; 32]>::as_slice);
    let id = match seen.known {
        Some(id) => {
            let same: bool = conn
                .prepare_cached(
                    "SELECT hash IS ?2 AND hash IS NOT NULL AND language IS ?3 FROM files WHERE file_id = ?1",
                )?
                .query_row(params![id, hash, language], |row| row.get(0))?;
            if !same {
                forget(conn, id, false)?;
            }
            conn.prepare_cached(
                "UPDATE files SET size = ?2, mtime = ?3, ctime = ?4, inode = ?5, language = ?6, hash = ?7,
                     ascii = ?8, skipped = ?9 WHERE file_id = ?1",
            )?
            .execute(params![
                id,
                stat.size,
                stat.mtime,
                stat.ctime,
                stat.inode,
                language,
                hash,
                seen.ascii,
                seen.skipped
            ])?;
            if same {
                return Ok(());
            }
            id
        }
        None => conn
            .prepare_cached(
                "INSERT INTO files (path, size, mtime, ctime, inode, language, hash, ascii, skipped)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?
            .insert(params![
                path,
                stat.size,
                stat.mtime,
                stat.ctime,
                stat.inode,
                language,
                hash,
                seen.ascii,
                seen.skipped
            ])?,
    };
    seen.kept.as_ref().map_or(Ok(()), |kept| keep(conn, id, kept))
}

fn keep(conn: &Connection, id: i64, kept: &Kept) -> rusqlite::Result<()> {
    let mut insert = conn.prepare_cached(
        "INSERT INTO symbols (file_id, nth, name, kind, container, place, signature, doc)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    for (nth, symbol) in (0i64..).zip(&kept.symbols) {
        let CodeSymbol { name, kind, container, signature, doc, .. } = symbol;
        insert.execute(params![id, nth, name, kind, container, pack_place(symbol), signature, doc])?;
    }
    let mut name_once = conn.prepare_cached("INSERT OR IGNORE INTO names (name) VALUES (?1)")?;
    let mut name_parts = conn.prepare_cached("INSERT INTO name_parts (rowid, parts) VALUES (?1, ?2)")?;
    for symbol in &kept.symbols {
        if name_once.execute([&symbol.name])? > 0 {
            name_parts.execute(params![conn.last_insert_rowid(), parts(&symbol.name).join(" ")])?;
        }
    }
    let mut insert = conn.prepare_cached(
        "INSERT INTO imports (file_id, nth, module, name, alias, line) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for (nth, import) in (0i64..).zip(&kept.imports) {
        insert.execute(params![id, nth, import.module, import.name, import.alias, import.line])?;
    }
    conn.prepare_cached("INSERT INTO occurrences (file_id, places) VALUES (?1, ?2)")?
        .execute(params![id, kept.places])?;
    let [names, docs] = &kept.words;
    conn.prepare_cached("INSERT INTO words (rowid, names, docs) VALUES (?1, ?2, ?3)")?
        .execute(params![id, names, docs])?;
    Ok(())
}
