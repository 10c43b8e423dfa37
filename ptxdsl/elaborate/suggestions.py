"""What to write instead of a name that is not here: names of other languages, misspelt ones, those that need an import.

For errors alone: which module of the standard library has a name is searched in the texts when it is asked, which takes
a hundredth of the time that their trees would.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from ptxdsl.diagnostics import nearest
from ptxdsl.files import resources

# Methods that Mojo has renamed.
RENAMED_METHODS = {"offset": "p.unsafe_offset(i)", "__offset__": "p.unsafe_offset(i)"}
# Spelled so until Mojo 1.0, gone in 1.2; and Python's, CUDA's and Triton's names for what Mojo names otherwise.
RENAMED = {
    "UnsafePointer": "Pointer[T, MutAnyOrigin]", "InlineArray": "Array", "StaticTuple": "Array",
    "LayoutTensor": "Pointer[T, MutAnyOrigin]", "TileTensor": "Pointer[T, MutAnyOrigin]",
    "LegacyPointer": "Pointer", "Some": "[T: Trait](x: T)",
    "constrained": "comptime assert", "threadIdx": "thread_idx", "blockIdx": "block_idx", "blockDim": "block_dim",
    "gridDim": "grid_dim", "__syncthreads": "barrier()", "syncthreads": "barrier()", "int": "Int", "float": "Float32",
    "bool": "Bool", "str": "StaticString", "UnsafeMutPointer": "MutPointer", "List": "Array[T, n]",
    "printf": "print(…)", "maximum": "max", "minimum": "min", "cdiv": "ceildiv(a, b)",
    "tl.load": "p[i]", "tl.store": "p[i] = x", "tl.program_id": "block_idx.x", "tl.num_programs": "grid_dim.x",
    "tl.arange": "thread_idx.x", "tl.where": "a if condition else b", "tl.cdiv": "ceildiv(a, b)",
    "tl.atomic_add": "fetch_add(p, value)", "tl.constexpr": "comptime NAME = value",
    **{f"tl.{name}": name for name in ("exp", "exp2", "log", "sqrt", "rsqrt", "sin", "cos", "abs", "range")},
    "tl.maximum": "max", "tl.minimum": "min", "tl.static_range": "comptime for i in range(n)",
    "atomicAdd": "fetch_add(p, value)", "atomicMax": "fetch_max(p, value)", "atomicCAS": "compare_exchange(…)",
    "__shfl_xor_sync": "shuffle_xor(value, offset)", "__shfl_down_sync": "shuffle_down(value, offset)",
    "__syncwarp": "syncwarp()", "__popc": "pop_count(x)", "__clz": "count_leading_zeros(x)", "fmaxf": "max",
    "fminf": "min", "expf": "exp", "sqrtf": "sqrt", "rsqrtf": "rsqrt", "__expf": "exp_approx", "warpSize": "WARP_SIZE",
    "laneid": "lane_id()", "half": "Float16", "atomic_add": "fetch_add(p, value)", "static_assert": "comptime assert",
    "__shared__": "unsafe_stack_allocation[n, T, address_space=.SHARED]()",
    "shared": "unsafe_stack_allocation[n, T, address_space=.SHARED]()",
    **{f"f{bits}": f"Float{bits}" for bits in (16, 32, 64)}, "bf16": "BFloat16", "double": "Float64",
    **{f"{kind[0].lower()}{bits}": f"{kind}{bits}" for kind in ("Int", "UInt") for bits in (8, 16, 32, 64)},
    **{f"{kind.lower()}{bits}": f"{kind}{bits}" for kind in ("Int", "UInt") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"Float{bits}" for bits in (16, 32, 64)},
}  # fmt: skip


def renamed(name: str) -> str | None:
    """What to write instead of a name of Mojo's that is not here."""
    return f"write `{RENAMED[name]}`" if name in RENAMED else None


def closest(name: str, candidates: Iterable[str]) -> str | None:
    """The nearest of the names that are not private."""
    return nearest(name, (candidate for candidate in candidates if not candidate.startswith("_")))


def meant(name: str, candidates: Iterable[str]) -> str | None:
    """The name that was misspelt."""
    near = closest(name, candidates)
    return f"did you mean `{near}`?" if near else None


def elsewhere(name: str) -> str | None:
    """Where the standard library has a name that some module lacks."""
    line = _import_line(name)
    return f"write `{line}`" if line else None


def importable_name(name: str, visible: Iterable[str]) -> str | None:
    """A name that is not among the visible ones: it lacks an import, or it is misspelt."""
    missing = _import_line(name)
    if missing is not None:
        return f"did you forget `{missing}`?"
    known = set(visible)
    near = closest(name, [*known, *importable()])
    if near is None or near in known:
        return f"did you mean `{near}`?" if near else None
    return f"did you mean `{near}`? It needs `{_import_line(near)}`"


def forgotten_module(name: str) -> str | None:
    """A module of the standard library whose names are used as if it were imported."""
    return f"did you forget `import {name}`?" if name in resources.stdlib_names() else None


@cache
def importable() -> dict[str, str]:
    """Every public name of the standard library, and the module to import it from.

    That is the module that declares it, or the one named by the first word of its name, which gathers its names:
    ``math`` for ``math_roots``.
    """
    imported: dict[str, list[str]] = {}
    declared: dict[str, str] = {}
    for module in resources.stdlib_names():
        text = resources.stdlib_text(module)
        lines = re.findall(r"^from \w+ import (.+)", text, re.MULTILINE)
        items = [item.split(" as ") for line in lines for item in line.split(", ")]
        imported[module] = [item[0] for item in items]
        own = re.findall(r"^(?:def|struct|trait|comptime) (?!_)(\w+)", text, re.MULTILINE)
        for name in [*own, *(item[1] for item in items if len(item) == 2)]:
            declared.setdefault(name, module)
    return {
        name: family if name in imported.get(family := module.partition("_")[0], ()) else module
        for name, module in declared.items()
    }


def _import_line(name: str) -> str | None:
    module = importable().get(name)
    return None if module is None else f"from {module} import {name}"
