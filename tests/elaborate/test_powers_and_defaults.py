"""Powers by repeated squaring, and parameters inferred from the defaults of arguments."""

from __future__ import annotations

import pytest
from elaborate_support import diagnostics, typed

from ptxdsl import tir

HEAD = "@kernel\ndef k(f: Pointer[Float32, MutAnyOrigin], x: Float32, n: Int32):\n"


def names(body: str, before: str = "") -> list[str]:
    return [op.name for op in tir.walk(typed(before + HEAD + f"    {body}\n").kernels[0].body)]


@pytest.mark.parametrize(("exponent", "products"), [(0, 0), (1, 0), (2, 1), (3, 2), (5, 3), (8, 3)])
@pytest.mark.parametrize(("base", "op"), [("x", "fmul"), ("n", "mul")])
def test_a_power_is_as_few_products_as_squaring_takes(base: str, op: str, exponent: int, products: int) -> None:
    assert names(f"f[] = Float32({base} ** {exponent})").count(op) == products


def test_one_exponent_for_all_lanes() -> None:
    vectors = "(SIMD[DType.float32, 2](x, 1) ** SIMD[DType.float32, 2]({}))[0]"
    assert names(f"f[] = {vectors.format('3, 3')}").count("fmul") == 2
    for exponents in ("2, 3", "-1", "65", "0.5", "Float32(0) / Float32(0)"):
        (problem,) = diagnostics(HEAD + f"    f[] = {vectors.format(exponents)}\n")
        assert (problem.code, problem.message) == ("E0302", "`**` takes a constant exponent from 0 to 64")


def test_an_offset_may_be_left_out() -> None:
    assert names("f[] = f.unsafe_load[width=4]()[2]").count("load") == 1


def test_a_parameter_is_inferred_from_a_default() -> None:
    before = "def same[T: DType, //](v: Scalar[T] = Float32(3)) -> Scalar[T]:\n    return v\n"
    module = typed(before + HEAD + "    f[] = same()\n")
    (store,) = (op for op in tir.walk(module.kernels[0].body) if op.name == "store")
    assert isinstance(store.operands[1], tir.Const) and store.operands[1].value == 3.0
