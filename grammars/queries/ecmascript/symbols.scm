; What of a JavaScript or TypeScript file is a symbol, as far as both grammars agree: the captures are explained in
; src/symbols.rs.

(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(export_statement declaration: (function_declaration name: (identifier) @name)) @function
(export_statement declaration: (generator_function_declaration name: (identifier) @name)) @function

(class_body (method_definition name: [(property_identifier) (private_property_identifier)] @name) @function)

; A function by any other name.
(program (lexical_declaration
  (variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)])) @function)
(program (export_statement declaration: (lexical_declaration
  (variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)]))) @function)

(program (lexical_declaration kind: "const" (variable_declarator name: (identifier) @name)) @constant)
(program (lexical_declaration kind: "let" (variable_declarator name: (identifier) @name)) @variable)
(program (variable_declaration (variable_declarator name: (identifier) @name)) @variable)
(program (export_statement declaration:
  (lexical_declaration kind: "const" (variable_declarator name: (identifier) @name))) @constant)
(program (export_statement declaration:
  (lexical_declaration kind: "let" (variable_declarator name: (identifier) @name))) @variable)
(program (export_statement declaration:
  (variable_declaration (variable_declarator name: (identifier) @name))) @variable)

; Documentation stands before what it is about.
((comment) @lead (#match? @lead "^/[*][*]"))
