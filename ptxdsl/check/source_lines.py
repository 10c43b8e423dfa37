"""Findings in PTX at the lines that were compiled to it, which ``.loc`` names, where those files can be read."""

from __future__ import annotations

from collections.abc import Iterable

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.ptx.module import Instruction, Location, Module
from ptxdsl.ptx.named_files import NamedFiles
from ptxdsl.record import replace
from ptxdsl.source import Span


class SourceLines:
    """Of one module of PTX."""

    def __init__(self, module: Module) -> None:
        self._text = module.text
        self._locations: dict[int, Location] = {}
        for function in (*module.kernels.values(), *module.functions.values()):
            for item in function.body or ():
                if isinstance(item, Instruction) and item.location is not None and item.location.line > 0:
                    self._locations[item.line] = item.location
        self._files = NamedFiles()

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
        return self._files.span(self._locations.get(span.line)) if span.source.text == self._text else None
