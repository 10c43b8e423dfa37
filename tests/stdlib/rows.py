"""Every instruction row as its declaration in ``stdlib/`` gives it: operand and result types, typical parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ptxdsl.elaborate.types import DTYPES, SCALAR_NAMES, SPACES
from ptxdsl.files import resources
from ptxdsl.imports import library_module
from ptxdsl.intrinsics import ROWS
from ptxdsl.signature import KernelSignature, PointerParam, ScalarParam
from ptxdsl.source import Span
from ptxdsl.syntax import ast
from ptxdsl.tir import Block, Const, Kernel, Module, Op, Ty, Value, ptr

ORDERS = ("relaxed", "acquire", "release", "acq_rel")
ATOMIC = [
    {"sem": "relaxed", "scope": "gpu", "space": ".global", "A": "GLOBAL"},
    {"sem": "acq_rel", "scope": "sys", "space": "", "A": "GENERIC"},
    {"sem": "acquire", "scope": "cta", "space": ".shared", "A": "SHARED"},
]
INTEGERS = ("int32", "uint32", "uint64")
FORMS = ("b16", "b32", "b64", "v2_b32", "v4_b32")
PRIORITIES = (".L1::evict_first", ".L1::evict_last", ".L1::evict_unchanged", ".L1::no_allocate")
MOVED = ("uint16", "float32", "int64")
# a shape and combination of types of wgmma each, with the elements of D that a thread has
WGMMA = [
    {"n": 8, "k": 16, "types": "f32.bf16.bf16", "tail": ", 1, 1, 0, 1", "E": "float32", "N": 4},
    {"n": 256, "k": 16, "types": "f32.f16.f16", "tail": ", -1, 1, 0, 0", "E": "float32", "N": 128},
    {"n": 24, "k": 16, "types": "f16.f16.f16", "tail": ", 1, -1, 0, 0", "E": "uint32", "N": 6},
    {"n": 64, "k": 8, "types": "f32.tf32.tf32", "tail": ", 1, 1", "E": "float32", "N": 32},
    {"n": 128, "k": 32, "types": "f32.e4m3.e5m2", "tail": ", 1, 1", "E": "float32", "N": 64},
    {"n": 32, "k": 32, "types": "s32.s8.s8.satfinite", "tail": "", "E": "int32", "N": 16},
    {"n": 16, "k": 256, "types": "s32.b1.b1.and.popc", "tail": "", "E": "int32", "N": 8},
]
MIXED = [{"n": 16, "k": 32, "types": "s32.s8.u8", "tail": "", "E": "int32", "N": 8}]
# of 16 and 32 bits, one of two threads has the metadata
SPARSE = [
    {**variant, "k": 2 * variant["k"], "selector": int(variant["k"] < 32)}
    for variant in [*WGMMA, *MIXED]
    if ".b1." not in variant["types"]
]
# kinds of tcgen05, of blocks and pairs, without and with masks of lanes
TCGEN05 = [
    {"cta_group": group, "kind": kind, "form": form, "masks": masks}
    for group, masks in ((1, 0), (1, 4), (2, 0), (2, 8))
    for kind, form in (("f16", ".collector::a::fill"), ("tf32", ".collector::a::lastuse"), ("f8f6f4", ""))
]
TCGEN05_BYTES = [{**v, "kind": "i8"} for v in TCGEN05 if v["kind"] == "f16"]
TCGEN05_DIVIDED = [{**v, "power": 15} for v in TCGEN05 if v["kind"] != "f8f6f4"]
TCGEN05_SCALED = [
    {"cta_group": group, "kind": kind, "block": block, "form": form}
    for group in (1, 2)
    for kind, block, form in (("mxf8f6f4", 32, ".collector::a::use"), ("mxf4", 32, ""), ("mxf4nvf4", 16, ""))
]
SHIFTED = [{**v, "form": form} for v in TCGEN05[::3] for form in (".ashift", ".ashift.collector::a::lastuse")]
STATIONARY = [
    {"cta_group": 1, "kind": kind, "form": form, "masks": masks}
    for kind in ("f16", "tf32", "f8f6f4")
    for form, masks in ((".collector::b0::discard", 0), (".collector::b3::fill", 1))
]
STATIONARY_BYTES = [{**v, "kind": "i8"} for v in STATIONARY[:2]]
MOVED_TENSORS = [
    {"shape": f".{shape}.x{count}{pack}", "split": split, "E": "float32", "N": count * each}
    for shape, each, split, most in (
        ("32x32b", 1, "", 128),
        ("16x64b", 1, "", 128),
        ("16x128b", 2, "", 64),
        ("16x256b", 4, "", 32),
        ("16x32bx2", 1, ", 16", 128),
    )
    for count in (1, 8, most)
    for pack in ("", ".pack::16b")
]


def _each(variants: list[dict[str, Any]], **choices: tuple[Any, ...]) -> list[dict[str, Any]]:
    for name, values in choices.items():
        variants = [{**known, name: value} for known in variants for value in values]
    return variants


def _dtypes(*names: str) -> tuple[Any, ...]:
    return tuple(DTYPES[name] for name in names)


# Compile-time parameters to try. What is not here has none.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "setmaxnreg_inc": [{"count": 232}],
    "setmaxnreg_dec": [{"count": 40}],
    "named_barrier_sync": [{"num_threads": 64}],
    "named_barrier_arrive_row": [{"num_threads": 64}],
    "fence_row": _each([{}], sem=("sc", "acq_rel"), scope=("cta", "gpu", "sys")),
    "tensormap_replace_size": _each([{}], field=("box_dim", "global_dim", "element_stride"), dim=(0, 4)),
    "tensormap_replace_stride": _each([{}], dim=(0, 3)),
    "tensormap_replace_choice": [
        {"field": "elemtype", "value": 10},
        {"field": "swizzle_mode", "value": 3},
        {"field": "fill_mode", "value": 1},
    ],
    **{
        name: _each([{}], scope=("cta", "cluster", "gpu", "sys"))
        for name in (
            "tensormap_cp_fence_proxy_row", "fence_proxy_tensormap_acquire_row", "fence_proxy_tensormap_release_row"
        )
    },
    "fence_cluster_row": _each([{}], sem=("sc", "acq_rel")),
    "redux_sync": _each([{}], op=("add", "min", "max"), T=_dtypes("int32", "uint32")),
    "redux_sync_bits": _each([{}], op=("and", "or", "xor"), T=_dtypes("int32", "uint32")),
    "redux_sync_f32": _each([{}], op=("min", "max")),
    **{f"shfl_{mode}": [{"clamp": 31}] for mode in ("idx", "up", "down", "bfly")},
    **{
        f"tcgen05_{name}": _each([{}], cta_group=(1, 2))
        for name in (
            "commit", "commit_multicast", "commit_elected", "commit_multicast_elected", "relinquish_row", "shift_row",
        )
    },
    "tcgen05_alloc_row": [{"cta_group": 1, "columns": 32}, {"cta_group": 2, "columns": 512}],
    "tcgen05_dealloc_row": [{"cta_group": 1, "columns": 32}, {"cta_group": 2, "columns": 512}],
    **{
        f"tcgen05_mma_{place}{form}": variants + (SHIFTED if (place, form) == ("tensor", "") else [])
        for place in ("shared", "tensor")
        for form, variants in (
            *(
                (f"{what}{form}", variants)
                for what in ("", "_sparse")
                for form, variants in (("", TCGEN05), ("_bytes", TCGEN05_BYTES), ("_divided", TCGEN05_DIVIDED))
            ),
            ("_scaled", TCGEN05_SCALED),
            ("_scaled_k96", [v for v in TCGEN05_SCALED if v["kind"] != "mxf8f6f4"]),
            ("_sparse_scaled", [v for v in TCGEN05_SCALED if v["kind"] == "mxf8f6f4"]),
            ("_sparse_scaled_packed", [v for v in TCGEN05_SCALED if v["kind"] != "mxf8f6f4"]),
            *((f"_stationary{what}", STATIONARY) for what in ("", "_sparse")),
            *((f"_stationary{what}_bytes", STATIONARY_BYTES) for what in ("", "_sparse")),
        )
    },
    "tcgen05_descriptor": [{"fields": 0x4000_4040_0001_0000}],
    "tcgen05_descriptor_at": [{"offset": 2}],
    "tcgen05_copy_row": _each(
        [{}],
        cta_group=(1, 2),
        shape=(".128x256b", ".4x256b", ".128x128b.b8x16.b6x16_p32", ".64x128b.warpx2::02_13", ".64x128b.warpx2::01_23",
               ".32x128b.warpx4.b8x16.b4x16_p64"),
    ),
    "tcgen05_load_row": MOVED_TENSORS,
    "tcgen05_load_reduced_row": [
        {"shape": f".{shape}.x{count}", "reduction": reduction, "split": split, "E": "float32", "N": count + 1}
        for shape, split, count in (("32x32b", "", 2), ("32x32b", "", 128), ("16x32bx2", ", 16", 8))
        for reduction in (".max.f32", ".min.abs.NaN.f32", ".max.u32", ".min.s32")
    ],
    "tcgen05_store_row": [{**v, "shape": v["shape"].replace(".pack", ".unpack")} for v in MOVED_TENSORS],
    "tcgen05_load_wait_of": [{"E": "float32", "N": 128}],
    "createpolicy": _each([{}], priority=("evict_first", "evict_last", "evict_normal", "evict_unchanged")),
    "cp_async_ca": _each([{}], bytes=(4, 8, 16)),
    "cp_async_ca_fill": _each([{}], bytes=(4, 8, 16)),
    "cp_async_wait_group": [{"n": 2}],
    "cp_async_bulk_wait_group_all": [{"n": 1}],
    "cp_async_bulk_wait_group_read": [{"n": 1}],
    "cp_reduce_async_bulk_s2g": [
        *_each([{}], op=("add", "min", "max"), T=_dtypes("int32", "uint64")),
        *_each([{"op": "add"}], T=_dtypes("float32", "float64")),
        *_each([{"op": "add.noftz"}], T=_dtypes("float16", "bfloat16")),
    ],
    "cp_reduce_async_bulk_s2g_bits": _each([{}], op=("and", "or", "xor"), width=(32, 64)),
    **{f"ld_global_{form}": _each([{}], hint=("", ".cg", ".cs", ".lu", ".cv", ".nc")) for form in ("b8", *FORMS)},
    **{f"st_global_{form}": _each([{}], hint=("", ".cg", ".cs", ".wb", ".wt")) for form in ("b8", *FORMS)},
    **{f"ld_global_evict_{form}": _each([{}], hint=(*PRIORITIES, *(f".nc{p}" for p in PRIORITIES))) for form in FORMS},
    **{f"st_global_evict_{form}": _each([{}], hint=PRIORITIES) for form in FORMS},
    "atom_add": _each(ATOMIC, T=_dtypes("int32", "uint32", "uint64", "float32", "float64")),
    "atom_add_s64": _each(ATOMIC, T=_dtypes("int64", "int", "uint64")),
    "atom_add_f16": _each(ATOMIC, T=_dtypes("float16")),
    "atom_add_bf16": _each(ATOMIC, T=_dtypes("bfloat16")),
    "atom_min": _each(ATOMIC, T=_dtypes("int32", "uint32", "int64", "uint64", "int")),
    "atom_max": _each(ATOMIC, T=_dtypes("int32", "uint32", "int64", "uint64", "uint")),
    **{f"atom_{op}": _each(ATOMIC, T=_dtypes(*INTEGERS)) for op in ("and", "or", "xor")},
    **{f"atom_{op}": _each(ATOMIC, T=_dtypes(*INTEGERS, "float32", "float64")) for op in ("exch", "cas")},
    "ld_atomic": _each([a for a in ATOMIC if a["sem"] in ("relaxed", "acquire")], T=_dtypes(*MOVED)),
    "st_atomic": _each(ATOMIC[:1], T=_dtypes(*MOVED), sem=("relaxed", "release")),
    "ld_volatile": _each([{"space": ".global", "A": "GLOBAL"}, {"space": ".shared", "A": "SHARED"}], T=_dtypes(*MOVED)),
    "lop3_row": [{"lut": 0xE8}],
    **{
        f"tensor_{name}": _each([{}], rank=(1, 2, 3, 4, 5))
        for name in (
            "load", "load_hint", "load_multicast", "load_multicast_hint", "load_pair", "load_pair_hint",
            "load_pair_multicast", "load_pair_multicast_hint", "store", "store_hint", "prefetch",
        )
    },
    **{f"tensor_{name}{hint}": [{"bytes": 512}] for name in ("gather", "scatter") for hint in ("", "_hint")},
    "tensor_reduce": _each([{}], rank=(1, 5), op=("add", "min", "max", "inc", "dec", "and", "or", "xor")),
    "tensor_reduce_hint": _each([{}], rank=(2,), op=("add",)),
    "mma_row": [
        {"shape": "m16n8k16", "types": ".f32.bf16.bf16.f32", "E": "float32", "N": 4},
        {"shape": "m16n8k16", "types": ".f16.f16.f16.f16", "E": "uint32", "N": 2},
        {"shape": "m16n8k8", "types": ".f32.tf32.tf32.f32", "E": "float32", "N": 4},
        {"shape": "m16n8k32", "types": ".satfinite.s32.s8.u8.s32", "E": "int32", "N": 4},
    ],
    "mma_float8_row": [{"shape": "m16n8k32", "types": ".f32.e4m3.e5m2.f32", "E": "float32", "N": 4}],
    "mma_short_row": [
        {"shape": "m16n8k8", "types": ".f32.f16.f16.f32", "E": "float32", "N": 4},
        {"shape": "m16n8k8", "types": ".f16.f16.f16.f16", "E": "uint32", "N": 2},
        {"shape": "m16n8k8", "types": ".f32.bf16.bf16.f32", "E": "float32", "N": 4},
        {"shape": "m16n8k4", "types": ".f32.tf32.tf32.f32", "E": "float32", "N": 4},
        {"shape": "m16n8k16", "types": ".s32.u8.s8.s32", "E": "int32", "N": 4},
    ],
    "wgmma_shared": WGMMA,
    # A in registers has no majorness
    "wgmma_registers": [{**v, "tail": v["tail"][: -len(", 0")] if v["k"] == 16 else v["tail"]} for v in WGMMA],
    "wgmma_mixed_shared": MIXED,
    "wgmma_mixed_registers": MIXED,
    "wgmma_sparse_shared": SPARSE,
    "wgmma_sparse_registers": [{**v, "tail": v["tail"][: -len(", 0")] if v["k"] == 32 else v["tail"]} for v in SPARSE],
    "wgmma_wait_group": _each([{}], n=(0, 7)),
    "wgmma_wait_group_of": [{"n": 0, "E": "float32", "N": 128}],
    **{f"{name}matrix_x{count}": _each([{}], trans=("", ".trans")) for name in ("st", "ld") for count in (1, 2, 4)},
}  # fmt: skip


@dataclass(frozen=True)
class Use:
    """One row with parameters: the types of what goes in and comes out."""

    name: str
    attrs: Mapping[str, Any]
    operands: tuple[Ty, ...]
    results: tuple[Ty, ...]


def declarations() -> dict[str, ast.FunctionDef]:
    """The functions of the standard library that are rows, by name."""
    found: dict[str, ast.FunctionDef] = {}
    for module in resources.stdlib_names():
        for node in library_module(module).body:
            if isinstance(node, ast.FunctionDef) and node.name in ROWS:
                assert node.name not in found, f"{node.name} is declared twice"
                found[node.name] = node
    return found


def uses() -> Iterator[Use]:
    for name, node in declarations().items():
        for attrs in VARIANTS.get(name, [{}]):
            declared = {p.name for p in node.params if p.default is None}
            assert declared - {"U"} <= set(attrs) | {"T", "n"}, f"{name}: no values for {declared - set(attrs)}"
            results = () if node.returns is None else _types(node.returns, attrs)
            yield Use(name, attrs, tuple(t for a in node.args for t in _types(a.type, attrs)), results)


def _types(node: ast.Expr | None, attrs: Mapping[str, Any]) -> tuple[Ty, ...]:
    match node:
        case ast.Name(id="MBarType"):
            return (ptr("shared"),)
        case ast.Name(id="RemoteMBarType"):
            return (ptr("cluster"),)
        case ast.Name(id=name) if name in SCALAR_NAMES:
            return (DTYPES[SCALAR_NAMES[name]].ty,)
        case ast.Name(id="TensorMap"):
            return (ptr("generic"),)
        case ast.Subscript(value=ast.Name(id="Scalar")):
            return (attrs["T"].ty,)
        case ast.Subscript(value=ast.Name(id="Array"), args=(element, size)):
            return _array(element.value, size.value, attrs)
        case ast.Subscript(value=ast.Name(id="Tuple"), args=args):
            return tuple(t for a in args for t in _types(a.value, attrs))
        case ast.Subscript(value=ast.Name(id="Pointer"), args=args):
            (space,) = (a.value for a in args if a.name == "address_space")
            name = space.name if isinstance(space, ast.Attribute) else attrs["A"]
            return (ptr(SPACES[name]),)
    raise AssertionError(f"a row with a type that this test does not know: {node}")


def _array(element: ast.Expr, size: ast.Expr, attrs: Mapping[str, Any]) -> tuple[Ty, ...]:
    """``Array[E, N]`` as the attributes say; the coordinates of a tensor are as many as its rank."""
    assert isinstance(element, ast.Name)
    name = attrs.get(element.id, element.id)
    length = size.value if isinstance(size, ast.IntLiteral) else attrs.get(size.id, attrs.get("rank"))
    return (DTYPES[SCALAR_NAMES.get(name, name)].ty,) * length


def kernel(number: int, use: Use, span: Span) -> Kernel:
    """A kernel that executes the row once, on its parameters, and stores the results."""
    body, params, declared = Block(), [Value(ptr("global"), "out")], [PointerParam("out", "float32", 4, 4, True)]
    operands: list[Value] = []

    def op(name: str, given: list[Value], types: tuple[Ty, ...], /, **attrs: Any) -> list[Value]:
        made = Op(name, given, [Value(t) for t in types], attrs, span)
        body.ops.append(made)
        return made.results

    for i, ty in enumerate(use.operands):
        if ty.is_pointer and ty.space == "shared":
            operands += op("shared.alloc", [], (ty,), bytes=1024, align=128, name=f"buffer{i}")
        elif ty.is_pointer and ty.space == "cluster":
            local = op("shared.alloc", [], (ptr("shared"),), bytes=1024, align=128, name=f"peer{i}")
            operands += op("mapa", [*local, Const(Ty("i32"), 1)], (ty,))
        elif ty.is_pointer:
            params.append(Value(ptr("global"), f"p{i}"))
            declared.append(PointerParam(f"p{i}", "float32", 4, 4, True))
            operands += op("ptr.cast", [params[-1]], (ty,)) if ty.space == "generic" else [params[-1]]
        else:
            params.append(Value(ty, f"p{i}"))
            declared.append(ScalarParam(f"p{i}", next(d.name for d in DTYPES.values() if d.ty == ty)))
            operands.append(params[-1])
    attrs = {name: value for name, value in use.attrs.items() if name != "A"}
    for place, result in enumerate(op(use.name, operands, use.results, **attrs)):
        value = result
        if value.ty.is_pointer:
            (value,) = op("ptr.toint", [value], (Ty("i32"),))
        (where,) = op("ptr.add", [params[0], Const(Ty("i32"), 16 * place)], (ptr("global"),), scale=1)
        op("store", [where, value], (), align=value.ty.bytes)
    op("return", [], ())
    name = f"row_{number}_{use.name}"
    return Kernel(name, params, body, KernelSignature(name, tuple(declared), max_threads=(128, 1, 1)), span)


def module(chosen: list[Use]) -> Module:
    node = next(iter(declarations().values()))
    return Module([kernel(i, use, node.span) for i, use in enumerate(chosen)])
