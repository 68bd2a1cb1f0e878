; Where a JavaScript or TypeScript file uses names: the role is explained in src/facts.rs. Where several rules match a
; name, the role that says most counts, whatever their order here.

(identifier) @ref.read
(shorthand_property_identifier) @ref.read
(property_identifier) @ref.member
(private_property_identifier) @ref.member

(call_expression function: (identifier) @ref.call)
(call_expression function: (member_expression property: (property_identifier) @ref.member-call))
(call_expression function: (member_expression property: (private_property_identifier) @ref.member-call))
(new_expression constructor: (identifier) @ref.call)
(new_expression constructor: (member_expression property: (property_identifier) @ref.member-call))
(pair key: (property_identifier) @ref.member-write)

(assignment_expression left: (identifier) @ref.write)
(assignment_expression left: (member_expression property: (property_identifier) @ref.member-write))
(augmented_assignment_expression left: (identifier) @ref.write)
(augmented_assignment_expression left: (member_expression property: (property_identifier) @ref.member-write))
(update_expression argument: (identifier) @ref.write)
(variable_declarator name: (identifier) @ref.write)
(shorthand_property_identifier_pattern) @ref.write
(array_pattern (identifier) @ref.write)
(pair_pattern value: (identifier) @ref.write)
(rest_pattern (identifier) @ref.write)
(for_in_statement left: (identifier) @ref.write)
(catch_clause parameter: (identifier) @ref.write)
(arrow_function parameter: (identifier) @ref.parameter)

(function_declaration name: (identifier) @ref.declaration)
(generator_function_declaration name: (identifier) @ref.declaration)
(class_body (method_definition name: (property_identifier) @ref.declaration))
(class_body (method_definition name: (private_property_identifier) @ref.declaration))

(import_clause (identifier) @ref.import)
(namespace_import (identifier) @ref.import)
(import_specifier name: (identifier) @ref.import)
(import_specifier alias: (identifier) @ref.import)
