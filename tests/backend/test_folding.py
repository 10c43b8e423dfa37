"""What is computed at compile time is what the instructions give, to the bit; the simulator executes them here."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import ptxdsl

INF, NAN = math.inf, math.nan
FLOAT_BITS = {"Float8_e4m3fn": 8, "Float8_e5m2": 8, "Float16": 16, "BFloat16": 16, "Float32": 32, "Float64": 64}

ZEROS = ((0.0, -0.0), (-0.0, 0.0), (NAN, 1.0), (1.0, NAN), (-INF, 3.0))
QUOTIENTS = ((7.5, 2.0), (-7.5, 2.0), (7.5, -2.0), (1.0, 0.1), (-0.0, 3.0), (1.0, 0.0), (INF, 2.0), (1e30, 3e-9))
SIGNED = ((7, -2), (-7, 2), (-(1 << 31), -1), (5, 0), (1, 33), (-9, 40), (-9, -1))
UNSIGNED = ((7, 2), ((1 << 32) - 1, 3), (5, 0), (1, 40))
WIDE = (1e30, INF, -INF, NAN, 448.0, 463.9, 465.0, 57344.0, 61440.0, 65520.0, -0.0, 1e-9, 0.0087890625, 1.0625)
TWICE = 1.0625 + 2.0**-40  # a little above the middle of two float8; in float32 it is the middle


class Row(NamedTuple):
    """An expression of ``a`` and ``b``, their type and values, and the type of what it gives."""

    expression: str
    type: str
    result: str
    a: float
    b: float = 0


ROWS = [
    *(Row(e, t, t, *v) for t in ("Float16", "Float32", "Float64") for e in ("min(a, b)", "max(a, b)") for v in ZEROS),
    *(Row("fma(a, b, a)", t, t, *v) for t in ("BFloat16", "Float32") for v in ((-0.0, 3.0), (0.0, -3.0), (3.0, -1.0))),
    *(Row(e, t, t, *v) for t in ("Float32", "Float64") for e in ("a // b", "a % b", "a / b") for v in QUOTIENTS),
    *(Row(f"a {op} b", "Int32", "Int32", *v) for op in ("//", "%", "/", "<<", ">>", "*") for v in SIGNED),
    *(Row(f"a {op} b", "UInt32", "UInt32", *v) for op in ("//", "%", "<<", ">>") for v in UNSIGNED),
    *(
        Row(f"{result}(a)", source, result, value)
        for source in ("Float32", "Float64", "BFloat16")
        for result in ("Float8_e4m3fn", "Float8_e5m2", "Float16", "BFloat16", "Int8", "UInt8", "Int32", "Int64")
        for value in WIDE
    ),
    *(Row(f"{t}(a)", "Float64", t, v) for t in ("Float8_e4m3fn", "Float16") for v in (TWICE, -TWICE)),
    *(Row("BFloat16(a)", "Float64", "BFloat16", 1 + 2.0**-8 + step * 2.0**-40) for step in (-1, 0, 1)),
    *(Row(f"{t}(a)", "Int32", t, v) for t in ("Float8_e5m2", "Float16") for v in (17, 1000, -70000, 65519)),
]


def literal(type: str, value: float) -> str:
    if math.isfinite(value):
        return f"{type}({value!r})"
    sign = "-" if value < 0 else ""
    return f"{'nan' if math.isnan(value) else sign + 'inf'}[DType.{type.lower()}]()"


def bits(value: str, type: str) -> str:
    """A value as an integer; every NaN is -1."""
    if type not in FLOAT_BITS:
        return f"Int64({value})"
    number = f"Int64(bitcast[DType.uint{FLOAT_BITS[type]}]({value}))"
    return f"{number} if Float64({value}) == Float64({value}) else Int64(-1)"


def program() -> str:
    lines = []
    head = "@kernel(threads=1)\ndef k(src: Pointer[Float64, MutAnyOrigin], res: Pointer[Int64, MutAnyOrigin]):\n"
    for number, row in enumerate(ROWS):
        given = f"{literal(row.type, row.a)}, {literal(row.type, row.b)}"
        loaded = f"{row.type}(src[{2 * number}]), {row.type}(src[{2 * number + 1}])"
        head = f"def f{number}(a: {row.type}, b: {row.type}) -> {row.result}:\n    return {row.expression}\n\n{head}"
        lines += [f"comptime now{number} = f{number}({given})", f"var later{number} = f{number}({loaded})"]
        lines += [f"res[{2 * number}] = {bits(f'now{number}', row.result)}"]
        lines += [f"res[{2 * number + 1}] = {bits(f'later{number}', row.result)}"]
    return head + "".join(f"    {line}\n" for line in lines)


def test_compile_time_is_run_time() -> None:
    values = np.array([v for row in ROWS for v in (row.a, row.b)], np.float64)
    results = np.zeros((len(ROWS), 2), np.int64)
    ptxdsl.loads(program(), "folding.pdsl").k.simulate(values, results, arch="sm_90a")
    assert [(row, now, later) for row, (now, later) in zip(ROWS, results.tolist(), strict=True) if now != later] == []
    assert len(set(results[:, 0].tolist())) > 60
