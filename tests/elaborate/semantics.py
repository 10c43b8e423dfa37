"""The same code evaluated twice: at compile time, and by running the TIR that it becomes; both give the same value."""

from __future__ import annotations

import math
import sys
import textwrap
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from elaborate_support import typed

from ptxdsl import tir

sys.path.append(str(Path(__file__).parents[1] / "tir"))
from run_tir import Machine

RESULT = 1 << 20  # where the result is stored


@dataclass(frozen=True)
class Argument:
    """A number of a scalar type: a constant of the compile-time run, a kernel argument of the other."""

    type: str
    value: float

    @property
    def text(self) -> str:
        dtype = f"DType.{self.type.lower()}"
        if isinstance(self.value, float) and not math.isfinite(self.value):
            sign = "-" if self.value < 0 else ""
            return f"{'nan' if math.isnan(self.value) else sign + 'inf'}[{dtype}]()"
        return f"{self.type}({self.value!r})"


I8, I16, I32, I64, Int = (partial(Argument, t) for t in ("Int8", "Int16", "Int32", "Int64", "Int"))
U8, U16, U32, U64 = (partial(Argument, t) for t in ("UInt8", "UInt16", "UInt32", "UInt64"))
F16, BF16, F32, F64 = (partial(Argument, t) for t in ("Float16", "BFloat16", "Float32", "Float64"))
Bool = partial(Argument, "Bool")


def evaluate(body: str, result: str, declarations: str = "", **arguments: Argument) -> object:
    """The value of an expression, or of the body of a function that returns one; the same in both ways.

    ``result`` is its type. Integers come back as the type has them, a Bool as a bool.
    """
    body = textwrap.dedent(body).strip("\n")
    lines = body.splitlines() if "return" in body else [f"return {body}"]
    typed_names = ", ".join(f"{name}: {a.type}" for name, a in arguments.items())
    program = "\n".join([
        textwrap.dedent(declarations),
        f"def tested({typed_names}) -> {result}:",
        *("    " + line for line in lines),
        "@kernel",
        f"def now(result: Pointer[{result}, MutAnyOrigin]):",
        f"    comptime value = tested({', '.join(a.text for a in arguments.values())})",
        "    result[] = value",
        "@kernel",
        f"def later({', '.join(filter(None, (f'result: Pointer[{result}, MutAnyOrigin]', typed_names)))}):",
        f"    result[] = tested({', '.join(arguments)})",
    ])  # fmt: skip
    module = typed(program)
    now, later = module.kernels
    values = [kept(a) for a in arguments.values()]
    first = stored(now)
    second = stored(later, *values)
    assert repr(first) == repr(second), f"at compile time {first!r}, at run time {second!r}"
    return shown(first, result)


def run(program: str, *arguments: object, arch: str = "sm_100a", thread: int = 0, **constants: str) -> list[object]:
    """What a program's only kernel stores, in order; its first argument points to address RESULT."""
    module = typed(program, arch, **constants)
    machine = Machine(module.kernels[0], thread=thread)
    return [event[2] for event in machine.run(RESULT, *arguments) if event[0] == "store"]


def kept(argument: Argument) -> float:
    """As the typed IR holds it: integers signed."""
    value = argument.value
    if isinstance(value, bool) or argument.type[0] != "U":
        return int(value) if isinstance(value, bool) else value
    bits = int(argument.type[4:] or 64)
    return value - (1 << bits) if value >= 1 << (bits - 1) else value


def stored(kernel: tir.Kernel, *arguments: object) -> object:
    machine = Machine(kernel)
    machine.run(RESULT, *arguments)
    return machine.memory[RESULT]


def shown(value: object, result: str) -> object:
    if result == "Bool":
        return bool(value)
    if result.startswith("UInt") and isinstance(value, int):
        return value & ((1 << int(result[4:] or 64)) - 1)
    return value
