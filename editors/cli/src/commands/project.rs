//! `agents project`.

use agents_engine::operations::project::{Create, Delete, LinkResource, List, Show, UnlinkResource};
use agents_engine::operations::resource::Show as ShowResource;
use serde_json::Value;

use crate::args::{
    NameArgs, ProjectCommand, ProjectCreateArgs, ProjectDeleteArgs, ProjectLinkArgs, ProjectListArgs,
    ProjectUnlinkArgs,
};
use crate::commands::{json, listed, text, unavailable};
use crate::failure::Outcome;
use crate::output::human::counted;
use crate::output::{Kind, Output, col, dim, human, id, own};
use crate::run::Run;

pub fn run(run: &Run, command: ProjectCommand) -> Outcome {
    match command {
        ProjectCommand::Create(args) => create(run, args),
        ProjectCommand::List(args) => list(run, args),
        ProjectCommand::Show(args) => show(run, args),
        ProjectCommand::Delete(args) => delete(run, args),
        ProjectCommand::LinkResource(args) => link(run, args),
        ProjectCommand::UnlinkResource(args) => unlink(run, args),
        ProjectCommand::Context(_) => unavailable::refuse(command.path()),
    }
}

fn create(run: &Run, args: ProjectCreateArgs) -> Outcome {
    let out = &run.out;
    let ProjectCreateArgs { name, description, resources, invariants, invariant_actor } = args;
    let create = Create { name, description, resources, invariants, invariant_actor };
    let created = run.env.engine()?.call(create)?;
    let data = json(&created)?;
    out.panel(None, "Project")
        .pick(&data, "project.name", "Name", Kind::Id)
        .pick(&data, "project.description", "Description", Kind::Text)
        .pick(&data, "project.type", "Type", Kind::Text)
        .pick(&data, "project.remote", "Remote", Kind::Auto)
        .pick(&data, "project.created", "Created", Kind::Time);
    if created.paths.root.is_some() {
        out.panel(None, "Paths").pick(&data, "paths.root", "Root", Kind::Path).pick(
            &data,
            "paths.data_dir",
            "Data Dir",
            Kind::Path,
        );
    }
    let inherited = match created.defaults.automation_profile.as_deref() {
        Some(profile) => profile.into(),
        None => own("(inherits global)"),
    };
    out.panel(None, "Defaults")
        .pick(&data, "defaults.sandbox", "Sandbox", Kind::Text)
        .pick(&data, "defaults.validations", "Validations", Kind::Count)
        .row("Context Filters", created.defaults.context_filters.as_deref().unwrap_or("none"))
        .row("Automation Profile", inherited);
    out.panel(None, "Resources")
        .pick(&data, "resources.total", "Total", Kind::Count)
        .pick(&data, "resources.indexed", "Indexed", Kind::Count)
        .pick(&data, "resources.sandboxable", "Sandboxable", Kind::Count);
    linked(out, &data);
    if let Some(invariants) = &created.invariants {
        let panel = out.panel(None, "Invariants");
        for (at, text) in invariants.items.iter().enumerate() {
            panel.line(format!("{}. {text}", at + 1));
        }
        if let Some(actor) = &invariants.reconciliation_actor {
            panel.row("Reconciliation Actor", id(actor.as_str()));
        }
    }
    let name = created.project.name.as_str();
    if created.linked_resources.is_empty() {
        out.hint("Next Steps", [format!("agents project link-resource {name} <RESOURCE>")]);
    } else {
        out.hint("Next Steps", [format!("agents plan use <ACTION> {name}")]);
    }
    out.set_data(data);
    out.ok("Project created");
    Ok(())
}

fn linked(out: &Output, data: &Value) {
    if data["linked_resources"].as_array().is_none_or(Vec::is_empty) {
        return;
    }
    let columns = vec![
        col("name", "Resource").id(),
        col("type", "Type"),
        col("sandbox", "Sandbox"),
        col("read_only", "Read-Only").kind(Kind::Auto),
        col("location", "Path").kind(Kind::Path),
    ];
    out.table(None, "Linked Resources", columns).rows(&data["linked_resources"]);
}

fn list(run: &Run, args: ProjectListArgs) -> Outcome {
    let out = &run.out;
    let found = run.env.engine()?.call(List { namespace: args.namespace, pattern: args.pattern })?;
    let total = found.projects.len();
    let data = json(&found)?;
    let columns = vec![
        col("name", "Name").id(),
        col("description", "Description"),
        col("resources", "Resources").kind(Kind::Count),
        col("remote", "Remote").kind(Kind::Auto),
        col("active_plans", "Active Plans").kind(Kind::Count),
    ];
    out.table(None, "Projects", columns)
        .rows(&data["projects"])
        .when_empty("projects", &["agents project create local/app --resource <RESOURCE>"]);
    out.panel(None, "Summary")
        .pick(&data, "summary.total", "Total", Kind::Count)
        .pick(&data, "summary.with_resources", "With Resources", Kind::Count)
        .pick(&data, "summary.remote", "Remote", Kind::Count)
        .pick(&data, "summary.total_resources", "Total Resources", Kind::Count)
        .pick(&data, "summary.indexed_files", "Indexed Files", Kind::Count)
        .pick(&data, "summary.active_plans", "Active Plans", Kind::Count);
    out.set_data(data);
    out.ok(listed(total, "project", "projects"));
    Ok(())
}

fn show(run: &Run, args: NameArgs) -> Outcome {
    let out = &run.out;
    let found = run.env.engine()?.call(Show { name: args.name })?;
    let data = json(&found)?;
    out.panel(None, "Project Details")
        .pick(&data, "project.name", "Name", Kind::Id)
        .pick(&data, "project.description", "Description", Kind::Text)
        .pick(&data, "project.resources", "Resources", Kind::Count)
        .pick(&data, "project.remote", "Remote", Kind::Auto)
        .pick(&data, "project.created", "Created", Kind::Time)
        .pick(&data, "paths.root", "Root", Kind::Path)
        .pick(&data, "project.invariant_actor", "Invariant Actor", Kind::Id);
    linked(out, &data);
    if !found.validations.is_empty() {
        let columns = vec![
            col("name", "Validation").id(),
            col("description", "Description").wrap(),
            col("mode", "Mode"),
            col("resource", "Resource").id(),
            col("scope", "Scope"),
            col("attachment_id", "Attachment").id(),
        ];
        out.table(None, &format!("Validations ({})", found.validations.len()), columns)
            .rows(&data["validations"]);
    }
    out.panel(None, "Context")
        .pick(&data, "context.include", "Include", Kind::Text)
        .pick(&data, "context.exclude", "Exclude", Kind::Text)
        .pick(&data, "context.max_file_size_bytes", "Max File Size", Kind::Bytes);
    out.panel(None, "Indexing Status")
        .pick(&data, "indexing_status.text_index", "Text Index", Kind::State)
        .pick(&data, "indexing_status.vector_index", "Vector Index", Kind::State)
        .pick(&data, "indexing_status.graph_store", "Graph Store", Kind::State)
        .pick(&data, "indexing_status.indexed_files", "Indexed Files", Kind::Count)
        .pick(&data, "indexing_status.last_indexed", "Last Indexed", Kind::Time);
    if !found.active_plans.is_empty() {
        let columns = vec![col("plan_id", "Plan ID").id(), col("action", "Action"), col("phase", "Phase")];
        out.table(None, "Active Plans", columns).rows(&data["active_plans"]);
    }
    out.set_data(data);
    out.ok("Project loaded");
    Ok(())
}

fn delete(run: &Run, args: ProjectDeleteArgs) -> Outcome {
    let out = &run.out;
    let engine = run.env.engine()?;
    let found = engine.call(Show { name: args.name.clone() })?;
    let name = &found.project.name;
    // What plans block is refused without a question.
    let blocked = !found.active_plans.is_empty() && !args.force;
    if !blocked && !out.confirm(&format!("Delete project {name}? This cannot be undone."), args.yes.yes) {
        return Ok(());
    }
    let deleted = engine.call(Delete { name: args.name, force: args.force })?;
    let data = json(&deleted)?;
    if let Some(summary) = &deleted.deletion_summary {
        out.panel(None, "Deletion Summary")
            .pick(&data, "deletion_summary.project", "Project", Kind::Id)
            .row("Resources", format!("{} unlinked", human::count(summary.resources_unlinked as u64)))
            .pick(&data, "deletion_summary.data_dir", "Data Dir", Kind::Path);
    }
    let forced = deleted.force_delete.is_some();
    if let Some(force) = &deleted.force_delete {
        let panel = out.panel(None, "Force Delete");
        panel.row("Cancelled", counted(force.cancelled_plans.len() as u64, "active plan", "active plans"));
        for plan in &force.cancelled_plans {
            panel.line(id(plan.plan_id.to_string()).and(dim(format!(" was {}", plan.previous_state))));
        }
    }
    if deleted.deleted.is_some() {
        out.panel(None, "Deleted")
            .pick(&data, "deleted.project", "Project", Kind::Id)
            .pick(&data, "deleted.resources_unlinked", "Resources Unlinked", Kind::Count)
            .pick(&data, "deleted.validations_detached", "Validations Detached", Kind::Count)
            .pick(&data, "deleted.plans_cancelled", "Plans Cancelled", Kind::Count)
            .pick(&data, "deleted.context_policies", "Context Policies", Kind::Text);
    }
    out.panel(None, "Backup").pick(&data, "backups.snapshot", "Snapshot", Kind::Path).row(
        "Kept",
        match deleted.backups.retention_days {
            0 => "until you remove it".to_owned(),
            days => format!("for {}", counted(days.unsigned_abs(), "day", "days")),
        },
    );
    out.set_data(data);
    out.ok(if forced { "Project force-deleted" } else { "Project deleted" });
    Ok(())
}

fn link(run: &Run, args: ProjectLinkArgs) -> Outcome {
    let out = &run.out;
    let ProjectLinkArgs { project, resource, read_only } = args;
    let data = json(&run.env.engine()?.call(LinkResource { project, resource, read_only })?)?;
    out.panel(None, "Resource Linked")
        .pick(&data, "resource_linked.project", "Project", Kind::Id)
        .pick(&data, "resource_linked.resource", "Resource", Kind::Id)
        .pick(&data, "resource_linked.type", "Type", Kind::Text)
        .pick(&data, "resource_linked.read_only", "Read-Only", Kind::Auto);
    out.panel(None, "Access")
        .pick(&data, "access.read", "Read", Kind::Text)
        .pick(&data, "access.write", "Write", Kind::Text)
        .pick(&data, "access.apply", "Apply", Kind::Text);
    out.panel(None, "Indexing")
        .pick(&data, "indexing.status", "Status", Kind::State)
        .pick(&data, "indexing.files_found", "Files Found", Kind::Count)
        .pick(&data, "indexing.language", "Language", Kind::Text);
    let project = text(&data["resource_linked"], "project").to_owned();
    out.hint("Next Steps", [format!("agents plan use <ACTION> {project}")]);
    out.set_data(data);
    out.ok("Resource linked to project");
    Ok(())
}

fn unlink(run: &Run, args: ProjectUnlinkArgs) -> Outcome {
    let out = &run.out;
    let engine = run.env.engine()?;
    let ProjectUnlinkArgs { project, resource, yes } = args;
    // What cannot be unlinked is refused without a question.
    let known = engine.call(Show { name: project.clone() })?.project.name;
    let asked = ShowResource { resource: resource.clone() };
    let linked = engine.call(asked)?.linked_projects.iter().any(|project| project.name == known);
    if linked && !out.confirm(&format!("Unlink {resource} from {known}?"), yes.yes) {
        return Ok(());
    }
    let unlinked = engine.call(UnlinkResource { project, resource })?;
    let data = json(&unlinked)?;
    out.panel(None, "Resource Unlinked")
        .pick(&data, "resource_unlinked.project", "Project", Kind::Id)
        .pick(&data, "resource_unlinked.resource", "Resource", Kind::Id)
        .pick(&data, "resource_unlinked.type", "Type", Kind::Text);
    out.panel(None, "Index Cleanup")
        .pick(&data, "index_cleanup.text_index", "Text Index", Kind::Text)
        .pick(&data, "index_cleanup.vectors", "Vectors", Kind::Text)
        .pick(&data, "index_cleanup.graph_triples", "Graph Triples", Kind::Text);
    out.panel(None, "Project Summary")
        .row("Linked Resources", format!("{} remaining", unlinked.project_summary.linked_resources))
        .pick(&data, "project_summary.last_updated", "Last Updated", Kind::Time)
        .pick(&data, "project_summary.active_plans", "Active Plans", Kind::Count);
    for warning in &unlinked.warnings {
        out.warn(warning.as_str());
    }
    out.set_data(data);
    out.ok("Resource unlinked from project");
    Ok(())
}
