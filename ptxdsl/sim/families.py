"""Families of host instructions: the modules whose handlers a program needs, imported when it has such instructions."""

from __future__ import annotations

from functools import cache
from importlib import import_module

# By the beginning of the opcode; importing a module registers its handlers (``host.handles``).
FAMILIES: dict[str, tuple[str, ...]] = {
    "bar": ("barriers.cta_barriers",),
    "barrier": ("barriers.cluster_barrier", "barriers.cta_barriers"),
    "call": ("machine.printf",),
    "clusterlaunchcontrol": ("copies.cluster_launch",),
    "cp": ("copies.bulk", "copies.cp_async", "copies.tma"),
    "fence.mbarrier_init": ("barriers.mbarrier_exit",),
    "fence.proxy": ("barriers.mbarrier_exit", "copies.proxy"),
    "ldmatrix": ("matrix.ldmatrix",),
    "mbarrier": ("barriers.mbarrier_exit", "barriers.mbarrier_instructions"),
    "mma": ("matrix.mma",),
    "movmatrix": ("matrix.ldmatrix",),
    "nanosleep": ("barriers.sync",),
    "red.async": ("copies.async_store",),
    "setmaxnreg": ("barriers.sync",),
    "st.async": ("copies.async_store",),
    "st.bulk": ("copies.async_store",),
    "stmatrix": ("matrix.ldmatrix",),
    "tcgen05": ("tcgen05.alloc", "tcgen05.mma", "tcgen05.move", "tcgen05.sync"),
    "tensormap": ("copies.tensor_map_instructions",),
    "wgmma": ("matrix.wgmma",),
    "wmma": ("matrix.wmma",),
}


def load(opcode: str) -> None:
    """Registers the handlers of an instruction's family, if it belongs to one."""
    first, _, rest = opcode.partition(".")
    _load(first)
    _load(f"{first}.{rest.partition('.')[0]}")


@cache
def _load(beginning: str) -> None:
    for module in FAMILIES.get(beginning, ()):
        import_module(f"ptxdsl.sim.{module}")
