"""Accesses in another stage than the one that their role holds: a stale index, a constant one, one that goes too far.

Two roles of one ring that hold different stages touch the same bytes: one of them is where it should not be. Which one
is told by the array, of which each stage has an equal part, or by what one of them touches in its other turns.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from ptxdsl.check.context import Context
from ptxdsl.check.parts import Touch
from ptxdsl.check.states import State
from ptxdsl.check.tables import arrives_at
from ptxdsl.diagnostics import counted
from ptxdsl.hints import Any
from ptxdsl.protocol.model import Array
from ptxdsl.record import dataclass, replace
from ptxdsl.source import Span

HELD = "take the index from the state before it steps, and use the same one for the slot and the barrier"
_CONSTANT = "use the index of the stage that the role holds"


@dataclass(frozen=True)
class Misplaced:
    """The access that is in another stage than its role's, what is wrong, and the repair."""

    touch: Touch
    message: str
    help: str


def misplaced(context: Context, state: State, touch: Touch, other: Touch) -> Misplaced | None:
    """Which of two accesses to the same bytes is not where its role should be; None where that is not it. touch: what
    is about to happen; other: what has happened."""
    _, then = (state.trips or {}).get(other.bit, ((), ()))
    now = _held(context, state.waited[touch.agent].items(), touch, other)
    before = _held(context, then, other, touch)
    if touch.array is None or now is None or before is None or now[0] == before[0] or now[1] != before[1]:
        return None
    held = ((touch, now[0]), (other, before[0]))
    for base, size in _layouts(context, touch, other, now[1]):
        wrong = [(one, stage) for one, stage in held if _stages(one, base, size) != {stage}]
        if len(wrong) == 1:
            ((one, stage),) = wrong
            return _told(one, touch.array, stage, _stages(one, base, size), size)
    return None


def _told(touch: Touch, array: Array, held: int, stages: set[int], size: int) -> Misplaced:
    """stages: in which an access is."""
    does, into = "written" if touch.writes else "read", sorted(stages - {held})
    which = f"stage{'s' if len(into) > 1 else ''} {' and '.join(map(str, into))}"
    if held in stages:
        room = counted(size // array.element, "element") if array.element else counted(size, "byte")
        message = f"`{array.name}` is {does} beyond stage {held}, which the role holds, into {which}"
        return Misplaced(touch, message, f"a stage of `{array.name}` has {room}: keep the index within it")
    message = f"{which} of `{array.name}` {'are' if len(into) > 1 else 'is'} {does}, but the role holds stage {held}"
    return Misplaced(touch, message, HELD if touch.slot is not None else _CONSTANT)


def _layouts(context: Context, touch: Touch, other: Touch, stages: int) -> list[tuple[int, int]]:
    """Where the stages may begin, and the bytes of each, the likeliest first."""
    array = touch.array
    seen = [*map(partial(_layout, context), (touch, other) if touch.writes else (other, touch))]  # who writes first
    found = [layout for layout in seen if layout is not None]
    if array is not None and array.bytes is not None and not array.bytes % stages:
        size = array.bytes // stages
        if not found or size in {other for _, other in found}:  # else there is more in the array
            return [(array.base, size), *found]
    return found


def _layout(context: Context, touch: Touch) -> tuple[int, int] | None:
    """As the accesses of a site have it that has been in several stages."""
    begins = {t.slot: t.low for t in context.touches.values() if t.site is touch.site and t.slot is not None}
    if len(begins) < 2:
        return None
    (first, at), (second, then), *_ = sorted(begins.items())
    size, rest = divmod(then - at, second - first)
    return None if rest or size <= 0 else (at - first * size, size)


def _held(
    context: Context, waited: Iterable[tuple[int, tuple[Any, ...]]], touch: Touch, other: Touch
) -> tuple[int, int] | None:
    """The stage of their ring that the agent of a touch holds while that happens, and how many there are."""
    found = set()
    for table, (number, stage, _, given) in waited:
        if stage is None or given or not arrives_at(context.agents[other.agent], table):
            continue
        barrier = context.barriers[number]
        site: Any = barrier.waiters.get(touch.agent)
        stages = barrier.place[0].stages if barrier.place is not None else len(site.met) if site is not None else 0
        found.add((stage, stages))
    return found.pop() if len(found) == 1 else None


def _stages(touch: Touch, base: int, size: int) -> set[int]:
    """The stages that a touch has bytes of."""
    return {stage for at, end in touch.intervals for stage in range((at - base) // size, (end - 1 - base) // size + 1)}


def index_in(span: Span | None, touch: Touch) -> Span | None:
    """Where the index of an access is written, where the text shows it."""
    if span is None or touch.array is None:
        return span
    import re  # where there is a fault

    found = re.search(rf"(?<![\w.]){re.escape(touch.array.name)}(?:\[|\.unsafe_offset\()", span.text)
    if found is None:
        return span
    depth, end = 1, found.end()
    while depth and end < len(span.text):
        depth += {"[": 1, "(": 1, "]": -1, ")": -1}.get(span.text[end], 0)
        end += 1
    named = re.match(r"\w+=", span.text[found.end() : end])
    begin = span.start + found.end() + (named.end() if named else 0)
    return replace(span, start=begin, end=span.start + end - 1) if not depth else span
