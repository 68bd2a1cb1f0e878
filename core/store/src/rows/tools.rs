//! Tools that people define; validations share their table.

use agents_domain::QualifiedName;
use agents_domain::ports::store::StoreResult;
use agents_domain::ports::tool_store::{RegisteredTool, ToolReads, ToolWrites};
use rusqlite::{Connection, Row, params};

use super::Tx;
use super::values::{Json, Parsed};
use crate::blobs::sha256;
use crate::error::Fault;

const COLUMNS: &str = "SELECT definition, config_path, yaml_text, version, created_at, updated_at FROM tools
     WHERE type = 'tool'";

fn registered(row: &Row<'_>) -> rusqlite::Result<RegisteredTool> {
    Ok(RegisteredTool {
        definition: row.get::<_, Json<_>>(0)?.0,
        config_path: row.get(1)?,
        source: row.get(2)?,
        version: row.get(3)?,
        created_at: row.get::<_, Parsed<_>>(4)?.0,
        updated_at: row.get::<_, Parsed<_>>(5)?.0,
    })
}

fn write(conn: &Connection, sql: &str, tool: &RegisteredTool) -> Result<usize, Fault> {
    let definition = &tool.definition;
    Ok(conn.prepare_cached(sql)?.execute(params![
        definition.name.to_string(),
        definition.source.as_str(),
        tool.version,
        Json(definition),
        tool.source,
        tool.config_path,
        sha256(tool.source.as_bytes()),
        tool.created_at.to_string(),
        tool.updated_at.to_string(),
    ])?)
}

impl ToolReads for Tx<'_> {
    fn tool(&self, name: &QualifiedName) -> StoreResult<Option<RegisteredTool>> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(&format!("{COLUMNS} AND name = ?1"))?;
            let found = statement.query_map([name.to_string()], registered)?.next().transpose()?;
            Ok(found)
        })
    }

    fn tools(&self) -> StoreResult<Vec<RegisteredTool>> {
        self.run(|conn| {
            let mut statement = conn.prepare_cached(&format!("{COLUMNS} ORDER BY name"))?;
            let rows = statement.query_map([], registered)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}

impl ToolWrites for Tx<'_> {
    fn insert_tool(&self, tool: &RegisteredTool) -> StoreResult<()> {
        self.run(|conn| {
            write(
                conn,
                "INSERT INTO tools (
                     name, type, source, version, definition, yaml_text, config_path, config_hash, created_at, updated_at
                 ) VALUES (?1, 'tool', ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                tool,
            )
            .map_err(|fault| fault.or_duplicate(|| format!("tool {}", tool.definition.name)))?;
            Ok(())
        })
    }

    fn update_tool(&self, tool: &RegisteredTool) -> StoreResult<()> {
        self.run(|conn| {
            let changed = write(
                conn,
                "UPDATE tools SET source = ?2, version = ?3, definition = ?4, yaml_text = ?5, config_path = ?6,
                     config_hash = ?7, created_at = ?8, updated_at = ?9
                 WHERE name = ?1 AND type = 'tool'",
                tool,
            )?;
            match changed {
                0 => Err(Fault::other(format!("there is no tool {}", tool.definition.name))),
                _ => Ok(()),
            }
        })
    }

    fn delete_tool(&self, name: &QualifiedName) -> StoreResult<()> {
        self.run(|conn| {
            conn.execute("DELETE FROM tools WHERE name = ?1 AND type = 'tool'", [name.to_string()])?;
            Ok(())
        })
    }
}
