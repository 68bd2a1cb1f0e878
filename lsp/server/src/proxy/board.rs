//! What all servers say is wrong with each file, and we ourselves: each set stands until its own server replaces it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::value::RawValue;

use crate::documents::DocumentUri;

#[derive(Default)]
pub(crate) struct Board {
    files: HashMap<DocumentUri, File>,
    /// Files to be published.
    dirty: HashSet<DocumentUri>,
}

#[derive(Default)]
struct File {
    own: Vec<Box<RawValue>>,
    sets: BTreeMap<usize, Set>,
    /// What the client was told last, as a hash.
    told: Option<u64>,
}

/// What one server says about one file.
pub(crate) struct Set {
    /// Of the document, where the server says it.
    pub version: Option<i64>,
    pub result_id: Option<String>,
    pub items: Vec<Box<RawValue>>,
}

impl Board {
    /// Takes what a server says. A set of an older version than the one at hand, or than the document as it is now, is
    /// late: a newer one is on its way, and its places would be wrong. Whether it was taken.
    pub fn take(&mut self, uri: &DocumentUri, server: usize, set: Set, now: Option<i32>) -> bool {
        let file = self.files.entry(uri.clone()).or_default();
        let known = file.sets.get(&server).and_then(|set| set.version).filter(|_| now.is_some());
        let late = set.version.is_some_and(|version| {
            known.is_some_and(|known| version < known) || now.is_some_and(|now| version < i64::from(now))
        });
        if late {
            return false;
        }
        let same =
            file.sets.get(&server).map_or(set.items.is_empty(), |known| equal(&known.items, &set.items));
        file.sets.insert(server, set);
        if !same {
            self.dirty.insert(uri.clone());
        }
        true
    }

    /// Takes our own diagnostics of a file.
    pub fn take_own(&mut self, uri: &DocumentUri, items: Vec<Box<RawValue>>) {
        self.files.entry(uri.clone()).or_default().own = items;
        self.dirty.insert(uri.clone());
    }

    /// The document was opened or closed: the client is told anew, versions begin again.
    pub fn reopen(&mut self, uri: &DocumentUri) {
        if let Some(file) = self.files.get_mut(uri) {
            file.told = file.told.map(|_| 0);
            file.sets.values_mut().for_each(|set| set.version = None);
            self.dirty.insert(uri.clone());
        }
    }

    /// Forgets what a server said about one file, or about all.
    pub fn forget(&mut self, server: usize, uri: Option<&DocumentUri>) {
        for (path, file) in self.files.iter_mut().filter(|(path, _)| uri.is_none_or(|uri| uri == *path)) {
            if file.sets.remove(&server).is_some_and(|set| !set.items.is_empty()) {
                self.dirty.insert(path.clone());
            }
        }
    }

    pub fn result_id(&self, uri: &DocumentUri, server: usize) -> Option<&str> {
        self.files.get(uri)?.sets.get(&server)?.result_id.as_deref()
    }

    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// The files whose diagnostics are others than the client was told.
    pub fn changed(&mut self) -> Vec<(DocumentUri, String)> {
        let dirty = std::mem::take(&mut self.dirty);
        let mut changed = Vec::new();
        for uri in dirty {
            let items = self.items(&uri);
            let Some(file) = self.files.get_mut(&uri) else { continue };
            let hash = hash(&items);
            let new = if items == "[]" { file.told.is_some() } else { file.told != Some(hash) };
            if new {
                file.told = (items != "[]").then_some(hash);
                changed.push((uri, items));
            }
        }
        changed
    }

    /// All diagnostics of a file, which the client then knows.
    pub fn reported(&mut self, uri: &DocumentUri) -> String {
        let items = self.items(uri);
        if let Some(file) = self.files.get_mut(uri) {
            file.told = (items != "[]").then(|| hash(&items));
        }
        self.dirty.remove(uri);
        items
    }

    /// All diagnostics of a file as a JSON array: ours, then those of the servers in their order.
    pub fn items(&self, uri: &DocumentUri) -> String {
        let Some(file) = self.files.get(uri) else { return "[]".to_owned() };
        let all: Vec<&str> = file
            .own
            .iter()
            .chain(file.sets.values().flat_map(|set| &set.items))
            .map(|raw| raw.get())
            .collect();
        ["[", &all.join(","), "]"].concat()
    }

    /// The servers that said something about a file which has these words in it.
    pub fn whose(&self, uri: &DocumentUri, is: impl Fn(&serde_json::Value) -> bool) -> Vec<usize> {
        let Some(file) = self.files.get(uri) else { return Vec::new() };
        let says = |set: &Set| {
            set.items.iter().any(|raw| serde_json::from_str(raw.get()).is_ok_and(|item| is(&item)))
        };
        file.sets.iter().filter(|(_, set)| says(set)).map(|(server, _)| *server).collect()
    }
}

fn equal(a: &[Box<RawValue>], b: &[Box<RawValue>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.get() == b.get())
}

pub(crate) fn hash(items: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    items.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri() -> DocumentUri {
        DocumentUri::parse("file:///a.py").unwrap()
    }

    fn set(version: Option<i64>, items: &str) -> Set {
        Set { version, result_id: None, items: serde_json::from_str(items).unwrap() }
    }

    fn told(board: &mut Board) -> Vec<String> {
        board.changed().into_iter().map(|(_, items)| items).collect()
    }

    #[test]
    fn each_servers_set_stands_until_that_server_replaces_it() {
        let mut board = Board::default();
        assert!(board.take(&uri(), 1, set(Some(1), "[1,2]"), Some(1)));
        assert_eq!(told(&mut board), ["[1,2]"]);
        assert!(board.take(&uri(), 0, set(None, "[0]"), Some(1)));
        board.take_own(&uri(), serde_json::from_str("[9]").unwrap());
        assert_eq!(told(&mut board), ["[9,0,1,2]"]);
        // The other server is late with version 2; what it said before stays.
        assert!(board.take(&uri(), 0, set(Some(2), "[]"), Some(2)));
        assert_eq!(told(&mut board), ["[9,1,2]"]);
    }

    #[test]
    fn a_late_set_is_left_out_and_the_same_one_is_not_told_twice() {
        let mut board = Board::default();
        assert!(board.take(&uri(), 0, set(Some(3), "[3]"), Some(3)));
        assert!(!board.take(&uri(), 0, set(Some(2), "[2]"), Some(3)));
        assert!(!board.take(&uri(), 1, set(Some(2), "[2]"), Some(3)));
        assert_eq!(told(&mut board), ["[3]"]);
        assert!(board.take(&uri(), 0, set(Some(3), "[3]"), Some(3)));
        assert!(told(&mut board).is_empty());
        // Opened again, versions begin again.
        board.reopen(&uri());
        assert!(board.take(&uri(), 0, set(Some(1), "[1]"), Some(1)));
        assert_eq!(told(&mut board), ["[1]"]);
    }

    #[test]
    fn a_clean_file_is_told_only_to_a_client_that_heard_otherwise() {
        let mut board = Board::default();
        board.take(&uri(), 0, set(None, "[]"), None);
        assert!(told(&mut board).is_empty());
        board.take(&uri(), 0, set(None, "[1]"), None);
        assert_eq!(told(&mut board), ["[1]"]);
        board.forget(0, None);
        assert_eq!(told(&mut board), ["[]"]);
        assert!(told(&mut board).is_empty());
    }
}
