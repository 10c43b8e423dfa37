"""Runs lane-wise PTX instructions on arrays of any length: their code alone, without warps, memory or control flow.

>>> compute("add.u32 %d, %a, %b;", {"%a": a, "%b": b}, {"%d": "u32"})["%d"]
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

import numpy as np

from ptxdsl.ptx.module import Instruction
from ptxdsl.ptx.reader import read
from ptxdsl.sim.symbols import lay_out
from ptxdsl.sim.translate.emitter import CARRY, WIDTH
from ptxdsl.sim.translate.host_code import compile_ir
from ptxdsl.sim.translate.lanes import LaneEmitter, Slot
from ptxdsl.sim.translate.ops_table import LANE_OPS

_FUNCTION = """
define void @run(ptr %regs, i64 %count) {{
entry:
  br label %loop
loop:
  %lane = phi i64 [ 0, %entry ], [ %next, %loop ]
{body}
  %next = add i64 %lane, {width}
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""
RESULTS = {"f32": np.float32, "f64": np.float64, "pred": bool}


def instructions(body: str, registers: Mapping[str, str]) -> list[Instruction]:
    declared = " ".join(f".reg .{type} {name};" for name, type in registers.items() if name != CARRY.name)
    text = f".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k() {{ {declared}\n{body}\nret; }}"
    made = read(text).functions["k"].body
    return [i for i in made if isinstance(i, Instruction) and i.opcode != "ret"]


def lane_code(body: str, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, str]) -> tuple[str, dict[str, Slot]]:
    """The LLVM module of the instructions, and where each register's lanes lie, one after the other."""
    registers = {name: "pred" if v.dtype == bool else f"b{max(8 * v.itemsize, 16)}" for name, v in inputs.items()}
    for name, type in outputs.items():
        registers.setdefault(name, "pred" if type == "pred" else f"b{type.lstrip('busf')}")
    registers[CARRY.name] = "pred"
    length = max((len(values) for values in inputs.values()), default=WIDTH)
    padded = -(-length // WIDTH) * WIDTH
    slots = {
        name: Slot(8 * padded * i, 32 if type == "pred" else int(type[1:]), type == "pred")
        for i, (name, type) in enumerate(registers.items())
    }
    emitter = LaneEmitter(registers, slots, lay_out([], []))
    emitter.start("%lane", "splat (i1 true)", "-1")
    for instruction in instructions(body, registers):
        emitter.begin(instruction)
        LANE_OPS[instruction.parts[0]](emitter, instruction)
    emitter.finish(lambda name: True)
    text = _FUNCTION.format(body="".join(emitter.text), width=WIDTH)
    return "\n".join([*emitter.declared.values(), *emitter.definitions.values(), text]), slots


def compute(
    body: str, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, str], optimise: int = 1
) -> dict[str, np.ndarray]:
    """Registers after the instructions, as arrays.

    inputs: register -> values; the register has their width (bool: a predicate). outputs: register -> type: ``b32`` …
    (unsigned), ``s32`` … (signed), ``f32``, ``f64``, ``pred``.
    """
    inputs = {name: np.asarray(values) for name, values in inputs.items()}
    text, slots = lane_code(body, inputs, outputs)
    code = compile_ir(text, optimise)
    length = max((len(values) for values in inputs.values()), default=WIDTH)
    padded = -(-length // WIDTH) * WIDTH
    memory = np.zeros(8 * padded * len(slots) + 64, np.uint8)
    memory = memory[-memory.ctypes.data % 64 :]

    def lanes(name: str) -> np.ndarray:
        slot = slots[name]
        return memory[slot.offset :][: padded * slot.bits // 8].view(f"i{slot.bits // 8}")

    for name, values in inputs.items():
        if values.dtype == bool:
            lanes(name)[:length] = -values.astype(np.int32)
        else:
            wide = values.view(f"u{values.itemsize}").astype(f"u{slots[name].bits // 8}")
            lanes(name)[:length] = wide.view(lanes(name).dtype)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.address("run"))
    run(memory.ctypes.data, padded)
    results = {}
    for name, type in outputs.items():
        found = lanes(name)[:length].copy()
        kind = RESULTS.get(type, f"{'i' if type[0] == 's' else 'u'}{found.itemsize}")
        results[name] = found != 0 if kind is bool else found.view(kind)
    return results


def one(instruction: str, *operands: np.ndarray, result: str, optimise: int = 1) -> np.ndarray:
    """The result of ``"add.u32"`` on operands a, b, c …; ``{}`` in the text stands for the operands' list."""
    names = [f"%{letter}" for letter in "abcdefg"[: len(operands)]]
    body = instruction if "%" in instruction else f"{instruction} %d0, {', '.join(names)};"
    return compute(body, dict(zip(names, operands, strict=True)), {"%d0": result}, optimise)["%d0"]


def many(opcodes: list[str], operands: list[np.ndarray], results: list[str], optimise: int = 1) -> list[np.ndarray]:
    """The results of several instructions on the same operands, compiled together."""
    names = [f"%{letter}" for letter in "abcdefg"[: len(operands)]]
    body = "\n".join(f"{opcode} %d{i}, {', '.join(names)};" for i, opcode in enumerate(opcodes))
    outputs = {f"%d{i}": type for i, type in enumerate(results)}
    found = compute(body, dict(zip(names, operands, strict=True)), outputs, optimise)
    return [found[name] for name in outputs]
