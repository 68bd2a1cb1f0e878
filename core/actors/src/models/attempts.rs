//! Trying again: what may pass is tried again after a while, with growing waits and some chance in them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agents_domain::ports::BoxFuture;
use agents_domain::ports::model::{ChatDelta, ChatModel, ChatReply, ChatRequest, ModelFailure};

use super::failing::Failed;
use super::wire::Wire;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);
/// A provider that asks for a longer wait than this is not waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long and how often.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Patience {
    pub retries: u32,
    pub timeout: Option<Duration>,
    pub stall: Option<Duration>,
}

/// Asks until there is an answer.
pub(super) struct Attempts {
    pub inner: Wire,
    pub patience: Patience,
}

impl ChatModel for Attempts {
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        watch: &'a mut (dyn FnMut(ChatDelta) + Send),
    ) -> BoxFuture<'a, Result<ChatReply, ModelFailure>> {
        Box::pin(async move {
            let mut made = 0;
            loop {
                let failed = match self.once(request, watch).await {
                    Ok(reply) => return Ok(ChatReply { retries: made, ..reply }),
                    Err(failed) => failed,
                };
                let wait = failed.after.unwrap_or_else(|| backoff(made, chance()));
                if !failed.again || made >= self.patience.retries || wait > PATIENCE {
                    let mut failure = ModelFailure { retries: made, ..failed.failure };
                    if made > 0 {
                        failure.message = format!("{} (asked {} times)", failure.message, made + 1);
                    }
                    return Err(failure);
                }
                made += 1;
                tracing::warn!(
                    attempt = made,
                    wait_ms = wait.as_millis() as u64,
                    "{}",
                    failed.failure.message
                );
                watch(ChatDelta::Again { reason: failed.failure.message, after: wait });
                tokio::time::sleep(wait).await;
            }
        })
    }
}

impl Attempts {
    async fn once(
        &self,
        request: &ChatRequest,
        watch: &mut (dyn FnMut(ChatDelta) + Send),
    ) -> Result<ChatReply, Failed> {
        let timeout = request.options.timeout.or(self.patience.timeout);
        let asked = self.inner.ask(request, self.patience.stall, watch);
        match timeout {
            None => asked.await,
            Some(timeout) => match tokio::time::timeout(timeout, asked).await {
                Ok(answered) => answered,
                Err(_) => {
                    let what = format!("no whole answer within {} seconds", timeout.as_secs());
                    Err(Failed::broken(&self.inner.target, &what))
                }
            },
        }
    }
}

/// Half of a wait that doubles is sure, the other half is chance, so that many who failed together do not come back
/// together.
fn backoff(made: u32, chance: f64) -> Duration {
    let whole = FIRST.saturating_mul(1 << made.min(10)).min(LONGEST);
    whole.mul_f64(0.5 + chance / 2.0)
}

/// From 0 to 1; the clock's last digits are chance enough for this.
fn chance() -> f64 {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    f64::from(nanos % 1_000_003) / 1_000_003.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_keep_some_chance() {
        assert_eq!(backoff(0, 0.0), Duration::from_millis(250));
        assert_eq!(backoff(0, 1.0), Duration::from_millis(500));
        assert_eq!(backoff(3, 1.0), Duration::from_secs(4));
        assert_eq!(backoff(40, 1.0), LONGEST);
        assert!((0.0..1.0).contains(&chance()));
    }
}
