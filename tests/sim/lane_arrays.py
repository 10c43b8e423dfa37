"""Runs lane-wise PTX instructions on arrays of any length: their code alone, without warps, memory or control flow.

>>> compute("add.u32 %d, %a, %b;", {"%a": a, "%b": b}, {"%d": "u32"})["%d"]
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

import numpy as np

from ptxdsl.ptx.liveness import CARRY
from ptxdsl.ptx.module import Immediate, Instruction, Not, Operand, Register, Sink
from ptxdsl.ptx.reader import read
from ptxdsl.sim.translate.emitter import ELEMENTS, WIDTH, splat, vector
from ptxdsl.sim.translate.host_code import compile_ir
from ptxdsl.sim.translate.ops_table import LANE_OPS

_FUNCTION = """
define void @run(ptr %memory, i64 %count) {{
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
SIGNED = ("s8", "s16", "s32")


class ArrayEmitter:
    """An ``Emitter`` whose registers are arrays in memory. bits: of each register; 1: a predicate, kept as bytes."""

    def __init__(self, bits: Mapping[str, int]) -> None:
        self.bits = bits
        self.text: list[str] = []
        self.values: dict[str, str] = {}  # registers as vectors of integers
        self.definitions: dict[str, str] = {}

    def do(self, text: str) -> str:
        self.text.append(f"  %v{len(self.text)} = {text}")
        return f"%v{len(self.text) - 1}"

    def call(self, result: str, function: str, *arguments: str) -> str:
        return self.do(f"call {result} @{function}({', '.join(arguments)})")

    def define(self, name: str, text: str) -> None:
        self.definitions[name] = text

    def pointer(self, name: str) -> str:
        """Of this chunk's lanes; a register's array starts at its number times 8 bytes a lane."""
        place = list(self.bits).index(name)
        start = self.do(f"mul i64 %count, {8 * place}")
        array = self.do(f"getelementptr i8, ptr %memory, i64 {start}")
        return self.do(f"getelementptr i{max(self.bits[name], 8)}, ptr {array}, i64 %lane")

    def register(self, name: str) -> str:
        if name not in self.values:
            size = max(self.bits[name], 8)
            value = self.do(f"load {vector(f'i{size}')}, ptr {self.pointer(name)}, align 1")
            if self.bits[name] == 1:
                value = self.do(f"icmp ne {vector('i8')} {value}, zeroinitializer")
            self.values[name] = value
        return self.values[name]

    def read(self, operand: Operand, type: str) -> str:
        element = ELEMENTS[type]
        if isinstance(operand, Immediate):
            return splat(element, operand.value)
        if isinstance(operand, Not):
            return self.do(f"xor {vector(element)} {self.read(operand.operand, type)}, {splat(element, -1)}")
        assert isinstance(operand, Register)
        bits, integer = self.bits[operand.name], integer_of(element)
        value = self.register(operand.name)
        if int(integer[1:]) < bits:
            value = self.do(f"trunc {vector(f'i{bits}')} {value} to {vector(integer)}")
        return value if element == integer else self.do(f"bitcast {vector(integer)} {value} to {vector(element)}")

    def write(self, operand: Operand, value: str, type: str) -> None:
        if isinstance(operand, Sink):
            return
        assert isinstance(operand, Register)
        element = ELEMENTS[type]
        bits, integer = self.bits[operand.name], integer_of(element)
        if element != integer:
            value = self.do(f"bitcast {vector(element)} {value} to {vector(integer)}")
        if int(integer[1:]) < bits:
            extend = "sext" if type in SIGNED else "zext"
            value = self.do(f"{extend} {vector(integer)} {value} to {vector(f'i{bits}')}")
        self.values[operand.name] = value

    def read128(self, operand: Operand) -> tuple[str, str]:
        raise NotImplementedError

    def write128(self, operand: Operand, low: str, high: str) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        """Stores all registers."""
        for name, value in list(self.values.items()):
            bits = self.bits[name]
            if bits == 1:
                bits, value = 8, self.do(f"zext {vector('i1')} {value} to {vector('i8')}")
            pointer = self.pointer(name)
            self.text.append(f"  store {vector(f'i{bits}')} {value}, ptr {pointer}, align 1")


def integer_of(element: str) -> str:
    return {"float": "i32", "double": "i64"}.get(element, element)


def instructions(body: str, registers: Mapping[str, str]) -> list[Instruction]:
    declared = " ".join(f".reg .{type} {name};" for name, type in registers.items() if name != CARRY.name)
    text = f".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k() {{ {declared}\n{body}\nret; }}"
    made = read(text).functions["k"].body
    return [i for i in made if isinstance(i, Instruction) and i.opcode != "ret"]


def bits_of_registers(inputs: Mapping[str, np.ndarray], outputs: Mapping[str, str]) -> dict[str, int]:
    bits = {name: 1 if v.dtype == bool else max(8 * v.itemsize, 16) for name, v in inputs.items()}
    for name, type in outputs.items():
        bits.setdefault(name, 1 if type == "pred" else int(type.lstrip("busf")))
    return {**bits, CARRY.name: 1}


def lane_code(body: str, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, str]) -> str:
    """The LLVM module of the instructions."""
    bits = bits_of_registers(inputs, outputs)
    emitter = ArrayEmitter(bits)
    for instruction in instructions(body, {name: "pred" if b == 1 else f"b{b}" for name, b in bits.items()}):
        LANE_OPS[instruction.parts[0]](emitter, instruction)
    emitter.finish()
    text = _FUNCTION.format(body="\n".join(emitter.text), width=WIDTH)
    return "\n".join([*emitter.definitions.values(), text])


def compute(
    body: str, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, str], optimise: int = 1
) -> dict[str, np.ndarray]:
    """Registers after the instructions, as arrays.

    inputs: register -> values; the register has their width (bool: a predicate). outputs: register -> type: ``b32`` …
    (unsigned), ``s32`` … (signed), ``f32``, ``f64``, ``pred``.
    """
    inputs = {name: np.asarray(values) for name, values in inputs.items()}
    code = compile_ir(lane_code(body, inputs, outputs), optimise)
    length = max((len(values) for values in inputs.values()), default=WIDTH)
    padded = -(-length // WIDTH) * WIDTH
    bits = bits_of_registers(inputs, outputs)
    memory = np.zeros((len(bits), 8 * padded), np.uint8)

    def lanes(name: str) -> np.ndarray:
        size = max(bits[name] // 8, 1)
        return memory[list(bits).index(name), : size * padded].view(f"u{size}")[:length]

    for name, values in inputs.items():
        lanes(name)[:] = values.view(f"u{values.itemsize}")
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.address("run"))
    run(memory.ctypes.data, padded)
    results = {}
    for name, type in outputs.items():
        found = lanes(name).copy()
        results[name] = found.view(RESULTS.get(type, f"{'i' if type[0] == 's' else 'u'}{found.itemsize}"))
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
