"""Rows of 16 bytes of shared memory whose addresses the lanes of a warp give."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.sim.host import Group
from ptxdsl.sim.layout import RANK_SHIFT, SHARED_WINDOW

Array = npt.NDArray[Any]
ROW_BYTES = 16


def read_rows(group: Group, addresses: Array) -> Array:
    """(rows, 16) bytes at addresses, each aligned to 16. A fault names the first row that is at fault."""
    near = _near(group, addresses, write=False)
    if near is not None:
        rows: Array = near[(addresses - addresses.min()) // np.uint64(ROW_BYTES)]
        return rows
    return np.stack([_row(group, int(address), ROW_BYTES, write=False) for address in addresses])


def write_rows(group: Group, addresses: Array, rows: Array) -> None:
    """Stores (rows, 16) bytes at addresses; where two rows have the same address the later one stays."""
    near = _near(group, addresses, write=True)
    if near is not None:
        near[(addresses - addresses.min()) // np.uint64(ROW_BYTES)] = rows
        return
    for address, row in zip(addresses, rows, strict=True):
        _row(group, int(address), ROW_BYTES, write=True)[:] = row


def _near(group: Group, addresses: Array, write: bool) -> Array | None:
    """All memory from the lowest to the highest row, as rows: one look-up serves them all. None: it cannot."""
    first, last = addresses.min(), addresses.max()
    if (addresses & np.uint64(ROW_BYTES - 1)).any() or last - first >= np.uint64(1 << RANK_SHIFT):
        return None
    _row(group, int(last), ROW_BYTES, write)  # a fault in the last row is to name that row
    return _row(group, int(first), int(last - first) + ROW_BYTES, write).reshape(-1, ROW_BYTES)


def _row(group: Group, address: int, size: int, write: bool) -> Array:
    instruction = group.instruction
    shared = any(part.startswith("shared") for part in instruction.parts)
    if not shared and not 0 <= address - SHARED_WINDOW < 1 << 32:
        name = instruction.parts[0]
        raise group.fault(
            "E1144",
            f"{name} at generic address {address:#x}, which is not in shared memory",
            f"{name} accesses shared memory only",
        )
    space = "shared" if shared else "generic"
    view: Array = group.machine.memory.view(group.cta, space, address, size, write=write, align=ROW_BYTES)
    return view
