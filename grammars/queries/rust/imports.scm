; What a Rust file imports. A `use` nests: src/facts.rs takes it apart.

(use_declaration argument: (_) @import.tree)
