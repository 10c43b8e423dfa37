"""Settings of the whole process that are changed while any thread needs it."""

from __future__ import annotations

from _thread import allocate_lock  # threading, without the module around it
from collections.abc import Callable


class SharedContext:
    """A context manager that several threads may be inside at once: the last to leave restores what the first found.

    change: makes the change and returns the function that undoes it.
    """

    def __init__(self, change: Callable[[], Callable[[], object]]) -> None:
        self._change = change
        self._lock = allocate_lock()
        self._inside = 0
        self._restore: Callable[[], object] = lambda: None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._restore = self._change()
            self._inside += 1

    def __exit__(self, *problem: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._restore()
