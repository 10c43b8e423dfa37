"""Functions that the driver links to device code: vprintf, __assertfail, malloc and free.

Source: CUDA C++ Programming Guide, "Formatted Output", "Assertion", "Dynamic Global Memory Allocation and Operations".
"""

from __future__ import annotations

import numpy as np

from ptxdsl.ptx.module import Arguments, Operand, Sink
from ptxdsl.sim.host import Group, handles
from ptxdsl.sim.layout import LANES
from ptxdsl.sim.machine.faults import ASSERTION, HEAP
from ptxdsl.sim.machine.memory import AccessFault
from ptxdsl.sim.machine.printf_format import LONGEST, format_text
from ptxdsl.sim.machine.warp import lane_numbers


def _parts(group: Group) -> tuple[Operand, tuple[Operand, ...]]:
    """The place of the result, and the arguments."""
    results, arguments = group.instruction.operands
    assert isinstance(results, Arguments) and isinstance(arguments, Arguments)
    return (results.items[0] if results.items else Sink()), arguments.items


def _thread(group: Group, lane: int) -> int:
    return group.warp.index * LANES + lane


@handles("call.vprintf")
def vprintf(group: Group) -> None:
    result, (template, buffer) = _parts(group)
    templates = group.read(template, "u64").tolist()
    buffers = group.read(buffer, "u64").tolist()
    view = group.machine.memory.view
    cta = group.cta
    for lane in lane_numbers(group.mask):
        thread = _thread(group, lane)

        def read(offset: int, size: int, base: int = buffers[lane], thread: int = thread) -> bytes:
            return view(cta, "generic", base + offset, size, write=False, thread=thread).tobytes()

        def text_at(address: int, thread: int = thread) -> str:
            if not address:
                return "(null)"
            return group.machine.memory.text_at(cta, address, thread, LONGEST).decode("utf-8", "replace")

        group.machine.print(format_text(text_at(templates[lane]), read, text_at))
    group.write(result, np.zeros(LANES, np.int32), "s32")


@handles("call.__assertfail")
def assertfail(group: Group) -> None:
    _, (message, file, line, function, *_) = _parts(group)
    lane = lane_numbers(group.mask)[0]
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
    for lane in lane_numbers(group.mask):
        if machine.memory.allocated + sizes[lane] <= machine.limits.memory:
            addresses[lane] = machine.memory.allocate(sizes[lane], "heap memory")
    group.write(result, addresses, "u64")


@handles("call.free")
def free(group: Group) -> None:
    _, (pointer,) = _parts(group)
    addresses = group.read(pointer, "u64").tolist()
    for lane in lane_numbers(group.mask):
        if addresses[lane]:
            try:
                group.machine.memory.release(addresses[lane])
            except AccessFault as fault:
                raise group.fault(HEAP, fault.text) from None
