//! The last resort against orphans: a tiny shell that outlives us just long enough to end what we started.
//!
//! The kernel's parent-death signal reaches a server but not the processes the server started itself. The guard holds
//! the reading end of a pipe whose writing end only we have; when we end, however that happens, it reads the end of the
//! file and kills the process groups that were still running. Where there is no `/bin/sh` there is no guard.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock};

use crate::lock;

/// Reads `+ GROUP` and `- GROUP` lines; at the end of the input kills the groups that are left.
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
    let mut guard = lock(GUARD.get_or_init(|| Mutex::new(start())));
    if let Some(pipe) = guard.as_mut()
        && writeln!(pipe, "{sign} {group}").is_err()
    {
        *guard = None;
    }
}

/// The guard's input. Nobody waits for the guard: it ends after us.
fn start() -> Option<ChildStdin> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", SCRIPT]).env_clear().current_dir("/").process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().ok()?.stdin.take()
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
        let mut pipe = start().unwrap();
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
    }
}
