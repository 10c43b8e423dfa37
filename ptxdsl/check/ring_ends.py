"""Ends of one ring that do not fit: what makes many a fault, and is seen where the ends are made."""

from __future__ import annotations

from ptxdsl.check import classes
from ptxdsl.check.findings import Finding
from ptxdsl.protocol.model import Kernel, Pipeline
from ptxdsl.record import replace

# What comes from it.
_KINDS = frozenset(
    {
        classes.MISSING_ARRIVE,
        classes.CYCLIC_WAIT,
        classes.WRONG_COUNT,
        classes.WRONG_PARITY,
        classes.STALE_STAGE,
        classes.READ_BEFORE_FULL,
        classes.OVERWRITTEN,
    }
)

_BARRIER_BYTES = 8


def explained(kernel: Kernel, finding: Finding) -> Finding:
    """A finding, which may be the consequence of ends that do not fit, with their lines and that repair."""
    if finding.kind not in _KINDS:
        return finding
    for producer in kernel.pipelines:
        for consumer in kernel.pipelines:
            said = _unlike(producer, consumer) if producer.producer and not consumer.producer else None
            if said is not None:
                what, help = said
                notes = (producer.span, what), (consumer.span, "the consumer is made here")
                return replace(finding, notes=(*notes, *finding.notes), help=help)
    for end in kernel.pipelines:
        if _overlap(end):
            what = "the barriers for full stages and those for empty ones are the same here, or some of them"
            help = f"give each their own: `RolePipeline[{end.stages}, …](bars, bars + {end.stages * end.full_subs})`"
            return replace(finding, notes=((end.span, what), *finding.notes), help=help)
    return finding


def _unlike(producer: Pipeline, consumer: Pipeline) -> tuple[str, str] | None:
    """How two ends differ that are meant to be of one ring, and what to do."""
    own, other = (_bases(end) for end in (producer, consumer))
    if own is None or other is None:
        return None
    bases = "give both ends the same bases: first that of the barriers on which consumers wait"
    if own == other:
        if producer.stages == consumer.stages:
            return None
        what = f"the producer has {producer.stages} stages here, the consumer {consumer.stages}"
        return what, "give both ends of the ring the same number of stages"
    if own == other[::-1]:
        return "the two ends have their bases in different order", bases
    if own[0] == other[0] or own[1] == other[1]:
        which = "second" if own[0] == other[0] else "first"
        return f"the producer's {which} base is not the consumer's", bases
    return None


def _overlap(end: Pipeline) -> bool:
    """Whether the two tables of an end have a barrier in common."""
    bases = _bases(end)
    if bases is None:
        return False
    full, empty = bases
    subs = end.full_subs if full <= empty else end.empty_subs
    return abs(empty - full) < _BARRIER_BYTES * end.stages * subs


def _bases(end: Pipeline) -> tuple[int, int] | None:
    """None where they are not known."""
    if end.full.op != "const" or end.empty.op != "const":
        return None
    return int(end.full.value), int(end.empty.value)
