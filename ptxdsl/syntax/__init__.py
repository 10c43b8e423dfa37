"""Text to AST: reader → scan → layout → lalr, which calls build → ast. ``parse`` is the entry point."""
