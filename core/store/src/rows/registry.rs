//! What people register: actions, language servers, projects and resources.

use std::collections::HashMap;

use agents_domain::QualifiedName;
use agents_domain::action::{Action, ActionState};
use agents_domain::ids::ResourceId;
use agents_domain::ports::store::{RegisteredServer, RegistryReads, RegistryWrites, StoreResult};
use agents_domain::project::{Project, ProjectResource};
use agents_domain::resource::Resource;
use rusqlite::{Connection, Row, params};

use super::Tx;
use super::values::{Json, Parsed, after_prefix, limit, text};
use crate::blobs::sha256;
use crate::error::Fault;

/// Runs a statement that has to meet one row of `what`.
pub(super) fn one(
    conn: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
    what: &str,
) -> Result<(), Fault> {
    match conn.prepare_cached(sql)?.execute(params)? {
        0 => Err(Fault::other(format!("there is no {what}"))),
        _ => Ok(()),
    }
}

fn action(row: &Row<'_>) -> rusqlite::Result<Action> {
    Ok(Action {
        definition: row.get::<_, Json<_>>(0)?.0,
        config_path: row.get(1)?,
        source: row.get(2)?,
        created_at: row.get::<_, Parsed<_>>(3)?.0,
        updated_at: row.get::<_, Parsed<_>>(4)?.0,
    })
}

fn actions(conn: &Connection, rest: &str, params: impl rusqlite::Params) -> Result<Vec<Action>, Fault> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT definition, config_path, yaml_text, created_at, updated_at FROM actions {rest}"
    ))?;
    let rows = statement.query_map(params, action)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn action_state(action: &Action) -> &'static str {
    match action.definition.state {
        ActionState::Available => "available",
        ActionState::Archived => "archived",
    }
}

fn server(row: &Row<'_>) -> rusqlite::Result<RegisteredServer> {
    Ok(RegisteredServer {
        definition: row.get::<_, Json<_>>(0)?.0,
        config_path: row.get(1)?,
        source: row.get(2)?,
        created_at: row.get::<_, Parsed<_>>(3)?.0,
        updated_at: row.get::<_, Parsed<_>>(4)?.0,
    })
}

fn servers(
    conn: &Connection,
    rest: &str,
    params: impl rusqlite::Params,
) -> Result<Vec<RegisteredServer>, Fault> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT definition, config_path, yaml_text, created_at, updated_at FROM lsp_servers {rest}"
    ))?;
    let rows = statement.query_map(params, server)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn projects(conn: &Connection, rest: &str, params: impl rusqlite::Params) -> Result<Vec<Project>, Fault> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT name, description, invariant_actor_name, created_at, updated_at FROM projects {rest}"
    ))?;
    let mut links = conn.prepare_cached(
        "SELECT resource_id, read_only FROM project_resources WHERE project_name = ?1 ORDER BY rowid",
    )?;
    let mut rows = statement.query(params)?;
    let mut out = Vec::new();
    while let Some(row) = rows.next()? {
        let name: QualifiedName = row.get::<_, Parsed<_>>(0)?.0;
        let resources = links.query_map([name.to_string()], |row| {
            Ok(ProjectResource { resource_id: row.get::<_, Parsed<_>>(0)?.0, read_only: row.get(1)? })
        })?;
        out.push(Project {
            resources: resources.collect::<Result<_, _>>()?,
            name,
            description: row.get(1)?,
            invariant_actor: row.get(2)?,
            created_at: row.get::<_, Parsed<_>>(3)?.0,
            updated_at: row.get::<_, Parsed<_>>(4)?.0,
        });
    }
    Ok(out)
}

/// Links a project's resources in order; a link that was there keeps its time.
fn link_project(conn: &Connection, project: &Project) -> Result<(), Fault> {
    let name = project.name.to_string();
    let since: HashMap<String, String> = conn
        .prepare_cached(
            "DELETE FROM project_resources WHERE project_name = ?1 RETURNING resource_id, linked_at",
        )?
        .query_map([&name], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    for link in &project.resources {
        let resource = link.resource_id.to_string();
        let at = since.get(&resource).cloned().unwrap_or_else(|| project.updated_at.to_string());
        conn.prepare_cached(
            "INSERT INTO project_resources (project_name, resource_id, read_only, linked_at)
             VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![name, resource, link.read_only, at])
        .map_err(|e| Fault::from(e).or_duplicate(|| format!("the link of project {name} to {resource}")))?;
    }
    Ok(())
}

fn resources(conn: &Connection, rest: &str, params: impl rusqlite::Params) -> Result<Vec<Resource>, Fault> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT resource_id, name, resource_type_name, description, location, properties, created_at, updated_at
         FROM resources {rest}"
    ))?;
    let mut links =
        conn.prepare_cached("SELECT parent_id FROM resource_links WHERE child_id = ?1 ORDER BY rowid")?;
    let mut rows = statement.query(params)?;
    let mut out = Vec::new();
    while let Some(row) = rows.next()? {
        let resource_id: ResourceId = row.get::<_, Parsed<_>>(0)?.0;
        let parents =
            links.query_map([resource_id.to_string()], |row| Ok(row.get::<_, Parsed<ResourceId>>(0)?.0))?;
        out.push(Resource {
            resource_id,
            name: row.get::<_, Option<Parsed<_>>>(1)?.map(|name| name.0),
            resource_type: row.get(2)?,
            description: row.get(3)?,
            location: row.get(4)?,
            properties: row.get::<_, Json<_>>(5)?.0,
            parents: parents.collect::<Result<_, _>>()?,
            created_at: row.get::<_, Parsed<_>>(6)?.0,
            updated_at: row.get::<_, Parsed<_>>(7)?.0,
        });
    }
    Ok(out)
}

fn resource_label(resource: &Resource) -> String {
    match &resource.name {
        Some(name) => format!("resource {name}"),
        None => format!("resource {}", resource.resource_id),
    }
}

fn link_resource(conn: &Connection, resource: &Resource) -> Result<(), Fault> {
    let id = resource.resource_id.to_string();
    conn.prepare_cached(
        "DELETE FROM resource_links
         WHERE child_id = ?1 AND parent_id NOT IN (SELECT value FROM json_each(?2))",
    )?
    .execute(params![id, Json(&resource.parents)])?;
    for parent in &resource.parents {
        conn.prepare_cached(
            "INSERT INTO resource_links (parent_id, child_id, created_at) VALUES (?1, ?2, ?3)
             ON CONFLICT (parent_id, child_id) DO NOTHING",
        )?
        .execute(params![parent.to_string(), id, resource.updated_at.to_string()])?;
    }
    Ok(())
}

impl RegistryReads for Tx<'_> {
    fn action(&self, name: &QualifiedName) -> StoreResult<Option<Action>> {
        self.run(|conn| Ok(actions(conn, "WHERE name = ?1", [name.to_string()])?.pop()))
    }

    fn actions(&self) -> StoreResult<Vec<Action>> {
        self.run(|conn| actions(conn, "ORDER BY name", []))
    }

    fn language_server(&self, name: &QualifiedName) -> StoreResult<Option<RegisteredServer>> {
        self.run(|conn| Ok(servers(conn, "WHERE name = ?1", [name.to_string()])?.pop()))
    }

    fn language_servers(&self) -> StoreResult<Vec<RegisteredServer>> {
        self.run(|conn| servers(conn, "ORDER BY name", []))
    }

    fn project(&self, name: &QualifiedName) -> StoreResult<Option<Project>> {
        self.run(|conn| Ok(projects(conn, "WHERE name = ?1", [name.to_string()])?.pop()))
    }

    fn projects(&self) -> StoreResult<Vec<Project>> {
        self.run(|conn| projects(conn, "ORDER BY name", []))
    }

    fn resource(&self, id: ResourceId) -> StoreResult<Option<Resource>> {
        self.run(|conn| Ok(resources(conn, "WHERE resource_id = ?1", [id.to_string()])?.pop()))
    }

    fn resource_named(&self, name: &QualifiedName) -> StoreResult<Option<Resource>> {
        self.run(|conn| Ok(resources(conn, "WHERE name = ?1", [name.to_string()])?.pop()))
    }

    fn resources_starting(&self, prefix: &str, count: usize) -> StoreResult<Vec<ResourceId>> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT resource_id FROM resources
                 WHERE resource_id >= ?1 AND resource_id < ?2 ORDER BY resource_id LIMIT ?3",
            )?;
            let ids = statement.query_map(params![prefix, after_prefix(prefix), limit(count)], |row| {
                Ok(row.get::<_, Parsed<ResourceId>>(0)?.0)
            })?;
            Ok(ids.collect::<Result<_, _>>()?)
        })
    }

    fn resources(&self) -> StoreResult<Vec<Resource>> {
        self.run(|conn| resources(conn, "ORDER BY rowid", []))
    }
}

impl RegistryWrites for Tx<'_> {
    fn insert_action(&self, action: &Action) -> StoreResult<()> {
        self.run(|conn| {
            let name = action.definition.name.to_string();
            conn.prepare_cached(
                "INSERT INTO actions (
                     name, state, definition, yaml_text, config_path, config_hash, created_at, updated_at
                 ) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                name,
                action_state(action),
                Json(&action.definition),
                action.source,
                action.config_path,
                sha256(action.source.as_bytes()),
                action.created_at.to_string(),
                action.updated_at.to_string(),
            ])
            .map_err(|e| Fault::from(e).or_duplicate(|| format!("action {name}")))?;
            Ok(())
        })
    }

    fn update_action(&self, action: &Action) -> StoreResult<()> {
        self.run(|conn| {
            let name = action.definition.name.to_string();
            one(
                conn,
                "UPDATE actions SET state = ?2, definition = ?3, yaml_text = ?4, config_path = ?5, config_hash = ?6,
                     updated_at = ?7
                 WHERE name = ?1",
                params![
                    name,
                    action_state(action),
                    Json(&action.definition),
                    action.source,
                    action.config_path,
                    sha256(action.source.as_bytes()),
                    action.updated_at.to_string(),
                ],
                &format!("action {name}"),
            )
        })
    }

    fn insert_language_server(&self, server: &RegisteredServer) -> StoreResult<()> {
        self.run(|conn| {
            let name = server.definition.name.to_string();
            conn.prepare_cached(
                "INSERT INTO lsp_servers (
                     name, definition, yaml_text, config_path, config_hash, created_at, updated_at
                 ) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                name,
                Json(&server.definition),
                server.source,
                server.config_path,
                sha256(server.source.as_bytes()),
                server.created_at.to_string(),
                server.updated_at.to_string(),
            ])
            .map_err(|e| Fault::from(e).or_duplicate(|| format!("language server {name}")))?;
            Ok(())
        })
    }

    fn update_language_server(&self, server: &RegisteredServer) -> StoreResult<()> {
        self.run(|conn| {
            let name = server.definition.name.to_string();
            one(
                conn,
                "UPDATE lsp_servers SET definition = ?2, yaml_text = ?3, config_path = ?4, config_hash = ?5,
                     updated_at = ?6
                 WHERE name = ?1",
                params![
                    name,
                    Json(&server.definition),
                    server.source,
                    server.config_path,
                    sha256(server.source.as_bytes()),
                    server.updated_at.to_string(),
                ],
                &format!("language server {name}"),
            )
        })
    }

    fn delete_language_server(&self, name: &QualifiedName) -> StoreResult<()> {
        self.run(|conn| {
            let what = format!("language server {name}");
            one(conn, "DELETE FROM lsp_servers WHERE name = ?1", [name.to_string()], &what)
        })
    }

    fn insert_project(&self, project: &Project) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached(
                "INSERT INTO projects (name, namespace, description, invariant_actor_name, created_at, updated_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![
                project.name.to_string(),
                project.name.namespace(),
                project.description,
                project.invariant_actor,
                project.created_at.to_string(),
                project.updated_at.to_string(),
            ])
            .map_err(|e| Fault::from(e).or_duplicate(|| format!("project {}", project.name)))?;
            link_project(conn, project)
        })
    }

    fn update_project(&self, project: &Project) -> StoreResult<()> {
        self.run(|conn| {
            one(
                conn,
                "UPDATE projects SET description = ?2, invariant_actor_name = ?3, updated_at = ?4 WHERE name = ?1",
                params![
                    project.name.to_string(),
                    project.description,
                    project.invariant_actor,
                    project.updated_at.to_string(),
                ],
                &format!("project {}", project.name),
            )?;
            link_project(conn, project)
        })
    }

    fn delete_project(&self, name: &QualifiedName) -> StoreResult<()> {
        self.run(|conn| {
            let text = name.to_string();
            conn.prepare_cached("DELETE FROM project_resources WHERE project_name = ?1")?.execute([&text])?;
            one(conn, "DELETE FROM projects WHERE name = ?1", [&text], &format!("project {text}"))
        })
    }

    fn insert_resource(&self, resource: &Resource) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached(
                "INSERT INTO resources (
                     resource_id, name, resource_type_name, classification, description, properties, location,
                     created_at, updated_at
                 ) VALUES (?1, ?2, ?3, 'physical', ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                resource.resource_id.to_string(),
                text(resource.name.as_ref()),
                resource.resource_type,
                resource.description,
                Json(&resource.properties),
                resource.location,
                resource.created_at.to_string(),
                resource.updated_at.to_string(),
            ])
            .map_err(|e| Fault::from(e).or_duplicate(|| resource_label(resource)))?;
            link_resource(conn, resource)
        })
    }

    fn update_resource(&self, resource: &Resource) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached(
                "UPDATE resources SET name = ?2, resource_type_name = ?3, description = ?4, properties = ?5,
                     location = ?6, updated_at = ?7
                 WHERE resource_id = ?1",
            )?
            .execute(params![
                resource.resource_id.to_string(),
                text(resource.name.as_ref()),
                resource.resource_type,
                resource.description,
                Json(&resource.properties),
                resource.location,
                resource.updated_at.to_string(),
            ])
            .map_err(|e| Fault::from(e).or_duplicate(|| resource_label(resource)))
            .and_then(|changed| match changed {
                0 => Err(Fault::other(format!("there is no {}", resource_label(resource)))),
                _ => Ok(()),
            })?;
            link_resource(conn, resource)
        })
    }

    fn delete_resource(&self, id: ResourceId) -> StoreResult<()> {
        self.run(|conn| {
            let what = format!("resource {id}");
            one(conn, "DELETE FROM resources WHERE resource_id = ?1", [id.to_string()], &what)
        })
    }
}
