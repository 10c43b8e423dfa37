"""Which stream a launch goes to: the caller's own if given, else the current one of the arrays' library."""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence
from typing import Any

from ptxdsl.cuda.arrays import ArrayView
from ptxdsl.cuda.errors import launch_error


def stream_handle(stream: Any, arrays: Sequence[tuple[str, ArrayView]]) -> int:
    """The CUstream as an integer. Raises LaunchError E0910.

    ``stream``: a torch.cuda.Stream, a cupy.cuda.Stream, any object with ``__cuda_stream__``, or a raw handle. None: the
    current stream of the library that the first array comes from; the legacy default stream where there is none.
    """
    if stream is None:
        return _current(arrays)
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        return int((protocol() if callable(protocol) else protocol)[1])
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


def _current(arrays: Sequence[tuple[str, ArrayView]]) -> int:
    # the library is loaded already: its array is an argument
    for _, array in arrays:
        if array.owner == "torch":
            return int(sys.modules["torch"].cuda.current_stream(array.ordinal).cuda_stream)
        if array.owner == "cupy":
            return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    return 0
