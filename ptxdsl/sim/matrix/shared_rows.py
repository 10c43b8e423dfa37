"""Rows of 16 bytes of shared memory whose addresses the lanes of a warp give."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.sim.host import Group
from ptxdsl.sim.layout import RANK_SHIFT, SHARED_WINDOW
from ptxdsl.sim.machine.memory import AccessFault

Array = npt.NDArray[Any]
ROW_BYTES = 16


def read_rows(group: Group, addresses: Array) -> Array:
    """(rows, 16) bytes at addresses (uint64), each aligned to 16. A fault names the first row that is at fault."""
    group.machine.accesses(group.cta, _space(group.instruction.opcode), addresses, ROW_BYTES, "read")
    near = _near(group, addresses, write=False)
    if near is not None:
        table, index = near
        return table.take(index, axis=0)
    return np.stack([_row(group, int(address), ROW_BYTES, write=False) for address in addresses])


def write_rows(group: Group, addresses: Array, rows: Array) -> None:
    """Stores (rows, 16) bytes at addresses; where two rows have the same address the later one stays."""
    group.machine.accesses(group.cta, _space(group.instruction.opcode), addresses, ROW_BYTES, "write")
    near = _near(group, addresses, write=True)
    if near is not None:
        table, index = near
        table[index] = rows
        return
    for address, row in zip(addresses, rows, strict=True):
        _row(group, int(address), ROW_BYTES, write=True)[:] = row


def _near(group: Group, addresses: Array, write: bool) -> tuple[Array, Array] | None:
    """All memory from the lowest to the highest row, as rows, and which of them are meant. None: it cannot be so."""
    numbers = addresses.tolist()
    first = min(numbers)
    span = max(numbers) - first + ROW_BYTES
    if span >= 1 << RANK_SHIFT or int(np.bitwise_or.reduce(addresses)) & (ROW_BYTES - 1):
        return None
    try:
        table = _row(group, first, span, write).reshape(-1, ROW_BYTES)
    except AccessFault:
        return None  # one row is at fault, and is to be named
    return table, ((addresses - np.uint64(first)) >> np.uint64(4)).view(np.int64)


def _row(group: Group, address: int, size: int, write: bool) -> Array:
    space = _space(group.instruction.opcode)
    if space == "generic" and not 0 <= address - SHARED_WINDOW < 1 << 32:
        name = group.instruction.parts[0]
        raise group.fault(
            "E1144",
            f"{name} at generic address {address:#x}, which is not in shared memory",
            f"{name} accesses shared memory only",
        )
    view: Array = group.machine.memory.view(group.cta, space, address, size, write=write, align=ROW_BYTES)
    return view


@lru_cache(1024)
def _space(opcode: str) -> str:
    return "shared" if any(part.startswith("shared") for part in opcode.split(".")) else "generic"
