"""Tokens: a piece of the text with its terminal's name and its place."""

from __future__ import annotations


class Token(str):
    """The characters ``start`` to ``end`` of a text; ``type`` is the grammar's name of the terminal."""

    __slots__ = ("end", "start", "type")

    type: str
    start: int
    end: int

    def __new__(cls, type: str, text: str, start: int, end: int) -> Token:
        self = str.__new__(cls, text)
        self.type = type
        self.start = start
        self.end = end
        return self
