"""What to write instead of a name that is not here: names of other languages, misspelt ones, those that need an import,
those of blocks that have ended.

For errors alone: which module of the standard library has a name is searched in the texts when it is asked, which takes
a hundredth of the time that their trees would.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from ptxdsl.diagnostics import nearest
from ptxdsl.elaborate.entities import FunctionValue
from ptxdsl.files import resources
from ptxdsl.imports import parse_once
from ptxdsl.source import Span
from ptxdsl.syntax import ast
from ptxdsl.syntax.foreign import TYPES_OF_C
from ptxdsl.syntax.limits import children

# What is asked of values: by people of other languages, and by functions of the library.
MEMBERS = {
    **dict.fromkeys(("infinity", "INFINITY", "inf"), "write `inf[DType.float32]()`"),
    **dict.fromkeys(("nan", "NAN", "NaN"), "write `nan[DType.float32]()`"),
    **dict.fromkeys(("arrive_expect_tx", "expect_tx", "arrive_and_expect_tx"), "write `.expect_bytes(bytes)`"),
    **dict.fromkeys(("to", "astype", "type"), "write `x.cast[DType.float16]()`; of a scalar also `Float16(x)`"),
    "format": "hand the values to `print(…)` one by one",
    **dict.fromkeys(
        ("append", "extend", "insert", "pop", "push_back"),
        "an Array has all its elements from the start: `Array[Int32, 8](fill=0)`; keep an index of the next one",
    ),
    "in_registers": "a factor is a SharedTile, or in registers: `load_operand(tile)`, `d.as_operand[DType.float16]()`",
}
_SIZES = "pass the number of elements as an argument: a pointer does not know it"
# What a pointer does not have: methods that Mojo has renamed, and attributes of arrays.
POINTER_METHODS = {
    **dict.fromkeys(("offset", "__offset__"), "write `p.unsafe_offset(i)`"),
    **dict.fromkeys(("shape", "size", "numel", "__len__", "dim", "stride"), _SIZES),
}
_VECTORS_OF_C = {
    "float": "float32", "double": "float64", "int": "int32", "uint": "uint32", "half": "float16", "__half": "float16",
    "__nv_bfloat16": "bfloat16",
}  # fmt: skip
# Spelled so until Mojo 1.0, gone in 1.2; and Python's, CUDA's and Triton's names for what Mojo names otherwise.
RENAMED = {
    "UnsafePointer": "Pointer[T, MutAnyOrigin]", "InlineArray": "Array", "StaticTuple": "Array",
    "LegacyPointer": "Pointer", "Some": "[T: Trait](x: T)",
    **dict.fromkeys(("AnyTrivialRegType", "AnyRegType"), "TrivialRegisterPassable"),
    **dict.fromkeys(("CollectionElement", "KeyElement"), "Copyable"), "Formattable": "Writable",
    "constrained": "comptime assert", "threadIdx": "thread_idx", "blockIdx": "block_idx", "blockDim": "block_dim",
    "gridDim": "grid_dim", "__syncthreads": "barrier()", "syncthreads": "barrier()", "int": "Int", "float": "Float32",
    "bool": "Bool", "str": "StaticString", "UnsafeMutPointer": "MutPointer", "List": "Array[T, n]",
    "IndexList": "Array[Int, n]",
    "printf": "print(…)", "maximum": "max", "minimum": "min", "cdiv": "ceildiv(a, b)",
    "tl.load": "p[i]", "tl.store": "p[i] = x", "tl.program_id": "block_idx.x", "tl.num_programs": "grid_dim.x",
    "tl.arange": "thread_idx.x", "tl.where": "a if condition else b", "tl.cdiv": "ceildiv(a, b)",
    "tl.atomic_add": "fetch_add(p, value)", "tl.constexpr": "comptime NAME = value",
    **{f"tl.{name}": name for name in ("exp", "exp2", "log", "sqrt", "rsqrt", "sin", "cos", "abs", "range")},
    "tl.maximum": "max", "tl.minimum": "min", "tl.static_range": "comptime for i in range(n)",
    **{f"tl.{name}": f"block_{name}(x)" for name in ("sum", "max", "min")}, "tl.reduce": "block_reduce[op](x)",
    "tl.cumsum": "block_prefix_sum(x)", "BlockReduce": "block_reduce[op](x)", "BlockScan": "block_prefix_sum(x)",
    **{f"{of}_reduce_{name}": f"{of}_{name}(x)" for of in ("warp", "block") for name in ("sum", "max", "min")},
    **{f"{of}Reduce{name.title()}": f"{of}_{name}(x)" for of in ("warp", "block") for name in ("sum", "max", "min")},
    **dict.fromkeys(("tid", "tidx"), "thread_idx.x"), **dict.fromkeys(("bid", "bidx"), "block_idx.x"),
    **{f"{name}{n}": f"SIMD[DType.{dtype}, {n}](…)" for n in (2, 4) for name, dtype in _VECTORS_OF_C.items()},
    "tl.debug_barrier": "barrier()",
    "tl.zeros": "Array[Float32, n](fill=0)", "tl.full": "Array[Float32, n](fill=x)",
    "cuda.syncthreads": "barrier()", "cuda.threadIdx": "thread_idx", "cuda.blockIdx": "block_idx",
    "cuda.blockDim": "block_dim", "cuda.gridDim": "grid_dim", "cuda.grid": "global_idx.x",
    "atomicAdd": "fetch_add(p, value)", "atomicMax": "fetch_max(p, value)", "atomicCAS": "compare_exchange(…)",
    "__shfl_xor_sync": "shuffle_xor(value, offset)", "__shfl_down_sync": "shuffle_down(value, offset)",
    "__shfl_sync": "shuffle_idx(value, lane)", "__shfl_up_sync": "shuffle_up(value, offset)",
    "__ballot_sync": "vote_ballot(condition)", "__any_sync": "vote_any(condition)",
    "__all_sync": "vote_all(condition)", "__activemask": "active_mask()", "__ldg": "ldg(p)",
    "__threadfence": "threadfence()", "__threadfence_block": "threadfence_block()",
    **{f"atomic{what}": f"fetch_{what.lower()}(p, value)" for what in ("Sub", "Min", "And", "Or", "Xor")},
    "atomicExch": "exchange(p, value)", "atomic_max": "fetch_max(p, value)", "__brev": "bit_reverse(x)",
    **{f"{name}f": name for name in ("sin", "cos", "tan", "log", "exp2", "log2", "pow", "tanh", "floor", "ceil")},
    "fabs": "abs", "fabsf": "abs", "__sinf": "sin_approx", "__cosf": "cos_approx", "__logf": "log_approx",
    "__fdividef": "div_approx(a, b)", "INFINITY": "inf[DType.float32]()", "FLT_MAX": "Float32.MAX",
    "true": "True", "false": "False", "asm": "inlined_assembly[…](…)",
    "__syncwarp": "syncwarp()", "__popc": "pop_count(x)", "__clz": "count_leading_zeros(x)", "fmaxf": "max",
    "fminf": "min", "expf": "exp", "sqrtf": "sqrt", "rsqrtf": "rsqrt", "__expf": "exp_approx", "warpSize": "WARP_SIZE",
    "laneid": "lane_id()", "half": "Float16", "atomic_add": "fetch_add(p, value)", "static_assert": "comptime assert",
    "__shared__": "unsafe_stack_allocation[n, T, address_space=.SHARED]()",
    "shared": "unsafe_stack_allocation[n, T, address_space=.SHARED]()",
    **{f"f{bits}": f"Float{bits}" for bits in (16, 32, 64)}, "bf16": "BFloat16",
    **{f"fp{bits}": f"Float{bits}" for bits in (16, 32, 64)}, "bfloat16": "BFloat16` or `DType.bfloat16",
    **{name: type for name, type in TYPES_OF_C.items() if name not in ("int", "bool")},
    "mbarrier_init": "bar[].init(count)", "mbarrier_arrive": "bar[].arrive()", "mbarrier_wait": "bar[].wait(parity)",
    "mbarrier_expect_tx": "bar[].expect_bytes(bytes)", "cp_async": "async_copy[16](src, dst)",
    "cp_async_commit_group": "async_copy_commit_group()", "cp_async_wait_group": "async_copy_wait_group[n]()",
    "cp_async_wait_all": "async_copy_wait_all()", "cp_async_bulk_tensor": "tma_load(tile, map, bar, coords)",
    "setmaxnreg_inc": "warpgroup_reg_alloc[n]()", "setmaxnreg_dec": "warpgroup_reg_dealloc[n]()",
    **{f"shfl_{how}": f"shuffle_{how}(value, offset)" for how in ("up", "down", "xor")},
    **{f"{kind[0].lower()}{bits}": f"{kind}{bits}" for kind in ("Int", "UInt") for bits in (8, 16, 32, 64)},
    **{f"{kind.lower()}{bits}": f"{kind}{bits}" for kind in ("Int", "UInt") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"Float{bits}` or `DType.float{bits}" for bits in (16, 32, 64)},
}  # fmt: skip

# What Mojo and Python have of which a kernel needs something else.
_LACKING = {
    **dict.fromkeys(
        ("Dict", "Set", "Deque", "dict", "set"), "a kernel has Arrays, whose size is known at compile time"
    ),
    **dict.fromkeys(("Optional", "Error", "Exception"), "return a Bool beside the value, in a tuple or a struct"),
    "Variant": "write a struct with a field that says which it is",
    "Span": "pass a pointer, and the number of elements as an `Int`",
    **dict.fromkeys(
        ("LayoutTensor", "TileTensor", "NDBuffer"),
        "take a `Pointer[T, MutAnyOrigin]`; a struct with `__getitem__` makes `m[row, col]` of it",
    ),
    **dict.fromkeys(
        ("Layout", "row_major", "col_major", "IntTuple"),
        "compute the index, `p[row * cols + col]`; a tile in shared memory is `from layout import SharedTile`",
    ),
    **dict.fromkeys(
        ("vectorize", "elementwise", "parallelize"), "write the loop; `p.load[width=4](i)` takes 4 elements"
    ),
    **dict.fromkeys(("memcpy", "memset", "memset_zero"), "write a loop over the elements"),
    **dict.fromkeys(
        ("DeviceContext", "DeviceBuffer", "HostBuffer"), "kernels are launched from Python: `kernel[grid, block](…)`"
    ),
    **dict.fromkeys(("sorted", "map", "filter"), "write a loop"),
    "__name__": "a file needs no `main`: `@kernel` marks what is launched",
}

# Modules of other languages, whose names are not all listed.
_FOREIGN_MODULES = {
    **dict.fromkeys(("tl", "gl", "triton"), "Triton's functions are of a block: a kernel here says what a thread does"),
    **dict.fromkeys(
        ("np", "numpy", "torch", "cupy"), "a kernel has no arrays of Python; the module `math` is of numbers"
    ),
}


def renamed(name: str) -> str | None:
    """What to write instead of a name of other languages that is not here."""
    return f"write `{RENAMED[name]}`" if name in RENAMED else _LACKING.get(name)


def closest(name: str, candidates: Iterable[str]) -> str | None:
    """The nearest of the names that are not private; first of all the same in other letters' sizes."""
    public = [candidate for candidate in candidates if not candidate.startswith("_")]
    same = (candidate for candidate in public if candidate.casefold() == name.casefold())
    return next(same, None) or nearest(name, public)


def meant(name: str, candidates: Iterable[str]) -> str | None:
    """The name that was misspelt."""
    near = closest(name, candidates)
    return f"did you mean `{near}`?" if near else None


def call_of(function: FunctionValue) -> str:
    """How a function that stands without its brackets is called."""
    takes = {p.kind for decl in function.overloads for p in decl.node.params if p.default is None} - {"infer"}
    arguments = "…" if any(decl.node.args for decl in function.overloads) else ""
    return f"{function.name}{'[…]' if takes and not function.params else ''}({arguments})"


def elsewhere(name: str) -> str | None:
    """Where the standard library has a name that some module lacks."""
    if name in resources.stdlib_names():
        return f"it is a module of its own: write `import {name}`"
    line = _import_line(name)
    return f"write `{line}`" if line else None


def hidden_module(name: str, module: ast.Module) -> str | None:
    """Of a user's file that has the name of a module of the library, which somebody may have meant."""
    if module.source.library or name not in resources.stdlib_names():
        return None
    return f"it is the file '{module.source.name}', which hides the library's `{name}`: give it another name"


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


def of_module(module: str, name: str) -> str | None:
    """``module.name`` where no module is imported by that name."""
    if module not in resources.stdlib_names():
        return renamed(f"{module}.{name}") or _FOREIGN_MODULES.get(module)
    names = _names_of()[module]
    if name in names:
        return f"did you forget `import {module}`?"
    near = closest(name, names) or closest(f"{module}_{name}", names)
    if near is None or near in _names_of()["prelude"]:
        return f"did you mean `{near}`?" if near else None
    return f"did you mean `{near}`? It needs `from {module} import {near}`"


def ended_block(name: str, span: Span) -> Span | None:
    """Where, in the function around the span, a block that has ended had a variable of this name."""
    if span.source.library:
        return None
    for function in _below(parse_once(span.source)):
        if isinstance(function, ast.FunctionDef) and function.span.start <= span.start < function.span.end:
            for node in _below(function):
                if isinstance(node, ast.VarDecl | ast.For) and node.span.start < span.start:
                    found = next((n for n in ast.names_of(node.target) if n.id == name), None)
                    if found is not None:
                        return found.span
    return None


def _below(node: ast.Node) -> Iterator[ast.Node]:
    for child in children(node):
        yield child
        yield from _below(child)


@cache
def importable() -> dict[str, str]:
    """Every public name of the standard library, and the module to import it from.

    That is the module that declares it, or the one named by the first word of its name, which gathers its names:
    ``math`` for ``math_roots``. Of those that ``warp`` and ``block`` share, it is the warp's.
    """
    return {
        name: family if name in _names_of().get(family := module.partition("_")[0], ()) else module
        for module, names in reversed(_names_of().items())
        for name, own in names.items()
        if own and not (module == "block" and name in _names_of()["warp"])
    }


@cache
def _names_of() -> dict[str, dict[str, bool]]:
    """The public names of each module of the standard library, and whether they are its own."""
    import re  # only for errors

    found = {}
    for module in resources.stdlib_names():
        text = resources.stdlib_text(module)
        lines = re.findall(r"^from \w+ import (.+)", text, re.MULTILINE)
        items = [item.split(" as ") for line in lines for item in line.split(", ")]
        own = re.findall(r"^(?:def|struct|trait|comptime) (\w+)", text, re.MULTILINE)
        names = {item[-1]: len(item) == 2 for item in items} | dict.fromkeys(own, True)
        found[module] = {name: is_own for name, is_own in names.items() if not name.startswith("_")}
    return found


def _import_line(name: str) -> str | None:
    module = importable().get(name)
    return None if module is None else f"from {module} import {name}"
