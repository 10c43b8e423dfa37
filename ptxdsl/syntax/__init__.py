"""Text to AST. The way of the data: reader → scan → layout → lalr, which calls build → ast; ``parse`` is its door."""
