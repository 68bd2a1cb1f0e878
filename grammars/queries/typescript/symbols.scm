; What only the grammar of TypeScript has, or calls so.

(class_declaration name: (type_identifier) @name) @class
(abstract_class_declaration name: (type_identifier) @name) @class
(export_statement declaration: (class_declaration name: (type_identifier) @name)) @class
(export_statement declaration: (abstract_class_declaration name: (type_identifier) @name)) @class
(class_body (public_field_definition name: (property_identifier) @name) @field)
(class_body (public_field_definition name: (private_property_identifier) @name) @field)
(class_body (method_signature name: (property_identifier) @name) @function)
(class_body (abstract_method_signature name: (property_identifier) @name) @function)

(interface_declaration name: (type_identifier) @name) @trait
(export_statement declaration: (interface_declaration name: (type_identifier) @name)) @trait
(interface_body (property_signature name: (property_identifier) @name) @field)
(interface_body (method_signature name: (property_identifier) @name) @function)

(type_alias_declaration name: (type_identifier) @name) @type-alias
(export_statement declaration: (type_alias_declaration name: (type_identifier) @name)) @type-alias

(enum_declaration name: (identifier) @name) @enum
(export_statement declaration: (enum_declaration name: (identifier) @name)) @enum
(enum_body (property_identifier) @name @enum-member)
(enum_body (enum_assignment name: (property_identifier) @name) @enum-member)

(internal_module name: (identifier) @name) @module
(function_signature name: (identifier) @name) @function
