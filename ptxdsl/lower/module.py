"""TIR to LLVM IR text: kernels, control flow, and the table that finds the lowering of every operation.

Control flow in TIR is a tree; here it becomes basic blocks. A ``for`` is tested at its bottom behind a guard, so that
LLVM finds its loops already rotated.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxdsl.effects import SYNCHRONISES
from ptxdsl.intrinsics import ROWS
from ptxdsl.lower import arith, convert, intrinsic, memory, pipeline
from ptxdsl.lower.arith import Handler
from ptxdsl.lower.builder import Address, Builder, ModuleText, symbol
from ptxdsl.lower.llvm_types import llvm_type
from ptxdsl.options import Options
from ptxdsl.record import dataclass, field
from ptxdsl.signature import Param, PointerParam, TensorMapParam, leaves
from ptxdsl.tir import Block, Const, Kernel, Module, Op, Value, walk
from ptxdsl.tir.features import check_features
from ptxdsl.tir.fold import unsigned


def lower(module: Module, options: Options) -> str:
    """The LLVM IR of a module. Raises E0701 for an operation that the target of ``options`` lacks."""
    check_features(module, options)  # LLVM ends the process on what a target cannot do
    text = ModuleText(options)
    for kernel in module.kernels:
        text.unique_symbol(kernel.name)
    for kernel in module.kernels:
        text.functions.append(_kernel(text, kernel))
    return text.text()


# kernels


def _kernel(module: ModuleText, kernel: Kernel) -> str:
    b = Builder(module, kernel)
    params = []
    for number, (value, (_, param)) in enumerate(zip(kernel.params, leaves(kernel.signature.params), strict=True)):
        name = f"%{symbol(param.name)}.{number}"
        params.append(f"{_param_type(value, param)} {name}")
        if value.ty.name == "i1":
            name = b.emit(f"icmp ne i8 {name}, 0")
        b.set(value, name)
        if isinstance(param, PointerParam):
            b.set_address(value, Address(name, 0, False, param.align))
    frames = Frames()
    lower_block(b, kernel.body, frames)
    if b.label is not None:
        b.do("ret void")
    name = kernel.name
    return b.finish(f"define ptx_kernel void @{name}({', '.join(params)}){_attributes(kernel)}")


def _param_type(value: Value, param: Param) -> str:
    if isinstance(param, TensorMapParam):
        return 'ptr byval([128 x i8]) align 64 "nvvm.grid_constant"'
    if isinstance(param, PointerParam):
        return f"{llvm_type(value.ty)} noundef align {param.align}"
    return "i8 noundef" if value.ty.name == "i1" else f"{llvm_type(value.ty)} noundef"


def _attributes(kernel: Kernel) -> str:
    signature = kernel.signature
    values = {
        "nvvm.reqntid": signature.threads,
        "nvvm.maxntid": signature.max_threads if not signature.threads else None,
        "nvvm.cluster_dim": signature.cluster,
        "nvvm.minctasm": signature.min_blocks,
        "nvvm.maxnreg": signature.max_registers,
    }
    text = ""
    for name, value in values.items():
        if value is not None:
            number = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            text += f' "{name}"="{number}"'
    return text


# control flow

Edge = tuple[str, list[str]]


@dataclass
class Frame:
    """Where the results of a structured operation meet, and from where a loop's body is entered again."""

    end: str
    exits: list[Edge] = field(default_factory=list)
    again: str = ""
    repeats: list[Edge] = field(default_factory=list)


@dataclass
class Frames:
    """The structured operations around the current block."""

    by_op: dict[Op, Frame] = field(default_factory=dict)
    yields: list[Frame] = field(default_factory=list)


def lower_block(b: Builder, block: Block, frames: Frames) -> None:
    """The operations of a block up to its terminator, or to where control does not get any further."""
    b.regions.append({})
    for op in block.ops:
        if b.label is None:
            break
        b.at(op.span)
        for result in op.results:
            b.definitions[result] = op
        if op.name in CONTROL:
            CONTROL[op.name](b, op, frames)
        else:
            HANDLERS[op.name](b, op)
    b.regions.pop()


def _leave_through(b: Builder, edges: list[Edge], label: str, values: Sequence[Value]) -> None:
    if b.label is not None:
        edges.append((b.label, [b.ref(value) for value in values]))
        b.branch(label)


def _if(b: Builder, op: Op, frames: Frames) -> None:
    then, otherwise, end = b.fresh("then", "else", "end")
    frame = Frame(end)
    frames.yields.append(frame)
    here = b.label or ""
    arms: list[tuple[str, Block]] = []
    targets: list[str] = []
    for label, block in zip((then, otherwise), op.blocks, strict=True):
        # An arm that only goes somewhere needs no block of its own, unless both go to the same place.
        goal = _goal(block.ops[0], frames)
        if goal is None or goal[1] in targets:
            arms.append((label, block))
            targets.append(label)
        else:
            goal[0].append((here, [b.ref(value) for value in block.ops[0].operands]))
            targets.append(goal[1])
    b.branch_if(b.ref(op.operands[0]), *targets)
    for label, block in arms:
        b.start(label)
        lower_block(b, block, frames)
        _leave_through(b, frame.exits, end, [])
    frames.yields.pop()
    b.at(op.span)
    b.join(end, frame.exits, op.results)


def _scope(b: Builder, op: Op, frames: Frames) -> None:
    (end,) = b.fresh("end")
    frame = frames.by_op[op] = Frame(end)
    frames.yields.append(frame)
    lower_block(b, op.blocks[0], frames)
    _leave_through(b, frame.exits, end, [])
    frames.yields.pop()
    b.join(end, frame.exits, op.results)


def _loop(b: Builder, op: Op, frames: Frames) -> None:
    head, latch, end = b.fresh("loop", "next", "end")
    frame = frames.by_op[op] = Frame(end, again=latch)
    entry: list[Edge] = []
    _leave_through(b, entry, head, op.operands)
    b.start(head)
    phis, nexts = _turn(b, op, frames, op.blocks[0].params)
    if b.label is not None:
        entry.append((b.label, [b.ref(value) for value in nexts]))
        b.do(f"br label %{head}{_mark(b, op)}")
        b.label = None
    phis.complete(entry)
    b.join(end, frame.exits, op.results)


def _turn(b: Builder, op: Op, frames: Frames, carried: Sequence[Value]) -> tuple[_PendingPhis, list[Value]]:
    """A loop's body, up to the latch in which all ``repeat`` meet, and there the next values of what it carries."""
    frame = frames.by_op[op]
    (body,) = op.blocks
    b.multiples.enter(op)
    phis = _PendingPhis(b, body.params)
    b.loop_depth += 1
    lower_block(b, body, frames)
    b.loop_depth -= 1
    _leave_through(b, frame.repeats, frame.again, [])
    b.at(op.span)
    nexts = [Value(value.ty) for value in carried]
    b.join(frame.again, frame.repeats, nexts)
    return phis, nexts


def synchronises(op: Op) -> bool:
    """Whether an operation has to do with other threads or with asynchronous work."""
    if op.name.startswith("pipe.") and op.name not in ("pipe.step", "pipe.new"):
        return True
    row = ROWS.get(op.name)
    return op.name == "asm" if row is None else row.effect.kind in SYNCHRONISES


def _mark(b: Builder, op: Op) -> str:
    """Loops that synchronise stay as they are: what is in the PTX is what was checked."""
    return f", !llvm.loop !{b.module.debug.whole_loop()}" if any(map(synchronises, walk(op.blocks[0]))) else ""


def _for(b: Builder, op: Op, frames: Frames) -> None:
    """Guard, body, and a latch in which all ``repeat`` meet, which counts and tests."""
    start, stop, *inits = op.operands
    step, signed = op.attrs["step"], op.attrs.get("signed", True)
    body_label, latch, end = b.fresh("for", "next", "end")
    frame = frames.by_op[op] = Frame(end, again=latch)
    type = llvm_type(start.ty)
    order = ("s" if signed else "u") + ("lt" if step > 0 else "gt")
    limit = b.ref(stop)
    entered = b.emit(f"icmp {order} {b.typed(start)}, {limit}")
    before = b.label or ""
    entry: list[Edge] = [(before, [b.ref(start), *(b.ref(value) for value in inits)])]
    frame.exits.append((before, [b.ref(value) for value in inits]))
    b.branch_if(entered, body_label, end)
    index, *carried = op.blocks[0].params
    b.start(body_label)
    phis, nexts = _turn(b, op, frames, carried)
    if b.label is not None:
        flag = " nsw" if signed else " nuw" if step > 0 else ""
        following = b.emit(f"add{flag} {type} {b.ref(index)}, {step}")
        if _stays_in_type(stop, step, signed):
            again = b.emit(f"icmp {order} {type} {following}, {limit}")
        else:  # the next index may not exist: what is left of the range does, without a sign
            left = b.emit(f"sub {type} " + (f"{limit}, {b.ref(index)}" if step > 0 else f"{b.ref(index)}, {limit}"))
            again = b.emit(f"icmp ugt {type} {left}, {abs(step)}")
        values = [b.ref(value) for value in nexts]
        entry.append((b.label, [following, *values]))
        frame.exits.append((b.label, values))
        b.branch_if(again, body_label, end, _mark(b, op))
    phis.complete(entry)
    b.join(end, frame.exits, op.results)


def _stays_in_type(stop: Value, step: int, signed: bool) -> bool:
    """Whether the first index past the end of a range is still a number of its type, wherever the range starts."""
    if abs(step) == 1:
        return True
    if not isinstance(stop, Const):
        return False
    bits = stop.ty.bits
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    end = stop.value if signed else unsigned(stop.value, bits)
    return low <= end + step + (-1 if step > 0 else 1) <= high


class _PendingPhis:
    """The phi nodes at a loop's head, whose back edges are known only after the body."""

    def __init__(self, b: Builder, params: Sequence[Value]) -> None:
        self.b = b
        self.params = params
        self.position = len(b.lines)
        for param in params:
            b.set(param, b.emit("phi"))

    def complete(self, edges: Sequence[Edge]) -> None:
        for number, param in enumerate(self.params):
            arms = ", ".join(f"[ {operands[number]}, %{source} ]" for source, operands in edges)
            line = self.b.lines[self.position + number]
            self.b.lines[self.position + number] = line.replace("phi", f"phi {llvm_type(param.ty)} {arms}", 1)


def _goal(op: Op, frames: Frames) -> tuple[list[Edge], str] | None:
    """Where a terminator goes: the edges that meet there, and the label."""
    if op.name == "yield":
        frame = frames.yields[-1]
        return frame.exits, frame.end
    if op.name not in ("leave", "repeat"):
        return None
    frame = frames.by_op[op.attrs["target"]]
    return (frame.exits, frame.end) if op.name == "leave" else (frame.repeats, frame.again)


def _jump(b: Builder, op: Op, frames: Frames) -> None:
    goal = _goal(op, frames)
    assert goal is not None
    _leave_through(b, *goal, op.operands)


def _return(b: Builder, op: Op, frames: Frames) -> None:
    b.do("ret void")
    b.label = None


def _unreachable(b: Builder, op: Op, frames: Frames) -> None:
    b.do("unreachable")
    b.label = None


CONTROL = {
    "if": _if,
    "scope": _scope,
    "loop": _loop,
    "for": _for,
    "yield": _jump,
    "leave": _jump,
    "repeat": _jump,
    "return": _return,
    "unreachable": _unreachable,
}


def _inlined_assembly(b: Builder, op: Op) -> None:
    from ptxdsl.lower.user_asm import lower_asm  # few kernels have text of their own

    lower_asm(b, op)


HANDLERS: dict[str, Handler] = {
    **arith.HANDLERS,
    **convert.HANDLERS,
    **memory.HANDLERS,
    **pipeline.HANDLERS,
    **intrinsic.HANDLERS,
    "asm": _inlined_assembly,
}
