"""Epilogues against NumPy, each and combined, at the edges of what they read."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ptxdsl

TEXT = """
from epilogue import Bias, Gelu, GeluTanh, Identity, Relu, Residual, Scale, ScaleCols, ScaleRows, Then

@kernel(threads=32)
def apply[E: AnyType](matrix: Pointer[Float32, MutAnyOrigin], rows: Int32, epilogue: E):
    for row in range(rows):
        var p = matrix.unsafe_offset(row * 64 + 2 * Int32(thread_idx.x))
        p.unsafe_store[alignment=8](0, epilogue(p.unsafe_load[width=2, alignment=8](0), row, 2 * Int32(thread_idx.x)))
"""
ROWS, COLS = 5, 48  # of what the epilogues have; the matrix goes on behind them
ERF = np.vectorize(math.erf)


def whole(part):
    """The last row and column (of a pair) stand for those that are not there."""
    down = part[np.minimum(np.arange(7), ROWS - 1)] if part.shape[0] == ROWS else np.broadcast_to(part, (7, COLS))
    across = [min(c - c % 2, COLS - 2) + c % 2 for c in range(64)]
    return down[:, across] if part.shape[1] == COLS else np.broadcast_to(down, (7, 64))


RNG = np.random.default_rng(8)
X = RNG.standard_normal((7, 64)).astype(np.float32)
ROW = RNG.standard_normal((1, COLS)).astype(np.float32)
COLUMN = RNG.standard_normal((ROWS, 1)).astype(np.float32)
MATRIX = RNG.standard_normal((ROWS, COLS)).astype(np.float16)
CASES = {
    "Identity": ((), X),
    "Scale": ((0.25,), 0.25 * X),
    "Relu": ((), np.maximum(X, 0)),
    "Gelu": ((), X / 2 * (1 + ERF(X / math.sqrt(2)))),
    "GeluTanh": ((), X / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X**3)))),
    "Bias[DType.float32]": ((ROW, COLS), X + whole(ROW)),
    "ScaleCols[DType.float32]": ((ROW, COLS), X * whole(ROW)),
    "ScaleRows[DType.float32]": ((COLUMN, ROWS), X * whole(COLUMN)),
    "Residual[DType.float16]": ((MATRIX, ROWS, COLS, 0.5), X + 0.5 * whole(MATRIX)),
    "Then[Bias[DType.float32], Then[Relu, Scale]]": (((ROW, COLS), ((), (3.0,))), 3 * np.maximum(X + whole(ROW), 0)),
}


@pytest.mark.parametrize("name", CASES)
def test_epilogue(name):
    fields, expected = CASES[name]
    matrix = X.copy()
    kernel = ptxdsl.loads(TEXT, "epilogues.pdsl")["apply"].specialize(E=name)
    report = kernel.simulate(matrix, 7, fields)
    assert report.finished, report.render()
    np.testing.assert_allclose(
        matrix, expected, rtol=2e-3 if "Tanh" in name else 1e-6, atol=1e-3 if "Tanh" in name else 1e-6
    )


def test_a_constant_is_read_in_the_kernels_module():
    """``-D E=…`` has the names that the module imports, and its own."""
    text = TEXT.replace("@kernel", "comptime Twice = Then[Scale, Scale]\n\n\n@kernel", 1)
    matrix = X.copy()
    kernel = ptxdsl.loads(text, "epilogues.pdsl")["apply"].specialize(E="Twice")
    assert kernel.simulate(matrix, 7, ((2.0,), (4.0,))).finished
    np.testing.assert_array_equal(matrix, 8 * X)
