//! Following the files of a folder.

use std::fs;

use agents_context::Indexes;
use agents_domain::ports::code_index::CodeIndexes;
use proptest::prelude::*;

use crate::{Desk, dump, scan};

#[test]
fn an_unchanged_folder_is_not_read_again() {
    let desk = Desk::new(&[("a.py", "def a(): pass\n"), ("b.rs", "fn b() {}\n"), ("c.txt", "c\n")]);
    let first = desk.scan();
    assert_eq!((first.seen, first.read, first.removed), (3, 3, 0));
    // Files written a moment before they were read are looked at once more.
    desk.scan();
    std::thread::park_timeout(std::time::Duration::from_millis(25));
    desk.scan();
    let again = scan(&*desk.another());
    assert_eq!((again.seen, again.read, again.removed, again.rebuilt), (3, 0, 0, None));
    let status = desk.index.status().unwrap();
    assert!(status.complete);
    assert_eq!((status.files, status.parsed, status.symbols), (3, 2, 2));
    let all = Indexes::new(desk.data.path()).all();
    assert_eq!((all.len(), all[0].files, &all[0].problem), (1, 3, &None));
    assert_eq!(all[0].root.as_deref(), Some(desk.folder.path().canonicalize().unwrap().as_path()));
}

#[test]
fn a_change_is_seen_even_when_size_and_time_stay() {
    let desk = Desk::new(&[("a.py", "def one(): pass\n")]);
    desk.scan();
    let time = fs::metadata(desk.path("a.py")).unwrap().modified().unwrap();
    desk.write("a.py", "def two(): pass\n");
    fs::File::options().write(true).open(desk.path("a.py")).unwrap().set_modified(time).unwrap();
    desk.scan();
    assert_eq!(desk.names("a.py"), ["two"]);
}

#[test]
fn events_bring_in_what_they_name_and_nothing_else() {
    let desk = Desk::new(&[("a.py", "def a(): pass\n"), ("pkg/b.py", "def b(): pass\n")]);
    desk.scan();
    desk.write("a.py", "def a2(): pass\n");
    desk.write("pkg/b.py", "def b2(): pass\n");
    desk.write("pkg/new/c.py", "def c(): pass\n");
    let done = desk.index.refresh(&["a.py".to_owned()]).unwrap();
    assert_eq!((done.read, done.removed), (1, 0));
    assert_eq!((desk.names("a.py"), desk.names("pkg/b.py")), (vec!["a2".to_owned()], vec!["b".to_owned()]));
    desk.index.refresh(&["pkg".to_owned()]).unwrap();
    assert_eq!(
        (desk.names("pkg/b.py"), desk.names("pkg/new/c.py")),
        (vec!["b2".to_owned()], vec!["c".to_owned()])
    );
}

#[test]
fn moved_and_removed_files_go_with_their_names() {
    let desk = Desk::new(&[
        ("a/one.py", "def one(): pass\n"),
        ("a/two.py", "def two(): one()\n"),
        ("ab.py", "x = 1\n"),
    ]);
    desk.scan();
    fs::rename(desk.path("a/one.py"), desk.path("moved.py")).unwrap();
    let done = desk.index.refresh(&["a/one.py".to_owned(), "moved.py".to_owned()]).unwrap();
    assert_eq!((done.read, done.removed), (1, 1));
    assert_eq!(desk.places("one"), ["a/two.py:0:11 call", "moved.py:0:4 declaration"]);
    fs::rename(desk.path("a"), desk.path("b")).unwrap();
    desk.index.refresh(&["a".to_owned(), "b".to_owned()]).unwrap();
    assert_eq!(desk.places("one"), ["b/two.py:0:11 call", "moved.py:0:4 declaration"]);
    assert_eq!(desk.names("ab.py"), ["x"], "another path that begins so stays");
    fs::remove_dir_all(desk.path("b")).unwrap();
    assert_eq!(desk.scan().removed, 1);
    assert_eq!(desk.places("two"), Vec::<String>::new());
}

#[test]
fn what_a_folder_ignores_is_not_indexed() {
    let desk = Desk::new(&[
        (".gitignore", "build/\n*.gen.py\n"),
        ("a.py", "def a(): pass\n"),
        ("x.gen.py", "def generated(): pass\n"),
        ("build/b.py", "def built(): pass\n"),
        (".venv/lib/dep.py", "def dependency(): pass\n"),
        ("node_modules/x/dep.py", "def dependency(): pass\n"),
        (".hidden/h.py", "def hidden(): pass\n"),
        ("sub/.ignore", "c.py\n"),
        ("sub/c.py", "def c(): pass\n"),
        ("sub/d.py", "def d(): pass\n"),
    ]);
    desk.scan();
    for (name, there) in [
        ("a", true),
        ("generated", false),
        ("built", false),
        ("dependency", false),
        ("hidden", false),
        ("c", false),
        ("d", true),
    ] {
        assert_eq!(!desk.index.symbols_named(name, 9).unwrap().is_empty(), there, "{name}");
    }
    // An event about an ignored file changes nothing; other rules change everything.
    desk.write("build/b.py", "def built2(): pass\n");
    assert_eq!(desk.index.refresh(&["build/b.py".to_owned()]).unwrap().read, 0);
    desk.write(".gitignore", "a.py\n");
    desk.index.refresh(&[".gitignore".to_owned()]).unwrap();
    assert!(desk.names("a.py").is_empty());
    assert_eq!(desk.names("build/b.py"), ["built2"]);
}

#[test]
fn a_part_of_an_index_that_was_never_whole_becomes_whole() {
    let desk = Desk::new(&[("a.py", "def a(): pass\n"), ("b.py", "def b(): pass\n")]);
    assert_eq!(desk.index.refresh(&["a.py".to_owned()]).unwrap().read, 2);
}

#[derive(Debug, Clone)]
enum Step {
    Write(usize, usize),
    Remove(usize),
    Move(usize, usize),
    Refresh,
}

const FILES: [&str; 5] = ["a.py", "b.rs", "d/c.py", "d/e/f.py", "d/g.txt"];
const TEXTS: [&str; 5] = [
    "def one():\n    \"\"\"Doc words.\"\"\"\n    return two\n",
    "class two:\n    x = one()\n    import sys\n",
    "fn one() { two() }\n",
    "import os\nfrom a import one\none(two)\n",
    "",
];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..FILES.len(), 0..TEXTS.len()).prop_map(|(file, text)| Step::Write(file, text)),
        1 => (0..FILES.len()).prop_map(Step::Remove),
        1 => (0..FILES.len(), 0..FILES.len()).prop_map(|(from, to)| Step::Move(from, to)),
        2 => Just(Step::Refresh),
    ];
    prop::collection::vec(step, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    // However it came to be, an index says what one made from nothing says.
    #[test]
    fn following_events_is_as_good_as_beginning_anew(steps in steps()) {
        let desk = Desk::new(&[("a.py", TEXTS[0])]);
        desk.scan();
        let mut touched: Vec<String> = Vec::new();
        for step in steps {
            match step {
                Step::Write(file, text) => {
                    desk.write(FILES[file], TEXTS[text]);
                    touched.push(FILES[file].to_owned());
                }
                Step::Remove(file) => {
                    let _ = fs::remove_file(desk.path(FILES[file]));
                    touched.push(FILES[file].to_owned());
                }
                Step::Move(from, to) => {
                    fs::create_dir_all(desk.path(FILES[to]).parent().unwrap()).unwrap();
                    let _ = fs::rename(desk.path(FILES[from]), desk.path(FILES[to]));
                    touched.extend([FILES[from].to_owned(), FILES[to].to_owned()]);
                }
                Step::Refresh => _ = desk.index.refresh(&std::mem::take(&mut touched)).unwrap(),
            }
        }
        desk.index.refresh(&touched).unwrap();
        let data = tempfile::tempdir().unwrap();
        let anew = Indexes::new(data.path()).of(desk.folder.path()).unwrap();
        scan(&*anew);
        let files = FILES.map(str::to_owned);
        let names = ["one", "two", "os", "sys", "words", "a"];
        prop_assert_eq!(dump(&*desk.index, &files, &names), dump(&*anew, &files, &names));
    }
}
