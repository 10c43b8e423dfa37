"""Functions that the driver links to device code: vprintf, __assertfail, malloc and free.

Source: CUDA C++ Programming Guide, "Formatted Output", "Assertion", "Dynamic Global Memory Allocation and Operations".
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

import numpy as np

from ptxdsl.ptx.module import Arguments, Operand, Sink
from ptxdsl.sim.faults import ASSERTION, HEAP
from ptxdsl.sim.host import Group, handles
from ptxdsl.sim.layout import LANES
from ptxdsl.sim.memory import AccessFault

_LONGEST = 1 << 16  # characters of one %s, and width and precision

_DIRECTIVE = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d*))?(hh|h|ll|l|j|z|t|L)?([diuoxXfFeEgGaAcspn%])")
_LONG = ("l", "ll", "j", "z", "t")

Reader = Callable[[int, int], bytes]  # (offset in the argument buffer, size) -> bytes
TextReader = Callable[[int], str]


def format_text(template: str, read: Reader, text_at: TextReader) -> str:
    """``printf`` of a format and a buffer in which each argument is aligned to its size."""
    at = 0

    def take(size: int) -> bytes:
        nonlocal at
        at = -(-at // size) * size
        data = read(at, size)
        at += size
        return data

    def number(given: str | None) -> int | None:
        if given is None:
            return None
        value = int.from_bytes(take(4), "little", signed=True) if given == "*" else int(given or "0")
        return max(-_LONGEST, min(value, _LONGEST))

    def one(found: re.Match[str]) -> str:
        flags, width_text, precision_text, length, kind = found.groups()
        if kind == "%":
            return "%"
        width, precision = number(width_text), number(precision_text)
        if precision is not None and precision < 0:
            precision = None
        if width is not None and width < 0:
            flags, width = flags + "-", -width
        form = f"%{flags}{'' if width is None else width}"
        exact = form + ("" if precision is None else f".{precision}")
        if kind in "diuoxX":
            size = 8 if length in _LONG else 4
            value = int.from_bytes(take(size), "little", signed=kind in "di")
            if length in ("h", "hh"):
                bits = 16 if length == "h" else 8
                value &= (1 << bits) - 1
                if kind in "di" and value >> (bits - 1):
                    value -= 1 << bits
            if kind == "o" and "#" in flags:
                return (form.replace("#", "") + "s") % f"0{value:o}"
            return str((exact + ("d" if kind in "diu" else kind)) % value)
        if kind in "fFeEgG":
            return str((exact + kind) % struct.unpack("<d", take(8))[0])
        if kind in "aA":
            text = float(struct.unpack("<d", take(8))[0]).hex()
            return (form.replace("0", "", 1) + "s") % (text.upper() if kind == "A" else text)
        if kind == "c":
            return (form + "s") % chr(take(4)[0])
        address = int.from_bytes(take(8), "little")
        if kind == "s":
            return (exact + "s") % text_at(address)
        if kind == "p":
            return (form + "s") % f"{address:#x}"
        return ""  # %n writes nothing

    return _DIRECTIVE.sub(one, template)


def _parts(group: Group) -> tuple[Operand, tuple[Operand, ...]]:
    """The place of the result, and the arguments."""
    results, arguments = group.instruction.operands
    assert isinstance(results, Arguments) and isinstance(arguments, Arguments)
    return (results.items[0] if results.items else Sink()), arguments.items


def _thread(group: Group, lane: int) -> int:
    return group.warp.index * LANES + lane


def _lanes(group: Group) -> list[int]:
    return [lane for lane in range(LANES) if group.mask >> lane & 1]


@handles("call.vprintf")
def vprintf(group: Group) -> None:
    result, (template, buffer) = _parts(group)
    templates = group.read(template, "u64").tolist()
    buffers = group.read(buffer, "u64").tolist()
    view = group.machine.memory.view
    cta = group.cta
    for lane in _lanes(group):
        thread = _thread(group, lane)

        def read(offset: int, size: int, base: int = buffers[lane], thread: int = thread) -> bytes:
            return view(cta, "generic", base + offset, size, write=False, thread=thread).tobytes()

        def text_at(address: int, thread: int = thread) -> str:
            if not address:
                return "(null)"
            return group.machine.memory.text_at(cta, address, thread, _LONGEST).decode("utf-8", "replace")

        group.machine.print(format_text(text_at(templates[lane]), read, text_at))
    group.write(result, np.zeros(LANES, np.int32), "s32")


@handles("call.__assertfail")
def assertfail(group: Group) -> None:
    _, (message, file, line, function, *_) = _parts(group)
    lane = _lanes(group)[0]
    memory, thread = group.machine.memory, _thread(group, lane)

    def text(operand: Operand) -> str:
        try:
            found = memory.text_at(group.cta, int(group.read(operand, "u64")[lane]), thread, 4096)
        except AccessFault:
            return "?"
        return found.decode("utf-8", "replace")

    where = f"{text(file)}:{int(group.read(line, 'u32')[lane])}"
    raise group.fault(ASSERTION, f"assertion failed: {text(message)} (in {text(function)}, {where})")


@handles("call.malloc")
def malloc(group: Group) -> None:
    result, (size,) = _parts(group)
    machine = group.machine
    sizes = group.read(size, "u64").tolist()
    addresses = np.zeros(LANES, np.uint64)
    for lane in _lanes(group):
        if machine.memory.allocated + sizes[lane] <= machine.limits.memory:
            addresses[lane] = machine.memory.allocate(sizes[lane], "heap memory")
    group.write(result, addresses, "u64")


@handles("call.free")
def free(group: Group) -> None:
    _, (pointer,) = _parts(group)
    addresses = group.read(pointer, "u64").tolist()
    for lane in _lanes(group):
        if addresses[lane]:
            try:
                group.machine.memory.release(addresses[lane])
            except AccessFault as fault:
                raise group.fault(HEAP, fault.text) from None
