"""The last writes of many places (``shadow.py``), by arrays for many of them at once and by views for a few."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxdsl.races.clocks import MOST_COMPONENTS

if TYPE_CHECKING:
    from ptxdsl.races.actors import Actor

Array = npt.NDArray[Any]
Cut = slice | Array  # of cells or patches: their numbers

COMPONENT = MOST_COMPONENTS - 1


class Writes:
    """Of each place the last write: the actor's number, its time (0: none), the instruction's site. one_…: the same,
    for single places."""

    __slots__ = ("one_site", "one_time", "one_who", "site", "time", "who")

    def __init__(self, places: int) -> None:
        self.keep(np.zeros(places, np.uint32), np.zeros(places, np.int32), np.zeros(places, np.int32))

    def keep(self, who: Array, time: Array, site: Array) -> None:
        self.who, self.time, self.site = who, time, site
        self.one_who, self.one_time, self.one_site = single(who), single(time), single(site)

    def put(self, places: Cut, actor: Actor, site: int | Array) -> None:
        self.who[places] = actor.number
        self.time[places] = actor.time
        self.site[places] = site

    def known(self, own: Array, row: int, places: tuple[int, ...]) -> bool:
        """Whether the times of a clock's row cover the last writes of all these places."""
        for place in places:
            time = self.one_time[place]
            if time and own.item(row, self.one_who[place] & COMPONENT) < time:
                return False
        return True


def single(array: Array) -> memoryview:
    """Of which single elements are read and written faster. (An empty one has no elements to ask for.)"""
    return memoryview(array)  # type: ignore[arg-type]
