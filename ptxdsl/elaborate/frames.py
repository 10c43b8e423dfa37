"""What control flow keeps while a region is elaborated: the variables' values, the ways out, loops and functions."""

from __future__ import annotations

from ptxdsl import tir
from ptxdsl.diagnostics import CompileError
from ptxdsl.elaborate.entities import RValue, Variable
from ptxdsl.elaborate.types import Type
from ptxdsl.record import dataclass, field

State = dict[Variable, RValue]


@dataclass
class Exit:
    """One way out of a region: the block it is in, its terminator, the state there, and the value it hands over."""

    ops: list[tir.Op]
    op: tir.Op
    state: State
    value: RValue | None = None


@dataclass
class LoopFrame:
    """The innermost run-time loop, or one turn of an unrolled one: what `continue` and `break` end, and these ends."""

    repeat_op: tir.Op
    leave_op: tir.Op
    repeats: list[Exit] = field(default_factory=list)
    leaves: list[Exit] = field(default_factory=list)


@dataclass
class FunctionFrame:
    """The function being elaborated: its result type, and its returns (leaving ``op``)."""

    op: tir.Op
    result: Type | None
    name: str
    returns: list[Exit] = field(default_factory=list)
    out: Variable | None = None
    problems: list[CompileError] = field(default_factory=list)  # of statements in its body


class ReturnSignal(Exception):
    """A ``return`` reached while evaluating at compile time."""

    def __init__(self, value: RValue) -> None:
        self.value = value


class BreakSignal(Exception):
    pass


class ContinueSignal(Exception):
    pass
