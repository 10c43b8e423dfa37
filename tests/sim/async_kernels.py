"""Small kernels for the tests of asynchronous work: the frame around a body, and how a simulation is asked to end."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

import numpy as np

from ptxdsl.sim.launch import Report, simulate

HEADER = ".version 8.8\n.target {target}\n.address_size 64\n"
REGISTERS = ".reg .b32 %r<64>; .reg .b64 %d<64>; .reg .pred %p<16>; .reg .b16 %h<8>; .reg .b32 %t, %l, %rank;"
# %p0: thread 0. Shared memory: four barriers, and 8 KiB that start at a multiple of 1024.
START = """
.shared .align 8 .b64 bar[4];
.shared .align 1024 .b8 tile[8192];
mov.u32 %t, %tid.x; mov.u32 %l, %laneid; mov.u32 %rank, %cluster_ctarank;
setp.eq.u32 %p0, %t, 0;
"""
SYNC = "bar.sync 0;\n"
CLUSTER_SYNC = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"


def wait(bar: str, parity: int | str, label: str) -> str:
    """A loop of try_wait."""
    return f"{label}: mbarrier.try_wait.parity.shared::cta.b64 %p15, [{bar}], {parity}; @!%p15 bra {label};\n"


def kernel(body: str, parameters: str = ".param .u64 a0", target: str = "sm_90a") -> str:
    """A kernel k whose 64-bit parameters a0, a1 … are loaded into %d0, %d1 …; tensor maps are m0, m1 …"""
    names = [part.split()[-1] for part in parameters.split(",") if "map" not in part and part.strip()]
    loads = "".join(f"ld.param.u64 %d{i}, [{name}];\n" for i, name in enumerate(names))
    head = HEADER.format(target=target)
    return f"{head}.visible .entry k({parameters}) {{\n{REGISTERS}\n{START}\n{loads}{body}\nret;\n}}\n"


def parameters_of(arguments: Iterable[Any]) -> str:
    """Arrays are called a0, a1 …, tensor maps map0, map1 … in their order."""
    arrays, maps = count(), count()
    return ", ".join(
        f".param .u64 a{next(arrays)}"
        if isinstance(argument, np.ndarray)
        else f".param .align 64 .b8 map{next(maps)}[128]"
        for argument in arguments
    )


def run(body: str, *arguments: Any, threads: int = 32, target: str = "sm_90a", **options: Any) -> Report:
    """Runs a body of CTAs of ``threads``; arrays become a0, a1 …, tensor maps m0, m1 … in their order."""
    text = kernel(body, parameters_of(arguments), target)
    return simulate(text, grid=options.pop("grid", 1), block=threads, arguments=arguments, **options)


def finish(body: str, *arguments: Any, **options: Any) -> Report:
    """Runs a body that must come to its end."""
    report = run(body, *arguments, **options)
    assert report.status == "finished", report.render()
    return report


def fault(body: str, *arguments: Any, **options: Any) -> tuple[str, str]:
    """Runs a body that does something wrong: the code and the message."""
    report = run(body, *arguments, **options)
    assert report.status == "fault", report.render()
    return report.diagnostics[0].code, report.diagnostics[0].message


def deadlock(body: str, *arguments: Any, **options: Any) -> str:
    """Runs a body that comes to a standstill: the whole report."""
    report = run(body, *arguments, **options)
    assert report.status == "deadlock", report.render()
    return report.render()
