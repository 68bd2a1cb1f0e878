//! The composition root: the one place that reads the environment, and where the parts of an engine are put together.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agents_actors::BuiltIn;
use agents_actors::agent::ModelActors;
use agents_actors::graph::DefinedActors;
use agents_actors::mcp::Mcp;
use agents_actors::models::Catalogue;
use agents_config::Config;
use agents_context::Indexes;
use agents_domain::ports::server_launcher::ServerLauncher;
use agents_domain::{Error, ErrorKind, Result};
use agents_engine::{Engine, Parts};
use agents_lsp_runtime::{Installer, PoolOptions, PoolStarter, Runtime, WarmServers};
use agents_store::SqliteStore;

use crate::args::Global;
use crate::models;
use crate::output::{self, Format};
use crate::spawn::{self, Workers};
use crate::surroundings::ThisMachine;

/// An environment variable; one that is no text counts as unset.
pub fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Refuses a variable of ours that is no text: taken for unset, it would lead somewhere else without a word.
fn refuse_what_is_no_text() -> Result<()> {
    let ours = |name: &str| name == "HOME" || name.starts_with("CLEVERAGENTS_");
    for (name, value) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if ours(&name) && value.to_str().is_none() {
            let message = format!("the environment variable {name} is not UTF-8 text");
            return Err(Error::new(ErrorKind::Configuration, message).suggest(format!("unset {name}")));
        }
    }
    Ok(())
}

/// The format a person asked for by environment, for errors that come before the configuration is read.
pub fn format_of_env() -> Option<Format> {
    env("CLEVERAGENTS_FORMAT").as_deref().and_then(Format::from_name)
}

/// Why the configuration could not be read as a whole.
pub struct Mistake {
    /// What is wrong, and where.
    pub error: Error,
    /// In the file; else in the environment.
    pub in_file: bool,
}

/// What a run is told by its flags, its environment and its configuration file.
pub struct Environment {
    /// The resolved configuration.
    pub config: Arc<Config>,
    /// Where everything that lasts is kept; absolute.
    pub data_dir: PathBuf,
    verbose: u8,
    engine: OnceLock<Arc<Engine>>,
    models: OnceLock<Arc<Catalogue>>,
    recording: OnceLock<PathBuf>,
}

impl Environment {
    /// Reads flags, environment and configuration file.
    ///
    /// # Errors
    /// A value that is wrong, with the place it stands at.
    pub fn load(global: &Global) -> Result<Self> {
        refuse_what_is_no_text()?;
        Ok(Self::new(Config::open(flags(global)?, &env)?, global))
    }

    /// As [`Environment::load`], for commands that look at a mistake or put it right: what cannot be read is left out.
    ///
    /// # Errors
    /// When not even the data directory can be told.
    pub fn load_what_can_be_read(global: &Global) -> Result<(Self, Option<Mistake>)> {
        let flags = flags(global)?;
        let error = match Config::open(flags.clone(), &env) {
            Ok(config) => return Ok((Self::new(config, global), None)),
            Err(error) => error,
        };
        let places = agents_config::locate(&flags, &env)?;
        let without_file = Config::load(agents_config::Parts { flags, env: &env, file: None });
        let in_file = without_file.is_ok();
        let config = without_file.unwrap_or_else(|_| Config::defaults(&places.data_dir));
        Ok((Self::new(config, global), Some(Mistake { error, in_file })))
    }

    fn new(config: Config, global: &Global) -> Self {
        let data_dir = config.data_dir();
        Self {
            config: Arc::new(config),
            data_dir,
            verbose: global.verbose,
            engine: OnceLock::new(),
            models: OnceLock::new(),
            recording: OnceLock::new(),
        }
    }

    /// The format of this run.
    ///
    /// # Errors
    /// When what was asked for is no format.
    pub fn format(
        &self,
        flag: Option<Format>,
        caps: &output::Caps,
    ) -> std::result::Result<Format, output::AppError> {
        let configured = self.config.get("core.format", None);
        let set = configured.source != agents_config::Source::Default;
        let name = configured.as_text();
        output::format::resolve(output::Asked { flag, env: None, config: set.then_some(name.as_str()) }, caps)
    }

    /// The configuration file, whether it exists or not.
    pub fn config_file(&self) -> String {
        self.config.text("core.config-path", None)
    }

    /// Where logs go.
    pub fn log_dir(&self) -> PathBuf {
        PathBuf::from(self.config.text("core.log.dir", None))
    }

    /// The models that the configuration allows; no one is asked yet.
    ///
    /// # Errors
    /// None: what is wrong in the configuration of a provider is said by the first question to its models.
    pub fn models(&self) -> Result<Arc<Catalogue>> {
        let made = || {
            let record = self.recording.get().cloned();
            Arc::new(Catalogue::new(models::settings(&self.config, &self.data_dir, record)))
        };
        Ok(self.models.get_or_init(made).clone())
    }

    /// Keeps what models are asked and answer in this cassette; to be said before the engine is made.
    pub fn record_models(&self, cassette: PathBuf) {
        let _ = self.recording.set(cassette);
    }

    fn actors(&self) -> Result<DefinedActors<ModelActors<BuiltIn>>> {
        let settings = models::actor_settings(&self.config, &self.data_dir);
        let most_calls = settings.max_calls_per_step;
        let models = self.models()?;
        Ok(DefinedActors::new(ModelActors::new(actors(), models.clone(), settings), models, most_calls))
    }

    /// The engine; made when it is first asked for, because not every command needs one.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub fn engine(&self) -> Result<Arc<Engine>> {
        if let Some(engine) = self.engine.get() {
            return Ok(engine.clone());
        }
        let store = SqliteStore::open(&self.data_dir, agents_store::Options::default())?;
        let spawner = Workers {
            data_dir: self.data_dir.clone(),
            config_path: self.config_file(),
            log_dir: self.log_dir(),
            verbose: self.verbose,
        };
        let engine = Engine::new(Parts {
            store: Arc::new(store),
            actors: Arc::new(self.actors()?),
            language_servers: Arc::new(runtime(&self.data_dir)),
            spawner: Arc::new(spawner),
            config: self.config.clone(),
            data_dir: self.data_dir.clone(),
            user: user(),
        });
        let engine = engine
            .with_surroundings(Arc::new(ThisMachine))
            .with_mcp_servers(Arc::new(Mcp::new(env)))
            .with_installer(Arc::new(Installer::new()))
            .with_code_indexes(Arc::new(Indexes::new(&self.data_dir)));
        let engine = Arc::new(engine);
        Ok(self.engine.get_or_init(|| engine).clone())
    }
}

/// What starts the servers that `lsp serve --proxy` serves; none is shared with a plan. Those that wait in the pool are
/// taken first, where the configuration has one.
pub fn launcher(environment: &Environment) -> Arc<dyn ServerLauncher> {
    let runtime = runtime(&environment.data_dir);
    if environment.config.get("lsp.pool.enabled", None).as_text() != "true" {
        return Arc::new(runtime);
    }
    let (data_dir, config_path) = (environment.data_dir.clone(), environment.config_file());
    let start: PoolStarter = Arc::new(move || spawn::pool(&data_dir, &config_path));
    let folder = pool_folder(&environment.data_dir);
    Arc::new(runtime.with_warm_servers(WarmServers { folder, start }))
}

/// How the pool of warm language servers is run.
pub fn pool_options(environment: &Environment) -> PoolOptions {
    let whole = |key: &str| environment.config.get(key, None).as_text().parse::<u64>().unwrap_or(1);
    PoolOptions {
        folder: pool_folder(&environment.data_dir),
        notes: notes_folder(&environment.data_dir),
        idle: Duration::from_secs(whole("lsp.pool.idle-minutes").saturating_mul(60)),
        servers: usize::try_from(whole("lsp.pool.max-servers")).unwrap_or(usize::MAX),
    }
}

/// Where the pool of warm language servers listens.
pub fn pool_folder(data_dir: &Path) -> PathBuf {
    data_dir.join("pool")
}

fn notes_folder(data_dir: &Path) -> PathBuf {
    data_dir.join("running-servers")
}

/// Starts language servers, and lets other processes see which.
fn runtime(data_dir: &Path) -> Runtime {
    Runtime::new().noting_in(notes_folder(data_dir))
}

/// The keys that flags set.
fn flags(global: &Global) -> Result<Vec<(&'static str, String)>> {
    let mut flags = Vec::new();
    for (key, value) in [("core.data-dir", &global.data_dir), ("core.config-path", &global.config_path)] {
        if let Some(value) = value {
            flags.push((key, absolute(value)?));
        }
    }
    flags.extend(global.format.map(|format| ("core.format", format.name().to_owned())));
    Ok(flags)
}

/// The actors plans can name. A debug build also has `test/scripted`, which plays the script in a plan's arguments.
fn actors() -> BuiltIn {
    let actors = BuiltIn::new();
    #[cfg(debug_assertions)]
    if let Ok(name) = "test/scripted".parse() {
        return actors.with(name, Arc::new(agents_actors::scripted::Scripted::from_arguments()));
    }
    actors
}

/// Who runs this, for the audit log and commits.
fn user() -> String {
    let named = ["USER", "LOGNAME"].iter().find_map(|name| env(name)).filter(|name| !name.trim().is_empty());
    named.unwrap_or_else(|| {
        let uid = nix::unistd::getuid();
        nix::unistd::User::from_uid(uid).ok().flatten().map_or_else(|| format!("uid {uid}"), |user| user.name)
    })
}

/// The text of a file that defines something; `-` is standard input.
///
/// # Errors
/// When it cannot be read, is too large, or is no text.
pub fn read_definition(path: &str) -> Result<String> {
    if path != "-" {
        return agents_config::read_file(path.as_ref());
    }
    let mut bytes = Vec::new();
    // One byte more than allowed tells a text that is too large from one that just fits.
    let most = agents_config::MAX_FILE_BYTES as u64 + 1;
    std::io::stdin()
        .lock()
        .take(most)
        .read_to_end(&mut bytes)
        .map_err(|e| Error::new(ErrorKind::Io, format!("standard input cannot be read: {e}")))?;
    let text = agents_config::decode(&bytes, &definition_name(path));
    text.map(str::to_owned).map_err(|problem| agents_config::to_error(&[problem]))
}

/// What a file that defines something is called in messages.
pub fn definition_name(path: &str) -> String {
    if path == "-" { "standard input".to_owned() } else { path.to_owned() }
}

/// Where a file that defines something is; what came through a pipe or from a device stays as it was named.
pub fn config_path(path: &str) -> Result<Option<String>> {
    let is_file = Path::new(path).metadata().is_ok_and(|found| found.is_file());
    if is_file { absolute(path).map(Some) } else { Ok(None) }
}

/// A path as it is meant in this directory; `~/` is left to the configuration.
pub fn absolute(path: &str) -> Result<String> {
    if path.starts_with("~/") || path == "~" {
        return Ok(path.to_owned());
    }
    let whole = std::path::absolute(Path::new(path))
        .map_err(|e| Error::new(ErrorKind::Usage, format!("`{path}` is not a usable path: {e}")))?;
    whole.into_os_string().into_string().map_err(|whole| {
        let shown = whole.to_string_lossy();
        Error::new(ErrorKind::Usage, format!("`{shown}` cannot be used: the path is not UTF-8"))
    })
}
