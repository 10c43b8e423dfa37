"""``clusterlaunchcontrol``: a cluster that runs takes over the work of one that has not begun.

The simulator begins clusters late, a few at a time, so there is mostly one to be cancelled; it is the next in order.
The answer is opaque to programs: here the first CTA's coordinates and a bit that says that there is one.

Source: PTX ISA, "clusterlaunchcontrol.try_cancel", "clusterlaunchcontrol.query_cancel".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.ptx.module import Vector
from ptxdsl.sim.barriers.mbarrier import shared_address
from ptxdsl.sim.copies.bulk import Bytes, start_into
from ptxdsl.sim.host import Group, handles
from ptxdsl.sim.layout import RANK_SHIFT
from ptxdsl.sim.machine.warp import lanes_of

_BYTES = 16
_OFFSET = (1 << RANK_SHIFT) - 1
_CANCELED = 1 << 63
_REFUSED = "cluster launch control: a refusal was looked at"


@handles("clusterlaunchcontrol.try_cancel")
def try_cancel(group: Group) -> None:
    parts, machine, cluster = group.instruction.parts, group.machine, group.cta.cluster
    name = "clusterlaunchcontrol.try_cancel"
    space = "shared::cta" if "shared::cta" in parts else ""
    answer, barrier = group.instruction.operands
    for at, told in zip(group.values(answer, "u64"), group.values(barrier, "u64"), strict=True):
        if cluster.states.get(_REFUSED):
            raise group.fault(
                "E1152",
                f"{name} after an earlier one whose refusal was seen",
                "once a request has been refused there is nothing more to cancel, and asking again is undefined",
            )
        target, bar = shared_address(space, at), shared_address(space, told)
        if target % _BYTES:
            raise group.fault("E1150", f"{name}: the address {target:#x} is not a multiple of {_BYTES}")
        places = [(target, bar)]
        if "multicast::cluster::all" in parts:
            ranks = range(len(cluster.ctas))
            places = [(rank << RANK_SHIFT | target & _OFFSET, rank << RANK_SHIFT | bar & _OFFSET) for rank in ranks]
        taken: list[int | None] = []

        def read(taken: list[int | None] = taken) -> None:
            taken.append(machine.cancel_cluster())

        def fill(there: Bytes, taken: list[int | None] = taken) -> None:
            words = np.zeros(2, np.uint64)
            if taken[0] is not None:
                x, y, z = machine.first_cta(taken[0])
                words[:] = x | y << 32, z | _CANCELED
            there[:] = words.view(np.uint8)

        start_into(group, "tma", name, "shared::cluster", places, _BYTES, _BYTES, read, fill)


@handles("clusterlaunchcontrol.query_cancel")
def query_cancel(group: Group) -> None:
    result, response = group.instruction.operands
    words: npt.NDArray[Any] = group.read(response, "b128")
    canceled = words[:, 1] >= np.uint64(_CANCELED)
    what = group.instruction.parts[2]
    if what == "is_canceled":
        if not canceled[lanes_of(group.mask)].all():
            group.cta.cluster.states[_REFUSED] = True
        group.write(result, canceled, "pred")
        return
    # x, y, z in words of 32 bits
    coordinates: npt.NDArray[Any] = np.ascontiguousarray(words).view(np.uint32).T
    coordinates = np.stack([coordinates[0], coordinates[1], coordinates[2], np.zeros_like(coordinates[0])])
    if isinstance(result, Vector):
        for register, values in zip(result.items, coordinates, strict=True):
            group.write(register, values, "b32")
    else:
        group.write(result, coordinates["xyz".index(what[-1])], "b32")
