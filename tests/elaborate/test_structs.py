"""Structs as users write them: items, truth, parameters as members, and what their headings may say."""

from __future__ import annotations

import pytest
from elaborate_support import diagnostics, typed

from ptxdsl import tir

PAIR = """\
@fieldwise_init
struct Pair(TrivialRegisterPassable):
    var a: Int32
    var b: Int32

    def __getitem__(self, i: Int) -> Int32:
        return self.a if i == 0 else self.b

    def __setitem__(mut self, i: Int, v: Int32):
        if i == 0:
            self.a = v
        else:
            self.b = v

    def __bool__(self) -> Bool:
        return self.a != 0

@kernel
def k(p: Pointer[Int32, MutAnyOrigin], n: Int32):
    var q = Pair(1, 2)
"""


def stored(body: str, before: str = PAIR) -> list[object]:
    """The constants that a kernel stores, in order."""
    module = typed(before + "".join(f"    {line}\n" for line in body.splitlines()))
    stores = [op for op in tir.walk(module.kernels[0].body) if op.name == "store"]
    return [op.operands[1].value if isinstance(op.operands[1], tir.Const) else None for op in stores]


def test_items_are_assigned() -> None:
    assert stored("q[0] = 5\nq[1] += 40\np[] = q[0]\np[unsafe_offset=1] = q[1]") == [5, 42]


def test_items_are_exchanged() -> None:
    assert stored("q[0], q[1] = q[1], q[0]\np[] = q[0]\np[unsafe_offset=1] = q[1]") == [2, 1]


def test_a_call_in_a_target_is_made_once() -> None:
    module = typed(PAIR + "    p.unsafe_offset(fetch_add(p, 1))[] = 3\n")
    assert [op.name for op in tir.walk(module.kernels[0].body)].count("atom_add") == 1


def test_a_struct_as_a_condition() -> None:
    assert stored("if q and not Pair(0, 1):\n    p[] = 7") == [7]


def test_parameters_are_members_of_values() -> None:
    before = (
        "struct Box[size: Int](TrivialRegisterPassable):\n    def __init__(out self):\n        pass\n"
        "@kernel\ndef k(p: Pointer[Int32, MutAnyOrigin]):\n"
    )
    assert stored("p[] = Int32(Box[3]().size)\np[] = Int32(SIMD[DType.int8, 4](0).size)", before) == [3, 4]


OF_FIELDS = """\
@fieldwise_init
struct Mixed(TrivialRegisterPassable):
    var a: Int32
    var b: Float32

    def __init__(out self, a: Int32):
        self = Self(a, 10)

    def __init__(out self, *, twice: Int32, more: Int32):
        self = Self(b=20, a=2 * twice + more)

    def __init__(out self, a: Int32, name: StaticString):
        self.a = a
        self.b = 30

@kernel
def k(p: Pointer[Int32, MutAnyOrigin], n: Int32):
    var m = {call}
    p[] = m.a + Int32(m.b)
"""


@pytest.mark.parametrize(
    ("call", "value"),
    [("Mixed(3)", 13), ("Mixed(3, 4)", 7), ("Mixed(3, b=4)", 7), ("Mixed(b=1, a=2)", 3), ("Mixed(a=3)", 13),
     ("Mixed(twice=3, more=1)", 27), ("Mixed(3, 'x')", 33), ("Mixed(Mixed(1, 2))", 3)],
)  # fmt: skip
def test_fields_in_order_beside_constructors_of_its_own(call: str, value: int) -> None:
    assert stored("", OF_FIELDS.format(call=call)) == [value]


def test_what_is_neither_fields_nor_a_constructors_arguments() -> None:
    for call, code in (("Mixed()", "E0319"), ("Mixed(1, 2, 3)", "E0319"), ("Mixed(3, q=4)", "E0319")):
        (problem,) = diagnostics(OF_FIELDS.format(call=call))
        assert problem.code == code, call


def test_a_tuple_takes_the_types_of_its_place() -> None:
    before = (
        "def pair(n: Int32) -> (Int32, Float32):\n    return n, 2\n@kernel\ndef k(p: Pointer[Float32, MutAnyOrigin]):\n"
    )
    assert stored("var a, b = pair(3)\np[] = b", before) == [2.0]


@pytest.mark.parametrize(
    ("heading", "code"),
    [
        ("struct S(Unknown)", "E0201"),
        ("struct S(Int32)", "E0311"),
        ("@export\nstruct S", "E0218"),
    ],
)
def test_headings_that_are_wrong(heading: str, code: str) -> None:
    text = f"@fieldwise_init\n{heading}:\n    var a: Int32\n@kernel\ndef k():\n    var s = S(1)\n"
    assert [d.code for d in diagnostics(text)] == [code]


def test_an_unknown_decorator_is_found_when_its_function_is_reached() -> None:
    text = "@export\ndef f():\n    pass\n@kernel\ndef k():\n    {}\n"
    assert diagnostics(text.format("pass")) == []
    assert [d.code for d in diagnostics(text.format("f()"))] == ["E0218"]


def test_compound_assignment_of_an_item_needs_both_methods() -> None:
    text = PAIR.replace("__getitem__", "item") + "    q[0] += 1\n"
    assert [d.code for d in diagnostics(text)] == ["E0331"]


def test_literals_take_the_types_of_the_variables_that_a_tuple_is_assigned_to() -> None:
    before = "@kernel\ndef k(p: Pointer[Float32, MutAnyOrigin]):\n"
    assert stored("var a: Int8\nvar b: Float32\na, b = 1, 2\nvar c, d: Float32 = 3, b\np[] = b\np[] = c", before) == [
        2.0,
        3.0,
    ]
