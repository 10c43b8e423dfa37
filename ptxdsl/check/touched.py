"""The places that a step touches, as its text has them."""

from __future__ import annotations

from ptxdsl.check.addresses import Part
from ptxdsl.check.barriers import OnBarrier
from ptxdsl.check.copies import Copy
from ptxdsl.check.groups import Start
from ptxdsl.check.program import Step
from ptxdsl.check.slots import Access
from ptxdsl.check.tensor import Allocation
from ptxdsl.protocol.expressions import Expr


def parts(step: Step) -> list[Part]:
    """All of a step's."""
    if isinstance(step, Copy):
        return [*step.reads, *step.writes]
    if isinstance(step, Start):
        return [part for parts, _ in step.parts for part in parts]
    return step.parts if isinstance(step, (Access, Allocation)) else []


def of_widths(step: Step) -> set[int]:
    """Variables that say how many bytes a step touches, and not where."""
    touched = parts(step)
    widths = {v for part in touched if isinstance(part.width, Expr) for v in part.width.variables}
    where = {v for part in touched if part.place.address is not None for v in part.place.address.variables}
    return widths - where - set(step.variables if isinstance(step, OnBarrier) else ())
