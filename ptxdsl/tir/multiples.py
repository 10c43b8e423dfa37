"""By which power of two an integer can be divided: what is known of the alignment of addresses.

LLVM finds the same (its pass InferAlignment), but not in the short way through its passes that ``emit_ptx.py`` takes
for kernels of pipelines. Loads of neighbouring addresses become one vector load where the first is aligned to it.
"""

from __future__ import annotations

from ptxdsl.tir import Block, Const, Op, Value, walk
from ptxdsl.tir.simplify import carried_inits, carried_params

LARGEST = 1 << 10  # more alignment than any access has a use for
_DEPTH = 12  # operations looked through


def lowest_bit(number: int) -> int:
    """The largest power of two, up to LARGEST, that divides a number."""
    return min(number & -number or LARGEST, LARGEST)


class Multiples:
    """What is known of one kernel's integers; ``definitions`` and ``loops`` may grow."""

    def __init__(self, definitions: dict[Value, Op]) -> None:
        self.definitions = definitions
        self.loops: dict[Value, tuple[Op, int]] = {}  # a parameter of a loop's body: the loop, its place there
        self._known: dict[Value, int] = {}

    def enter(self, loop: Op) -> None:
        """The body of a loop is lowered now."""
        self.loops.update({param: (loop, place) for place, param in enumerate(loop.blocks[0].params)})

    def of(self, value: Value, depth: int = _DEPTH) -> int:
        if isinstance(value, Const):
            return lowest_bit(value.value) if isinstance(value.value, int) else 1
        known = self._known.get(value)
        if known is None:
            if depth == 0:
                return 1
            known = self._parameter(value, depth) if value in self.loops else self._result(value, depth)
            self._known[value] = known
        return known

    def _result(self, value: Value, depth: int) -> int:
        op = self.definitions.get(value)
        if op is None or value.ty.lanes != 1:
            return 1
        name, operands = op.name, op.operands
        if name in ("add", "sub", "or", "xor"):
            return self._least(operands, depth)
        if name == "select":
            return self._least(operands[1:], depth)
        if name == "and":
            return max(self.of(operand, depth - 1) for operand in operands)
        if name == "mul":
            return min(self.of(operands[1], depth - 1) * self.of(operands[0], depth - 1), LARGEST)
        if name in ("ext.s", "ext.u", "trunc") and operands[0].ty.name != "i1":
            return self.of(operands[0], depth - 1)
        if name == "shl" and isinstance(operands[1], Const) and 0 <= operands[1].value < value.ty.bits:
            shift: int = operands[1].value
            return min(self.of(operands[0], depth - 1) << shift, LARGEST)
        return 1

    def _least(self, operands: list[Value], depth: int) -> int:
        least = LARGEST
        for operand in reversed(operands):  # the lane mostly stands last, and ends the search
            least = min(least, self.of(operand, depth - 1))
            if least == 1:
                break
        return least

    def _parameter(self, param: Value, depth: int) -> int:
        """What a loop hands on: a multiple of what it starts with, unless a turn gives less."""
        loop, place = self.loops[param]
        body = loop.blocks[0]
        if loop.name == "for" and place == 0:
            return min(self.of(loop.operands[0], depth - 1), lowest_bit(loop.attrs["step"]))
        position = [*carried_params(loop)].index(param)
        best = self.of(carried_inits(loop)[position], depth - 1)
        while best > 1:
            # Taken for granted, and looked whether each turn keeps it: so it holds for all.
            found = _Turn(self, body, {param: best}).handed(loop, position, depth)
            if found >= best:
                return best
            best = found
        return 1


class _Turn(Multiples):
    """One turn of a loop, of whose parameters something is assumed."""

    def __init__(self, outer: Multiples, body: Block, assumed: dict[Value, int]) -> None:
        inside = {result: op for op in walk(body) for result in op.results}
        super().__init__({**outer.definitions, **inside})
        self.body = body
        self._known = dict(assumed)

    def handed(self, loop: Op, position: int, depth: int) -> int:
        return min(
            (
                self.of(op.operands[position], depth - 1)
                for op in walk(self.body)
                if op.name == "repeat" and op.attrs["target"] is loop
            ),
            default=LARGEST,
        )
