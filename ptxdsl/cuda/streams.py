"""Which stream a launch goes to: the caller's own if given, else the current one of the arrays' library."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable
from typing import Any

from ptxdsl.cuda.arrays import Donated, is_tensor_map, leaves
from ptxdsl.diagnostics import launch_error

DEFAULT = 0  # the legacy default stream


def stream_handle(stream: Any) -> int:
    """The CUstream of a torch.cuda.Stream, a cupy.cuda.Stream, an object with ``__cuda_stream__``, or a raw handle.

    Raises LaunchError E0910.
    """
    if stream.__class__ is int:
        return int(stream)
    if hasattr(stream, "__cuda_stream__"):
        return _by_protocol(stream)
    for attribute in ("cuda_stream", "ptr"):  # PyTorch, CuPy
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    try:
        if isinstance(stream, bool):
            raise TypeError
        return operator.index(stream)
    except TypeError:
        raise launch_error(
            "E0910",
            f"stream must be a stream of PyTorch or CuPy, an object with __cuda_stream__, or a handle; "
            f"got {type(stream).__name__}",
        ) from None


def _by_protocol(stream: Any) -> int:
    """Version 0 of cuda.core's protocol: a method, or once a property, that gives (version, handle)."""
    protocol = stream.__cuda_stream__
    try:
        version, handle = protocol() if callable(protocol) else protocol
        if version == 0:
            return int(handle)
        problem = f"version {version} of the protocol is not known"
    except (TypeError, ValueError):
        problem = "it does not give a pair of version and handle"
    raise launch_error("E0910", f"the __cuda_stream__ of {type(stream).__name__} cannot be used: {problem}")


Current = Callable[[int], int]


def current_of(library: str) -> Current | None:
    """A function from a device's ordinal to the handle of the current stream of a library, which is loaded already.

    None for libraries without such a thing.
    """
    if library == "torch":
        torch: Any = sys.modules["torch"]
        # What PyTorch's own code generators call: no Stream object is made.
        raw = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)
        return raw or (lambda ordinal: int(torch.cuda.current_stream(ordinal).cuda_stream))
    if library == "cupy":
        cupy: Any = sys.modules["cupy"]
        return lambda ordinal: int(cupy.cuda.get_current_stream().ptr)
    return None


def library_of(arguments: Iterable[Any]) -> str | None:
    """The library whose current stream a launch goes to: that of the first array which has one, or else of the first
    tensor map on such an array; structs are looked into."""
    values = list(leaves(arguments))
    for value in (*values, *(value.array for value in values if is_tensor_map(value))):
        kind = type(value.array if isinstance(value, Donated) else value)
        home = kind.__module__.partition(".")[0]
        found = "torch" if hasattr(kind, "data_ptr") else home if home == "cupy" else None
        if found is not None and current_of(found) is not None:
            return found
    return None


def exported_stream(arguments: Iterable[Any]) -> int:
    """The stream that the first array with ``__cuda_array_interface__`` asks its readers to follow, else the default.

    Source: CUDA array interface, version 3, "Synchronization".
    """
    for value in leaves(arguments):
        array = value.array if is_tensor_map(value) else value
        interface = getattr(array, "__cuda_array_interface__", None)
        found = (isinstance(interface, dict) and interface.get("stream")) or DEFAULT
        if found != DEFAULT:
            return int(found)
    return DEFAULT
