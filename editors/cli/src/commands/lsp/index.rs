//! `agents lsp index`: what the source files of a folder declare, import and use.

use agents_engine::operations::lsp::Index;

use crate::args::LspIndexArgs;
use crate::commands::json;
use crate::compose;
use crate::failure::Outcome;
use crate::output::human::counted;
use crate::output::{Kind, col};
use crate::run::Run;

pub fn run(run: &Run, args: LspIndexArgs) -> Outcome {
    let out = &run.out;
    let dir = compose::absolute(&args.dir)?;
    let progress = out.progress(&format!("Indexes {dir}"));
    progress.total(0).transient();
    let done = run.env.engine()?.call(Index { dir, rebuild: args.rebuild });
    progress.close();
    let done = done?;
    let data = json(&done)?;
    out.panel(None, "Code Index")
        .pick(&data, "dir", "Folder", Kind::Path)
        .pick(&data, "files", "Files", Kind::Count)
        .pick(&data, "parsed", "Parsed", Kind::Count)
        .pick(&data, "symbols", "Symbols", Kind::Count)
        .pick(&data, "imports", "Imports", Kind::Count)
        .pick(&data, "read", "Read Now", Kind::Count)
        .pick(&data, "removed", "Forgotten Now", Kind::Count)
        .pick(&data, "index_bytes", "Size", Kind::Bytes)
        .pick(&data, "took_ms", "Took", Kind::Millis);
    let columns = vec![col("language", "Language"), col("files", "Files").kind(Kind::Count)];
    out.table(None, "Parsed Languages", columns)
        .rows(&data["languages"])
        .when_empty("files of a language with a grammar", &[]);
    if !done.skipped.is_empty() {
        let columns = vec![col("reason", "Left Out"), col("files", "Files").kind(Kind::Count)];
        out.table(None, "Left Out", columns).rows(&data["skipped"]);
    }
    if let Some(why) = &done.rebuilt {
        out.warn(format!("The index was made anew: {why}"));
    }
    out.set_data(data);
    out.ok(match (done.read, done.removed) {
        (0, 0) => "The index was up to date".to_owned(),
        (read, _) => format!("Index up to date, {} read", counted(read as u64, "file", "files")),
    });
    Ok(())
}
