"""The quick ``dataclass`` behaves as the standard one does."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from ptxdsl import record


@record.dataclass(frozen=True, slots=True)
class Point:
    """Has a docstring."""

    x: int
    y: int = 2
    names: list[str] = record.field(default_factory=list)
    LIMIT: ClassVar[int] = 9

    @property
    def total(self) -> int:
        return self.x + self.y


@record.dataclass(frozen=True, slots=True)
class Named(Point):
    label: str = record.field(default="none")


def classes(decorate: Callable[..., Any], field: Callable[..., Any]) -> SimpleNamespace:
    @decorate(frozen=True)
    class Frozen:
        a: int
        b: str = "b"

    @decorate
    class Mutable:
        a: int
        items: list[int] = field(default_factory=list, repr=False)

        def __post_init__(self) -> None:
            self.items.append(self.a)

    @decorate(eq=False)
    class Identity:
        a: int = 0

    @decorate(frozen=True)
    class Single:
        a: int

    @decorate(frozen=True)
    class Below(Single):
        b: int = 1

        def __repr__(self) -> str:
            return "own"

    return SimpleNamespace(
        Frozen=Frozen,
        Mutable=Mutable,
        Identity=Identity,
        Single=Single,
        Below=Below,
        Empty=decorate(type("Empty", (), {})),
    )


@pytest.fixture(params=[record, dataclasses], ids=["ours", "theirs"])
def made(request: pytest.FixtureRequest) -> SimpleNamespace:
    return classes(request.param.dataclass, request.param.field)


def test_both_construct_compare_hash_and_print_alike(made: SimpleNamespace) -> None:
    assert made.Frozen(1) == made.Frozen(b="b", a=1) != made.Frozen(1, "c")
    assert hash(made.Frozen(1)) == hash(made.Frozen(1)) and hash(made.Single(1)) == hash(made.Single(1))
    assert repr(made.Frozen(1)).endswith("Frozen(a=1, b='b')")
    assert made.Single(1) != made.Below(1) and repr(made.Below(1)) == "own"
    assert made.Below(1, b=3).b == 3 and made.Below.__match_args__ == ("a", "b")
    assert made.Mutable(3).items == [3] and made.Mutable(4).items == [4]
    assert made.Mutable.__hash__ is None and repr(made.Mutable(3)).endswith("Mutable(a=3)")
    same = made.Identity()
    assert same == same != made.Identity()
    assert made.Empty() == made.Empty()
    for wrong in (lambda: made.Frozen(), lambda: made.Frozen(1, 2, 3), lambda: made.Frozen(1, c=1)):
        with pytest.raises(TypeError):
            wrong()


def test_the_first_and_later_objects_are_made_alike(made: SimpleNamespace) -> None:
    for _ in range(30):
        assert made.Frozen(1) == made.Frozen(b="b", a=1) == made.Frozen(1, b="b")
        first, second = made.Mutable(3), made.Mutable(a=4)
        assert (first.items, second.items) == ([3], [4])
        for wrong in (lambda: made.Frozen(), lambda: made.Frozen(1, 2, 3), lambda: made.Below(1, c=1)):
            with pytest.raises(TypeError):
                wrong()
        with pytest.raises(TypeError):
            made.Frozen(1, a=2)


def test_tools_for_data_classes_work(made: SimpleNamespace) -> None:
    assert dataclasses.replace(made.Frozen(1), a=2) == made.Frozen(2)
    assert [f.name for f in dataclasses.fields(made.Below)] == ["a", "b"]
    assert [f.name for f in dataclasses.fields(made.Frozen(1))] == ["a", "b"]
    match made.Frozen(1, "x"):
        case made.Frozen(a, b=b):
            assert (a, b) == (1, "x")
        case _:
            pytest.fail("did not match")


def test_own_tools() -> None:
    assert record.replace(Named(1, label="p"), y=3, label="q") == Named(1, 3, [], "q")
    assert record.field_names(Named) == ("x", "y", "names", "label")


def test_slots() -> None:
    point = Named(1, label="p")
    assert (point.x, point.y, point.names, point.label, point.total, Point.LIMIT) == (1, 2, [], "p", 3, 9)
    assert not hasattr(point, "__dict__") and Point.__doc__ == "Has a docstring."
    assert Point.__slots__ == ("x", "y", "names") and Named.__slots__ == ("label",)
    with pytest.raises(AttributeError):
        point.other = 1  # type: ignore[attr-defined]


def test_copies_and_pickles() -> None:
    point = Named(1, 5, ["n"], "p")
    for again in (copy.copy(point), copy.deepcopy(point), pickle.loads(pickle.dumps(point))):
        assert again == point and again is not point
