; What only the grammar of TypeScript has, or calls so.

(type_identifier) @ref.type
(extends_clause value: (identifier) @ref.type)
(required_parameter pattern: (identifier) @ref.parameter)
(required_parameter pattern: (rest_pattern (identifier) @ref.parameter))
(optional_parameter pattern: (identifier) @ref.parameter)

(class_declaration name: (type_identifier) @ref.declaration)
(abstract_class_declaration name: (type_identifier) @ref.declaration)
(class_body (public_field_definition name: (property_identifier) @ref.declaration))
(class_body (public_field_definition name: (private_property_identifier) @ref.declaration))
(class_body (method_signature name: (property_identifier) @ref.declaration))
(class_body (abstract_method_signature name: (property_identifier) @ref.declaration))
(interface_declaration name: (type_identifier) @ref.declaration)
(interface_body (property_signature name: (property_identifier) @ref.declaration))
(interface_body (method_signature name: (property_identifier) @ref.declaration))
(type_alias_declaration name: (type_identifier) @ref.declaration)
(enum_declaration name: (identifier) @ref.declaration)
(enum_body (property_identifier) @ref.declaration)
(enum_body (enum_assignment name: (property_identifier) @ref.declaration))
(internal_module name: (identifier) @ref.declaration)
(function_signature name: (identifier) @ref.declaration)
