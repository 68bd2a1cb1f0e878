; Where a Rust file uses names: the role is explained in src/facts.rs. Where several rules match a name, the role that
; says most counts, whatever their order here.

(identifier) @ref.read
(shorthand_field_identifier) @ref.member
(field_identifier) @ref.member
(type_identifier) @ref.type

(call_expression function: (identifier) @ref.call)
(call_expression function: (scoped_identifier name: (identifier) @ref.call))
(call_expression function: (field_expression field: (field_identifier) @ref.member-call))
(generic_function function: (identifier) @ref.call)
(generic_function function: (scoped_identifier name: (identifier) @ref.call))
(generic_function function: (field_expression field: (field_identifier) @ref.member-call))
(macro_invocation macro: (identifier) @ref.call)
(macro_invocation macro: (scoped_identifier name: (identifier) @ref.call))
(field_initializer field: (field_identifier) @ref.member-write)

(let_declaration pattern: (identifier) @ref.write)
(let_condition pattern: (identifier) @ref.write)
(for_expression pattern: (identifier) @ref.write)
(assignment_expression left: (identifier) @ref.write)
(assignment_expression left: (field_expression field: (field_identifier) @ref.member-write))
(compound_assignment_expr left: (identifier) @ref.write)
(tuple_pattern (identifier) @ref.write)
(slice_pattern (identifier) @ref.write)
(ref_pattern (identifier) @ref.write)
(mut_pattern (identifier) @ref.write)
(reference_pattern (identifier) @ref.write)
(captured_pattern . (identifier) @ref.write)
(tuple_struct_pattern type: (_) (identifier) @ref.write)
(field_pattern name: (shorthand_field_identifier) @ref.write)
(field_pattern pattern: (identifier) @ref.write)

(parameter pattern: (identifier) @ref.parameter)
(parameter pattern: (mut_pattern (identifier) @ref.parameter))
(closure_parameters (identifier) @ref.parameter)

(mod_item name: (identifier) @ref.declaration)
(struct_item name: (type_identifier) @ref.declaration)
(union_item name: (type_identifier) @ref.declaration)
(enum_item name: (type_identifier) @ref.declaration)
(trait_item name: (type_identifier) @ref.declaration)
(type_item name: (type_identifier) @ref.declaration)
(associated_type name: (type_identifier) @ref.declaration)
(function_item name: (identifier) @ref.declaration)
(function_signature_item name: (identifier) @ref.declaration)
(macro_definition name: (identifier) @ref.declaration)
(const_item name: (identifier) @ref.declaration)
(static_item name: (identifier) @ref.declaration)
(field_declaration name: (field_identifier) @ref.declaration)
(enum_variant name: (identifier) @ref.declaration)

(use_declaration argument: (identifier) @ref.import)
(use_declaration argument: (scoped_identifier name: (identifier) @ref.import))
(use_list (identifier) @ref.import)
(use_list (scoped_identifier name: (identifier) @ref.import))
(use_as_clause path: (identifier) @ref.import)
(use_as_clause path: (scoped_identifier name: (identifier) @ref.import))
(use_as_clause alias: (identifier) @ref.import)
