"""Kernels: which are compiled, their PTX names, their options, constants, and what their signatures say."""

from __future__ import annotations

import pytest
from elaborate_support import typed

from ptxdsl.signature import PointerParam, ScalarParam, StructParam, TensorMapParam

THREE = """
@kernel
def first():
    pass

@kernel
def second(n: Int32):
    pass

def third(n: Int32):
    pass

def main():
    var context = DeviceContext()
"""


def names(text: str, kernel: str | None = None, **constants: str) -> list[str]:
    return [k.name for k in typed(text, kernel=kernel, **constants).kernels]


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [(None, ["first", "second"]), ("second", ["second"]), ("third", ["third"])],
)
def test_which_kernels(kernel: str | None, expected: list[str]) -> None:
    assert names(THREE, kernel) == expected


@pytest.mark.parametrize(
    "other",
    [
        "def other() -> Int32:\n    return 1",
        "@always_inline\ndef other(n: Int32):\n    pass",
        "def other[n: Int](m: Int32):\n    pass",
        "def other(mut n: Int32):\n    pass",
        "def main():\n    pass",
        "struct S:\n    def other(self):\n        pass",
    ],
)
def test_the_only_def_that_can_be_a_kernel(other: str) -> None:
    assert names(f"def only(n: Int32):\n    pass\n{other}\n") == ["only"]


@pytest.mark.parametrize(
    ("head", "constants", "symbol"),
    [
        ("def k[n: Int]", {"n": "3"}, "k_3"),
        ("def k[n: Int = 4]", {}, "k_4"),
        ("def k[n: Int, fast: Bool]", {"n": "-2", "fast": "True"}, "k_2_True"),
        ("def k[T: DType]", {"T": "DType.float32"}, "k_DType_float32"),
        ("def k[n: Int, m: Int = n * 2]", {"n": "3"}, "k_3_6"),
        ("def k[T: AnyType]", {"T": "SIMD[DType.int8, 4]"}, "k_SIMD_DType_int8_4"),
        ("def k", {}, "k"),
        ("def _k1", {}, "_k1"),
    ],
)
def test_symbols(head: str, constants: dict[str, str], symbol: str) -> None:
    assert names(f"@kernel\n{head}():\n    pass\n", **constants) == [symbol]


def test_constants_go_to_the_kernels_that_have_them() -> None:
    heads = ("a[n: Int]", "b", "c[n: Int, m: Int = 1]")
    text = "".join(f"@kernel\ndef {head}():\n    pass\n" for head in heads)
    assert names(text, n="5") == ["a_5", "b", "c_5_1"]
    (a, _, c) = typed(text, n="5").kernels
    assert a.signature.constants == (("n", "5"),) and c.signature.constants == (("n", "5"), ("m", "1"))


def test_a_constant_is_an_expression_of_what_needs_no_import() -> None:
    assert names("@kernel\ndef k[n: Int]():\n    pass\n", n="2 * WARP_SIZE + max(3, 4)") == ["k_68"]


def test_options() -> None:
    text = """
        comptime BLOCK = 128
        @kernel(name="my$name", threads=(BLOCK, 2), min_blocks=2, max_registers=64, cluster=(2, 1), wait="probe")
        @no_ring_unroll
        def k():
            pass
    """
    signature = typed(text).kernels[0].signature
    assert (signature.name, signature.source_name) == ("my$name", "k")
    assert signature.threads == (128, 2, 1) and signature.max_threads is None and signature.cluster == (2, 1, 1)
    assert (signature.min_blocks, signature.max_registers, signature.wait) == (2, 64, "probe")
    assert not signature.ring_unroll


def test_options_are_those_of_the_parameters() -> None:
    text = "@kernel(max_threads=32 * warps, name='k_of_' + String(warps))\ndef k[warps: Int]():\n    pass\n"
    signature = typed(text, warps="4").kernels[0].signature
    assert signature.max_threads == (128, 1, 1) and signature.name == "k_of_4"


def test_without_options() -> None:
    signature = typed("@kernel\ndef k():\n    pass\n").kernels[0].signature
    assert signature.threads is signature.max_threads is signature.cluster is signature.min_blocks is None
    assert signature.shared_bytes == 0 and not signature.dynamic_shared and signature.ring_unroll
    assert signature.wait is None and signature.params == ()


def test_parameters() -> None:
    text = """
        @fieldwise_init
        struct Inner(TrivialRegisterPassable):
            var flag: Bool
            var p: Pointer[Float16, MutUntrackedOrigin]
            var map: TensorMap
        @fieldwise_init
        struct Outer(TrivialRegisterPassable):
            var a: Int8
            var inner: Inner
            var b: Int16
        @fieldwise_init
        struct Element(TrivialRegisterPassable):
            var x: Float32
            var y: Float64
        @kernel
        def k(a: Int8, b: Float64, c: Bool, p: Pointer[Float32, MutAnyOrigin], q: Pointer[Element, ImmutAnyOrigin],
              s: Outer, m: TensorMap, i: Int, h: BFloat16, v: Pointer[SIMD[DType.float32, 4], MutAnyOrigin]):
            pass
    """
    kernel = typed(text).kernels[0]
    assert kernel.signature.params == (
        ScalarParam("a", "int8"),
        ScalarParam("b", "float64"),
        ScalarParam("c", "bool"),
        PointerParam("p", "float32", 4, 4, True),
        PointerParam("q", "Element", 16, 8, False),
        StructParam("s", "Outer", (
            ScalarParam("a", "int8"),
            StructParam("inner", "Inner", (
                ScalarParam("flag", "bool"), PointerParam("p", "float16", 2, 2, True), TensorMapParam("map"),
            )),
            ScalarParam("b", "int16"),
        )),
        TensorMapParam("m"),
        ScalarParam("i", "int"),
        ScalarParam("h", "bfloat16"),
        PointerParam("v", "float32", 16, 16, True),
    )  # fmt: skip
    assert [v.ty.name for v in kernel.params][:6] == ["i8", "f64", "i1", "ptr.global", "ptr.global", "i8"]
    assert kernel.signature.leaves == (
        "a", "b", "c", "p", "q", "s.a", "s.inner.flag", "s.inner.p", "s.inner.map", "s.b", "m", "i", "h", "v",
    )  # fmt: skip
    assert len(kernel.params) == len(kernel.signature.leaves)


def test_shared_bytes_are_those_of_the_allocations_in_order() -> None:
    text = """
        @kernel
        def k(n: Int32):
            var a = unsafe_stack_allocation[3, Int8, address_space=.SHARED]()
            if n > 0:
                var b = unsafe_stack_allocation[2, Float64, address_space=.SHARED]()
                b[] = 1
            a[] = 1
    """
    assert typed(text).kernels[0].signature.shared_bytes == 24


def test_two_kernels_share_nothing() -> None:
    text = """
        def buffer() -> Pointer[Int32, MutUntrackedOrigin, address_space=.SHARED]:
            return unsafe_stack_allocation[8, Int32, address_space=.SHARED]()
        @kernel
        def a(p: Pointer[Int32, MutAnyOrigin]):
            p[] = buffer()[]
        @kernel
        def b(p: Pointer[Int32, MutAnyOrigin]):
            p[] = buffer()[] + buffer()[]
    """
    assert [k.signature.shared_bytes for k in typed(text).kernels] == [32, 64]
