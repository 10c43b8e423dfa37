"""What a proof takes for granted of accesses whose bytes, or values, are not known: clauses behind its verdict."""

from __future__ import annotations

from collections.abc import Iterator

from ptxdsl.source import Span


class Supposed:
    """inside: lines where indices are taken to stay within their arrays; apart: where threads are taken not to write
    different values to the same bytes; anew: where the first product into tensor memory is taken not to add. by_values:
    whether it was looked at what threads write. not_negative: parameters that trip counts are made of, taken for that.
    """

    def __init__(self) -> None:
        self.inside: set[int] = set()
        self.apart: set[int] = set()
        self.anew: set[int] = set()
        self.by_values = False
        self.not_negative: set[str] = set()

    def stays_inside(self, span: Span) -> None:
        self.inside.add(span.line)

    def stays_apart(self, span: Span) -> None:
        self.apart.add(span.line)

    def begins_anew(self, span: Span) -> None:
        self.anew.add(span.line)

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


def _lines(numbers: set[int]) -> str:
    return f"line{'s' if len(numbers) > 1 else ''} {', '.join(map(str, sorted(numbers)))}"
