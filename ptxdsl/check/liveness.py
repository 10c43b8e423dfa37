"""Which of an agent's variables matter at a place: those that may be looked at before they are assigned again.

States that differ in others alone are the same state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptxdsl.check.program import Step


def live_variables(steps: Sequence[Step]) -> list[int]:
    """The variables that matter before each step, as bits."""
    uses = [_bits(step.uses) for step in steps]
    kept = [~_bits(step.assigns) for step in steps]
    after = [step.successors for step in steps]
    live = [0] * len(steps)
    changed = True
    while changed:
        changed = False
        for at in range(len(steps) - 1, -1, -1):
            needed = 0
            for other in after[at]:
                needed |= live[other]
            needed = needed & kept[at] | uses[at]
            if needed != live[at]:
                live[at] = needed
                changed = True
    return live


def places_before(steps: Sequence[Step], variable: int) -> set[int]:
    """The places from which an agent may come to assign a variable."""
    found = {step.number for step in steps if variable in step.assigns}
    changed = True
    while changed:
        more = {step.number for step in steps if not found.isdisjoint(step.successors)} - found
        found |= more
        changed = bool(more)
    return found


def _bits(variables: Iterable[int]) -> int:
    bits = 0
    for v in variables:
        bits |= 1 << v
    return bits
