"""What a proof comes to: faults, and what it could not decide."""

from __future__ import annotations

from ptxdsl.hints import Any
from ptxdsl.record import dataclass
from ptxdsl.source import Span


@dataclass(frozen=True)
class Finding:
    """kind: a class of ``classes.py``. span: where to look first; notes: other places with what is there.

    path: the decisions that lead there. witness: launch parameters with which it shows.
    """

    kind: str
    message: str
    span: Span
    notes: tuple[tuple[Span, str], ...] = ()
    help: str | None = None
    path: Any = None
    witness: str = ""


class Fault(Exception):
    """A state from which the kernel goes wrong."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding)
        self.finding = finding


class Unproved(Exception):
    """Something that the proof does not cover; why: fits behind "not provable here:"."""

    def __init__(self, span: Span, why: str) -> None:
        super().__init__(why)
        self.span = span
        self.why = why
