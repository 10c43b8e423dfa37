"""The cost model, and the events of a run under it.

The model, in cycles: every warp and agent has a clock of its own. A warp-instruction takes one cycle of its warp; the
warps of a CTA do not slow one another down. A wait ends when what it waited for was done, by the clock of who did it.
A bulk copy takes COPY_LATENCY and its bytes at COPY_BYTES_PER_CYCLE; a matrix instruction what its unit needs at the
rate of MMA_MACS_PER_CYCLE. There is no cache and no contention: the model shows who waits for whom, not how fast a card
is.
"""

from __future__ import annotations

from ptxdsl.record import dataclass

COPY_LATENCY = 600  # cycles from issue to the first byte of a bulk copy
COPY_BYTES_PER_CYCLE = 32  # of one copy
MMA_MACS_PER_CYCLE = (
    4096  # multiply-adds of 16-bit elements, one SM's tensor cores; half of it for tf32, twice for 8 bits
)


def copy_cycles(size: int) -> int:
    """What a copy of ``size`` bytes takes."""
    return COPY_LATENCY + -(-size // COPY_BYTES_PER_CYCLE)


def matrix_cycles(m: int, n: int, k: int, bits: int) -> int:
    """What a matrix product of m x n x k takes with elements of ``bits`` bits."""
    return max(1, m * n * k * bits // (16 * MMA_MACS_PER_CYCLE))


@dataclass(frozen=True, slots=True)
class Event:
    """time: cycles. entity: a warp's or an agent's name. line: of the PTX text, 0 if none.

    kind: ``start`` and ``exit`` of a warp; ``wait`` and ``resume`` (detail: what for); ``begin`` and ``end`` of an
    agent's work (detail: its instruction); of an mbarrier, which detail names, ``arrive``, ``seen`` (a wait for it is
    over) and ``phase`` (it has completed the one that detail ends with).
    """

    time: int
    entity: str
    kind: str
    detail: str
    line: int


class Trace:
    """Collects events, at most ``limit`` of them; ``cut`` counts those beyond it."""

    def __init__(self, limit: int = 2_000_000) -> None:
        self.events: list[Event] = []
        self.limit = limit
        self.cut = 0

    def add(self, time: int, entity: str, kind: str, detail: str, line: int) -> None:
        if len(self.events) < self.limit:
            self.events.append(Event(time, entity, kind, detail, line))
        else:
            self.cut += 1
