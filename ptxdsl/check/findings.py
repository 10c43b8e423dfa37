"""What a proof comes to: faults, and what it could not decide."""

from __future__ import annotations

from ptxdsl.diagnostics import Trip
from ptxdsl.hints import TYPE_CHECKING, Any
from ptxdsl.record import dataclass
from ptxdsl.source import Span

if TYPE_CHECKING:
    from ptxdsl.check.parts import Barrier


@dataclass(frozen=True)
class Finding:
    """kind: a class of ``classes.py``. span: where to look first; notes: other places with what is there.

    path: the decisions that lead there. witness: launch parameters with which it shows. trips: who is where in the
    loops around these places then.
    """

    kind: str
    message: str
    span: Span
    notes: tuple[tuple[Span, str], ...] = ()
    help: str | None = None
    path: Any = None
    witness: str = ""
    trips: tuple[Trip, ...] = ()


class Fault(Exception):
    """A state from which the kernel goes wrong."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding)
        self.finding = finding


@dataclass(frozen=True)
class Reason:
    """why: something that the proof does not cover; it fits behind "not provable here:". remedy: what can be written or
    said so that it does, or what else to do."""

    span: Span
    why: str
    remedy: str


class Unproved(Exception):
    """There is no proof."""

    def __init__(self, span: Span, why: str, remedy: str) -> None:
        super().__init__(why)
        self.reason = Reason(span, why, remedy)


class Again(Exception):
    """Begins a proof again, with what has been learned of barriers (by their CTA and address).

    shared: several arrive at it. Else: who knows of all its arrivals is to be followed one by one, and so with the
    other stages of its ring.
    """

    def __init__(self, barrier: Barrier, *, shared: bool) -> None:
        super().__init__()
        self.barriers = {(barrier.cta, barrier.address)}
        self.shared = shared
        if not shared and barrier.place is not None:
            pipeline, _, stage, _, subs = barrier.place
            for other in range(pipeline.stages):
                self.barriers.add((barrier.cta, barrier.address + 8 * subs * (other - stage)))
