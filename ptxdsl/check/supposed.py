"""What a proof takes for granted of accesses whose bytes, or values, are not known: clauses behind its verdict."""

from __future__ import annotations

from collections.abc import Iterator

from ptxdsl.source import Span


class Supposed:
    """inside: lines where indices are taken to stay within their arrays; apart: where threads are taken not to write
    different values to the same bytes; anew: where the first product into tensor memory is taken not to add; filled:
    where what is read is taken to have been written; again: where it need not have been since the last time. by_values:
    whether it was looked at what threads write. not_negative: parameters that trip counts are made of, taken for that.
    """

    def __init__(self) -> None:
        self.inside: set[int] = set()
        self.apart: set[int] = set()
        self.anew: set[int] = set()
        self.filled: set[int] = set()
        self.again: set[int] = set()
        self.by_values = False
        self.not_negative: set[str] = set()

    def stays_inside(self, span: Span) -> None:
        self.inside.add(span.line)

    def stays_apart(self, span: Span) -> None:
        self.apart.add(span.line)

    def begins_anew(self, span: Span) -> None:
        self.anew.add(span.line)

    def was_written(self, span: Span | None) -> None:
        if span is not None:
            self.filled.add(span.line)

    def need_not_be_new(self, span: Span | None) -> None:
        if span is not None:
            self.again.add(span.line)

    @property
    def written(self) -> bool:
        """Whether anything is supposed of writes that were not seen."""
        return bool(self.filled or self.again)

    def clauses(self) -> Iterator[str]:
        if self.inside:
            several = len(self.inside) > 1
            yield (
                f"if the ind{'ices' if several else 'ex'} at {_lines(self.inside)} stay{'' if several else 's'} within "
                + ("their arrays" if several else "its array")
            )
        if self.apart:
            yield f"if no two threads write different values to the same bytes at {_lines(self.apart)}"
        if self.anew:
            yield f"if the first product at {_lines(self.anew)} does not add to what is there"
        if self.filled:
            yield f"if what is read at {_lines(self.filled)} was written"
        if self.again:
            yield f"if what is read again at {_lines(self.again)} need not have been written since"


def _lines(numbers: set[int]) -> str:
    return f"line{'s' if len(numbers) > 1 else ''} {', '.join(map(str, sorted(numbers)))}"
