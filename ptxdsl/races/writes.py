"""The last writes of many places (``shadow.py``), by arrays for many of them at once and by views for a few."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxdsl.races.clocks import MOST_COMPONENTS, single

if TYPE_CHECKING:
    from ptxdsl.races.actors import Actor

Array = npt.NDArray[Any]
Cut = slice | Array  # of cells or patches: their numbers

COMPONENT = MOST_COMPONENTS - 1


class Writes:
    """Of each place the last write: the actor's number (who), its time (0: none), the instruction's site; and who wrote
    it before that (writer), and when (earlier). one_…: the same, for single places."""

    __slots__ = ("_one_earlier", "_one_site", "_one_time", "_one_who", "_one_writer", "earlier", "site", "time", "who",
                 "writer")  # fmt: skip

    def __init__(self, places: int) -> None:
        who, times = np.zeros((2, places), np.uint32), np.zeros((3, places), np.int32)
        self.keep(*who, *times)

    def arrays(self) -> list[Array]:
        return [self.who, self.writer, self.time, self.earlier, self.site]

    def keep(self, who: Array, writer: Array, time: Array, earlier: Array, site: Array) -> None:
        self.who, self.writer, self.time, self.earlier, self.site = who, writer, time, earlier, site
        self._one_who, self._one_writer = single(who), single(writer)
        self._one_time, self._one_earlier, self._one_site = single(time), single(earlier), single(site)

    def put(self, places: Cut, number: int, time: int, site: int | Array) -> None:
        self.writer[places] = self.who[places]
        self.earlier[places] = self.time[places]
        self.who[places] = number
        self.time[places] = time
        self.site[places] = site

    def put_few(self, places: tuple[int, ...], actor: Actor, site: int) -> None:
        who, times, sites, number, now = self._one_who, self._one_time, self._one_site, actor.number, actor.time
        for place in places:
            self._one_writer[place] = who[place]
            self._one_earlier[place] = times[place]
            who[place] = number
            times[place] = now
            sites[place] = site

    def before(self, place: int) -> tuple[int, int]:
        """By whom a place was written before the last write, and when."""
        return self._one_writer[place], self._one_earlier[place]

    def known(self, own: Array, row: int, places: tuple[int, ...]) -> bool:
        """Whether the times of a clock's row cover the last writes of all these places."""
        times, who, item = self._one_time, self._one_who, own.item
        for place in places:
            time = times[place]
            if time and item(row, who[place] & COMPONENT) < time:
                return False
        return True
