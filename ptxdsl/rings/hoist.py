"""Code motion: what a turn of a loop computes as every other does is computed once, before the loop, and what both arms
of an ``if`` compute, before the ``if``.

Operations of TIR have no undefined results, so one can be computed where no turn would have needed it. LLVM moves such
code too, but not in the short way through its passes that ``emit_ptx.py`` takes for kernels of pipelines.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxdsl.hints import Any
from ptxdsl.tir import Block, Const, Kernel, Op, Value, walk
from ptxdsl.tir.simplify import PURE


def hoist(kernel: Kernel) -> None:
    """Moves operations out of the kernel's loops and branches, each as far as it can go, in place."""
    _Hoist().block(kernel.body)


class _Hoist:
    def __init__(self) -> None:
        self.depth: dict[Value, int] = {}  # of values made in loops: how many are around them
        self.before: list[list[Op]] = []  # by loop, from the outermost: what is moved to where it begins

    def block(self, block: Block) -> None:
        inside = len(self.before)
        self.made_inside(block.params, inside)
        kept: list[Op] = []
        for op in block.ops:
            if op.blocks:
                self.below(op, kept)
                if op.name == "if":
                    shared = common_to_arms(op)
                    for moved in shared:
                        self.made_inside(moved.results, inside)
                    kept.extend(shared)
            elif inside and op.name in PURE:
                needs = max([self.depth.get(operand, 0) for operand in op.operands], default=0)
                if needs < inside:
                    self.before[needs].append(op)
                    self.made_inside(op.results, needs)
                    continue
            kept.append(op)
            self.made_inside(op.results, inside)
        block.ops = kept

    def made_inside(self, values: list[Value], loops: int) -> None:
        if loops and values:
            self.depth.update(dict.fromkeys(values, loops))

    def below(self, op: Op, kept: list[Op]) -> None:
        """The blocks of an operation; what leaves a loop goes to where the loop is about to stand."""
        loop = op.name in ("loop", "for")
        if loop:
            self.before.append([])
        for inner in op.blocks:
            self.block(inner)
        if loop:
            kept.extend(self.before.pop())


def common_to_arms(branch: Op) -> list[Op]:
    """What both arms of an ``if`` compute from values that are made before it, taken out of them."""
    first, second = branch.blocks
    known = {_meaning(op): (block, op) for block, op in _of_values_outside(first, set())}
    taken: list[Op] = []
    same: dict[Value, Value] = {}
    for block, op in list(_of_values_outside(second, set())) if known else ():
        if (found := known.get(_meaning(op))) is not None:
            home, kept = found
            if kept not in taken:
                taken.append(kept)
                home.ops.remove(kept)
            block.ops.remove(op)
            same.update(zip(op.results, kept.results, strict=True))
    if same:
        for op in walk(second):
            op.operands = [same.get(operand, operand) for operand in op.operands]
    return taken


def _of_values_outside(block: Block, made: set[Value]) -> Iterator[tuple[Block, Op]]:
    """The pure operations in and below a block, but not in loops, that need nothing that is made there."""
    for op in block.ops:
        if op.name in PURE and made.isdisjoint(op.operands):
            yield block, op
        elif op.name in ("if", "scope"):
            for inner in op.blocks:
                yield from _of_values_outside(inner, made)
        made.update(op.results)


def _meaning(op: Op) -> Any:
    """Equal for two operations that give the same from the same operands."""
    operands = tuple((v.ty, repr(v.value)) if isinstance(v, Const) else v for v in op.operands)
    return op.name, operands, tuple(r.ty for r in op.results), tuple(sorted(op.attrs.items()))
