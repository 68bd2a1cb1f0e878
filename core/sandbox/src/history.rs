//! The history behind a commit, read without running anything that the repository names: no pager, no signature
//! programs, no text converters.

use serde::{Deserialize, Serialize};

use crate::error::{Result, SandboxError};
use crate::git::CommitId;
use crate::repository::Repository;

/// A commit of the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedCommit {
    /// Its full name.
    pub commit: String,
    /// Name and address of its author.
    pub author: String,
    /// When it was written, as in RFC 3339.
    pub date: String,
    /// The first line of its message.
    pub subject: String,
    /// The rest of its message.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub body: String,
}

/// A line with the commit that made it what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlamedLine {
    /// Counted from 1.
    pub line: u32,
    /// The commit.
    pub commit: String,
    /// Who wrote it.
    pub author: String,
    /// Seconds since 1970.
    pub time: i64,
    /// The first line of the commit's message.
    pub summary: String,
    /// The line itself.
    pub text: String,
}

/// The commits that lead to one, latest first; only those that changed `path` where it is given.
///
/// # Errors
/// When git cannot read the history.
pub fn log(
    repository: &Repository,
    from: &CommitId,
    skip: u32,
    count: u32,
    path: Option<&str>,
) -> Result<Vec<LoggedCommit>> {
    let mut args = vec![
        "rev-list".to_owned(),
        "--no-commit-header".to_owned(),
        format!("--max-count={count}"),
        format!("--skip={skip}"),
        "--format=%H%x00%an <%ae>%x00%aI%x00%s%x00%b%x00%x01".to_owned(),
        from.to_string(),
        "--".to_owned(),
    ];
    args.extend(path.map(str::to_owned));
    let output = repository.git.run(&args)?;
    let text = String::from_utf8_lossy(&output);
    let commit = |record: &str| {
        let mut fields = record.trim_start_matches('\n').split('\0').map(|field| field.trim_end().to_owned());
        let mut field = || fields.next().unwrap_or_default();
        let commit = field();
        (!commit.is_empty()).then(|| LoggedCommit {
            commit,
            author: field(),
            date: field(),
            subject: field(),
            body: field(),
        })
    };
    Ok(text.split('\u{1}').filter_map(commit).collect())
}

/// Who made the lines of a file what they are at a commit; `lines` counts from 1, both ends included.
///
/// # Errors
/// [`SandboxError::NotFound`] when the commit has no such file.
pub fn blame(
    repository: &Repository,
    at: &CommitId,
    path: &str,
    lines: Option<(u32, u32)>,
) -> Result<Vec<BlamedLine>> {
    let Some(bytes) = repository.file_at(at, path)? else {
        return Err(SandboxError::NotFound { path: path.to_owned() });
    };
    let total = u32::try_from(String::from_utf8_lossy(&bytes).lines().count()).unwrap_or(u32::MAX);
    let (first, last) = lines.map_or((1, total), |(first, last)| (first.max(1), last.min(total)));
    if first > last {
        return Ok(Vec::new());
    }
    let range = format!("{first},{last}");
    let args = ["blame", "--line-porcelain", "--no-textconv", "-L", &range, at.as_str()];
    let output = repository.git.call(args).arg("--").arg(path).run()?;
    let text = String::from_utf8_lossy(&output);
    let mut found = Vec::new();
    let mut now: Option<BlamedLine> = None;
    for line in text.split('\n') {
        if let Some(text) = line.strip_prefix('\t') {
            found.extend(now.take().map(|blamed| BlamedLine { text: text.to_owned(), ..blamed }));
        } else if let Some(blamed) = &mut now {
            match line.split_once(' ') {
                Some(("author", author)) => author.clone_into(&mut blamed.author),
                Some(("author-time", time)) => blamed.time = time.parse().unwrap_or(0),
                Some(("summary", summary)) => summary.clone_into(&mut blamed.summary),
                _ => {}
            }
        } else if let Some((commit, rest)) = line.split_once(' ') {
            let number = rest.split(' ').nth(1).and_then(|number| number.parse().ok()).unwrap_or(0);
            now = Some(BlamedLine {
                line: number,
                commit: commit.to_owned(),
                author: String::new(),
                time: 0,
                summary: String::new(),
                text: String::new(),
            });
        }
    }
    Ok(found)
}
