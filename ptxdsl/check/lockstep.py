"""Blocks of a cluster in lockstep: one is followed, and stands for all.

*Why that is a proof.* Let the blocks of a cluster run the same steps, each as it sees the others: what block ``r`` does
to the block at place ``p`` of it (``cluster.py``), every other block does to the block at place ``p`` of its own. Then
going from one block to another is an automorphism of all that can happen. The canonical run (``proof.py``) may be
any; let it take each step in all blocks before the next one. From the first state on, which is the same for all blocks,
each such round leads to a state that is the same for all. So the state of one block, with events named by where the
block is that makes them, is the whole state: what block ``r`` sends to place ``p`` arrives there as what the followed
block gets from the place that is as far behind.

Within a round the blocks go one after the other, and the followed one is the last: what its step touches is in the way
of what the others' same step touches. That decides for all of them, as each could be the last one.

What a block sends to several others in a row it may send in any order (branches like ``if rank != to``): nobody who
gets one of the messages is told of the rest (``Step.unordered``).

*Where it does not hold.* A round is one step of each block. Blocks that branch by their ranks, or come to other
barriers as seen from each, do not run the same steps: ``Apart`` is raised, and each is followed by itself. Addresses
may differ by rank (a block loads its part of a tile for all), as long as what is in whose way does not. That is asked
of every step when it is come to, with the expressions of all ranks. Nothing but proofs is taken from here: what
is wrong, and what cannot be told, is left to the search that follows each block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ptxdsl.check.addresses import Part
from ptxdsl.check.barriers import Arrive, OnBarrier
from ptxdsl.check.cluster import Apart, Blocks
from ptxdsl.check.copies import Copy
from ptxdsl.check.program import Advance, Assignment, Enter, Follow, Step, Turned
from ptxdsl.check.touched import parts
from ptxdsl.hints import Any
from ptxdsl.protocol.expressions import CTA_SHIFT, Expr

# What a step keeps for itself, and what is asked when it is come to.
_KEPT = frozenset({
    "_known", "_level", "_met_by_others", "_touches", "elsewhere", "functions", "inputs", "met", "number", "unordered",
})  # fmt: skip
_ASKED = frozenset({"function", "lanes", "multicast", "parts"})
_SENDS = (Arrive, Copy)
# Steps that hand on what they look at, and no more.
_HAND_ON = (Assignment, Advance, Turned, Follow, Enter)


def agree(steps: Sequence[Step], differs: Callable[[Expr], bool]) -> None:
    """Raises Apart where a step looks at a variable that has another value in each block."""
    apart: set[int] = set()
    before = -1
    while before != len(apart):
        before = len(apart)
        for step in steps:
            if isinstance(step, Assignment):
                for target, value in zip(step.targets, step.values, strict=True):
                    if differs(value) or not apart.isdisjoint(value.variables):
                        apart.add(target)
            elif isinstance(step, _HAND_ON):
                leaves = step.leaves if isinstance(step, Follow) else ()
                if not apart.isdisjoint(step.uses) or any(map(differs, leaves)):
                    apart.update(step.assigns)
    if any(not apart.isdisjoint(step.uses) for step in steps if not isinstance(step, _HAND_ON)):
        raise Apart


def match(steps: Sequence[Step], others: Sequence[Sequence[Step]], blocks: Blocks) -> None:
    """Notes of each step the same steps of other blocks, by rank. Raises Apart where they are not the same."""
    if any(len(steps) != len(own) for own in others):
        raise Apart
    others = [_paired(steps, own, rank, blocks) for rank, own in enumerate(others, 1)]
    for step, *elsewhere in zip(steps, *others, strict=True):
        for other in elsewhere:
            _compare(step, other)
        for one, *same in zip([step, *parts(step)], *([other, *parts(other)] for other in elsewhere), strict=True):
            if any(not _asked_alike(one, other) for other in same):
                step.elsewhere = elsewhere
                one.elsewhere = tuple(same)


def _asked_alike(one: Step | Part, other: Step | Part) -> bool:
    """Whether what is asked of a step (or a part of it) when it is come to is the same in another block: functions are
    one object where they are the same (``Expressions.function``)."""
    return all(getattr(one, name, None) is getattr(other, name, None) for name in _ASKED - {"parts"})


def _paired(steps: Sequence[Step], others: Sequence[Step], rank: int, blocks: Blocks) -> list[Step]:
    """The steps of another block in the order of the first one's: what is sent to several blocks in a row."""
    paired = list(others)
    for start, end in _runs(steps):
        own, theirs = steps[start:end], others[start:end]
        places = [_place(step, 0, blocks) for step in own]
        if all(isinstance(step, _SENDS) for step in theirs):
            order = sorted(range(len(own)), key=places.__getitem__)
            there = [_place(step, rank, blocks) for step in theirs]
            order_there = sorted(range(len(own)), key=there.__getitem__)
            for at, other in zip(order, order_there, strict=True):
                paired[start + at] = theirs[other]
            if order != order_there:
                for step in own:
                    step.unordered = True
    return paired


def _runs(steps: Sequence[Step]) -> Iterator[tuple[int, int]]:
    """Where steps send something to known blocks, one after the other, as first step and the one behind the last."""
    landed = {after for step in steps for after in step.successors if after != step.number + 1}
    start = 0
    for at, step in enumerate(steps):
        sends = isinstance(step, _SENDS) and step.multicast is None
        if not sends or at in landed:
            if start < at:
                yield start, at
            start = at + (not sends)


def _place(step: Any, rank: int, blocks: Blocks) -> int:
    """At which place the block is that a step sends to, as far as the text tells."""
    cta = step.root >> CTA_SHIFT
    return blocks.place(rank, cta - 1) if cta else 0


def _compare(step: Step, other: Step) -> None:
    """Raises Apart where two steps differ in more than addresses."""
    if type(step) is not type(other) or len(parts(step)) != len(parts(other)):
        raise Apart
    there = vars(other)
    for name, value in vars(step).items():
        if name in _KEPT or name in _ASKED or (isinstance(step, Copy) and name in ("reads", "writes")):
            continue
        if name == "op" and isinstance(step, OnBarrier):
            if (value.kind, value.name, value.what) != (there[name].kind, there[name].name, there[name].what):
                raise Apart
        elif name in ("root", "table"):  # of which array, in whatever block
            if (value ^ there[name]) & ((1 << CTA_SHIFT) - 1):
                raise Apart
        elif there[name] != value:
            raise Apart
    for a, b in zip(parts(step), parts(other), strict=True):
        if (a.span, a.width, a.spread, a.width_function, a.variables, a.offsets) != (
            b.span, b.width, b.spread, b.width_function, b.variables, b.offsets
        ):  # fmt: skip
            raise Apart
