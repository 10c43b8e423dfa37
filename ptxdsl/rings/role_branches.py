"""Branches between roles, made uniform in each warp where that changes nothing.

``if thread_idx.x < 32`` sends whole warps one way, but the assembler cannot know: it takes what is inside for
divergent, re-converges after every wait and keeps addresses out of the uniform registers. Measured (ptxas 13.5, three
stages, unrolled, instructions a stage, producer/consumer): a copy ring 9.3/11.0 as written, 8.7/8.7 behind a vote; a
commit ring 12.3/12.7 and 6.7/8.3. A vote over the warp, once, makes the condition the same in every lane.

It changes nothing where each warp's threads agree: the range is made of whole warps, and warps lie in rows of the
block. ``@kernel(threads=…)`` is what tells; without it a branch stays as it is. Threads meet in a vote, though: where
some of a warp wait before it, in a branch of their own, perhaps for others of it that pass by, there is none.
"""

from __future__ import annotations

from math import prod

from ptxdsl.effects import Kind
from ptxdsl.intrinsics import ROWS
from ptxdsl.tir import I1, I32, Block, Const, Kernel, Op, Value, walk
from ptxdsl.tir.roles import ThreadSet, thread_set

WARP = 32
FULL_WARP = -1
VOTE = "vote_any_sync"
WAITS = frozenset({"pipe.wait", *(name for name, row in ROWS.items() if row.effect.kind is Kind.BAR_WAIT)})


def make_uniform(kernel: Kernel) -> None:
    """Puts a vote before the role branches of a kernel, in place."""
    shape = kernel.signature.threads
    if shape is not None and (shape[0] % WARP == 0 or shape[1:] == (1, 1)):
        _RoleBranches(kernel.body, prod(shape)).vote(kernel.body)


class _RoleBranches:
    """The branches of a kernel of so many threads, whose warps lie in rows of the block."""

    def __init__(self, body: Block, threads: int) -> None:
        self.threads = threads
        self.definitions = {result: op for op in walk(body) for result in op.results}
        self.waiting: set[Op] = set()  # operations with a wait somewhere in their blocks
        self.find_waits(body)

    def find_waits(self, block: Block) -> bool:
        found = False
        for op in block.ops:
            if op.blocks and any([self.find_waits(inner) for inner in op.blocks]):  # noqa: C419  (look into each)
                self.waiting.add(op)
                found = True
            found = found or op.name in WAITS
        return found

    def vote(self, block: Block) -> bool:
        """In a block that whole warps reach: only there may they vote. Whether parts of a warp may wait on their own in
        it.

        A kernel's loops are taken for turns of whole warps; their branches are not.
        """
        ops: list[Op] = []
        apart = False
        for op in block.ops:
            if op.name == "if" and not apart and self.is_role_branch(op):
                vote = Op(VOTE, [Const(I32, FULL_WARP), op.operands[0]], [Value(I1, "role")], {}, op.span)
                op.operands = [vote.result]
                ops.append(vote)
                arms = [self.vote(inner) for inner in op.blocks]
                apart = any(arms)
            else:
                apart = apart or self.waits_apart(op)
            ops.append(op)
        block.ops = ops
        return apart

    def waits_apart(self, op: Op) -> bool:
        """Whether there is a branch with a wait in it."""
        if op not in self.waiting:
            return False
        return op.name == "if" or any(self.waits_apart(inner) for block in op.blocks for inner in block.ops)

    def is_role_branch(self, op: Op) -> bool:
        if op not in self.waiting:
            return False
        threads = thread_set(op.operands[0], self.definitions, self.threads)
        return threads is not None and _whole_warps(threads, self.threads)


def _whole_warps(threads: ThreadSet, size: int) -> bool:
    for first in range(0, size, WARP):
        warp = ((1 << min(WARP, size - first)) - 1) << first
        if threads & warp not in (0, warp):
            return False
    return True
