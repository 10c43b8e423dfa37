"""Fewer garbage collections while something is compiled.

A compilation makes trees and keeps them: looking for garbage in them takes a seventh of its time.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial

from ptxdsl.shared_context import SharedContext

# Objects; what a large kernel takes, so that memory stays bounded all the same.
_COLLECT_AFTER = 500_000


def _raise_threshold() -> Callable[[], object]:
    found = gc.get_threshold()
    # A process that has turned collection off (0), or made it rarer still, is left alone.
    if 0 < found[0] < _COLLECT_AFTER:
        gc.set_threshold(_COLLECT_AFTER, *found[1:])
    return partial(gc.set_threshold, *found)


rare_collections = SharedContext(_raise_threshold)
