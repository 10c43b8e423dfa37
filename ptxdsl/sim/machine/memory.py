"""Memory as the simulated threads see it: regions of global memory, the CTAs' shared windows, local frames.

Compiled code resolves addresses by the same tables (``layout.LAUNCH``, ``CTA``); handlers and agents ask
``Memory.view``.
Source: PTX ISA, "State Spaces", "Generic Addressing", "Memory Operations" (alignment).
"""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxdsl.ptx.module import TYPE_BYTES
from ptxdsl.record import dataclass
from ptxdsl.sim.layout import (
    BAD_ADDRESS,
    GLOBAL_BASE,
    GRANULE_SHIFT,
    LAUNCH,
    LOCAL_WINDOW,
    MISALIGNED,
    PARAMETERS,
    RANK_SHIFT,
    READ_ONLY,
    REGION,
    SHARED_START,
    SHARED_WINDOW,
    WRONG_SPACE,
)
from ptxdsl.sim.machine.memory_words import address_text, bad_address, bad_shared_address, bytes_text
from ptxdsl.sim.machine.shared_variables import SharedVariables
from ptxdsl.sim.program.symbols import GRANULE, Symbols

if TYPE_CHECKING:
    from ptxdsl.artifact import SharedName
    from ptxdsl.sim.machine.cta import Cta

Bytes = npt.NDArray[np.uint8]

CLUSTER_LIMIT = 16  # CTAs of a cluster
SHARED_SPACES = frozenset({"shared", "shared::cta", "shared::cluster"})
SPACES = SHARED_SPACES | {"global", "const", "param", "local"}
_SHARED_END = SHARED_WINDOW + (CLUSTER_LIMIT << RANK_SHIFT)
_LOCAL_END = LOCAL_WINDOW + (1 << 32)
_MOST_REGIONS = (1 << 16) - 1  # a region's number has 16 bits, 0 is none


class AccessFault(Exception):
    """An access that memory does not allow. kind: a ``fault_kind`` of layout; text: a whole sentence without a dot."""

    def __init__(self, kind: int, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


@dataclass(frozen=True, slots=True)
class Region:
    """A piece of global memory: ``name`` for messages (``argument 'src'``), ``bytes`` where it lies."""

    start: int
    end: int
    bytes: Bytes
    writable: bool
    name: str


def aligned_bytes(count: int) -> Bytes:
    """Zeros at a host address for every vector access: a multiple of 64."""
    raw = np.zeros(count + 64, np.uint8)
    skip = -raw.ctypes.data % 64
    return raw[skip : skip + count]


def host_address(array: npt.NDArray[Any]) -> int:
    return int(array.ctypes.data)


def _bytes_of(array: npt.NDArray[Any], size: int) -> Bytes:
    """The memory from the first to the last element, sharing it."""
    if not size:
        return np.zeros(0, np.uint8)
    if array.flags.c_contiguous:
        return array.reshape(-1).view(np.uint8)
    raw: Any = (ctypes.c_ubyte * size).from_address(host_address(array))
    data: Bytes = np.frombuffer(raw, np.uint8)
    data.flags.writeable = array.flags.writeable
    return data


class Memory:
    """One launch's memory. ``launch`` is its record of layout's LAUNCH, kept up to date as regions come.

    shared: what messages call an address of shared memory.
    """

    def __init__(self, symbols: Symbols, shared_names: Mapping[str, SharedName] | None = None) -> None:
        self.symbols = symbols
        self.shared = SharedVariables(symbols, shared_names or {})
        self.record_bytes = aligned_bytes(LAUNCH.itemsize)
        self.launch: npt.NDArray[Any] = self.record_bytes.view(LAUNCH)
        self.allocated = 0  # bytes, beside the arrays that were lent
        self.host_writes = 0  # views handed out for writing: with LAUNCH.writes, "has memory changed"
        self._next = symbols.arrays_start
        self._regions: dict[int, Region] = {}  # by number
        self._numbers: dict[int, int] = {}  # by start address
        self._starts: list[int] = []  # sorted
        self._lent: dict[tuple[int, int, bool], int] = {}
        self._kept: list[npt.NDArray[Any]] = []  # their memory must live as long as this
        self._free_numbers: list[int] = []
        self._granules = aligned_bytes(2 * 64).view(np.uint16)
        self._table = aligned_bytes(REGION.itemsize * 16).view(REGION)
        self._publish()
        parameters = aligned_bytes(max(symbols.parameter_bytes, 8))
        self.parameters = parameters
        self.parameters_start = PARAMETERS
        self._add(
            Region(PARAMETERS, PARAMETERS + symbols.parameter_bytes, parameters, False, "the kernel's parameters")
        )
        self.launch["parameters"] = host_address(parameters)
        self.launch["parameter_bytes"] = symbols.parameter_bytes
        for place in symbols.places.values():
            variable = place.variable
            if variable.space in ("global", "const"):
                size = variable.size or 0
                storage = aligned_bytes(size)
                if variable.initial is not None:
                    storage[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
                for offset, width, symbol in variable.relocations:
                    address = (
                        symbols.places[symbol.name].address if symbol.name in symbols.places else 0
                    ) + symbol.offset
                    value = (address & ((1 << 8 * width) - 1)).to_bytes(width, "little")
                    storage[offset : offset + width] = np.frombuffer(value, np.uint8)
                self.allocated += size
                writable = variable.space == "global"
                self._add(Region(place.address, place.address + size, storage, writable, f"variable '{variable.name}'"))

    # Regions

    def lend(self, array: npt.NDArray[Any], name: str) -> int:
        """The address of an array that is used in place; the same memory has one address.

        Of an array with gaps between its rows the gaps are lent too. Raises ValueError for one that runs backwards.
        """
        if any(step < 0 for step in array.strides):
            raise ValueError("its elements run backwards")
        size = array.nbytes and array.itemsize + sum(
            (n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)
        )
        writable = bool(array.flags.writeable)
        key = (host_address(array), size, writable)
        known = self._lent.get(key) if size else None
        if known is None:
            self._kept.append(array)
            data = _bytes_of(array, size)
            known = self._lent[key] = self._place(data, size, writable, name)
        return known

    def allocate(self, size: int, name: str) -> int:
        """The address of new zeroed global memory, a multiple of the granule."""
        self.allocated += size
        return self._place(aligned_bytes(size), size, True, name)

    def release(self, address: int) -> None:
        """Gives up a region that ``allocate`` made; its address is not used again. Raises AccessFault."""
        number = self._numbers.get(address)
        if number is None or not self._regions[number].name.startswith("heap"):
            raise AccessFault(BAD_ADDRESS, f"free of address {address:#x}, which malloc did not give")
        region = self._regions.pop(number)
        self.allocated -= region.end - region.start
        del self._numbers[address]
        self._starts.remove(address)
        self._fill(region, 0)
        self._table[number] = (0, 0, 0, 0)
        self._free_numbers.append(number)

    def digest(self) -> bytes:
        """Of all that is in global memory and can be written."""
        found = blake2b()
        for region in self._regions.values():
            if region.writable:
                found.update(np.ascontiguousarray(region.bytes).data)
        return found.digest()

    def _place(self, data: Bytes, size: int, writable: bool, name: str) -> int:
        start = self._next
        self._next = (-(-(start + size) // GRANULE) + 1) * GRANULE  # an empty granule after each
        self._add(Region(start, start + size, data, writable, name))
        return start

    def _add(self, region: Region) -> None:
        number = self._free_numbers.pop() if self._free_numbers else len(self._regions) + 1
        if number > _MOST_REGIONS:
            raise MemoryError(f"more than {_MOST_REGIONS} pieces of global memory")
        self._regions[number] = region
        self._numbers[region.start] = number
        self._starts.insert(bisect_right(self._starts, region.start), region.start)
        if number >= len(self._table):
            table = aligned_bytes(REGION.itemsize * 2 * (number + 1)).view(REGION)
            table[: len(self._table)] = self._table
            self._table = table
        self._table[number] = (region.start, region.end, host_address(region.bytes), region.writable)
        last = (region.end - GLOBAL_BASE) >> GRANULE_SHIFT
        if last >= len(self._granules):
            granules = aligned_bytes(2 * 2 * (last + 1)).view(np.uint16)
            granules[: len(self._granules)] = self._granules
            self._granules = granules
        self._fill(region, number)
        self._publish()

    def _fill(self, region: Region, number: int) -> None:
        first = (region.start - GLOBAL_BASE) >> GRANULE_SHIFT
        self._granules[first : first - (-(region.end - region.start) >> GRANULE_SHIFT)] = number

    def _publish(self) -> None:
        record = self.launch
        record["granules"], record["granule_count"] = host_address(self._granules), len(self._granules)
        record["regions"], record["region_count"] = host_address(self._table), len(self._table)

    def region(self, address: int) -> Region | None:
        """The region that starts at or before an address, the nearest one."""
        index = bisect_right(self._starts, address)
        return self._regions[self._numbers[self._starts[index - 1]]] if index else None

    def regions(self) -> Iterable[Region]:
        return (self._regions[self._numbers[start]] for start in self._starts)

    # Access

    def view(
        self,
        cta: Cta,
        space: str,
        address: int,
        size: int,
        *,
        write: bool,
        align: int = 1,
        thread: int | None = None,
    ) -> Bytes:
        """The bytes at an address, in place. Raises AccessFault.

        space: ``global``, ``const``, ``param``, ``shared`` (as ``shared::cta``), ``shared::cta``, ``shared::cluster``,
        ``local`` or ``generic`` (also ""). align: bytes that the address must be a multiple of. thread: whose local
        memory, by its number in the CTA.
        """
        if address & (align - 1):
            raise AccessFault(
                MISALIGNED,
                f"address {address_text(space, address)} is not a multiple of {align} ({size} bytes accessed)",
            )
        if write:
            self.host_writes += 1
        if space == "generic" or not space:
            if SHARED_WINDOW <= address < _SHARED_END:
                space, address = "shared::cluster", address - SHARED_WINDOW
            elif LOCAL_WINDOW <= address < _LOCAL_END:
                space, address = "local", address - LOCAL_WINDOW
        if space in SHARED_SPACES:
            owner = cta if address >> RANK_SHIFT == cta.rank else self._peer(cta, space, address, size)
            offset = address & ((1 << RANK_SHIFT) - 1)
            window = owner.window
            if offset < SHARED_START or offset + size > len(window):
                raise AccessFault(BAD_ADDRESS, bad_shared_address(owner, address, size))
            return window[offset : offset + size]
        if space == "local":
            if thread is None:
                raise AccessFault(WRONG_SPACE, f"local address {address:#x} cannot be used by this instruction")
            frame = self.symbols.local_bytes
            if address < 0 or address + size > frame:
                raise AccessFault(
                    BAD_ADDRESS,
                    f"{bytes_text(size)} at local address {address:#x}: a thread has {frame} bytes of local memory",
                )
            return cta.local[thread * frame + address : thread * frame + address + size]
        region = self.region(address)
        if region is None or address + size > region.end:
            raise AccessFault(BAD_ADDRESS, bad_address(self, address, size))
        if write and not region.writable:
            raise AccessFault(READ_ONLY, f"write to {region.name}, which is read-only")
        offset = address - region.start
        return region.bytes[offset : offset + size]

    def _peer(self, cta: Cta, space: str, address: int, size: int) -> Cta:
        rank = address >> RANK_SHIFT
        if address < 0 or rank >= len(cta.cluster.ctas):
            raise AccessFault(BAD_ADDRESS, bad_shared_address(cta, address, size))
        if space != "shared::cluster":
            raise AccessFault(
                WRONG_SPACE,
                f"shared address {address:#x} lies in the CTA of rank {rank}, but the access is .shared::cta in rank "
                f"{cta.rank}",
            )
        peer = cta.cluster.ctas[rank]
        if peer.exited:
            raise AccessFault(
                BAD_ADDRESS,
                f"access to the shared memory of the CTA of rank {rank}, whose threads have exited: barrier.cluster "
                "must be between the last access and the exit",
            )
        return peer

    def text_at(self, cta: Cta, address: int, thread: int | None = None, limit: int = 1 << 16) -> bytes:
        """The bytes of a C string at a generic address, without its zero. Raises AccessFault."""
        found = bytearray()
        while len(found) < limit:
            byte = int(self.view(cta, "generic", address + len(found), 1, write=False, thread=thread)[0])
            if not byte:
                break
            found.append(byte)
        return bytes(found)


def access_bytes(parts: Sequence[str]) -> int:
    """The bytes that a ``ld``, ``st`` or ``atom`` accesses in a lane, by its opcode's parts; 0 if they do not say."""
    return TYPE_BYTES.get(parts[-1], 0) * next((int(part[1:]) for part in parts if part in ("v2", "v4", "v8")), 1)
