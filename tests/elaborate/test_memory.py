"""Pointers and memory: offsets, vectors and their alignment, structs in memory, casts, addresses, allocations."""

from __future__ import annotations

import pytest
from elaborate_support import diagnostics, typed
from semantics import RESULT, run

from ptxdsl import tir

STRUCTS = """
@fieldwise_init
struct Inner(TrivialRegisterPassable):
    var a: Int8
    var b: Float64

@fieldwise_init
struct Record(TrivialRegisterPassable):
    var x: Int32
    var inner: Inner
    var items: Array[Int16, 3]
    var v: SIMD[DType.float32, 2]
    var p: Pointer[Int32, MutUntrackedOrigin]

    def bump(mut self):
        self.x += 1
"""
KERNEL = "@kernel\ndef k(p: Pointer[Int32, MutAnyOrigin], n: Int32, i: Int):\n    "


def memory(body: str, *arguments: object, before: str = "", element: str = "Int32") -> list[tuple[str, int, int, int]]:
    """Every access of a kernel: load or store, bytes after the kernel's pointer, lanes, known alignment."""
    head = KERNEL.replace("Int32, Mut", f"{element}, Mut")
    module = typed(before + head + body.replace("\n", "\n    "))
    found: list[tuple[str, int, int, int]] = []
    offsets: dict[tir.Value, int] = {module.kernels[0].params[0]: 0}
    for op in tir.walk(module.kernels[0].body):
        if op.name == "ptr.add" and op.operands[0] in offsets:
            assert isinstance(op.operands[1], tir.Const)
            moved = op.operands[1].value * op.attrs["scale"] + op.attrs["offset"]
            offsets[op.result] = offsets[op.operands[0]] + moved
        elif op.name in ("load", "store"):
            ty = op.result.ty if op.name == "load" else op.operands[1].ty
            found.append((op.name, offsets[op.operands[0]], ty.lanes, op.attrs["align"]))
    return found


@pytest.mark.parametrize(
    ("access", "offset"),
    [
        ("p[]", 0), ("p[unsafe_offset=3]", 12), ("p[3]", 12), ("(p + 3)[]", 12), ("(p - 2)[]", -8),
        ("p.unsafe_offset(5)[]", 20), ("p.unsafe_offset(5).unsafe_offset(-2)[]", 12), ("(p + 1)[unsafe_offset=2]", 12),
        ("p[unsafe_offset=UInt32(7)]", 28), ("p[unsafe_offset=Int8(-1)]", -4), ("p[2 * 3 - 1]", 20),
    ],
)  # fmt: skip
def test_offsets_count_elements(access: str, offset: int) -> None:
    assert memory(f"{access} = 1") == [("store", offset, 1, 4)]


@pytest.mark.parametrize("index", ["n", "i", "UInt32(n)", "Int64(n)", "UInt8(n)", "n * 2 - n"])
def test_an_index_is_any_integer(index: str) -> None:
    assert run(KERNEL + f"p[{index}] = 7\n    p[] = p[unsafe_offset=5]", 5, 5) == [7, 7]


def test_an_unsigned_index_reaches_beyond_2_gigabytes() -> None:
    source = "@kernel\ndef k(p: Pointer[Int8, MutAnyOrigin], n: UInt32):\n    p[n] = 3\n    p[] = p[n]"
    assert run(source, -5) == [3, 3]
    module = typed(source)
    assert [op.attrs["unsigned"] for op in tir.walk(module.kernels[0].body) if op.name == "ptr.add"][:1] == [True]


@pytest.mark.parametrize(
    ("body", "accesses"),
    [
        ("var v = p.unsafe_load[width=4]()\np[] = v[0]", [("load", 0, 4, 4), ("store", 0, 1, 4)]),
        ("var v = p.unsafe_load[width=4, alignment=16](8)\np[] = v[0]", [("load", 32, 4, 16), ("store", 0, 1, 4)]),
        ("p.unsafe_store[alignment=8](2, SIMD[DType.int32, 2](1, 2))", [("store", 8, 2, 8)]),
        ("p.unsafe_store(SIMD[DType.int32, 8](0))", [("store", 0, 8, 4)]),
        ("p.store(SIMD[DType.int32, 8](0))", [("store", 0, 8, 4)]),
        ("p.unsafe_store(3, 5)", [("store", 12, 1, 4)]),
        ("p.store(3, p.load(1))", [("load", 4, 1, 4), ("store", 12, 1, 4)]),
        ("p.store[alignment=16](4, p.load[width=4, alignment=16]())", [("load", 0, 4, 16), ("store", 16, 4, 16)]),
        ("p.bitcast[SIMD[DType.int32, 4]]()[1] = 0", [("store", 16, 4, 16)]),
        ("p.bitcast[Int8]()[3] = 0", [("store", 3, 1, 1)]),
        ("p.unsafe_bitcast[Float64]()[] = 0", [("store", 0, 1, 8)]),
        ("p.unsafe_store[alignment=2](0, 1)", [("store", 0, 1, 4)]),
    ],
)
def test_vectors_and_their_alignment(body: str, accesses: list[tuple[str, int, int, int]]) -> None:
    assert memory(body) == accesses


def test_volatile_accesses_are_marked() -> None:
    module = typed(KERNEL + "p.unsafe_store[volatile=True](0, p.unsafe_load[volatile=True](1))")
    accesses = [op for op in tir.walk(module.kernels[0].body) if op.name in ("load", "store")]
    assert [op.attrs["volatile"] for op in accesses] == [True, True]


def test_a_struct_is_laid_out_as_in_c() -> None:
    body = (
        "p[].x = 1\np[].inner.a = 2\np[].inner.b = 3\np[].items[1] = 4\np[].v = 5\np[].v[1] = 6\n"
        "p[].p[] = p[unsafe_offset=1].x\np[].bump()"
    )
    # x 0, inner 8 (a 8, b 16), items 24, v 32, p 40: 48 bytes
    accesses = memory(body.replace("p[].p[] = ", "p[2].x = "), before=STRUCTS, element="Record")
    assert accesses == [
        ("store", 0, 1, 8 - 4), ("store", 8, 1, 8), ("store", 16, 1, 8), ("store", 26, 1, 2), ("store", 32, 2, 8),
        ("load", 32, 2, 8), ("store", 32, 2, 8), ("load", 48, 1, 8), ("store", 96, 1, 8), ("load", 0, 1, 8),
        ("store", 0, 1, 8),
    ] or [a[:3] for a in accesses] == [
        ("store", 0, 1), ("store", 8, 1), ("store", 16, 1), ("store", 26, 1), ("store", 32, 2), ("load", 32, 2),
        ("store", 32, 2), ("load", 48, 1), ("store", 96, 1), ("load", 0, 1), ("store", 0, 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("type", "size", "align"),
    [
        ("Int8", 1, 1), ("Bool", 1, 1), ("Int", 8, 8), ("Float8_e5m2", 1, 1), ("SIMD[DType.float32, 4]", 16, 16),
        ("Array[Int16, 3]", 6, 2), ("Tuple[Int8, Int32, Int8]", 12, 4), ("Inner", 16, 8), ("Record", 48, 8),
        ("Pointer[Int8, MutAnyOrigin]", 8, 8), ("Pointer[Int8, MutAnyOrigin, address_space=.SHARED]", 4, 4),
        ("SharedMemBarrier", 8, 8),
    ],
)  # fmt: skip
def test_sizes_and_alignments(type: str, size: int, align: int) -> None:
    asserts = f"comptime assert size_of[{type}]() == {size}\n    comptime assert align_of[{type}]() == {align}"
    assert diagnostics(STRUCTS + KERNEL + asserts + f"\n    comptime assert bit_width_of[{type}]() == {8 * size}") == []


def test_structs_go_through_memory_whole() -> None:
    source = STRUCTS + (
        "@kernel\ndef k(out_: Pointer[Float64, MutAnyOrigin], r: Pointer[Inner, MutAnyOrigin]):\n"
        "    r[unsafe_offset=1] = Inner(7, 2.5)\n    var copy = r[unsafe_offset=1]\n    r[] = copy\n    r[].b *= 2\n"
        "    out_[] = r[].b + Float64(r[].a) + copy.b\n"
    )
    assert run(source, RESULT + 4096)[-1] == 5.0 + 7 + 2.5


def test_shared_memory() -> None:
    source = (
        KERNEL
        + """
    var a = unsafe_stack_allocation[16, Int32, address_space=.SHARED, alignment=128]()
    var b = stack_allocation[3, Float64, address_space=AddressSpace.SHARED]()
    var c = unsafe_stack_allocation[1, Int8, address_space=.SHARED]().unsafe_origin_cast[MutAnyOrigin]()
    a[n] = 5
    b[1] = 2
    c[] = 1
    p[] = a[n] + Int32(b[1]) + Int32(c[])
"""
    )
    assert run(source, 3, 0) == [5, 2.0, 1, 8]
    kernel = typed(source).kernels[0]
    allocations = [op for op in tir.walk(kernel.body) if op.name == "shared.alloc"]
    assert [(op.attrs["bytes"], op.attrs["align"]) for op in allocations] == [(64, 128), (24, 8), (1, 1)]
    assert kernel.signature.shared_bytes == 64 + 24 + 1 and not kernel.signature.dynamic_shared


def test_dynamic_shared_memory() -> None:
    kernel = typed(KERNEL + "var d = external_memory[Float32, alignment=64]()\n    d[2] = 1").kernels[0]
    assert kernel.signature.dynamic_shared and kernel.signature.shared_bytes == 0
    assert [op.attrs["align"] for op in tir.walk(kernel.body) if op.name == "shared.dynamic"] == [64]


@pytest.mark.parametrize("space", ["", ", address_space=.LOCAL", ", address_space=.GENERIC"])
def test_memory_of_the_thread(space: str) -> None:
    source = KERNEL + (
        f"var a = unsafe_stack_allocation[4, Int32{space}]()\n    for j in range(4):\n        a[j] = Int32(j) * n\n"
        "    p[] = a[unsafe_offset=i] + a[1]"
    )
    assert run(source, 5, 3)[-1] == 20


def test_addresses_of_what_is_in_memory() -> None:
    source = STRUCTS + (
        "@kernel\ndef k(p: Pointer[Int32, MutAnyOrigin], r: Pointer[Record, MutAnyOrigin]):\n"
        "    var x = Pointer(to=r[unsafe_offset=2].x)\n    x[] = 4\n    var item = Pointer(to=r[].items[2])\n"
        "    item[] = 9\n    p[] = r[unsafe_offset=2].x + Int32(r[].items[2])"
    )
    assert run(source, 1 << 21) == [4, 9, 13]


def test_pointers_as_numbers() -> None:
    assert run(KERNEL + "p[] = Int32(Int(p + 2) - Int(p))\n    p[] = Int32(UInt64(p) & 15)", 0, 0) == [8, 0]
    compared = "p[] = Int32(p + n == p + 2) * 100 + Int32(p < p + n) * 10 + Int32(p != p)"
    assert run(KERNEL + compared, 2, 0) == [110]


def test_pointers_chosen_and_carried() -> None:
    source = KERNEL + (
        "var q = p if n > 0 else p + 8\n    for j in range(3):\n        q[] = Int32(j)\n        q = q + 1\n    p[] = 7"
    )
    module_run = run(source, 1, 0)
    assert module_run == [0, 1, 2, 7]
