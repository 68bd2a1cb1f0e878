-- The index of one folder. All of it follows from the files: it is thrown away when this text or the grammars' queries are
-- others, and when it is damaged.

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE files (
    file_id  INTEGER PRIMARY KEY,
    path     TEXT NOT NULL UNIQUE,           -- below the folder, with `/`
    size     INTEGER NOT NULL,
    mtime    INTEGER NOT NULL,               -- nanoseconds since 1970
    ctime    INTEGER NOT NULL,               -- 0: may have been written while it was read, read it again
    inode    INTEGER NOT NULL,
    language TEXT,                           -- id of the protocol
    hash     BLOB,                           -- SHA-256 of the text, of those that were read
    ascii    INTEGER NOT NULL DEFAULT 0,
    skipped  TEXT                            -- why the text is not in the index, of source files that were left out
);

CREATE TABLE symbols (
    file_id   INTEGER NOT NULL,
    nth       INTEGER NOT NULL,              -- in the order of the text
    name      TEXT NOT NULL,
    kind      TEXT NOT NULL,
    container TEXT NOT NULL,
    place     BLOB NOT NULL,                 -- eight varints: range, then range of the name; see codec.rs
    signature TEXT NOT NULL,
    doc       TEXT NOT NULL,
    PRIMARY KEY (file_id, nth)
) WITHOUT ROWID;
CREATE INDEX symbols_by_name ON symbols (name);

CREATE TABLE imports (
    file_id INTEGER NOT NULL,
    nth     INTEGER NOT NULL,
    module  TEXT NOT NULL,
    name    TEXT,
    alias   TEXT,
    line    INTEGER NOT NULL,
    PRIMARY KEY (file_id, nth)
) WITHOUT ROWID;
CREATE INDEX imports_by_module ON imports (module);

-- Where names stand in a file, packed: see codec.rs.
CREATE TABLE occurrences (file_id INTEGER PRIMARY KEY, places BLOB NOT NULL);

-- Every name that was ever declared, once, and the words in it, for searches by parts of names. One that no symbol has any
-- more stays until the index is made anew: it leads to nothing.
CREATE TABLE names (name_id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE INDEX names_in_any_case ON names (name COLLATE NOCASE);
CREATE VIRTUAL TABLE name_parts USING fts5 (parts, content = '', detail = none, columnsize = 0, prefix = '2 3');

-- One row per file, its rowid the file's id: every name in it, and its documentation with the names it declares. Which file
-- has a name is asked here, where it stands is in `occurrences`.
CREATE VIRTUAL TABLE words USING fts5 (
    names, docs,
    content = '', contentless_delete = 1, detail = column,
    tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co Pc'"
);
