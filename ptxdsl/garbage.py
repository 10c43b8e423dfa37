"""Python looks for garbage less often while something is compiled.

A compilation makes trees and keeps them: looking for garbage in them is a seventh of its time.
"""

from __future__ import annotations

import gc
from _thread import allocate_lock

# Objects; what a large kernel takes, so that memory stays bounded all the same.
_COLLECT_AFTER = 500_000


class _Seldom:
    """A context, which may be entered several times at once: the last to leave restores what the first found."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._inside = 0
        self._found = gc.get_threshold()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._found = gc.get_threshold()
                # A process that has turned collection off (0), or made it rarer still, is left alone.
                if 0 < self._found[0] < _COLLECT_AFTER:
                    gc.set_threshold(_COLLECT_AFTER, *self._found[1:])
            self._inside += 1

    def __exit__(self, *problem: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                gc.set_threshold(*self._found)


seldom = _Seldom()
