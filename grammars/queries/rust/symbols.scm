; What of a Rust file is a symbol: the captures are explained in src/symbols.rs.

(mod_item name: (identifier) @name) @module
(struct_item name: (type_identifier) @name) @struct
(union_item name: (type_identifier) @name) @union
(enum_item name: (type_identifier) @name) @enum
(trait_item name: (type_identifier) @name) @trait
(impl_item type: (_) @name) @impl

(function_item name: (identifier) @name) @function
(function_signature_item name: (identifier) @name) @function
(macro_definition name: (identifier) @name) @macro

(type_item name: (type_identifier) @name) @type-alias
(associated_type name: (type_identifier) @name) @type-alias
((const_item name: (identifier) @name) @constant (#not-eq? @name "_"))
(static_item name: (identifier) @name) @variable
(field_declaration name: (field_identifier) @name) @field
(enum_variant name: (identifier) @name) @enum-member

; These stand before an item as siblings and belong to it.
(attribute_item) @lead
(line_comment outer: (outer_doc_comment_marker)) @lead
(block_comment outer: (outer_doc_comment_marker)) @lead
