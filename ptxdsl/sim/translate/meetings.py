"""The block of a warp collective as LLVM IR: its operands in memory, its members gathered, the runtime's function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxdsl.ptx.module import Immediate, Instruction, Operand, Register, Sink
from ptxdsl.sim.translate.collectives import collective
from ptxdsl.sim.translate.emitter import Unsupported, splat, vector
from ptxdsl.sim.translate.runtime_control import DISPATCH
from ptxdsl.sim.translate.slots import register_bits

if TYPE_CHECKING:
    from ptxdsl.sim.translate.part import Part

SCRATCH = 6  # rows of 256 bytes: where results go that nobody wants, and operands that lie in no register


def emit_collective(part: Part, k: int, instruction: Instruction, site: int) -> None:
    """All but the way to the next block. Raises Unsupported."""
    run = part.e.run
    what = collective(instruction)
    given = [*what.results, *what.sources]
    if what.members is not None:
        given.append((what.members, "b32"))
    if not all(isinstance(operand, Register | Sink) for operand, _ in what.results):
        raise Unsupported("a result goes to a register")
    rows: dict[int, int] = {}  # by place in `given`: the byte offset of a source that lies in no slot
    for i, (operand, _) in enumerate(given):
        if i >= len(what.results) and not _in_memory(part, operand):
            rows[i] = part.kernel.scratch + 256 * (len(rows) + 1)
    if rows:
        part.chunks(k, lambda: _copy(part, [(*given[i], byte) for i, byte in rows.items()]))
    group = part.group
    if instruction.guard is not None:
        group = part.true_lanes(k, instruction)
        part.unless_none(k, group)
        run(f"%whole{k} = icmp eq i32 {group}, {part.group}")
        run(f"br i1 %whole{k}, label %all{k}, label %few{k}")
        part.label(f"few{k}")
        run(f"call void @rt.narrow(ptr %warp, i32 {group}, i32 {k + 1})")
        run(f"br label %all{k}")
        part.label(f"all{k}")
    pointers = [
        f"ptr {_row(part, rows[i]) if i in rows else _pointer(part, operand, type)}"
        for i, (operand, type) in enumerate(given)
    ]
    executing = group
    if what.members is not None:
        barrier = "true" if what.function is None else "false"
        executing = f"%exec{k}"
        run(f"{executing} = call i32 @rt.gather(ptr %warp, i32 {k}, i32 {site}, {pointers.pop()}, i1 {barrier})")
        run(f"%wait{k} = icmp eq i32 {executing}, 0")
        run(f"br i1 %wait{k}, label %stay{k}, label %run{k}")
        part.label(f"stay{k}")
        part.check_faults(k)
        run(f"ret i32 {DISPATCH}")
        part.label(f"run{k}")
    if what.members is not None and part.e.traced:
        run(f"call void @rt.trace_join(ptr %warp, i32 {executing}, i32 {site})")
    if what.function == "set":
        pointers.append(f"i32 {executing}")
    if what.function is not None and what.function.startswith("shfl"):
        pointers.append(f"ptr %warp, i32 {site}")
    if what.function is not None:
        run(f"call void @rt.{what.function}({', '.join((f'i32 {executing}', *pointers))})")
    if what.members is not None:
        run(f"%every{k} = icmp eq i32 {executing}, {group}")
        run(f"br i1 %every{k}, label %jump{k}, label %apart{k}")
        part.label(f"apart{k}")
        run(f"call void @rt.split(ptr %warp, i32 {executing}, i32 {k + 1}, i32 {k})")
        run(f"ret i32 {DISPATCH}")
        part.label(f"jump{k}")


def _copy(part: Part, sources: list[tuple[Operand, str, int]]) -> None:
    """Stores a chunk of the sources to their rows."""
    e = part.e
    e.guard = None
    for operand, type, byte in sources:
        element = "i64" if type == "b64" else "i32"
        value = e.read(operand, type)
        if type == "pred":
            value = e.do(f"sext {vector('i1')} {value} to {vector('i32')}")
        at = e.do(f"getelementptr {element}, ptr {_row(part, byte)}, i64 {e.index}")
        e.run(f"store {vector(element)} {value}, ptr {at}, align 4")


def _row(part: Part, byte: int) -> str:
    return part.e.do(f"getelementptr i8, ptr %regs, i64 {byte}")


def _in_memory(part: Part, operand: Operand) -> bool:
    """Whether the 32 lanes of a source lie somewhere already."""
    return operand.name in part.slots if isinstance(operand, Register) else isinstance(operand, Immediate)


def _pointer(part: Part, operand: Operand, type: str) -> str:
    """Of an operand's 32 lanes."""
    bits = {"pred": 1, "b64": 64}.get(type, 32)
    if isinstance(operand, Register):
        slot = part.slots.get(operand.name)
        if slot is None or register_bits(part.program.registers[operand.name]) != bits:
            raise Unsupported(f"{operand.name} is no .{type} register")
        return _row(part, slot.offset)
    if isinstance(operand, Sink):
        return _row(part, part.kernel.scratch)
    if not isinstance(operand, Immediate):
        raise Unsupported("a result goes to a register")
    value = -int(operand.value != 0) if type == "pred" else operand.value
    element = f"i{max(bits, 32)}"
    name = f"@lanes.{element}.{value & ((1 << 64) - 1)}"
    scalar = splat(element, value).removeprefix("splat (").removesuffix(")")
    part.kernel.constants[name] = f"{name} = private constant [32 x {element}] [{', '.join([scalar] * 32)}]\n"
    return name
