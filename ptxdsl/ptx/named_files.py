"""The files that ``.loc`` of a PTX text names, where they can be read here."""

from __future__ import annotations

import os

from ptxdsl.ptx.module import Location
from ptxdsl.source import Source, Span

_LARGEST = 1 << 24  # bytes


class NamedFiles:
    """Each file is read once."""

    def __init__(self) -> None:
        self._files: dict[str, Source | None] = {}

    def span(self, where: Location | None) -> Span | None:
        """The line that a location names. None where it names none, or the file is not there or shorter."""
        if where is None or where.line < 1:
            return None
        source = self._file(where.file)
        if source is None or where.line > len(source.line_starts):
            return None
        return source.line_span(where.line, where.column)

    def _file(self, name: str) -> Source | None:
        if name not in self._files:
            found = None
            try:
                if os.path.isfile(name) and os.path.getsize(name) <= _LARGEST:
                    with open(name, encoding="utf-8") as file:
                        found = Source(name, file.read())
            except (OSError, ValueError):
                pass
            self._files[name] = found
        return self._files[name]
