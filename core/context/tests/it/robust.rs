//! Hostile files, damage, several processes, and ends in the middle.

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use agents_context::Indexes;
use agents_domain::ports::code_index::CodeIndexes;

use crate::{Desk, dump, scan};

#[test]
fn hostile_files_are_passed_over_and_counted() {
    let desk = Desk::new(&[("good.py", "def good(): pass\n")]);
    desk.write("line.py", format!("x = \"{}\"\n", "a".repeat(10 * 1024 * 1024)));
    desk.write("nul.py", b"def f():\0\n");
    desk.write("latin.py", b"def caf\xe9(): pass\ndef after(): pass\n");
    desk.write("broken.rs", b"fn ok() {}\n}}}} fn \xff\xfe (((\nstruct S;\n");
    desk.write("deep.py", "(".repeat(200_000));
    desk.write("nested.rs", format!("{}{}", "mod a { ".repeat(20_000), "} ".repeat(20_000)));
    desk.write("empty.py", "");
    desk.write("bom.py", "\u{feff}def bom(): pass\n");
    desk.write("crlf.py", "def one():\r\n    pass\r\n");
    desk.write("data.bin", [0u8, 1, 2, 255]);
    std::os::unix::fs::symlink("good.py", desk.path("link.py")).unwrap();
    std::os::unix::fs::symlink(".", desk.path("loop")).unwrap();
    fs::create_dir(desk.path("folder.py")).unwrap();
    let done = desk.scan();
    assert!(!done.cancelled);
    let status = desk.index.status().unwrap();
    assert!(status.complete);
    let skipped: Vec<&str> = status.skipped.iter().map(|(why, _)| why.as_str()).collect();
    assert!(skipped.contains(&"too large") && skipped.contains(&"binary"), "{skipped:?}");
    assert_eq!(desk.names("good.py"), ["good"]);
    assert_eq!(desk.names("bom.py"), ["bom"]);
    assert_eq!(desk.names("crlf.py"), ["one"]);
    assert!(desk.names("latin.py").contains(&"after".to_owned()), "{:?}", desk.names("latin.py"));
    assert!(desk.names("broken.rs").contains(&"ok".to_owned()));
    assert_eq!(desk.names("nul.py"), Vec::<String>::new());
    assert_eq!(desk.names("link.py"), Vec::<String>::new(), "links are not followed");
}

#[test]
fn a_file_that_cannot_be_read_is_counted() {
    let desk = Desk::new(&[("a.py", "x = 1\n")]);
    fs::set_permissions(desk.path("a.py"), fs::Permissions::from_mode(0o0)).unwrap();
    desk.scan();
    // Who may read everything reads this as well.
    let status = desk.index.status().unwrap();
    assert!(status.skipped == [("unreadable".to_owned(), 1)] || status.parsed == 1);
}

#[test]
fn a_damaged_index_is_made_anew_and_it_is_said() {
    let desk = Desk::new(&[("a.py", "def a(): pass\n")]);
    desk.scan();
    let file = desk.database();
    fs::write(&file, "this is no database at all".repeat(1000)).unwrap();
    let _ = fs::remove_file(file.with_extension("db-wal"));
    let other = desk.another();
    assert!(other.symbols_of("a.py").unwrap().is_empty(), "as if there was none");
    assert!(Indexes::new(desk.data.path()).all()[0].problem.as_deref().unwrap().contains("damaged"));
    let done = scan(&*other);
    assert!(done.rebuilt.as_deref().unwrap().contains("damaged"), "{done:?}");
    assert_eq!(other.symbols_of("a.py").unwrap().len(), 1);
    assert_eq!(desk.names("a.py"), ["a"], "who had it open reads the new one");
}

#[test]
fn an_index_of_another_version_is_made_anew_and_one_that_was_reset_too() {
    let desk = Desk::new(&[("a.py", "def a(): pass\n")]);
    desk.scan();
    let conn = rusqlite::Connection::open(desk.database()).unwrap();
    conn.execute("UPDATE meta SET value = 'older' WHERE key = 'format'", []).unwrap();
    drop(conn);
    let other = desk.another();
    assert!(other.symbols_of("a.py").unwrap().is_empty());
    assert_eq!(scan(&*other).rebuilt.as_deref(), Some("it was of another version"));
    desk.index.reset().unwrap();
    assert!(other.symbols_of("a.py").unwrap().is_empty());
    assert_eq!(scan(&*other).rebuilt, None);
    assert_eq!(desk.names("a.py"), ["a"]);
}

#[test]
fn a_folder_that_is_away_leaves_the_index_as_it_is() {
    let desk = Desk::new(&[("x/a.py", "def a(): pass\n")]);
    let index = Indexes::new(desk.data.path()).of(&desk.path("x")).unwrap();
    scan(&*index);
    fs::rename(desk.path("x"), desk.path("y")).unwrap();
    assert!(index.scan(&mut |_| ControlFlow::Continue(())).is_err());
    assert_eq!(index.symbols_of("a.py").unwrap().len(), 1);
}

fn many(desk: &Desk, count: usize) {
    for n in 0..count {
        desk.write(&format!("pkg_{}/m_{n}.py", n % 10), format!("def f_{n}():\n    return shared({n})\n"));
    }
}

#[test]
fn a_scan_that_is_cancelled_keeps_what_it_did_and_goes_on_later() {
    let desk = Desk::new(&[]);
    many(&desk, 600);
    let done = desk
        .index
        .scan(&mut |progress| match progress.done {
            0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        })
        .unwrap();
    assert!(done.cancelled && done.read >= 50 && done.read < 600, "{done:?}");
    let status = desk.index.status().unwrap();
    assert!(!status.complete && status.files == done.read as u64);
    let rest = desk.scan();
    assert!(!rest.cancelled && rest.read >= 600 - done.read);
    assert_eq!(desk.index.status().unwrap().files, 600);
}

#[test]
fn two_at_once_on_the_same_folder_come_to_the_same_index() {
    let desk = Desk::new(&[]);
    many(&desk, 300);
    std::thread::scope(|scope| {
        let scans: Vec<_> = (0..3).map(|_| scope.spawn(|| scan(&*desk.another()))).collect();
        while scans.iter().any(|scan| !scan.is_finished()) {
            // Whoever reads meanwhile gets answers.
            let found = desk.index.occurrences("shared", 10_000).unwrap();
            assert!(found.len() <= 300);
            std::thread::yield_now();
        }
        for scan in scans {
            assert_eq!(scan.join().unwrap().seen, 300);
        }
    });
    assert_eq!(desk.places("shared").len(), 300);
    assert!(!desk.index.status().unwrap().busy);
}

/// Not a test of its own: the process that is killed below.
#[test]
fn child_that_indexes() {
    if let (Ok(data), Ok(folder)) = (std::env::var("INDEX_DATA"), std::env::var("INDEX_FOLDER")) {
        scan(&*Indexes::new(data.as_ref()).of(folder.as_ref()).unwrap());
    }
}

#[test]
fn an_index_whose_writer_is_killed_goes_on_where_it_was() {
    let desk = Desk::new(&[]);
    many(&desk, 3000);
    let mut killed_at = Vec::new();
    for round in 0..4 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "robust::child_that_indexes"])
            .env("INDEX_DATA", desk.data.path())
            .env("INDEX_FOLDER", desk.folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // As soon as it has done something more.
        let before = desk.another().status().unwrap().files;
        while child.try_wait().unwrap().is_none() && desk.another().status().unwrap().files <= before {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let status = desk.another().status().unwrap();
        assert!(status.files >= before, "round {round}");
        killed_at.push(status.files);
    }
    desk.scan();
    let data = tempfile::tempdir().unwrap();
    let anew = Indexes::new(data.path()).of(desk.folder.path()).unwrap();
    scan(&*anew);
    let files: Vec<String> = (0..3000).map(|n| format!("pkg_{}/m_{n}.py", n % 10)).collect();
    assert_eq!(dump(&*desk.index, &files, &["shared", "f_7"]), dump(&*anew, &files, &["shared", "f_7"]));
    assert!(killed_at.iter().any(|files| *files < 3000), "it was killed in the middle: {killed_at:?}");
}
