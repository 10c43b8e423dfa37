"""Code on a device, which must stay there as long as something may launch it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import finalize


class Code:
    """Loaded code. It stays loaded forever, since a CUDA graph may hold launches of it, unless it is released.

    unload: takes it off the device. kept: what must live as long as it.
    """

    def __init__(self, unload: Callable[[], None], kept: Any = None) -> None:
        self._unload: Callable[[], None] | None = unload
        self._kept = kept

    def release(self) -> None:
        """Unloads it when nothing refers to it any more: no launch can be made of it then, but by a graph."""
        unload, self._unload = self._unload, None
        if unload is not None:
            finalize(self, unload).atexit = False
