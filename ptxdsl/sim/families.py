"""Families of host instructions: the modules whose handlers a program needs, imported when it has such instructions."""

from __future__ import annotations

from functools import cache
from importlib import import_module

# By the beginning of the opcode; importing a module registers its handlers (``host.handles``).
FAMILIES: dict[str, tuple[str, ...]] = {
    "bar": ("barriers",),
    "barrier": ("barriers",),
    "call": ("printf",),
    "cp": ("bulk", "cp_async", "tma"),
    "fence.mbarrier_init": ("mbarrier_exit",),
    "fence.proxy": ("mbarrier_exit", "proxy"),
    "ldmatrix": ("ldmatrix",),
    "mbarrier": ("mbarrier_exit", "mbarrier_instructions"),
    "mma": ("mma",),
    "movmatrix": ("ldmatrix",),
    "nanosleep": ("sync",),
    "red.async": ("async_store",),
    "setmaxnreg": ("sync",),
    "st.async": ("async_store",),
    "st.bulk": ("async_store",),
    "stmatrix": ("ldmatrix",),
    "tcgen05": ("tcgen05_alloc", "tcgen05_mma", "tcgen05_move", "tcgen05_sync"),
    "tensormap": ("tensor_map_instructions",),
    "wgmma": ("wgmma",),
    "wmma": ("wmma",),
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
