//! Checks of the machine: disk, permissions, git, Python.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use agents_sandbox::MINIMUM_GIT;
use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, eaccess};

use super::Check;
use crate::Surroundings;
use crate::process::confine::available;
use crate::surroundings::find_program;

/// Free bytes below which a disk counts as nearly full.
const LOW: u64 = 1 << 30;

/// Free bytes below which nothing can be expected to work.
const FULL: u64 = 16 << 20;

/// Bytes for people: `312 MB`, `2.1 GB`.
pub(in crate::operations) fn bytes(n: u64) -> String {
    const UNITS: [(&str, f64); 3] = [("GB", 1073741824.0), ("MB", 1048576.0), ("KB", 1024.0)];
    let size = n as f64;
    match UNITS.iter().find(|(_, unit)| size >= *unit) {
        Some((name, unit)) if size / unit < 9.95 => format!("{:.1} {name}", size / unit),
        Some((name, unit)) => format!("{:.0} {name}", size / unit),
        None => format!("{n} B"),
    }
}

/// The nearest folder above a path that exists, itself included.
fn existing(path: &Path) -> &Path {
    path.ancestors().find(|p| p.exists()).unwrap_or(Path::new("/"))
}

pub(super) fn disk_space(data_dir: &Path) -> Check {
    match statvfs(existing(data_dir)) {
        Ok(disk) => disk_check(disk.blocks_available().saturating_mul(disk.fragment_size())),
        Err(error) => Check::warn(
            "Disk space",
            format!("unknown: {}", error.desc()),
            format!("See with `df` whether {} has space left", data_dir.display()),
        ),
    }
}

fn disk_check(free: u64) -> Check {
    const NAME: &str = "Disk space";
    const FIX: &str = "Free some space, or move the data: --data-dir <PATH>";
    match free {
        FULL..LOW => Check::warn(NAME, format!("{} free (low)", bytes(free)), FIX),
        LOW.. => Check::ok(NAME, format!("{} free", bytes(free))),
        _ => Check::error(NAME, format!("{} free (full)", bytes(free)), FIX),
    }
}

pub(super) fn file_permissions(data_dir: &Path) -> Check {
    const NAME: &str = "File permissions";
    const ELSEWHERE: &str = "Choose another place: --data-dir <PATH>, or set CLEVERAGENTS_DATA_DIR";
    let shown = data_dir.display();
    let usable = |dir: &Path| eaccess(dir, AccessFlags::R_OK | AccessFlags::W_OK | AccessFlags::X_OK);
    let Ok(metadata) = data_dir.metadata() else {
        let above = existing(data_dir);
        if !above.is_dir() {
            let details = format!("{shown} cannot be made: {} is a file, not a directory", above.display());
            return Check::error(NAME, details, ELSEWHERE);
        }
        return match usable(above) {
            Ok(()) => Check::ok(NAME, "data dir not there yet, can be made"),
            Err(error) => Check::error(
                NAME,
                format!("data dir {shown} cannot be made in {}: {}", above.display(), error.desc()),
                ELSEWHERE,
            ),
        };
    };
    if !metadata.is_dir() {
        return Check::error(NAME, format!("{shown} is a file, not a directory"), ELSEWHERE);
    }
    if let Err(error) = usable(data_dir) {
        return Check::error(
            NAME,
            format!("data dir {shown} cannot be read and written: {}", error.desc()),
            match error {
                nix::errno::Errno::EROFS => ELSEWHERE.to_owned(),
                _ => format!("Make it yours: chmod u+rwx {shown}. Or: {ELSEWHERE}"),
            },
        );
    }
    let mode = metadata.permissions().mode() & 0o777;
    match mode & 0o077 {
        0 => Check::ok(NAME, "data dir r/w"),
        _ => Check::warn(
            NAME,
            format!("data dir r/w, but open to others (mode {mode:04o})"),
            format!("Keep it to yourself: chmod 700 {shown}"),
        ),
    }
}

/// A program by its name, as a shell would find it.
fn program(surroundings: &dyn Surroundings, name: &str) -> Option<PathBuf> {
    find_program(name, &surroundings.variable("PATH")?)
}

pub(super) fn git(surroundings: &dyn Surroundings) -> Check {
    const NAME: &str = "Git";
    let (major, minor) = MINIMUM_GIT;
    let fix = format!("Install git {major}.{minor} or newer: https://git-scm.com/downloads");
    let Some(git) = program(surroundings, "git") else {
        return Check::error(NAME, "not found on PATH", fix);
    };
    let said = match surroundings.run(&git, &["--version"]) {
        Ok(said) => said,
        Err(why) => return Check::error(NAME, why, fix),
    };
    let version =
        said.trim().trim_start_matches("git version ").split_whitespace().next().unwrap_or_default();
    let mut numbers = version.split('.').map_while(|part| part.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(a), Some(b)) if (a, b) >= MINIMUM_GIT => Check::ok(NAME, format!("git {version}")),
        (Some(_), Some(_)) => {
            Check::error(NAME, format!("git {version} is too old, {major}.{minor} is needed"), fix)
        }
        _ => Check::error(NAME, format!("{} did not say its version", git.display()), fix),
    }
}

/// Prints its version, or fails where Debian splits off what makes environments.
const PYTHON: &str = "import platform, venv, ensurepip; print(platform.python_version())";

/// Language servers from PyPI are installed with it.
pub(super) fn python(surroundings: &dyn Surroundings) -> Check {
    const NAME: &str = "Python";
    let Some(python) = program(surroundings, "python3") else {
        return Check::warn(
            NAME,
            "python3 not found on PATH",
            "Install Python 3 with venv to install language servers from PyPI",
        );
    };
    if let Ok(version) = surroundings.run(&python, &["-I", "-c", PYTHON]) {
        return Check::ok(NAME, format!("Python {} with venv", version.trim()));
    }
    match surroundings.run(&python, &["-I", "--version"]) {
        Ok(said) => Check::warn(
            NAME,
            format!("{} without venv", said.trim()),
            "Install venv to install language servers from PyPI; on Debian: apt install python3-venv",
        ),
        Err(why) => Check::warn(NAME, why, "Repair Python 3 to install language servers from PyPI"),
    }
}

/// What keeps commands and Python code of tools and validations in bounds (ruling 14).
pub(super) fn confinement(surroundings: &dyn Surroundings) -> Check {
    const NAME: &str = "Python confinement";
    match available(surroundings) {
        Ok(by) => Check::ok(NAME, by),
        Err(why) => Check::warn(
            NAME,
            format!("{why}: commands and code of tools and validations reach all that their user can"),
            "Install bubblewrap; on Debian: apt install bubblewrap",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::system::Status;

    // CLI-043
    #[test]
    fn a_disk_with_less_than_a_gigabyte_is_low() {
        let check = |free| {
            let check = disk_check(free);
            (check.status, check.details)
        };
        assert_eq!(check(2_254_857_830), (Status::Ok, "2.1 GB free".to_owned()));
        assert_eq!(check(LOW), (Status::Ok, "1.0 GB free".to_owned()));
        assert_eq!(check(312 << 20), (Status::Warn, "312 MB free (low)".to_owned()));
        assert_eq!(check(5000), (Status::Error, "4.9 KB free (full)".to_owned()));
        assert_eq!(check(0), (Status::Error, "0 B free (full)".to_owned()));
    }
}
