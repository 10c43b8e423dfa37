"""Values of comptime parameters given from Python, as the expression texts that the compiler takes."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, NoReturn

from ptxdsl.compiled import Constants
from ptxdsl.diagnostics import launch_error
from ptxdsl.shown import shown, shown_with_type

_LARGEST = 10_000  # bits; Python writes no integer of more than 4300 digits


def constants(values: Mapping[str, Any]) -> Constants:
    """Sorted by name. Raises LaunchError E0913 for a value that no expression stands for, TypeError for no dict."""
    if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
        raise TypeError(f"constants are a dict of names and values, not {shown(values)}")
    return tuple(sorted((name, _expression(name, value)) for name, value in values.items()))


def _expression(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    kind = type(value)
    libraries = ("numpy", "ml_dtypes", "torch")
    if kind is type and value.__module__ in libraries:  # numpy.float32
        return f"DType.{value.__name__.rstrip('_')}"
    if kind.__module__.partition(".")[0] in libraries:
        if "dtype" in kind.__name__.lower():  # numpy.dtype, numpy.dtypes.Float32DType, torch.dtype
            dtype = str(value).removeprefix("torch.")
            return f"DType.{dtype}" if dtype.isidentifier() else _cannot(name, value)
        if hasattr(value, "item"):
            try:
                value = value.item()
            except (TypeError, ValueError, RuntimeError):  # of several elements
                return _cannot(name, value)
    if (isinstance(value, int) and value.bit_length() < _LARGEST) or (isinstance(value, float) and isfinite(value)):
        return repr(value)
    return _cannot(name, value)


def _cannot(name: str, value: Any) -> NoReturn:
    raise launch_error(
        "E0913",
        f"parameter '{name}' cannot be given as {shown_with_type(value)}",
        help="give a number, a bool, a dtype, or the text of a constant expression",
    )
