"""Rows of the intrinsics table through LLVM and ptxas, with operands known at compile time and at run time."""

from __future__ import annotations

import re
from typing import Any

import pytest
from backend_kernels import Build, compile_tir, i32

from ptxdsl.backend.assemble import assemble
from ptxdsl.intrinsics import ROWS
from ptxdsl.options import Options
from ptxdsl.targets import FEATURES, TARGETS
from ptxdsl.tir import BF16, F16, F32, F64, I1, I8, I16, I32, I64, Const, Module, Ty, Value, ptr

LLVM_TYPES = {
    "i1": I1, "i16": I16, "i32": I32, "i64": I64, "half": F16, "bfloat": BF16, "float": F32, "double": F64,
}  # fmt: skip
PARAMETERS: dict[str, Any] = {
    "count": 64, "clamp": 31, "n": 0, "num_threads": 64, "cta_group": 1, "hint": ".L1::evict_last", "bytes": 16,
    "sem": "acq_rel", "scope": "gpu", "space": ".global", "T": "uint32", "op": "add", "lut": 42,
    "priority": "evict_first",
}  # fmt: skip
S, G, C = ptr("shared"), ptr("global"), ptr("cluster")

# row -> operand types, result types
INLINE: dict[str, tuple[list[Ty], list[Ty]]] = {
    "fence_row": ([], []),
    "elect": ([], [I1]),
    "elect_mask": ([I32], [I1]),
    "match_all_b32": ([I32, I32], [I32]),
    "redux_sync": ([I32, I32], [I32]),
    "mbarrier_init": ([S, I32], []),
    "mbarrier_arrive": ([S], [I64]),
    "mbarrier_arrive_cluster": ([S, I32, I32], []),
    "mbarrier_arrive_cluster_cta": ([S, I32, I32], []),
    "mbarrier_arrive_expect_tx": ([S, I32], []),
    "mbarrier_arrive_expect_tx_cluster": ([S, I32, I32], []),
    "mbarrier_wait_parity": ([S, I32], []),
    "mbarrier_try_wait_parity": ([S, I32], [I1]),
    "tcgen05_commit": ([S], []),
    "tcgen05_commit_multicast": ([S, I16], []),
    "ld_global_b8": ([G], [I8]),
    "ld_global_b16": ([G], [F16]),
    "ld_global_v4_b32": ([G], [F32] * 4),
    "st_global_evict_b16": ([G, BF16], []),
    "st_global_evict_v4_b32": ([G] + [I32] * 4, []),
    "createpolicy": ([], [I64]),
    "mapa": ([S, I32], [C]),
    "st_cluster_b32": ([C, F32], []),
    "st_async_b32": ([C, I32, C], []),
    "cp_async_ca": ([S, G], []),
    "cp_async_bulk_g2s": ([S, G, I32, S], []),
    "cp_async_bulk_g2s_multicast": ([S, G, I32, S, I16], []),
    "cp_async_bulk_s2s": ([C, S, I32, C], []),
    "cp_async_bulk_s2g": ([G, S, I32], []),
    "atom_add": ([G, I32], [I32]),
    "atom_cas": ([G, I32, I32], [I32]),
    "atom_add_f16": ([G, F16], [F16]),
    "rcp_approx_f32": ([F32], [F32]),
    "tanh_approx_bf16": ([BF16], [BF16]),
}


def types_of(name: str) -> tuple[list[Ty], list[Ty]]:
    if name in INLINE:
        return INLINE[name]
    call = re.fullmatch(r"(\S+)(?: range\([^)]*\))? @[\w.]+\((.*)\)", ROWS[name].text)
    assert call
    arguments = [LLVM_TYPES[part.split()[0]] for part in call[2].split(", ") if "$" in part]
    return arguments, [] if call[1] == "void" else [LLVM_TYPES[call[1]]]


def lowest_target(name: str) -> str:
    feature = ROWS[name].feature
    return min(FEATURES[feature].targets, key=lambda arch: (TARGETS[arch].ptx, arch)) if feature else "sm_80"


def kernel(name: str, known: bool) -> Build:
    """The row once, between an operand of every kind and a store of every result."""
    k = Build()
    memory, index = k.pointer("memory", I64), k.scalar("index")
    shared = k("shared.alloc", S, bytes=1024, align=128, name="buf")
    operands, results = types_of(name)

    def operand(number: int, ty: Ty) -> Value:
        if ty.is_pointer:
            base = memory if ty == G else shared
            place = k("ptr.add", base.ty, base, i32(1) if known else index, scale=16, offset=16)
            return k("ptr.cast", ty, place) if ty == C else place
        return Const(ty, 2 if ty.is_int else 1.0) if known and ty != I1 else k.scalar(f"x{number}", ty)

    op = k.op(name, [operand(number, ty) for number, ty in enumerate(operands)], results, **PARAMETERS)
    for result in op.results:
        k("store", None, memory, result, align=result.ty.bytes, volatile=True)
    return k


# one compilation for each row, form and lowest target would be a minute: rows of a target share a module
CASES = [name for name, row in ROWS.items() if row.lowering == "llvm" or name in INLINE]


@pytest.mark.usefixtures("ptxas")
@pytest.mark.parametrize("known", [True, False], ids=["constants", "registers"])
@pytest.mark.parametrize("arch", sorted({lowest_target(name) for name in CASES}))
def test_rows(arch: str, known: bool) -> None:
    kernels = []
    for name in CASES:
        if lowest_target(name) == arch:
            built = kernel(name, known)
            built.name = f"k_{name}"
            kernels.append(built.kernel())
    emitted = compile_tir(Module(kernels), arch=arch)
    assert "call" not in emitted.ptx
    assert len(assemble(emitted.ptx, Options(arch=arch), emitted.line_map).resources) == len(kernels)


def test_addresses_and_literals_known_at_compile_time_are_printed_in_place() -> None:
    ptx = compile_tir(kernel("cp_async_bulk_g2s", True).module()).ptx
    assert "[k_buf+32], [%rd1+32], %r1, [k_buf+32];" in ptx, "2 bytes cannot be copied: ptxas wants a register then"
    assert "mbarrier.init.shared.b64 [k_buf+32], 2;" in compile_tir(kernel("mbarrier_init", True).module()).ptx


def test_run_time_addresses_keep_their_constant_bytes() -> None:
    assert re.search(r"\[%r\d+\+16\], \[%rd\d+\+16\], %r\d+, \[%r\d+\+16\];",
                     compile_tir(kernel("cp_async_bulk_g2s", False).module()).ptx)  # fmt: skip
