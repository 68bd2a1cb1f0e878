//! The types of resources there are.

use agents_domain::resource::{RESOURCE_TYPES, ResourceType, SandboxStrategy, resource_type};
use agents_domain::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::registry;
use crate::{Engine, Operation};

/// Lists resource types.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TypeList {
    /// A regular expression on the name.
    #[serde(default)]
    pub pattern: Option<String>,
}

/// The types.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct TypeListOutput {
    pub resource_types: Vec<ListedType>,
    pub summary: TypeSummary,
}

/// A type in the list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ListedType {
    pub name: String,
    pub source: String,
    pub physical_virtual: String,
    pub addable: bool,
    pub auto_children: Vec<String>,
}

/// How many types there are.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct TypeSummary {
    pub built_in: usize,
    pub custom: usize,
    pub user_addable: usize,
}

impl Operation for TypeList {
    const METHOD: &'static str = "registry/resource/type/list";
    const SUMMARY: &'static str = "List resource types";
    type Output = TypeListOutput;

    fn run(self, _: &Engine) -> Result<TypeListOutput> {
        let pattern = registry::pattern(self.pattern.as_deref())?;
        let fits = |kind: &&ResourceType| pattern.as_ref().is_none_or(|pattern| pattern.is_match(kind.name));
        let resource_types: Vec<ListedType> = RESOURCE_TYPES
            .iter()
            .filter(fits)
            .map(|kind| ListedType {
                name: kind.name.to_owned(),
                source: "built-in".to_owned(),
                physical_virtual: "physical".to_owned(),
                addable: kind.user_addable,
                auto_children: kind.children.iter().map(|name| (*name).to_owned()).collect(),
            })
            .collect();
        let summary = TypeSummary {
            built_in: resource_types.len(),
            custom: 0,
            user_addable: resource_types.iter().filter(|kind| kind.addable).count(),
        };
        Ok(TypeListOutput { resource_types, summary })
    }
}

/// Shows a resource type.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TypeShow {
    /// Its name.
    pub name: String,
}

/// A type with what it takes and what is found in it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct TypeShowOutput {
    pub name: String,
    pub source: String,
    pub description: String,
    pub physical_virtual: String,
    pub user_addable: bool,
    pub cli_arguments: Vec<Argument>,
    pub parent_types: ParentTypes,
    pub child_types: Vec<ChildType>,
    pub sandbox: Sandbox,
}

/// An option of `resource add` for this type.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Argument {
    pub argument: String,
    pub required: bool,
    #[serde(rename = "type")]
    pub kind: String,
    pub description: String,
}

/// What it can be found in.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ParentTypes {
    pub allowed: Vec<String>,
    /// It can stand alone.
    pub top_level: bool,
}

/// What is found in it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct ChildType {
    #[serde(rename = "type")]
    pub kind: String,
    pub auto: bool,
    pub manual_link: bool,
    pub description: String,
}

/// How its changes are kept apart.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[allow(missing_docs, reason = "keys of the command's output")]
pub struct Sandbox {
    pub strategy: String,
    pub checkpointable: bool,
}

impl Operation for TypeShow {
    const METHOD: &'static str = "registry/resource/type/show";
    const SUMMARY: &'static str = "Show a resource type";
    type Output = TypeShowOutput;

    fn run(self, _: &Engine) -> Result<TypeShowOutput> {
        let kind = resource_type(&self.name).ok_or_else(|| {
            let names: Vec<&str> = RESOURCE_TYPES.iter().map(|kind| kind.name).collect();
            let error = Error::not_found(format!("there is no resource type `{}`", self.name));
            error.detail(format!("Types: {}", names.join(", "))).suggest("agents resource type list")
        })?;
        let parents = RESOURCE_TYPES.iter().filter(|other| other.children.contains(&kind.name));
        let argument = |argument: &agents_domain::resource::TypeArgument| Argument {
            argument: format!("--{}", argument.name),
            required: argument.required,
            kind: argument.kind.to_owned(),
            description: argument.description.to_owned(),
        };
        let child = |name: &&str| ChildType {
            kind: (*name).to_owned(),
            auto: true,
            manual_link: false,
            description: resource_type(name).map(|kind| kind.description.to_owned()).unwrap_or_default(),
        };
        Ok(TypeShowOutput {
            name: kind.name.to_owned(),
            source: "built-in".to_owned(),
            description: kind.description.to_owned(),
            physical_virtual: "physical".to_owned(),
            user_addable: kind.user_addable,
            cli_arguments: kind.arguments.iter().map(argument).collect(),
            parent_types: ParentTypes {
                allowed: parents.map(|parent| parent.name.to_owned()).collect(),
                top_level: kind.user_addable,
            },
            child_types: kind.children.iter().map(child).collect(),
            sandbox: Sandbox {
                strategy: kind.strategy.as_str().to_owned(),
                checkpointable: kind.strategy != SandboxStrategy::None,
            },
        })
    }
}
