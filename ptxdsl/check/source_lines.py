"""Findings in PTX at the lines that were compiled to it, which ``.loc`` names, where those files can be read."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.ptx.module import Instruction, Location, Module
from ptxdsl.record import replace
from ptxdsl.source import Source, Span

_LARGEST_SOURCE = 1 << 24  # bytes


class SourceLines:
    """Of one module of PTX."""

    def __init__(self, module: Module) -> None:
        self._text = module.text
        self._locations: dict[int, Location] = {}
        for function in (*module.kernels.values(), *module.functions.values()):
            for item in function.body or ():
                if isinstance(item, Instruction) and item.location is not None and item.location.line > 0:
                    self._locations[item.line] = item.location
        self._files: dict[str, Source | None] = {}

    def at_source(self, diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
        """The same with spans of the source; the PTX line of the first one is a note."""
        return tuple(self._moved(diagnostic) for diagnostic in diagnostics)

    def _moved(self, found: Diagnostic) -> Diagnostic:
        span = None if found.span is None else self._source_span(found.span)
        notes = tuple((self._source_span(place) or place, text) for place, text in found.notes)
        if span is None or found.span is None:
            return replace(found, notes=notes)
        notes = tuple(note for note in notes if note[0] != span)
        return replace(found, span=span, notes=((found.span, "the PTX instruction"), *notes))

    def _source_span(self, span: Span) -> Span | None:
        where = self._locations.get(span.line) if span.source.text == self._text else None
        source = None if where is None else self._file(where.file)
        if where is None or source is None or where.line > len(source.line_starts):
            return None
        return source.line_span(where.line, where.column)

    def _file(self, name: str) -> Source | None:
        if name not in self._files:
            found = None
            try:
                if os.path.isfile(name) and os.path.getsize(name) <= _LARGEST_SOURCE:
                    with open(name, encoding="utf-8") as file:
                        found = Source(name, file.read())
            except (OSError, ValueError):
                pass
            self._files[name] = found
        return self._files[name]
