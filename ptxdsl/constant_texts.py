"""Values of comptime parameters given from Python, as the expression texts that the compiler takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ptxdsl.compiled import Constants
from ptxdsl.cuda.errors import launch_error


def constants(values: Mapping[str, Any]) -> Constants:
    """Sorted by name. Raises LaunchError E0913 for a value that no expression stands for."""
    return tuple(sorted((name, _expression(name, value)) for name, value in values.items()))


def _expression(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    kind = type(value)
    if isinstance(value, bool | int | float):
        return repr(value)
    if kind.__module__.partition(".")[0] in ("numpy", "ml_dtypes", "torch"):
        if "dtype" in kind.__name__.lower():  # numpy.dtype, numpy.dtypes.Float32DType, torch.dtype
            return f"DType.{str(value).removeprefix('torch.')}"
        if hasattr(value, "item"):
            return repr(value.item())
    raise launch_error(
        "E0913",
        f"parameter '{name}' cannot be given as {kind.__name__} {value!r}",
        help="give a number, a bool, a dtype, or the text of a constant expression",
    )
