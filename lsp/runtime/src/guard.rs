//! The last resort against orphans: a tiny shell that outlives us just long enough to end what we started.
//!
//! The kernel's parent-death signal reaches a server but not the processes the server started itself. The guard holds
//! the reading end of a pipe whose writing end only we have; when we end, however that happens, it reads the end of the
//! file and kills the process groups that were still running. Where there is no `/bin/sh` there is no guard.
//!
//! A [`Janitor`] is one for a folder in the making: it ends those who work on it, then takes the folder away.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock};

use crate::lock;

/// Reads `+ GROUP` and `- GROUP` lines; at the end of the input kills the groups that are left. Given a folder and a
/// link, it then removes the folder unless the link leads to it.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
groups=' '
while read -r sign group; do
    case $sign in
        +) groups="$groups$group " ;;
        -) case $groups in *" $group "*) groups="${groups%%" $group "*} ${groups#*" $group "}" ;; esac ;;
    esac
done
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
[ $# -eq 2 ] || exit 0
[ "$(readlink "$2")" != "${1##*/}" ] || exit 0
tries=0
while [ -e "$1" ] && [ $tries -lt 50 ]; do
    # What was killed may still write its last file.
    rm -rf "$1" || sleep 0.1
    tries=$((tries + 1))
done
"#;

/// Has the guard watch a process group.
pub(crate) fn watch(group: i32) {
    tell('+', group);
}

/// Tells the guard that a group is gone.
pub(crate) fn forget(group: i32) {
    tell('-', group);
}

fn tell(sign: char, group: i32) {
    static GUARD: OnceLock<Mutex<Option<ChildStdin>>> = OnceLock::new();
    let mut guard =
        lock(GUARD.get_or_init(|| Mutex::new(start(&[]).ok().and_then(|mut child| child.stdin.take()))));
    if let Some(pipe) = guard.as_mut()
        && writeln!(pipe, "{sign} {group}").is_err()
    {
        *guard = None;
    }
}

/// Starts the shell. Nobody needs to wait for it: it ends after us.
fn start(args: &[&OsStr]) -> io::Result<Child> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", SCRIPT, "guard"]).args(args);
    command.env_clear().env("PATH", "/usr/bin:/bin").current_dir("/").process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// Sees to it that a folder goes unless a link leads to it in the end, also when we are killed.
#[derive(Debug)]
pub(crate) struct Janitor(Child);

impl Janitor {
    /// `link` is a symbolic link beside the folder; it leads to the folder when it holds the folder's name.
    pub(crate) fn of(folder: &Path, link: &Path) -> io::Result<Self> {
        start(&[folder.as_os_str(), link.as_os_str()]).map(Self)
    }

    /// A process group works on the folder.
    pub(crate) fn watch(&mut self, group: i32) {
        self.tell('+', group);
    }

    /// It is gone.
    pub(crate) fn forget(&mut self, group: i32) {
        self.tell('-', group);
    }

    fn tell(&mut self, sign: char, group: i32) {
        if let Some(pipe) = &mut self.0.stdin {
            // A janitor that somebody killed cannot be told; its folder is swept up by the next install.
            let _ = writeln!(pipe, "{sign} {group}");
        }
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn sleeper() -> std::process::Child {
        Command::new("sleep").arg("60").process_group(0).spawn().unwrap()
    }

    #[test]
    fn the_guard_kills_what_is_left_when_its_input_ends_and_nothing_else() {
        let mut guard = start(&[]).unwrap();
        let mut pipe = guard.stdin.take().unwrap();
        let [mut kept, mut first, mut second] = [sleeper(), sleeper(), sleeper()];
        let line = |sign: char, child: &std::process::Child| format!("{sign} {}\n", child.id());
        let lines =
            [line('+', &kept), line('+', &first), line('-', &kept), line('+', &second), line('-', &kept)];
        pipe.write_all(lines.concat().as_bytes()).unwrap();
        drop(pipe);
        assert_eq!(first.wait().unwrap().signal(), Some(9));
        assert_eq!(second.wait().unwrap().signal(), Some(9));
        assert!(kept.try_wait().unwrap().is_none());
        kept.kill().unwrap();
        kept.wait().unwrap();
        guard.wait().unwrap();
    }

    #[test]
    fn the_janitor_takes_away_a_folder_that_no_link_leads_to() {
        let place = tempfile::tempdir().unwrap();
        let (folder, link) = (place.path().join(".it@1"), place.path().join("it"));
        let make = || std::fs::create_dir_all(folder.join("deep/er")).unwrap();
        make();
        std::os::unix::fs::symlink(".it@1", &link).unwrap();
        drop(Janitor::of(&folder, &link).unwrap());
        assert!(link.join("deep").is_dir(), "what is in place stays");
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(".it@2", &link).unwrap();
        let mut worker = sleeper();
        let mut janitor = Janitor::of(&folder, &link).unwrap();
        janitor.watch(i32::try_from(worker.id()).unwrap());
        drop(janitor);
        assert_eq!(worker.wait().unwrap().signal(), Some(9));
        assert!(!folder.exists());
    }
}
