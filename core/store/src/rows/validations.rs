//! Validations and what they are attached to.

use agents_domain::QualifiedName;
use agents_domain::ids::AttachmentId;
use agents_domain::ports::store::StoreResult;
use agents_domain::ports::validation_store::{RegisteredValidation, ValidationReads, ValidationWrites};
use agents_domain::validation::{Attachment, Scope};
use rusqlite::{Connection, Row, params};

use super::Tx;
use super::registry::one;
use super::values::{Json, Parsed};
use crate::blobs::sha256;
use crate::error::Fault;

const COLUMNS: &str = "SELECT definition, config_path, yaml_text, version, created_at, updated_at FROM tools
     WHERE type = 'validation'";

fn registered(row: &Row<'_>) -> rusqlite::Result<RegisteredValidation> {
    Ok(RegisteredValidation {
        definition: row.get::<_, Json<_>>(0)?.0,
        config_path: row.get(1)?,
        source: row.get(2)?,
        version: row.get(3)?,
        created_at: row.get::<_, Parsed<_>>(4)?.0,
        updated_at: row.get::<_, Parsed<_>>(5)?.0,
    })
}

fn attachment(row: &Row<'_>) -> rusqlite::Result<Attachment> {
    let word: String = row.get(3)?;
    let scope = match word.as_str() {
        "project" => Scope::Project(row.get::<_, Parsed<_>>(4)?.0),
        "plan" => Scope::Plan(row.get::<_, Parsed<_>>(4)?.0),
        _ => Scope::Direct,
    };
    Ok(Attachment {
        attachment_id: row.get::<_, Parsed<_>>(0)?.0,
        validation: row.get::<_, Parsed<_>>(1)?.0,
        resource_id: row.get::<_, Parsed<_>>(2)?.0,
        scope,
        args: row.get::<_, Json<_>>(5)?.0,
        created_at: row.get::<_, Parsed<_>>(6)?.0,
    })
}

fn write(conn: &Connection, sql: &str, validation: &RegisteredValidation) -> Result<usize, Fault> {
    let definition = &validation.definition;
    Ok(conn.prepare_cached(sql)?.execute(params![
        definition.name.to_string(),
        definition.source.as_str(),
        definition.validation.mode.as_str(),
        definition.wraps.as_ref().map(ToString::to_string),
        validation.version,
        Json(definition),
        validation.source,
        validation.config_path,
        sha256(validation.source.as_bytes()),
        validation.created_at.to_string(),
        validation.updated_at.to_string(),
    ])?)
}

impl ValidationReads for Tx<'_> {
    fn validation(&self, name: &QualifiedName) -> StoreResult<Option<RegisteredValidation>> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(&format!("{COLUMNS} AND name = ?1"))?;
            let found = statement.query_map([name.to_string()], registered)?.next().transpose()?;
            Ok(found)
        })
    }

    fn validations(&self) -> StoreResult<Vec<RegisteredValidation>> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(&format!("{COLUMNS} ORDER BY name"))?;
            let rows = statement.query_map([], registered)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    fn attachments(&self) -> StoreResult<Vec<Attachment>> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT attachment_id, validation_name, resource_id, scope, scope_target, args, created_at
                 FROM validation_attachments ORDER BY attachment_id",
            )?;
            let rows = statement.query_map([], attachment)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}

impl ValidationWrites for Tx<'_> {
    fn insert_validation(&self, validation: &RegisteredValidation) -> StoreResult<()> {
        self.run(|conn| {
            write(
                conn,
                "INSERT INTO tools (
                     name, type, source, mode, wraps, version, definition, yaml_text, config_path, config_hash,
                     created_at, updated_at
                 ) VALUES (?1, 'validation', ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                validation,
            )
            .map_err(|fault| fault.or_duplicate(|| format!("validation {}", validation.definition.name)))?;
            Ok(())
        })
    }

    fn update_validation(&self, validation: &RegisteredValidation) -> StoreResult<()> {
        self.run(|conn| {
            let changed = write(
                conn,
                "UPDATE tools SET source = ?2, mode = ?3, wraps = ?4, version = ?5, definition = ?6, yaml_text = ?7,
                     config_path = ?8, config_hash = ?9, created_at = ?10, updated_at = ?11
                 WHERE name = ?1 AND type = 'validation'",
                validation,
            )?;
            match changed {
                0 => Err(Fault::other(format!("there is no validation {}", validation.definition.name))),
                _ => Ok(()),
            }
        })
    }

    fn delete_validation(&self, name: &QualifiedName) -> StoreResult<()> {
        self.run(|conn| {
            let name = name.to_string();
            conn.prepare_cached("DELETE FROM validation_attachments WHERE validation_name = ?1")?
                .execute([&name])?;
            let what = format!("validation {name}");
            one(conn, "DELETE FROM tools WHERE name = ?1 AND type = 'validation'", [&name], &what)
        })
    }

    fn insert_attachment(&self, attachment: &Attachment) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached(
                "INSERT INTO validation_attachments (
                     attachment_id, validation_name, resource_id, scope, scope_target, args, created_at
                 ) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                attachment.attachment_id.to_string(),
                attachment.validation.to_string(),
                attachment.resource_id.to_string(),
                attachment.scope.word(),
                attachment.scope.target(),
                Json(&attachment.args),
                attachment.created_at.to_string(),
            ])
            .map_err(|e| {
                Fault::from(e).or_duplicate(|| format!("attachment {}", attachment.attachment_id))
            })?;
            Ok(())
        })
    }

    fn delete_attachment(&self, id: AttachmentId) -> StoreResult<()> {
        self.run(|conn| {
            let what = format!("attachment {id}");
            one(conn, "DELETE FROM validation_attachments WHERE attachment_id = ?1", [id.to_string()], &what)
        })
    }
}
