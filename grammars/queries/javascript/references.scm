; What only the grammar of JavaScript calls so.

(class_declaration name: (identifier) @ref.declaration)
(class_body (field_definition property: (property_identifier) @ref.declaration))
(class_body (field_definition property: (private_property_identifier) @ref.declaration))
(class_heritage (identifier) @ref.type)
(formal_parameters (identifier) @ref.parameter)
(formal_parameters (assignment_pattern left: (identifier) @ref.parameter))
(formal_parameters (rest_pattern (identifier) @ref.parameter))
