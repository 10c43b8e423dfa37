"""Runs TIR in plain Python, one thread: what a pass must preserve is the trace.

The trace has every store, print and barrier operation in order, addresses resolved. Arithmetic is ``ptxdsl.tir.fold``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxdsl.intrinsics import ROWS
from ptxdsl.tir import Block, Const, Kernel, Module, Op, Ty, Value, walk
from ptxdsl.tir.fold import fold, unsigned, wrap
from ptxdsl.tir.roles import ALL, contiguous, thread_set


class OutOfFuel(Exception):
    """The program ran longer than the test wants to wait."""


@dataclass
class Leaving(Exception):
    """Control on its way to the operation that it ends or repeats."""

    how: str
    target: Op | None
    values: list


@dataclass
class Machine:
    """``thread``: thread_idx.x. Memory reads as what was stored, and as a function of the address before that."""

    kernel: Kernel
    thread: int = 0
    fuel: int = 20_000
    trace: list[tuple] = field(default_factory=list)
    memory: dict[int, object] = field(default_factory=dict)
    values: dict[Value, object] = field(default_factory=dict)
    allocated: int = 1 << 12

    def run(self, *arguments: object) -> list[tuple]:
        self.values.update(zip(self.kernel.params, arguments, strict=True))
        try:
            self.block(self.kernel.body)
        except Leaving as end:
            assert end.how == "return", end.how
        return self.trace

    def get(self, value: Value) -> object:
        return value.value if isinstance(value, Const) else self.values[value]

    def block(self, block: Block) -> list:
        """Runs to the block's yield and gives what it hands over; every other end is raised."""
        for op in block.ops:
            self.fuel -= 1
            if self.fuel < 0:
                raise OutOfFuel
            given = [self.get(v) for v in op.operands]
            if op.name == "yield":
                return given
            if op.name in ("repeat", "leave", "return", "unreachable"):
                raise Leaving(op.name, op.attrs.get("target"), given)
            results = self.control(op, given) if op.blocks else self.plain(op, given)
            self.values.update(zip(op.results, results, strict=True))
        raise AssertionError("a block without an end")

    def control(self, op: Op, given: list) -> list:
        if op.name == "if":
            return self.block(op.blocks[0 if given[0] else 1])
        try:
            if op.name == "scope":
                return self.block(op.blocks[0])
            return self.iterate(op, given)
        except Leaving as end:
            if end.how == "leave" and end.target is op:
                return end.values
            raise

    def iterate(self, op: Op, given: list) -> list:
        block, bits = op.blocks[0], op.operands[0].ty.bits if op.operands else 32
        fixed, carried = (given[:2], given[2:]) if op.name == "for" else ([], given)
        if fixed and not op.attrs["signed"]:
            fixed = [unsigned(v, bits) for v in fixed]
        index = range(*fixed, op.attrs["step"]) if fixed else iter(int, 1)
        for i in index:
            self.values.update(zip(block.params, ([wrap(i, bits)] if fixed else []) + carried, strict=True))
            try:
                self.block(block)
            except Leaving as end:
                if end.how != "repeat" or end.target is not op:
                    raise
                carried = end.values
            self.fuel -= 1
            if self.fuel < 0:
                raise OutOfFuel
        return carried

    def plain(self, op: Op, given: list) -> list:
        if op.name.startswith("pipe."):
            return self.pipeline(op, given)
        if op.name == "store":
            self.store(*given, op.operands[1].ty)
            return []
        if op.name == "load":
            return [self.load(given[0], op.result.ty)]
        if op.name == "ptr.add":
            index = unsigned(given[1], op.operands[1].ty.bits) if op.attrs.get("unsigned") else given[1]
            return [given[0] + index * op.attrs["scale"] + op.attrs.get("offset", 0)]
        if op.name in ("ptr.cast", "ptr.toint", "int.toptr"):
            return given
        if op.name == "vec.shuffle":
            lanes = (*given[0], *given[1])
            return [tuple(lanes[i] for i in op.attrs["mask"])]
        if op.name in ("vec.extract", "vec.insert") and not 0 <= given[-1] < op.operands[0].ty.lanes:
            raise AssertionError("a lane that the vector does not have")
        if op.name in ("shared.alloc", "alloca"):
            self.allocated += op.attrs["bytes"]
            return [self.allocated - op.attrs["bytes"]]
        if op.name == "tid_x":
            return [self.thread]
        if op.name == "vote_any_sync":
            return [given[1]]
        folded = fold(op.name, [Const(v.ty, x) for v, x in zip(op.operands, given, strict=True)], op.attrs,
                      [r.ty for r in op.results])  # fmt: skip
        assert folded is not None, op.name
        return [const.value for const in folded]

    def store(self, address: int, value: object, ty: Ty) -> None:
        """Lane by lane: what is stored as a vector can be loaded as scalars, and the reverse."""
        self.trace.append(("store", address, value))
        for i, lane in enumerate(value if ty.lanes > 1 else (value,)):
            self.memory[address + i * ty.scalar.bytes] = lane

    def load(self, address: int, ty: Ty) -> object:
        at = [address + i * ty.scalar.bytes for i in range(ty.lanes)]
        lanes = tuple(self.memory.get(a, a % 97) for a in at)
        return lanes if ty.lanes > 1 else lanes[0]

    def pipeline(self, op: Op, given: list) -> list:
        stages = op.attrs["stages"]
        if op.name == "pipe.step":
            index, phase, count = given
            index = 0 if stages == 1 else index + 1
            turn = stages == 1 or index == stages
            return [0 if turn else index, phase ^ turn, wrap(count + 1, 32)]
        if op.name != "pipe.new":
            address = given[0] + 8 * (given[1] * op.attrs["subs"] + op.attrs["sub"])
            self.trace.append((op.name, op.attrs["pipeline"], address, *given[2:]))
        return []


def run(kernel: Kernel, *arguments: object, **settings: int) -> list[tuple]:
    """The trace of one run."""
    return Machine(kernel, **settings).run(*arguments)


def barrier_order(module: Module) -> dict[str, list[str]]:
    """The barrier operations in the text of each kernel's roles, in order.

    The key is the kernel's name and the role's threads; operations outside every role have the kernel's name alone.
    """
    found: dict[str, list[str]] = {}

    def visit(block: Block, kernel: Kernel, threads: int, key: str) -> None:
        for op in block.ops:
            kind = ROWS[op.name].effect.kind.value if op.name in ROWS else op.name
            if kind.startswith(("pipe.wait", "pipe.arrive", "pipe.commit", "bar-", "cta-", "named-")):
                found.setdefault(key, []).append(op.name)
            taken = thread_set(op.operands[0], definitions) if op.name == "if" else None
            sides = (threads, threads) if taken is None else (threads & taken, threads & ~taken)
            for side, inner in zip(sides, op.blocks, strict=False):
                span = contiguous(side) if taken is not None else None
                visit(inner, kernel, side, f"{kernel.name} [{span[0]}, {span[1]})" if span else key)

    for kernel in module.kernels:
        definitions = {result: op for op in walk(kernel.body) for result in op.results}
        visit(kernel.body, kernel, ALL, kernel.name)
    return found
