"""The lanes that execute a host instruction together: ``host.Group`` over a warp's register file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxdsl.ptx.module import Address, Immediate, Instruction, Not, Operand, Register, Sink, Symbol
from ptxdsl.sim.barriers.mbarrier_record import Record
from ptxdsl.sim.barriers.named_barrier import NamedBarrier
from ptxdsl.sim.layout import LANES, RANK_SHIFT
from ptxdsl.sim.machine.cta import Cta
from ptxdsl.sim.machine.faults import ACCESS_CODES, NOT_UNIFORM, SimulationFault
from ptxdsl.sim.machine.memory import AccessFault
from ptxdsl.sim.machine.special import special_register
from ptxdsl.sim.machine.waits import NotWhole
from ptxdsl.sim.machine.warp import FULL, Warp, lane_numbers, lanes_of

if TYPE_CHECKING:
    from ptxdsl.sim.host import Wait
    from ptxdsl.sim.machine.machine import Machine

Array = npt.NDArray[Any]

# NumPy's type of a PTX type; formats that NumPy does not have are their bits.
DTYPES: dict[str, npt.DTypeLike] = {
    "pred": np.bool_,
    "b8": np.uint8, "u8": np.uint8, "s8": np.int8,
    "b16": np.uint16, "u16": np.uint16, "s16": np.int16, "f16": np.uint16, "bf16": np.uint16,
    "b32": np.uint32, "u32": np.uint32, "s32": np.int32, "f32": np.float32,
    "b64": np.uint64, "u64": np.uint64, "s64": np.int64, "f64": np.float64,
    "f16x2": np.uint32, "bf16x2": np.uint32, "tf32": np.uint32, "f32x2": np.uint64,
}  # fmt: skip
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_SIGNED = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}

_MASK32, _MASK64 = (1 << 32) - 1, (1 << 64) - 1
_LOW32 = np.uint64(_MASK32)

# What reads a register's bytes in all lanes, how many a lane has, which bits of the value count, what is added to it.
# Without the first the last is the value itself, or with no bytes nothing is known.
Bits = tuple[Callable[[], bytes] | None, int, int, int]

# How a register's slot gives a type: as it is, as a predicate, by its low bits or extended, in two rows.
_DIRECT, _PREDICATE, _OTHER_WIDTH, _WIDE = range(4)


class WarpGroup:
    """See ``host.Group``."""

    __slots__ = ("cta", "instruction", "machine", "mask", "polling", "quiet", "warp")

    def __init__(self, machine: Machine, warp: Warp, instruction: Instruction, mask: int) -> None:
        self.machine = machine
        self.cta: Cta = warp.cta
        self.warp = warp
        self.instruction = instruction
        self.mask = mask
        self.polling: Wait | bool | None = None
        self.quiet = False

    @property
    def lanes(self) -> npt.NDArray[np.bool_]:
        return lanes_of(self.mask)

    # Operands

    def read(self, operand: Operand, type: str) -> Array:
        if isinstance(operand, Register):
            return self._register(operand.name, type)
        if isinstance(operand, Immediate):
            return _constant(operand.value, operand.kind, type)
        if isinstance(operand, Not):
            return np.invert(self.read(operand.operand, type))
        if isinstance(operand, Symbol):
            return _constant(self.address_of(operand), "int", type)
        if isinstance(operand, Address):
            return self._address(operand)
        raise TypeError(f"{operand!r} is not an operand with a value")

    def _register(self, name: str, type: str) -> Array:
        found = self.warp.storage.views.get((name, type)) or self._slot(name, type)
        if found is None:
            values = special_register(name, self.warp, self.machine.memory.launch)
            if values is None:
                raise KeyError(f"register {name} has no slot")
            return _converted(values, type)
        how, view = found
        if how == _DIRECT:
            return view.copy()
        if how == _PREDICATE:
            return np.not_equal(view, 0)
        if how == _WIDE:
            return np.ascontiguousarray(view.T)
        return _converted(view, type)

    def _slot(self, name: str, type: str) -> tuple[int, Array] | None:
        slot = self.machine.code.slots.get(name)
        if slot is None:
            return None
        file = self.warp.registers
        if type == "b128":
            found = _WIDE, file[slot.offset : slot.offset + 512].view(np.uint64).reshape(2, 32)
        else:
            size = np.dtype(slot.dtype).itemsize
            data = file[slot.offset : slot.offset + 32 * size]
            wanted = np.dtype(DTYPES[type])
            if type == "pred":
                found = _PREDICATE, data.view(slot.dtype)
            elif wanted.itemsize == size:
                found = _DIRECT, data.view(wanted)
            else:
                found = _OTHER_WIDTH, data.view(_UNSIGNED[size])
        self.warp.storage.views[name, type] = found
        return found

    def address_of(self, symbol: Symbol) -> int:
        """A variable's address as ``mov`` gives it: a shared one with the CTA's rank."""
        place = self.machine.symbols.places[symbol.name]
        rank = self.cta.rank << RANK_SHIFT if place.variable.space == "shared" else 0
        return place.address + rank + symbol.offset

    def _address(self, address: Address) -> Array:
        base, offset = address.base, address.offset
        if isinstance(base, Register):
            how, view = self.warp.storage.views.get((base.name, "address")) or self._address_slot(base.name)
            if how == _DIRECT:
                values: Array = view.copy()
                if offset:
                    values += np.uint64(offset & _MASK64)
                return values
            values = view.astype(np.uint64)
            if offset:
                values += np.uint64(offset & _MASK32)  # as wide as the register: a negative offset wraps
                values &= _LOW32
            return values
        if isinstance(base, Symbol):
            offset += self.address_of(base)
        return _constant(offset, "int", "u64")

    def _address_slot(self, name: str) -> tuple[int, Array]:
        slot = self.machine.code.slots[name]
        narrow = np.dtype(slot.dtype).itemsize == 4
        found = self._slot(name, "u32" if narrow else "u64")
        assert found is not None
        made = _OTHER_WIDTH if narrow else _DIRECT, found[1]
        self.warp.storage.views[name, "address"] = made
        return made

    def write(self, operand: Operand, values: npt.ArrayLike, type: str) -> None:
        if isinstance(operand, Sink):
            return
        assert isinstance(operand, Register), operand
        found = self.warp.storage.views.get((operand.name, type)) or self._slot(operand.name, type)
        if found is None:
            return  # a register that nobody reads has no slot
        how, view = found
        if how == _PREDICATE:
            values = np.int32(-values) if values.__class__ is bool else np.multiply(values, -1, dtype=np.int32)
        elif how == _WIDE:
            values = np.asarray(values, np.uint64).reshape(-1, 2).T
        elif how == _DIRECT:
            values = np.asarray(values)
            if values.dtype != view.dtype:
                values = values.astype(view.dtype)
        else:
            # wider or narrower: extended by the sign of a signed type, else by zeros; cut
            values = np.asarray(values).astype(DTYPES[type])
            values = values.astype(_SIGNED[view.itemsize] if type[0] == "s" else view.dtype).view(view.dtype)
        if self.mask == FULL:
            view[...] = values
        else:
            np.copyto(view, values, where=lanes_of(self.mask))

    def read_many(self, operands: Sequence[Operand], type: str) -> Array:
        rows = self._rows(operands, type)
        if rows is None:
            return np.array([self.read(operand, type) for operand in operands])
        table, index = rows
        return table[index].view(DTYPES[type])

    def write_many(self, operands: Sequence[Operand], values: npt.ArrayLike, type: str) -> None:
        rows = self._rows(operands, type)
        if rows is None:
            for operand, value in zip(operands, np.asarray(values), strict=True):
                self.write(operand, value, type)
            return
        table, index = rows
        data = np.ascontiguousarray(values, DTYPES[type]).view(table.dtype)
        if self.mask != FULL:
            data = np.where(lanes_of(self.mask), data, table[index])
        table[index] = data

    def _rows(self, operands: Sequence[Operand], type: str) -> tuple[Array, Array] | None:
        """The register file as rows of 32 elements, and the operands' row numbers; None if they are not all such."""
        rows = self.machine.row_numbers
        key = (type, tuple(map(id, operands)))  # operands of the program, which lives longer
        index = rows.get(key, False)
        if index is False:
            index = rows[key] = self.row_numbers(type, operands)
        if index is None:
            return None
        element: Any = _UNSIGNED[np.dtype(DTYPES[type]).itemsize]
        table = self.warp.registers.view(element).reshape(-1, 32)
        return table, index

    def row_numbers(self, type: str, operands: Sequence[Operand]) -> Array | None:
        """Where operands are in the register file as rows of 32 elements; None if they are not all such."""
        slots = self.machine.code.slots
        size = np.dtype(DTYPES.get(type, np.bool_)).itemsize
        if type in ("pred", "b128") or not operands or len(self.warp.registers) % (32 * size):
            return None
        numbers = []
        for operand in operands:
            slot = slots.get(operand.name) if isinstance(operand, Register) else None
            if slot is None or np.dtype(slot.dtype).itemsize != size or slot.offset % (32 * size):
                return None
            numbers.append(slot.offset // (32 * size))
        return np.array(numbers)

    def values(self, operand: Operand, type: str) -> list[int]:
        """The values of the active lanes, in their order."""
        lanes = self.mask
        if not lanes & (lanes - 1):
            read, size, mask, offset = self.warp.storage.bits.get((id(operand), type)) or self._bits(operand, type)
            if read is not None:
                return [_lane(read(), size, lanes) + offset & mask]
        values: list[int] = self.read(operand, type).tolist()
        if lanes == FULL:
            return values
        return [values[lane] for lane in lane_numbers(lanes)]

    def common(self, operand: Operand, type: str) -> int | None:
        """The value that all active lanes have; None where they differ."""
        bits = self.warp.storage.bits
        read, size, mask, offset = bits.get((id(operand), type)) or self._bits(operand, type)
        if read is None and size:
            return offset
        lanes = self.mask
        if read is not None and lanes == FULL:
            data = read()
            first = data[:size]
            return int.from_bytes(first, "little") + offset & mask if data == first * LANES else None
        if read is not None and not lanes & (lanes - 1):  # one lane, which issues copies or arrives for others
            return _lane(read(), size, lanes) + offset & mask
        values = self.values(operand, type)
        first_value = values[0]
        return first_value if values.count(first_value) == len(values) else None

    def _bits(self, operand: Operand, type: str) -> Bits:
        """How ``common`` finds a value, kept for an operand of the program."""
        made: Bits = None, 0, 0, 0
        register: Operand | None = operand
        kind, offset = type, 0
        if isinstance(operand, Address):
            base, kind, offset = operand.base, "address", operand.offset
            register = base
            if not isinstance(base, Register):
                start = 0 if base is None else self.address_of(base)
                made = None, 8, 0, start + offset & _MASK64
        elif isinstance(operand, Immediate) and operand.kind == "int":
            made = None, 8, 0, _masked(operand.value, type)
        if isinstance(register, Register):
            name = register.name
            how, view = (self._address_slot(name) if kind == "address" else self._slot(name, type)) or (None, None)
            simple = how == _DIRECT or (how == _OTHER_WIDTH and (kind == "address" or type[0] != "s"))
            if how == _PREDICATE and view is not None:
                made = view.tobytes, view.itemsize, 1, 0  # -1 is true
            elif simple and view is not None and view.dtype.kind == "u":
                wanted = view.itemsize if kind == "address" else np.dtype(DTYPES[type]).itemsize
                made = view.tobytes, view.itemsize, (1 << 8 * min(wanted, view.itemsize)) - 1, offset
        self.warp.storage.bits[id(operand), type] = made
        return made

    def uniform(self, operand: Operand, type: str) -> int:
        value = self.common(operand, type)
        if value is not None:
            return value
        values = self.values(operand, type)
        first = values[0]
        lanes = zip(lane_numbers(self.mask), values, strict=True)
        lane, other = next((lane, value) for lane, value in lanes if value != first)
        text = f"{first:#x} and, in lane {lane}, {other:#x}" if isinstance(first, int) else f"{first} and {other}"
        raise self.fault(
            NOT_UNIFORM,
            f"{self.instruction.opcode}: {_operand_text(operand)} must have one value in all lanes; it is {text}",
        )

    # What a handler can say

    def fault(
        self, code: str, message: str, help: str | None = None, at: Sequence[tuple[Instruction, str]] = ()
    ) -> SimulationFault:
        place = self.machine.places
        return SimulationFault(place.diagnostic(code, message, self.instruction, self.warp, self.mask, help, at=at))

    def access_fault(self, fault: AccessFault) -> SimulationFault:
        return self.fault(ACCESS_CODES[fault.kind], f"{self.instruction.opcode}: {fault.text}")

    def require_whole_warp(self) -> None:
        warp = self.warp
        if self.mask != warp.live:
            warp.refresh()
            if self.mask != warp.live:
                raise NotWhole

    def polled(self, wait: Wait | None = None) -> None:
        self.polling = wait or True

    def only(self, mask: int) -> None:
        if self.machine.watch is not None:
            self.machine.watch.only(mask)

    def touch(self, key: object) -> None:
        touches = self.machine.touches
        who = touches.get(key)
        if who is None:
            who = touches[key] = {}
        who[self.warp] = self.instruction
        if isinstance(key, Record | NamedBarrier):
            key.touched(self.warp)

    @property
    def time(self) -> int:
        return self.warp.clock

    def after(self, time: int) -> None:
        if time > self.warp.clock:
            self.warp.clock = time


def _lane(data: bytes, size: int, mask: int) -> int:
    """Of the bytes of a register in all lanes what the only one of a mask has."""
    at = size * (mask.bit_length() - 1)
    return int.from_bytes(data[at : at + size], "little")


@lru_cache(4096)
def _masked(value: int, type: str) -> int:
    dtype = np.dtype(DTYPES[type])
    value &= (1 << 8 * dtype.itemsize) - 1
    if dtype.kind == "i" and value >> (8 * dtype.itemsize - 1):
        value -= 1 << 8 * dtype.itemsize
    return value


@lru_cache(4096)
def _constant(value: int, kind: str, type: str) -> Array:
    """An immediate in 32 lanes; a floating one of another type than asked for is its bits."""
    if type == "pred":
        values: Array = np.full(32, value & 1, np.bool_)
    elif type == "b128":
        values = np.tile(np.array([value & 0xFFFFFFFFFFFFFFFF, (value >> 64) & 0xFFFFFFFFFFFFFFFF], np.uint64), (32, 1))
    else:
        dtype = np.dtype(DTYPES[type])
        if dtype.kind == "f" and kind == "int":
            values = np.full(32, value, dtype)
        elif dtype.kind == "f" and kind == "f64" and dtype.itemsize == 4:
            number = np.array([value], np.uint64).view(np.float64)
            values = np.full(32, number.astype(np.float32)[0], dtype)
        elif dtype.kind == "f" and kind == "f32" and dtype.itemsize == 8:
            values = np.full(32, np.array([value], np.uint32).view(np.float32)[0], dtype)
        else:
            bits = value & ((1 << 8 * dtype.itemsize) - 1)
            values = np.full(32, bits, _UNSIGNED[dtype.itemsize]).view(dtype)
    values.flags.writeable = False
    return values


def _converted(values: Array, type: str) -> Array:
    """Unsigned values of another width as a type: low bits, or extended by zeros."""
    if type == "pred":
        return np.not_equal(values, 0)
    dtype = np.dtype(DTYPES[type])
    return values.astype(_UNSIGNED[dtype.itemsize]).view(dtype)


def _operand_text(operand: Operand) -> str:
    if isinstance(operand, Register):
        return operand.name
    if isinstance(operand, Address):
        base = operand.base.name if operand.base is not None else ""
        return f"[{base}{f'+{operand.offset}' if operand.offset else ''}]"
    return "an operand"
