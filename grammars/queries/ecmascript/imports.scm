; What a JavaScript or TypeScript file imports: a match is one name that it brings in.

(import_statement . (string (string_fragment) @import.module))
(import_statement
  (import_clause (identifier) @import.name) source: (string (string_fragment) @import.module))
(import_statement
  (import_clause (namespace_import (identifier) @import.alias))
  source: (string (string_fragment) @import.module))
(import_statement
  (import_clause (named_imports (import_specifier name: (identifier) @import.name !alias)))
  source: (string (string_fragment) @import.module))
(import_statement
  (import_clause (named_imports
    (import_specifier name: (identifier) @import.name alias: (identifier) @import.alias)))
  source: (string (string_fragment) @import.module))

; What is passed on is imported, too.
(export_statement
  (export_clause (export_specifier name: (identifier) @import.name))
  source: (string (string_fragment) @import.module))
(export_statement "*" @import.name source: (string (string_fragment) @import.module))

((variable_declarator
  name: (identifier) @import.alias
  value: (call_expression
    function: (identifier) @_require arguments: (arguments . (string (string_fragment) @import.module))))
  (#eq? @_require "require"))
