"""A kernel as LLVM IR: a function for each part of it, and the loop that runs them.

Blocks are divided into parts so that the code generator's work stays linear in the kernel's size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxdsl.sim.program.program import Block
from ptxdsl.sim.translate.part import Kernel, Part
from ptxdsl.sim.translate.runtime_control import DISPATCH

MAX_PART = 2000  # instructions


def kernel_ir(kernel: Kernel) -> str:
    """The whole module; without meaning if the kernel has problems then."""
    parts = list(_parts(kernel.program.blocks))
    functions = [Part(kernel, blocks).text(number) for number, blocks in enumerate(parts)]
    cases = "".join(f" i32 {k}, label %p{number}" for number, part in enumerate(parts) for k in kernel.entries(part))
    calls = "".join(
        f"p{number}:\n %r{number} = call i32 @part{number}(ptr %warp, i32 %pc)\n br label %came\n"
        for number in range(len(parts))
    )
    came = ", ".join(f"[ %r{number}, %p{number} ]" for number in range(len(parts)))
    run = (
        "@current = global ptr @kernel\n"
        "define i32 @run(ptr %warp) {\n %code = load ptr, ptr @current\n"
        " %r = tail call i32 %code(ptr %warp)\n ret i32 %r\n}\n"
        "define i32 @kernel(ptr %warp) {\n call void @rt.enter(ptr %warp)\n br label %loop\n"
        "loop:\n %pc = call i32 @rt.dispatch(ptr %warp)\n %stop = icmp slt i32 %pc, 0\n"
        " br i1 %stop, label %out, label %go\n"
        "out:\n %code = sub i32 -1, %pc\n ret i32 %code\n"
        f"go:\n switch i32 %pc, label %loop [{cases} ]\n{calls}"
        f"came:\n %r = phi i32 {came}\n %again = icmp eq i32 %r, {DISPATCH}\n"
        " br i1 %again, label %loop, label %back\nback:\n ret i32 %r\n}\n"
    )
    definitions = (*kernel.constants.values(), *kernel.emitter.definitions.values(), *kernel.emitter.declared.values())
    return "".join((*definitions, *functions, run))


def _parts(blocks: Sequence[Block]) -> Iterator[range]:
    """Ranges of blocks with at most MAX_PART instructions together (a single block is never divided)."""
    start, size = 0, 0
    for k, block in enumerate(blocks):
        weight = len(block.instructions) + 4  # a block's frame is work too
        if size and size + weight > MAX_PART:
            yield range(start, k)
            start, size = k, 0
        size += weight
    yield range(start, len(blocks))
