"""Small PTX kernels for the machine's tests."""

from __future__ import annotations

import re
from typing import Any

from ptxdsl.sim.launch import Report, simulate

_REGISTERS = {"p": "pred", "h": "b16", "r": "b32", "rd": "b64", "f": "f32", "fd": "f64"}


def kernel(
    body: str, parameters: str = "", *, declarations: str = "", directives: str = "", target: str = "sm_90a"
) -> str:
    """A module with one kernel ``k``. parameters: ``out:u64 n:u32``, in the body ``$out`` and ``$n``; the registers are
    %p, %h, %r, %rd, %f and %fd, 0 to 99."""
    split = [item.split(":") for item in parameters.split()]
    formal = ", ".join(f".param .{type} {name}" for name, type in split)
    loads = "".join(f"ld.param.{type} %{'rd' if type.endswith('64') else 'r'}{90 + i}, [{name}];\n"
                    for i, (name, type) in enumerate(split))  # fmt: skip
    for i, (name, type) in enumerate(split):
        body = re.sub(rf"\${name}\b", f"%{'rd' if type.endswith('64') else 'r'}{90 + i}", body)
    registers = "".join(f".reg .{type} %{letter}<100>;\n" for letter, type in _REGISTERS.items())
    return (
        f".version 8.6\n.target {target}\n.address_size 64\n{declarations}\n"
        f".visible .entry k({formal})\n{directives}\n{{\n{registers}{loads}{body}\n}}\n"
    )


def run(ptx: str, *arguments: Any, grid: Any = 1, block: Any = 32, **options: Any) -> Report:
    return simulate(ptx, grid=grid, block=block, arguments=arguments, **options)


# The number of the thread in the grid in %r1, the address of its element of `out` (4 bytes each) in %rd1.
INDEX = """
mov.u32 %r80, %ctaid.x; mov.u32 %r81, %ntid.x; mov.u32 %r82, %tid.x;
mad.lo.u32 %r1, %r80, %r81, %r82;
mul.wide.u32 %rd1, %r1, 4;
add.u64 %rd1, %rd1, $out;
"""
