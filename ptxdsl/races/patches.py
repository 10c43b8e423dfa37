"""Cells of a cluster's own memory in patches: those that all accesses so far have touched together, or not at all.

Kernels come to shared memory again and again by the same tiles, rows and words, so that there are few patches, and all
that is known of one is known of each of its cells. An access that touches a part of a patch splits it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.record import dataclass

Array = npt.NDArray[Any]

_FEW = 4  # patches that are looked at one by one; more, all at once
_MOST_AREAS = 1 << 12
_GROW = 64


@dataclass(slots=True, eq=False)
class Area:
    """What an access touches: ``size`` bytes at each of ``starts``. cells: theirs; patches: of those, few: the same
    where there are not many. version: of the patches."""

    starts: int | Array
    size: int
    cells: slice | Array
    patches: Array
    few: tuple[int, ...]
    version: int


class Patches:
    """of: of each cell the number of its patch. split: is told of patches, and the numbers of those that are now parts
    of them; its caller copies what it knows of them. room: for how many patches there must be."""

    def __init__(self, cells: int, split: Callable[[Array, Array, int], None]) -> None:
        self.of: Array = np.zeros(cells, np.int32)
        self.sizes: Array = np.zeros(_GROW, np.int64)
        self.sizes[0] = cells
        self.count = 1
        self.version = 0
        self._split = split
        self._areas: dict[tuple[object, int], Area] = {}

    @property
    def room(self) -> int:
        return len(self.sizes)

    def finer(self, factor: int) -> None:
        """Each cell has become that many."""
        self.of = np.repeat(self.of, factor)
        self.sizes *= factor
        self.version += 1

    def area(self, starts: int | Array, size: int) -> Area | None:
        """If this access was made before."""
        return self._areas.get((starts if isinstance(starts, int) else starts.tobytes(), size))

    def new_area(self, starts: int | Array, size: int, cells: slice | Array) -> Area:
        if len(self._areas) >= _MOST_AREAS:
            self._areas.clear()
        area = Area(starts, size, cells, self.of[:0], (), -1)
        self._areas[starts if isinstance(starts, int) else starts.tobytes(), size] = area
        self.refresh(area, cells)
        return area

    def refresh(self, area: Area, cells: slice | Array) -> None:
        """Its patches, each of which lies in it as a whole. cells: those that it has now."""
        area.cells = cells
        touched = self.of[area.cells] if isinstance(area.cells, slice) else self.of[np.unique(area.cells)]
        numbers, counts = np.unique(touched, return_counts=True)
        partly = counts < self.sizes[numbers]
        if partly.any():
            old, parts = numbers[partly], counts[partly]
            new = np.arange(self.count, self.count + len(old), dtype=np.int32)
            self._make(old, new, parts)
            becomes = np.arange(self.count, dtype=np.int32)
            becomes[old] = new
            self.of[area.cells] = becomes[self.of[area.cells]]
            numbers = np.unique(becomes[numbers])
        area.patches = numbers
        area.few = tuple(numbers.tolist()) if len(numbers) <= _FEW else ()
        area.version = self.version

    def _make(self, old: Array, new: Array, sizes: Array) -> None:
        self.count += len(new)
        while self.count > len(self.sizes):
            self.sizes = np.concatenate([self.sizes, np.zeros(len(self.sizes), np.int64)])
        self.sizes[old] -= sizes
        self.sizes[new] = sizes
        self.version += 1
        self._split(old, new, self.room)
