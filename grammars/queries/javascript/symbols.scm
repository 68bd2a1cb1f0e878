; What only the grammar of JavaScript calls so.

(class_declaration name: (identifier) @name) @class
(export_statement declaration: (class_declaration name: (identifier) @name)) @class
(class_body (field_definition property: (property_identifier) @name) @field)
(class_body (field_definition property: (private_property_identifier) @name) @field)
