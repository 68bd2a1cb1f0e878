//! Tools in Python: registered ones, and those that an actor's file brings along.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use agents_domain::QualifiedName;
use agents_domain::ids::{PlanId, ResourceId};
use agents_domain::interpolate::interpolate;
use agents_domain::plan::guards::ToolFacts;
use agents_domain::ports::tool::{LocalTool, ToolError};
use agents_domain::tool::{CostProfile, Environment, Lifecycle, ResourceSlot, SlotAccess, ToolDefinition};
use serde_json::{Value, json};

use super::{Body, Scene, Tool};
use crate::Engine;
use crate::process::confine::Reach;
use crate::process::secrets::Secrets;
use crate::python::{Bound, Call, Contract, Failure};
use crate::sandboxes::OpenSandbox;

/// Characters of a traceback that an actor is told.
const TRACEBACK: usize = 2000;

/// A tool's code and what it needs.
#[derive(Debug)]
pub(crate) struct Code {
    pub name: String,
    pub code: String,
    pub env: BTreeMap<String, String>,
    pub slots: Vec<ResourceSlot>,
    pub lifecycle: Lifecycle,
    pub output: Option<Value>,
    pub timeout: u32,
    pub writes: bool,
    pub cost: Option<CostProfile>,
    pub environment: Option<Environment>,
}

/// A tool of a definition; `Err` says why it cannot run.
pub(crate) fn of(definition: &ToolDefinition) -> Result<Tool, String> {
    if let Some(why) = definition.cannot_run() {
        return Err(why);
    }
    let code = Code {
        name: definition.name.to_string(),
        code: definition.code.clone().unwrap_or_default(),
        env: definition.env.clone(),
        slots: definition.resource_slots.clone(),
        lifecycle: definition.lifecycle.clone().unwrap_or_default(),
        output: definition.output_schema.clone().map(Value::Object),
        timeout: definition.timeout,
        writes: definition.writes,
        cost: definition.cost_profile.clone(),
        environment: definition.environment.clone(),
    };
    let facts = ToolFacts {
        name: definition.name.to_string(),
        summary: definition.description.clone(),
        category: "custom".to_owned(),
        capability: definition.capability(),
    };
    Ok(tool(facts, definition.input(), code))
}

/// A tool that an actor's file brings along.
pub(super) fn local(own: &LocalTool) -> Tool {
    let spec = &own.spec;
    let code = Code {
        name: spec.name.clone(),
        code: own.code.clone(),
        env: own.env.clone(),
        slots: Vec::new(),
        lifecycle: Lifecycle::default(),
        output: None,
        timeout: agents_domain::tool::DEFAULT_TIMEOUT,
        writes: spec.capability.writes,
        cost: None,
        environment: None,
    };
    let facts = ToolFacts {
        name: spec.name.clone(),
        summary: spec.description.clone(),
        category: "custom".to_owned(),
        capability: spec.capability.clone(),
    };
    tool(facts, spec.input.clone(), code)
}

fn tool(facts: ToolFacts, input: Value, code: Code) -> Tool {
    Tool { facts, group: None, input, reads_strictly: false, aliases: &[], body: Body::Code(Arc::new(code)) }
}

/// The registered tools that can run, by name.
pub(super) fn all(engine: &Engine) -> Vec<Tool> {
    let registered = engine.view(|r| r.tools()).unwrap_or_default();
    registered.iter().filter_map(|tool| of(&tool.definition).ok()).collect()
}

/// The registered tool of a name; `Some(Err)` says why it cannot run.
pub(super) fn find(engine: &Engine, name: &str) -> Option<Result<Tool, String>> {
    let name: QualifiedName = name.parse().ok()?;
    let found = engine.view(|r| r.tool(&name)).ok().flatten()?;
    Some(of(&found.definition))
}

/// Why a call may not be made now, when it may not: too many calls, or the wrong place (TOOL-014, TOOL-015).
pub(crate) fn admit(engine: &Engine, code: &Code) -> Result<(), String> {
    let environment = code.environment.clone().unwrap_or_default();
    if environment.required.as_deref() == Some("container") || environment.specific.is_some() {
        return Err(format!("{} runs only in a container, and the plan has none", code.name));
    }
    let Some((count, seconds)) = code.cost.as_ref().and_then(|cost| cost.limit().ok().flatten()) else {
        return Ok(());
    };
    let window = Duration::from_secs(seconds);
    let mut calls = engine.python.calls.lock().unwrap_or_else(PoisonError::into_inner);
    let made = calls.entry(code.name.clone()).or_default();
    let now = Instant::now();
    while made.front().is_some_and(|at| now.duration_since(*at) >= window) {
        made.pop_front();
    }
    if made.len() >= count {
        let wait =
            made.front().map_or(seconds, |at| window.saturating_sub(now.duration_since(*at)).as_secs() + 1);
        return Err(format!(
            "{} may be called {count} times in {seconds} s; try again in {wait} s",
            code.name
        ));
    }
    made.push_back(now);
    Ok(())
}

/// Runs a tool's code in a plan, or for a validation, which must not write.
pub(crate) async fn run(
    code: &Arc<Code>,
    args: Value,
    scene: &Scene<'_>,
    read_only: bool,
) -> Result<(Option<ResourceId>, Value), (ToolError, String)> {
    let denied = |why: String| (ToolError::AccessDeniedError, why);
    admit(scene.engine, code).map_err(denied)?;
    let reach = if code.writes && !read_only { Reach::Sandbox } else { Reach::Nothing };
    let bound = bind(code, &args, scene, reach).map_err(|why| (ToolError::InvalidCallError, why))?;
    let primary = match bound.first() {
        Some((sandbox, _)) => Some(*sandbox),
        None => scene.sandboxes.first(),
    };
    let resources: Vec<Bound> = match bound.is_empty() {
        // Without slots the plan's resources go by their names.
        true => scene.sandboxes.iter().map(|one| seen(one, None, reach == Reach::Nothing)).collect(),
        false => bound.into_iter().map(|(_, bound)| bound).collect(),
    };
    activate(code, scene, primary, &resources).await?;
    let stage = (scene, primary, resources, reach, !read_only);
    let returned = call(code, &code.code, Contract::Auto, args, stage).await?;
    let result = match returned {
        Value::Object(_) => returned,
        other => json!({ "result": other }),
    };
    if let Some(schema) = &code.output {
        let problem = jsonschema::validate(schema, &result).err().map(|error| error.to_string());
        if let Some(why) = problem {
            let why = format!("what it returned does not fit its `output_schema`: {why}");
            return Err((ToolError::ToolExecutionError, why));
        }
    }
    Ok((primary.map(|sandbox| sandbox.resource_id), result))
}

/// Where code runs: among what, in which sandbox, with which resources, how far it reaches, and whether it has a network.
type Stage<'a> = (&'a Scene<'a>, Option<&'a OpenSandbox>, Vec<Bound>, Reach, bool);

async fn call(
    code: &Code,
    text: &str,
    contract: Contract<'_>,
    input: Value,
    (scene, primary, resources, reach, network): Stage<'_>,
) -> Result<Value, (ToolError, String)> {
    let engine = scene.engine;
    let surroundings = &*engine.surroundings;
    let secrets = RefCell::new(Secrets::default());
    let mut env = Vec::new();
    for (name, value) in &code.env {
        let look = |name: &str| surroundings.variable(name);
        let value =
            interpolate(value, &mut |name| look(name).inspect(|value| secrets.borrow_mut().add(name, value)));
        let value = value.map_err(|missing| {
            let why = format!("`env.{name}` uses `${{{missing}}}`, which is not set");
            (ToolError::ToolExecutionError, why)
        })?;
        secrets.borrow_mut().add(name, &value);
        env.push((name.clone(), value));
    }
    let Some(primary) = primary else {
        return Err((ToolError::ToolExecutionError, "the plan has no resource to work on".to_owned()));
    };
    let mut bounds = primary.bounds(reach, &engine.data_dir);
    bounds.network = network;
    let timeout = Duration::from_secs(u64::from(code.timeout));
    let context = match contract {
        Contract::Hook(_) | Contract::HookScript => input.clone(),
        _ => json!({}),
    };
    let call = Call {
        code: text,
        name: code.name.rsplit('/').next().unwrap_or(&code.name),
        contract,
        input,
        context,
        bounds,
        env,
        resources,
        plan: scene.plan,
        timeout,
    };
    let secrets = secrets.into_inner();
    match engine.python.call(surroundings, call).await {
        Ok(returned) => {
            if !returned.log.trim().is_empty() {
                tracing::info!(tool = %code.name, "printed: {}", secrets.text(&returned.log));
            }
            Ok(secrets.value(returned.result))
        }
        Err(failure) => Err((failure.error, secrets.text(&told(&failure)))),
    }
}

/// Turns what a tool returned into what a validation says; pure: it reaches nothing (VALID-027).
pub(crate) async fn transform(
    code: &Code,
    output: Value,
    scene: &Scene<'_>,
) -> Result<Value, (ToolError, String)> {
    let stage = (scene, scene.sandboxes.first(), Vec::new(), Reach::Nothing, false);
    call(code, &code.code, Contract::Transform, output, stage).await
}

/// A failure for an actor.
pub(crate) fn told(failure: &Failure) -> String {
    let trace = failure.traceback.trim();
    let skip = trace.chars().count().saturating_sub(TRACEBACK);
    let trace: String = trace.chars().skip(skip).collect();
    let printed = failure.log.trim();
    let skip = printed.chars().count().saturating_sub(TRACEBACK);
    let printed: String = printed.chars().skip(skip).collect();
    let mut told = failure.message.clone();
    for (what, text) in [("", trace), ("it printed:\n", printed)] {
        if !text.is_empty() {
            told = format!("{told}\n{what}{text}");
        }
    }
    told
}

/// Runs `discover` and `activate` before a tool is first used in a plan (TOOL-019, TOOL-020).
async fn activate(
    code: &Arc<Code>,
    scene: &Scene<'_>,
    primary: Option<&OpenSandbox>,
    resources: &[Bound],
) -> Result<(), (ToolError, String)> {
    let Some(plan) = scene.plan else { return Ok(()) };
    if code.lifecycle == Lifecycle::default() {
        return Ok(());
    }
    let known = |active: &HashMap<PlanId, Vec<Arc<Code>>>| {
        active
            .get(&plan)
            .is_some_and(|all| all.iter().any(|one| one.name == code.name && one.code == code.code))
    };
    if known(&scene.engine.python.active.lock().unwrap_or_else(PoisonError::into_inner)) {
        return Ok(());
    }
    let hooks = [("discover", &code.lifecycle.discover), ("activate", &code.lifecycle.activate)];
    for (point, hook) in hooks {
        let Some(hook) = hook else { continue };
        let stage = (scene, primary, resources.to_vec(), Reach::Nothing, true);
        run_hook(code, hook, stage).await.map_err(|(kind, why)| {
            (kind, format!("{} cannot be used: its `{point}` failed: {why}", code.name))
        })?;
    }
    let mut active = scene.engine.python.active.lock().unwrap_or_else(PoisonError::into_inner);
    active.entry(plan).or_default().push(code.clone());
    Ok(())
}

async fn run_hook(code: &Code, hook: &str, stage: Stage<'_>) -> Result<Value, (ToolError, String)> {
    let is_name = hook.chars().all(|c| c.is_alphanumeric() || c == '_');
    let input = json!({ "tool": code.name });
    match is_name {
        true => call(code, &code.code, Contract::Hook(hook), input, stage).await,
        false => call(code, hook, Contract::HookScript, input, stage).await,
    }
}

/// Runs `deactivate` of the tools that a plan has used; a failure is logged.
pub(crate) async fn deactivate(scene: &Scene<'_>) {
    let Some(plan) = scene.plan else { return };
    let used = scene.engine.python.active.lock().unwrap_or_else(PoisonError::into_inner).remove(&plan);
    for code in used.unwrap_or_default() {
        let Some(hook) = &code.lifecycle.deactivate else { continue };
        let stage = (scene, scene.sandboxes.first(), Vec::new(), Reach::Nothing, true);
        if let Err((_, why)) = run_hook(&code, hook, stage).await {
            tracing::warn!(tool = %code.name, "`deactivate` failed: {why}");
        }
    }
}

fn seen(sandbox: &OpenSandbox, slot: Option<&ResourceSlot>, read_only: bool) -> Bound {
    Bound {
        slot: slot.map_or_else(
            || sandbox.name.rsplit('/').next().unwrap_or_default().to_owned(),
            |s| s.name.clone(),
        ),
        name: sandbox.name.clone(),
        resource_type: sandbox.resource_type.clone(),
        path: sandbox.root.clone(),
        read_only: read_only || sandbox.read_only || slot.is_some_and(|s| s.access == SlotAccess::ReadOnly),
    }
}

/// Whether a resource of a type can stand in a slot of another: any checkout and any folder is an `fs-directory`.
pub(crate) fn fits(actual: &str, wanted: &str) -> bool {
    let folder = |name: &str| matches!(name, "fs-directory" | "fs-mount" | "git-checkout");
    actual == wanted || (matches!(wanted, "fs-directory" | "fs-mount") && folder(actual))
}

/// The resources of a tool's slots (TOOL-026 to TOOL-030).
fn bind<'a>(
    code: &Code,
    args: &Value,
    scene: &'a Scene<'_>,
    reach: Reach,
) -> Result<Vec<(&'a OpenSandbox, Bound)>, String> {
    let mut bound = Vec::new();
    let named = |wanted: &str| {
        scene.sandboxes.iter().find(|one| {
            one.name == wanted
                || one.resource_id.to_string() == wanted
                || one.name.rsplit('/').next() == Some(wanted)
        })
    };
    for slot in &code.slots {
        let found = if let Some(wanted) = &slot.static_resource {
            Some(named(wanted).ok_or_else(|| {
                format!("slot `{}` is bound to resource {wanted}, which is not part of the plan", slot.name)
            })?)
        } else if let Some(parameter) = &slot.from_param {
            match args[parameter].as_str() {
                Some(wanted) => Some(named(wanted).ok_or_else(|| {
                    format!("`{parameter}` names resource {wanted}, which is not part of the plan")
                })?),
                None => None,
            }
        } else {
            let fitting: Vec<&OpenSandbox> =
                scene.sandboxes.iter().filter(|one| fits(&one.resource_type, &slot.resource_type)).collect();
            match fitting.as_slice() {
                [] => None,
                [only] => Some(*only),
                many => Some(named(&slot.name).ok_or_else(|| {
                    let names: Vec<&str> = many.iter().map(|one| one.name.as_str()).collect();
                    format!(
                        "slot `{}` could be {}: name the slot after one of them",
                        slot.name,
                        names.join(" or ")
                    )
                })?),
            }
        };
        let Some(sandbox) = found else {
            if slot.required {
                return Err(format!("slot `{}` needs a resource of type {}", slot.name, slot.resource_type));
            }
            continue;
        };
        if !fits(&sandbox.resource_type, &slot.resource_type) {
            return Err(format!(
                "slot `{}` is for {}, and {} is of type {}",
                slot.name, slot.resource_type, sandbox.name, sandbox.resource_type
            ));
        }
        if slot.access != SlotAccess::ReadOnly && sandbox.read_only && reach == Reach::Sandbox {
            return Err(format!("slot `{}` is written, and {} is read-only", slot.name, sandbox.name));
        }
        bound.push((sandbox, seen(sandbox, Some(slot), reach == Reach::Nothing)));
    }
    Ok(bound)
}
