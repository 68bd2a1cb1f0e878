; Where a Python file uses names: the role is explained in src/facts.rs. Where several rules match a name, the role that
; says most counts, whatever their order here.

(identifier) @ref.read
(attribute attribute: (identifier) @ref.member)
(call function: (identifier) @ref.call)
(call function: (attribute attribute: (identifier) @ref.member-call))
(keyword_argument name: (identifier) @ref.argument)
(type (identifier) @ref.type)
(type (generic_type (identifier) @ref.type))
(class_definition superclasses: (argument_list (identifier) @ref.type))

(assignment left: (identifier) @ref.write)
(assignment left: (attribute attribute: (identifier) @ref.member-write))
(augmented_assignment left: (identifier) @ref.write)
(named_expression name: (identifier) @ref.write)
(for_statement left: (identifier) @ref.write)
(for_in_clause left: (identifier) @ref.write)
(pattern_list (identifier) @ref.write)
(tuple_pattern (identifier) @ref.write)
(list_pattern (identifier) @ref.write)
(as_pattern_target (identifier) @ref.write)

(parameters (identifier) @ref.parameter)
(lambda_parameters (identifier) @ref.parameter)
(default_parameter name: (identifier) @ref.parameter)
(typed_default_parameter name: (identifier) @ref.parameter)
(typed_parameter . (identifier) @ref.parameter)
(list_splat_pattern (identifier) @ref.parameter)
(dictionary_splat_pattern (identifier) @ref.parameter)

(function_definition name: (identifier) @ref.declaration)
(class_definition name: (identifier) @ref.declaration)

(import_statement name: (dotted_name (identifier) @ref.import))
(import_from_statement (dotted_name (identifier) @ref.import))
(import_from_statement (relative_import (dotted_name (identifier) @ref.import)))
(aliased_import (dotted_name (identifier) @ref.import))
(aliased_import alias: (identifier) @ref.import)
