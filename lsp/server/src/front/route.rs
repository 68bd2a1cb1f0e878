//! Where a message goes: decided from the lifecycle and the method alone, before anything is scheduled. A server
//! behind the front becomes one more answer of these two functions.

/// How far the session is (LSP 3.17, "Server lifecycle").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifecycle {
    /// Before `initialize`.
    Created,
    Running,
    /// After `shutdown`: only `exit` counts.
    ShutDown,
}

/// Where a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestRoute {
    Initialize,
    Shutdown,
    /// To our own features.
    Own,
    Refuse(Refusal),
}

/// Where a notification goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotificationRoute {
    Exit,
    Cancel,
    Open,
    Change,
    Save,
    Close,
    /// Workspace folders: the session first, then our own features.
    Folders,
    /// To our own features.
    Own,
    Ignore,
}

/// An error the lifecycle asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    NotInitialized,
    InitializedTwice,
    ShutDown,
}

impl Refusal {
    pub(crate) fn code(self) -> i64 {
        match self {
            Self::NotInitialized => -32002,
            Self::InitializedTwice | Self::ShutDown => -32600,
        }
    }

    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::NotInitialized => "the server is not initialized: send `initialize` first",
            Self::InitializedTwice => "the server is initialized already",
            Self::ShutDown => "the server has been shut down: only `exit` is accepted",
        }
    }
}

pub(crate) fn route_request(lifecycle: Lifecycle, method: &str) -> RequestRoute {
    match (lifecycle, method) {
        (Lifecycle::Created, "initialize") => RequestRoute::Initialize,
        (Lifecycle::Created, _) => RequestRoute::Refuse(Refusal::NotInitialized),
        (Lifecycle::ShutDown, _) => RequestRoute::Refuse(Refusal::ShutDown),
        (Lifecycle::Running, "initialize") => RequestRoute::Refuse(Refusal::InitializedTwice),
        (Lifecycle::Running, "shutdown") => RequestRoute::Shutdown,
        (Lifecycle::Running, _) => RequestRoute::Own,
    }
}

pub(crate) fn route_notification(lifecycle: Lifecycle, method: &str) -> NotificationRoute {
    match (lifecycle, method) {
        (_, "exit") => NotificationRoute::Exit,
        // Requests from before the shutdown may still be at work.
        (_, "$/cancelRequest") => NotificationRoute::Cancel,
        (Lifecycle::Created | Lifecycle::ShutDown, _) => NotificationRoute::Ignore,
        (Lifecycle::Running, method) => match method {
            "textDocument/didOpen" => NotificationRoute::Open,
            "textDocument/didChange" => NotificationRoute::Change,
            "textDocument/didSave" => NotificationRoute::Save,
            "textDocument/didClose" => NotificationRoute::Close,
            "workspace/didChangeWorkspaceFolders" => NotificationRoute::Folders,
            // Optional by definition, and none is ours.
            _ if method.starts_with("$/") => NotificationRoute::Ignore,
            _ => NotificationRoute::Own,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::Lifecycle::{Created, Running, ShutDown};
    use super::*;

    // LSPCLI-015, LSPCLI-017, LSPCLI-018, LSP-037
    #[test]
    fn the_lifecycle_refuses_what_comes_too_early_or_too_late() {
        for (lifecycle, method, code) in [
            (Created, "shutdown", -32002),
            (Created, "textDocument/hover", -32002),
            (Created, "$/unknown", -32002),
            (Running, "initialize", -32600),
            (ShutDown, "initialize", -32600),
            (ShutDown, "shutdown", -32600),
            (ShutDown, "textDocument/hover", -32600),
        ] {
            match route_request(lifecycle, method) {
                RequestRoute::Refuse(refusal) => assert_eq!(refusal.code(), code, "{lifecycle:?} {method}"),
                other => panic!("{lifecycle:?} {method}: {other:?}"),
            }
        }
    }

    // LSPCLI-014
    #[test]
    fn the_lifecycle_passes_what_comes_in_time() {
        assert_eq!(route_request(Created, "initialize"), RequestRoute::Initialize);
        assert_eq!(route_request(Running, "shutdown"), RequestRoute::Shutdown);
        assert_eq!(route_request(Running, "textDocument/hover"), RequestRoute::Own);
        for lifecycle in [Created, Running, ShutDown] {
            assert_eq!(route_notification(lifecycle, "exit"), NotificationRoute::Exit);
        }
    }

    #[test]
    fn notifications_count_only_while_the_session_runs() {
        for lifecycle in [Created, ShutDown] {
            assert_eq!(route_notification(lifecycle, "textDocument/didOpen"), NotificationRoute::Ignore);
            assert_eq!(route_notification(lifecycle, "initialized"), NotificationRoute::Ignore);
        }
        assert_eq!(route_notification(Running, "textDocument/didOpen"), NotificationRoute::Open);
        assert_eq!(route_notification(Running, "initialized"), NotificationRoute::Own);
        assert_eq!(route_notification(Running, "$/setTrace"), NotificationRoute::Ignore);
        assert_eq!(route_notification(ShutDown, "$/cancelRequest"), NotificationRoute::Cancel);
    }
}
