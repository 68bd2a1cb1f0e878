//! What is kept of a project that is deleted: `<core.backup.dir>/<time>/<project>.tgz`.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use agents_domain::ports::store::PlanRow;
use agents_domain::project::Project;
use agents_domain::{Error, Result};
use serde_json::json;

use super::Linked;
use crate::operations::config::file::refused;
use crate::{Engine, clock};

/// Writes the archive and gives its path. It holds `project.json` (the project, its resources, its active plans) and
/// `cleveragents.db` (everything, with the audit log) as they are now.
///
/// # Errors
/// When it cannot be written; then nothing of it is left.
pub(super) fn project(
    engine: &Engine,
    project: &Project,
    linked: &[Linked],
    active: &[PlanRow],
) -> Result<PathBuf> {
    let folder = make_folder(Path::new(&engine.config.text("core.backup.dir", None)))?;
    let name = project.name.to_string().replace(['/', ':'], "-");
    let archive = folder.join(format!("{name}.tgz"));
    let facts = json!({
        "project": project,
        "resources": linked.iter().map(|(resource, _)| resource).collect::<Vec<_>>(),
        "active_plans": active,
    });
    let database = folder.join("cleveragents.db");
    let written = write(engine, &archive, &database, facts.to_string().as_bytes());
    let _ = fs::remove_file(&database);
    if written.is_err() {
        let _ = fs::remove_file(&archive);
        let _ = fs::remove_dir(&folder);
    }
    written.map(|()| archive)
}

fn write(engine: &Engine, archive: &Path, database: &Path, facts: &[u8]) -> Result<()> {
    engine.store.copy_to(database)?;
    pack(archive, database, facts).map_err(|e| refused(archive, "written", &e))
}

fn pack(archive: &Path, database: &Path, facts: &[u8]) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(archive)?;
    let mut packed = tar::Builder::new(flate2::write::GzEncoder::new(
        io::BufWriter::new(file),
        flate2::Compression::fast(),
    ));
    let mut header = tar::Header::new_gnu();
    header.set_size(facts.len() as u64);
    header.set_mode(0o600);
    header.set_mtime(clock::now().micros().unsigned_abs() / 1_000_000);
    packed.append_data(&mut header, "project.json", facts)?;
    packed.append_file("cleveragents.db", &mut File::open(database)?)?;
    let mut file = packed.into_inner()?.finish()?;
    file.flush()?;
    file.get_ref().sync_all()
}

/// A new folder named after the time, `YYYY-MM-DDTHH-MM-SS`, with a number behind it where that is taken.
fn make_folder(backups: &Path) -> Result<PathBuf> {
    let time = clock::now().seconds_rfc3339().trim_end_matches('Z').replace(':', "-");
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(backups)
        .map_err(|e| refused(backups, "made", &e))?;
    for n in 1..u32::MAX {
        let folder = backups.join(if n == 1 { time.clone() } else { format!("{time}-{n}") });
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(refused(&folder, "made", &e)),
        }
    }
    Err(Error::internal(format!("every name in {} is taken", backups.display())))
}
