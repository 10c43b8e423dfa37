"""Text to AST: parse (Lark), build (tree to nodes)."""
