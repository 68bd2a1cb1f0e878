//! Skills and what was discovered of them.

use agents_domain::QualifiedName;
use agents_domain::ports::skill_store::{RegisteredSkill, SkillReads, SkillWrites};
use agents_domain::ports::store::StoreResult;
use agents_domain::skill::Discovered;
use rusqlite::{Connection, Row, params};

use super::Tx;
use super::registry::one;
use super::values::{Json, Parsed};
use crate::blobs::sha256;
use crate::error::Fault;

fn skill(row: &Row<'_>) -> rusqlite::Result<RegisteredSkill> {
    Ok(RegisteredSkill {
        definition: row.get::<_, Json<_>>(0)?.0,
        discovered: row.get::<_, Json<_>>(1)?.0,
        config_path: row.get(2)?,
        source: row.get(3)?,
        created_at: row.get::<_, Parsed<_>>(4)?.0,
        updated_at: row.get::<_, Parsed<_>>(5)?.0,
    })
}

fn skills(
    conn: &Connection,
    rest: &str,
    params: impl rusqlite::Params,
) -> Result<Vec<RegisteredSkill>, Fault> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT definition, discovered, config_path, yaml_text, created_at, updated_at FROM skills {rest}"
    ))?;
    let rows = statement.query_map(params, skill)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

impl SkillReads for Tx<'_> {
    fn skill(&self, name: &QualifiedName) -> StoreResult<Option<RegisteredSkill>> {
        self.run(|conn| Ok(skills(conn, "WHERE name = ?1", [name.to_string()])?.pop()))
    }

    fn skills(&self) -> StoreResult<Vec<RegisteredSkill>> {
        self.run(|conn| skills(conn, "ORDER BY name", []))
    }
}

impl SkillWrites for Tx<'_> {
    fn insert_skill(&self, skill: &RegisteredSkill) -> StoreResult<()> {
        self.run(|conn| {
            let name = skill.definition.name.to_string();
            conn.prepare_cached(
                "INSERT INTO skills (
                     name, definition, discovered, yaml_text, config_path, config_hash, created_at, updated_at
                 ) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                name,
                Json(&skill.definition),
                Json(&skill.discovered),
                skill.source,
                skill.config_path,
                sha256(skill.source.as_bytes()),
                skill.created_at.to_string(),
                skill.updated_at.to_string(),
            ])
            .map_err(|e| Fault::from(e).or_duplicate(|| format!("skill {name}")))?;
            Ok(())
        })
    }

    fn update_skill(&self, skill: &RegisteredSkill) -> StoreResult<()> {
        self.run(|conn| {
            let name = skill.definition.name.to_string();
            one(
                conn,
                "UPDATE skills SET definition = ?2, discovered = ?3, yaml_text = ?4, config_path = ?5,
                     config_hash = ?6, updated_at = ?7
                 WHERE name = ?1",
                params![
                    name,
                    Json(&skill.definition),
                    Json(&skill.discovered),
                    skill.source,
                    skill.config_path,
                    sha256(skill.source.as_bytes()),
                    skill.updated_at.to_string(),
                ],
                &format!("skill {name}"),
            )
        })
    }

    fn put_discovered(&self, name: &QualifiedName, discovered: &Discovered) -> StoreResult<()> {
        self.run(|conn| {
            conn.prepare_cached("UPDATE skills SET discovered = ?2 WHERE name = ?1")?
                .execute(params![name.to_string(), Json(discovered)])?;
            Ok(())
        })
    }

    fn delete_skill(&self, name: &QualifiedName) -> StoreResult<()> {
        self.run(|conn| {
            one(conn, "DELETE FROM skills WHERE name = ?1", [name.to_string()], &format!("skill {name}"))
        })
    }
}
