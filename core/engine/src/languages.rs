//! Language servers over a directory, for whoever works on it: a plan's worker, or another agent's session.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agents_domain::Result;
use agents_domain::language_server::LanguageServerDefinition;
use agents_domain::ports::language_servers::{LanguageWorkspace, RunningServer, WorkspaceSpec};

use crate::Engine;

/// How long one answer of a language server may take.
const ANSWER: Duration = Duration::from_secs(20);

/// How long a language server may take to start.
const START: Duration = Duration::from_secs(30);

impl Engine {
    /// The registered language servers.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn language_servers(&self) -> Result<Vec<LanguageServerDefinition>> {
        Ok(self.view(|r| r.language_servers())?.into_iter().map(|server| server.definition).collect())
    }

    /// The language servers that run on this data, in whichever process.
    pub fn running_language_servers(&self) -> Vec<RunningServer> {
        self.language_servers.running()
    }

    /// Opens a directory with servers; each is started when a file of its languages is first asked about.
    pub async fn open_languages(
        &self,
        root: &Path,
        servers: Vec<LanguageServerDefinition>,
    ) -> Arc<dyn LanguageWorkspace> {
        let spec =
            WorkspaceSpec { root: root.to_owned(), servers, request_timeout: ANSWER, start_timeout: START };
        self.language_servers.open(spec).await
    }
}
