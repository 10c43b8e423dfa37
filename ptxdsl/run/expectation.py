"""``--expect 'res == a + b'``: NumPy's answer beside the kernel's."""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ptxdsl.diagnostics import CompileError, error
from ptxdsl.record import dataclass
from ptxdsl.run.formats import Array


@dataclass(frozen=True)
class Tolerance:
    """As NumPy's isclose: |found - expected| <= absolute + relative * |expected|; both 0 asks for equality."""

    relative: float = 0.0
    absolute: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """holds: whether the expectation is met. text: one line that says by how much, or where it is missed first."""

    holds: bool
    text: str


class Expectation:
    """An expression over the arguments' names, ``np``, ``math`` and ``functools``.

    Of ``LEFT == RIGHT`` the left side is computed from what the kernel left behind and the right one from what it was
    given, so ``x == x + 1`` speaks of a kernel that works in place. Any other expression must come out true, computed
    from what the kernel left. It is the user's own Python, evaluated as such. Raises E1016.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
            raise _wrong(text, getattr(problem, "msg", str(problem))) from None
        body = tree.body
        self._sides: tuple[ast.expr, ast.expr] | None = None
        if isinstance(body, ast.Compare) and len(body.ops) == 1 and isinstance(body.ops[0], ast.Eq):
            self._sides = body.left, body.comparators[0]
        self._whole = body

    def judge(self, before: Mapping[str, Any], after: Mapping[str, Any], tolerance: Tolerance) -> Outcome:
        if self._sides is None:
            holds = np.all(self._value(self._whole, after))
            return Outcome(bool(holds), f"{self.text}: {'true' if holds else 'false'}")
        left = np.asarray(self._value(self._sides[0], after))
        right = np.asarray(self._value(self._sides[1], before))
        try:
            shape = np.broadcast_shapes(left.shape, right.shape)
        except ValueError:
            shape = None
        if shape != left.shape:
            raise _wrong(self.text, f"the left side has shape {left.shape}, the right one {right.shape}")
        return self._compare(left, np.broadcast_to(right, left.shape), tolerance)

    def _compare(self, found: Array, expected: Array, tolerance: Tolerance) -> Outcome:
        if found.dtype.kind not in "biufc" or expected.dtype.kind not in "biufc":
            raise _wrong(self.text, "its sides are not numbers")
        same = (found == expected) | ((found != found) & (expected != expected))
        with np.errstate(all="ignore"):
            kinds = found.dtype.kind + expected.dtype.kind
            wide = np.complex128 if "c" in kinds else np.float64 if "f" in kinds else object
            difference = np.asarray(np.abs(found.astype(wide) - expected.astype(wide)), np.float64)
            size = np.asarray(np.abs(expected.astype(wide)), np.float64)
        good = same | (difference <= tolerance.absolute + tolerance.relative * size)
        difference[same] = 0
        largest = float(np.max(difference, initial=0.0))
        with np.errstate(all="ignore"):
            relative = float(np.max(np.where((size > 0) | ~(difference <= 0), difference / size, 0.0), initial=0.0))
        errors = f"largest error {largest:.3g}, relative {relative:.3g}"
        if good.all():
            exactly = "equal" if same.all() else f"within tolerance: {errors}"
            return Outcome(True, f"{self.text}: {exactly} ({found.size} elements)")
        place = tuple(int(i) for i in np.argwhere(~good)[0]) if found.ndim else ()
        first = f"the first is [{', '.join(map(str, place))}]" if place else "it is"
        differ = f"{int((~good).sum())} of {found.size} elements differ, {errors}"
        return Outcome(False, f"{self.text}: {differ}; {first}: {found[place]!s}, expected {expected[place]!s}")

    def _value(self, expression: ast.expr, names: Mapping[str, Any]) -> Any:
        known = {"np": np, "math": math, "functools": functools, **names}
        try:
            code = compile(ast.Expression(expression), "--expect", "eval")
            with np.errstate(all="ignore"):
                return eval(code, known)
        except (Exception, SystemExit) as problem:
            raise _wrong(self.text, f"{type(problem).__name__}: {problem}") from None


def _wrong(text: str, what: str) -> CompileError:
    help = "a NumPy expression over the arguments' names, as in --expect 'res == a + b'"
    return error("E1016", f"--expect '{text}': {what}", None, help=help)
