//! The providers we know, as data: how each is spoken to, where it is, and what it must be given.

use genai::adapter::AdapterKind;

/// A provider that comes with the program.
pub(super) struct Known {
    /// The word before the `/` of its models.
    pub name: &'static str,
    pub kind: AdapterKind,
    /// Where it is, unless the configuration says so; `None` is where the crate finds it.
    pub base_url: Option<&'static str>,
    /// The configuration key of its key, and the variable; `None` needs no key.
    pub key: Option<(&'static str, &'static str)>,
}

const fn known(name: &'static str, kind: AdapterKind, key: Option<(&'static str, &'static str)>) -> Known {
    Known { name, kind, base_url: None, key }
}

/// All of them, by name.
pub(super) const KNOWN: &[Known] = &[
    known("anthropic", AdapterKind::Anthropic, Some(("provider.anthropic.api-key", "ANTHROPIC_API_KEY"))),
    known("azure", AdapterKind::OpenAI, Some(("provider.azure.api-key", "AZURE_OPENAI_API_KEY"))),
    // Its own protocol as the crate has it knows no tools; this one does.
    Known {
        name: "cohere",
        kind: AdapterKind::OpenAI,
        base_url: Some("https://api.cohere.ai/compatibility/v1/"),
        key: Some(("provider.cohere.api-key", "COHERE_API_KEY")),
    },
    known("google", AdapterKind::Gemini, Some(("provider.google.api-key", "GOOGLE_API_KEY"))),
    known("groq", AdapterKind::Groq, Some(("provider.groq.api-key", "GROQ_API_KEY"))),
    Known {
        name: "huggingface",
        kind: AdapterKind::OpenAI,
        base_url: Some("https://router.huggingface.co/v1/"),
        key: Some(("provider.huggingface.token", "HF_TOKEN")),
    },
    known("ollama", AdapterKind::Ollama, None),
    known("openai", AdapterKind::OpenAI, Some(("provider.openai.api-key", "OPENAI_API_KEY"))),
    known("openrouter", AdapterKind::OpenRouter, Some(("provider.openrouter.api-key", "OPENROUTER_API_KEY"))),
    known("together", AdapterKind::Together, Some(("provider.together.api-key", "TOGETHER_API_KEY"))),
];

/// Other words for them.
pub(super) fn canonical(name: &str) -> &str {
    match name {
        "gemini" => "google",
        "open-router" | "open_router" => "openrouter",
        "hf" => "huggingface",
        other => other,
    }
}

/// What a server speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Protocol {
    /// OpenAI's chat completions.
    #[default]
    ChatCompletions,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Messages,
}

impl Protocol {
    /// The protocol of that name: `openai`, `openai-responses` or `anthropic`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "" | "openai" => Some(Self::ChatCompletions),
            "openai-responses" => Some(Self::Responses),
            "anthropic" => Some(Self::Messages),
            _ => None,
        }
    }

    pub(super) fn kind(self) -> AdapterKind {
        match self {
            Self::ChatCompletions => AdapterKind::OpenAI,
            Self::Responses => AdapterKind::OpenAIResp,
            Self::Messages => AdapterKind::Anthropic,
        }
    }
}

/// A provider that the configuration describes.
#[derive(Debug, Clone, Default)]
pub struct Custom {
    /// Where it is.
    pub base_url: String,
    /// Its key; `None` needs none.
    pub api_key: Option<String>,
    /// What it speaks.
    pub protocol: Protocol,
}
