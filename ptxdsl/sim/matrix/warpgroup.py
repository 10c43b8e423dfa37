"""What a warpgroup has issued, in a record that turns in host code change as well (``layout.WARPGROUP``).

The n-th product of one warp is the n-th of the others, and its number is n, from 1. Products are carried out in this
order, so that how many have been says of each number whether its product is done.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ptxdsl.sim.host import Group, Wait, WaitsFor
from ptxdsl.sim.layout import COMMITTED, MOST_PRODUCTS, PRODUCT, RANK_SHIFT, WARPGROUP, cells, offset
from ptxdsl.sim.machine.memory import aligned_bytes, host_address

if TYPE_CHECKING:
    from ptxdsl.sim.machine.cta import Cta
    from ptxdsl.sim.machine.machine import Machine
    from ptxdsl.sim.matrix.wgmma import Product

WARPS = 4
ALL = (1 << WARPS) - 1
_FIRST_ROOM = 16  # groups of a warp; a power of two
_CARRIED_OUT, _PENDING, _ISSUED, _FENCED, _HEAD, _COUNT, _RING = (
    offset(WARPGROUP, name) // 4 for name in ("carried_out", "pending", "issued", "fenced", "head", "count", "ring")
)
_LATEST, _GROUPS = offset(WARPGROUP, "latest") // 8, offset(WARPGROUP, "groups") // 8
_PRODUCTS = offset(WARPGROUP, "products")
_NUMBER, _SITE, _OPEN, _ACCUMULATE, _JOINED = (
    offset(PRODUCT, name) // 4 for name in ("number", "site", "open", "accumulate", "joined")
)
_A, _B = offset(PRODUCT, "a") // 8, offset(PRODUCT, "b") // 8


class Warpgroup:
    """pending: products not carried out yet, in the program's order. issued: how many each warp has executed. fenced:
    whether each has executed a fence. latest: by warp the time of its last product, if that is done.

    A warp's wgmma-groups that may be pending are kept by the number of the last product of each (0: none before it) and
    the time at which that was done, in a ring of ``room``.
    """

    def __init__(self, machine: Machine, cta: Cta, index: int) -> None:
        self.machine = machine
        self.cta = cta
        self.index = index
        self.shared_start = cta.rank << RANK_SHIFT
        self.pending: deque[Product] = deque()
        self._memory = aligned_bytes(WARPGROUP.itemsize)
        self.record = host_address(self._memory)
        self._words, self._quads = cells(self._memory, "I"), cells(self._memory, "q")
        self.issued, self.fenced, self._head, self._count = (
            self._words[first : first + WARPS] for first in (_ISSUED, _FENCED, _HEAD, _COUNT)
        )
        self.latest = self._quads[_LATEST : _LATEST + WARPS]
        self._products = [_record(self._memory, at) for at in range(MOST_PRODUCTS)]
        self._make_room(_FIRST_ROOM)
        if machine.host_turns is not None:
            machine.host_turns.issues(cta, self)

    @property
    def carried_out(self) -> int:
        return self._words[_CARRIED_OUT]

    # Products

    def issue(self, rank: int, group: Group, product: Product) -> Product:
        """A warp executes its part of a product, which is the one that is given back."""
        place = self.issued[rank] - self.carried_out
        if place == len(self.pending):
            self.pending.append(product)
            self._words[_PENDING] = len(self.pending)
            product.number = self.issued[rank] + 1
            if place < MOST_PRODUCTS:
                product.record = self._record_of(product)
            self.machine.start(product)
        else:
            product = self._common(group, product, self.pending[place])
        product.join(rank, group)
        self.issued[rank] += 1
        return product

    def _record_of(self, product: Product) -> memoryview:
        """Where host code finds what the warps must agree about."""
        words, quads = self._products[(product.number - 1) % MOST_PRODUCTS]
        words[_NUMBER], words[_ACCUMULATE] = product.number, product.accumulate
        words[_OPEN] = words[_JOINED] = 0
        quads[_A], quads[_B] = product.a or 0, product.b
        return words

    def _common(self, group: Group, mine: Product, theirs: Product) -> Product:
        """The product that other warps have executed their parts of; a fault if it is not this one."""
        if (mine.origin, mine.accumulate, mine.a, mine.b) == (theirs.origin, theirs.accumulate, theirs.a, theirs.b):
            return theirs
        if mine.origin is not theirs.origin:
            raise group.fault(
                "E1141",
                f"the warps of warpgroup {self.index} execute different wgmma instructions: one that of PTX line "
                f"{mine.origin.line}, another that of line {theirs.origin.line}",
                "all four warps of a warpgroup execute the same wgmma.mma_async in the same order",
            )
        different = [
            f"{what}, {here} and {there}"
            for what, here, there in (
                ("scale-d", mine.accumulate, theirs.accumulate),
                ("the descriptor of A", f"{mine.a or 0:#x}", f"{theirs.a or 0:#x}"),
                ("the descriptor of B", f"{mine.b:#x}", f"{theirs.b:#x}"),
            )
            if here != there
        ]
        raise group.fault(
            "E1141",
            f"the warps of warpgroup {self.index} disagree about {'; '.join(different)}",
            "descriptors and scale-d are the same in all four warps of a warpgroup",
        )

    def finished(self, product: Product) -> None:
        """The first of those pending has been carried out."""
        self.pending.popleft()
        self._words[_CARRIED_OUT], self._words[_PENDING] = product.number, len(self.pending)
        for rank in range(WARPS):
            if self.issued[rank] == product.number:
                self.latest[rank] = product.time
            for at in range(self._count[rank]):
                place = self._place(rank, at)
                number = self._numbers[place]
                if number == product.number:
                    self._times[place] = product.time
                elif number > product.number:
                    break

    # Groups

    def _make_room(self, room: int) -> None:
        """Makes room for so many groups of each warp, a power of two."""
        kept = [[self._group(rank, at) for at in range(self._count[rank])] for rank in range(WARPS)]
        self._room = room
        self._groups = aligned_bytes(WARPS * room * COMMITTED.itemsize)
        self._numbers, self._times = cells(self._groups, "I")[::4], cells(self._groups, "q")[1::2]
        self._words[_RING] = room - 1
        self._quads[_GROUPS] = host_address(self._groups)
        for rank, groups in enumerate(kept):
            self._head[rank] = 0
            for at, (number, time) in enumerate(groups):
                self._numbers[rank * room + at], self._times[rank * room + at] = number, time

    def _place(self, rank: int, at: int) -> int:
        """Of the group of a warp that is the ``at``-th of those that may be pending."""
        return rank * self._room + (self._head[rank] + at & self._room - 1)

    def _group(self, rank: int, at: int) -> tuple[int, int]:
        place = self._place(rank, at)
        return self._numbers[place], self._times[place]

    def commit(self, rank: int) -> None:
        if self._count[rank] == self._room:
            self._make_room(2 * self._room)
        number = self.issued[rank]
        place = self._place(rank, self._count[rank])
        self._numbers[place] = number
        self._times[place] = self.latest[rank] if number <= self.carried_out else 0
        self._count[rank] += 1

    def wait(self, rank: int, group: Group, allowed: int) -> Wait | None:
        """Until no more than ``allowed`` of the warp's newest wgmma-groups are pending."""
        while self._count[rank] > allowed:
            number, time = self._group(rank, 0)
            if number > self.carried_out:
                return self.wait_of(group, self._group(rank, self._count[rank] - 1 - allowed)[0])
            self._head[rank] = self._head[rank] + 1 & self._room - 1
            self._count[rank] -= 1
            group.after(time)
        return None

    def wait_of(self, group: Group, number: int) -> Wait:
        """How a group waits for the product of this number at its ``wgmma.wait_group``."""
        rank, allowed = group.warp.index % WARPS, int(group.instruction.operands[0].value)  # type: ignore[union-attr]
        return Wait(
            partial(self.reached, number),
            partial(self._describe, rank, allowed),
            then=lambda group: self.wait(rank, group, allowed),
            at=lambda: self._group(rank, self._count[rank] - 1 - allowed)[1],
            product=(self, number),
        )

    def reached(self, number: int) -> bool:
        return self.carried_out >= number

    def _describe(self, rank: int, allowed: int) -> WaitsFor:
        numbers = [self._group(rank, at)[0] for at in range(self._count[rank])]
        pending = sum(number > self.carried_out for number in numbers)
        first = self.pending[0]
        missing = first.missing()
        state = f"{pending} wgmma-groups pending, {allowed} allowed; the mma_async of PTX line {first.origin.line} "
        if missing:
            state += f"lacks warp{'' if len(missing) == 1 else 's'} {', '.join(map(str, missing))}"
        else:
            state += "is under way"
        return WaitsFor("wgmma group", f"warpgroup {self.index}", state, by=(first,))


def _record(memory: npt.NDArray[np.uint8], at: int) -> tuple[memoryview, memoryview]:
    """Of a product its words of 32 and 64 bits."""
    start = _PRODUCTS + PRODUCT.itemsize * at
    own = memory[start : start + PRODUCT.itemsize]
    return cells(own, "I"), cells(own, "Q")


def joined(record: memoryview) -> int:
    """Of a product's record the warps that have executed their parts, a bit each."""
    return record[_JOINED]


def join(record: memoryview, rank: int) -> None:
    record[_JOINED] |= 1 << rank


def let_join(record: memoryview, site: int) -> None:
    """From now on host code may execute the others' parts. site: the instruction's."""
    record[_SITE], record[_OPEN] = site, 1


assert np.dtype(COMMITTED).itemsize == 16  # which the views of ``_make_room`` are made for
