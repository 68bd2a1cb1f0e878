; What of a Python file is a symbol: the captures are explained in src/symbols.rs.

(class_definition name: (identifier) @name) @class
(decorated_definition definition: (class_definition name: (identifier) @name)) @class

(function_definition name: (identifier) @name) @function
(decorated_definition definition: (function_definition name: (identifier) @name)) @function

(type_alias_statement left: (type [(identifier) @name (generic_type . (identifier) @name)])) @type-alias

((module (expression_statement (assignment left: (identifier) @name) @constant))
  (#match? @name "^_*[A-Z][A-Z0-9_]*$"))
((module (expression_statement (assignment left: (identifier) @name) @variable))
  (#not-match? @name "^_*[A-Z][A-Z0-9_]*$"))
(module (expression_statement (assignment left: (pattern_list (identifier) @name)) @variable))

(class_definition body: (block (expression_statement (assignment left: (identifier) @name) @field)))
(class_definition body: (block (expression_statement (assignment left: (pattern_list (identifier) @name)) @field)))
