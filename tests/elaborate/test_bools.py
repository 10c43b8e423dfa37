"""Bool: logic and its laziness, conditions, conditional expressions and the type that their place gives them."""

from __future__ import annotations

import pytest
from elaborate_support import typed
from semantics import F32, I32, Bool, evaluate, run

from ptxdsl import tir

KERNEL = "@kernel\ndef k(p: Pointer[Float32, MutAnyOrigin], n: Int32, t: Bool):\n    "


@pytest.mark.parametrize("a", [False, True])
@pytest.mark.parametrize("b", [False, True])
@pytest.mark.parametrize(
    "expression",
    [
        "a and b", "a or b", "not a", "a & b", "a | b", "a ^ b", "a == b", "a != b", "not a or b and not b",
        "a if b else not a",
    ],
)  # fmt: skip
def test_truth_tables(expression: str, a: bool, b: bool) -> None:
    assert evaluate(expression, "Bool", a=Bool(a), b=Bool(b)) == bool(eval(expression))


def test_inversion() -> None:
    assert evaluate("~a", "Bool", a=Bool(True)) is False
    assert evaluate("Int32(a) + Int32(not a)", "Int32", a=Bool(True)) == 1


NOTING = """
def note(p: Pointer[Int32, MutAnyOrigin], which: Int32, answer: Bool) -> Bool:
    p[] = which
    return answer
@kernel
def k(p: Pointer[Int32, MutAnyOrigin], a: Bool, b: Bool):
    """


@pytest.mark.parametrize(
    ("expression", "a", "b", "evaluated"),
    [
        ("note(p, 1, a) and note(p, 2, b)", 0, 1, [1]), ("note(p, 1, a) and note(p, 2, b)", 1, 0, [1, 2]),
        ("note(p, 1, a) or note(p, 2, b)", 1, 1, [1]), ("note(p, 1, a) or note(p, 2, b)", 0, 1, [1, 2]),
        ("note(p, 1, a) or note(p, 2, b) and note(p, 3, b)", 0, 0, [1, 2]),
        ("note(p, 1, True) if a else note(p, 2, True)", 1, 0, [1]),
        ("note(p, 1, True) if a else note(p, 2, True)", 0, 0, [2]),
        ("not (note(p, 1, a) and note(p, 2, b))", 0, 0, [1]),
    ],
)  # fmt: skip
def test_only_what_counts_is_evaluated(expression: str, a: int, b: int, evaluated: list[int]) -> None:
    assert run(NOTING + f"var x = {expression}", a, b) == evaluated


def test_both_sides_of_and_may_change_variables() -> None:
    source = NOTING + (
        "var i: Int32 = 0\n    if a and note(p, 5, True):\n        i += 1\n    elif b or note(p, 6, True):\n"
        "        i += 10\n    p[] = i"
    )
    assert run(source, 1, 0) == [5, 1]
    assert run(source, 0, 0) == [6, 10]
    assert run(source, 0, 1) == [10]


@pytest.mark.parametrize(("n", "value"), [(0, 20), (1, 10), (-5, 10)])
def test_an_integer_is_a_condition(n: int, value: int) -> None:
    assert evaluate("if n:\n    return 10\nreturn 20", "Int32", n=I32(n)) == value
    assert evaluate("10 if n else 20", "Int32", n=I32(n)) == value
    assert evaluate("while n:\n    return 10\nreturn 20", "Int32", n=I32(n)) == value


@pytest.mark.parametrize(("x", "value"), [(0.0, False), (0.5, True), (-0.0, False)])
def test_a_float_is_a_condition(x: float, value: bool) -> None:
    assert evaluate("True if x else False", "Bool", x=F32(x)) is value


@pytest.mark.parametrize("c", [False, True])
def test_a_conditional_of_literals_takes_the_type_of_its_place(c: bool) -> None:
    assert evaluate("var x: UInt8 = 3 if c else 250\nreturn x", "UInt8", c=Bool(c)) == (3 if c else 250)
    assert evaluate("var x: Float32\nx = 1 if c else 0\nreturn x", "Float32", c=Bool(c)) == float(c)
    assert evaluate("return 1 if c else 0.5", "Float32", c=Bool(c)) == (1.0 if c else 0.5)
    assert evaluate("Int32(7 if c else 9)", "Int32", c=Bool(c)) == (7 if c else 9)
    assert evaluate("var x = 1 if c else 2.5\nreturn x", "Float64", c=Bool(c)) == (1.0 if c else 2.5)
    assert evaluate("(1 if c else 2) if not c else (3 if c else 4)", "Int32", c=Bool(c)) == (3 if c else 2)


def test_a_conditional_stored_through_a_pointer() -> None:
    assert run(KERNEL + "p[] = 1 if t else 0", 0, 1) == [1.0]


def test_a_literal_takes_the_type_of_the_other_side() -> None:
    assert evaluate("(a if a > 0 else 7) + a", "Int32", a=I32(-3)) == 4


def test_simple_conditionals_are_selects() -> None:
    module = typed(KERNEL + "p[] = p[] * 2 if t else 1.0\n    p[] = 3 if n > 2 else 4")
    names = [op.name for op in tir.walk(module.kernels[0].body)]
    assert names.count("select") == 1 and names.count("if") == 1  # a load is made only where it is wanted
