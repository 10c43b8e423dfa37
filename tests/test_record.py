"""``ptxdsl.record``: what ``dataclasses`` gives, for the parameters that it has."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ptxdsl import record, record_patterns


def classes(module: Any) -> dict[str, type]:
    """The same classes by the standard decorator and by ours."""
    dataclass, field = module.dataclass, module.field

    @dataclass
    class Plain:
        x: int
        y: str = "y"
        known: ClassVar[int] = 3

    @dataclass(frozen=True, slots=True)
    class Slots:
        x: int
        many: list[int] = field(default_factory=list)
        last: int = field(default=4, repr=False)

    @dataclass(frozen=True)
    class Derived(Plain):
        z: float = 0.5

    @dataclass(eq=False)
    class Counted:
        items: dict[str, int] = field(default_factory=dict)
        total: int = 0

        def __post_init__(self) -> None:
            self.total += len(self.items)

    @dataclass
    class Own:
        x: int

        def __init__(self, text: str) -> None:
            self.x = int(text)

    @dataclass
    class Empty:
        pass

    return {c.__name__: c for c in (Plain, Slots, Derived, Counted, Own, Empty)}


OURS, STANDARD = classes(record), {}


def setup_module() -> None:
    # A frozen class of theirs cannot derive from one that is not: ours does not look.
    dataclass = dataclasses.dataclass

    class Loose:
        field = staticmethod(dataclasses.field)

        @staticmethod
        def dataclass(cls: type | None = None, /, *, frozen: bool = False, **rest: Any) -> Any:
            return dataclass(cls, unsafe_hash=frozen, **rest)

    STANDARD.update(classes(Loose))


@pytest.mark.parametrize(
    ("name", "args", "keywords"),
    [
        ("Plain", (1,), {}),
        ("Plain", (1, "z"), {}),
        ("Plain", (), {"y": "q", "x": 2}),
        ("Plain", (), {}),
        ("Plain", (1, "a", 2), {}),
        ("Plain", (1,), {"x": 1}),
        ("Plain", (1,), {"other": 1}),
        ("Slots", (1,), {}),
        ("Slots", (1, [2]), {"last": 5}),
        ("Slots", (), {"many": []}),
        ("Derived", (1, "b", 2.0), {}),
        ("Derived", (1,), {"z": 3.0}),
        ("Counted", ({"a": 1, "b": 2}, 3), {}),
        ("Counted", (), {}),
        ("Own", ("7",), {}),
        ("Empty", (), {}),
    ],
)
def test_as_the_standard_decorator(name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    def made(cls: type) -> str:
        try:
            return repr(cls(*args, **keywords)).rpartition("<locals>.")[2]
        except TypeError as problem:
            return str(problem).rpartition("<locals>.")[2]

    assert made(OURS[name]) == made(STANDARD[name])


@pytest.mark.parametrize("name", ["Plain", "Slots", "Derived"])
def test_equality(name: str) -> None:
    one, same, other = OURS[name](1), OURS[name](1), OURS[name](2)
    assert one == same and one != other and one != 1
    assert (OURS[name].__hash__ is None) == (STANDARD[name].__hash__ is None)
    if name == "Derived":
        assert hash(one) == hash(same)


def test_objects_do_not_share_what_is_made_for_them() -> None:
    first, second = OURS["Slots"](1), OURS["Slots"](1)
    first.many.append(2)
    assert second.many == []
    assert not hasattr(first, "__dict__") and OURS["Plain"](1).known == 3


def test_replace_and_names() -> None:
    made = OURS["Derived"](1, z=2.0)
    assert record.replace(made, y="n") == OURS["Derived"](1, "n", 2.0)
    assert record.field_names(OURS["Derived"]) == ("x", "y", "z")
    assert [f.name for f in dataclasses.fields(OURS["Slots"])] == ["x", "many", "last"]
    assert OURS["Plain"].__match_args__ == ("x", "y")


def test_a_default_before_a_field_without() -> None:
    @record.dataclass
    class Wrong:
        x: int = 1
        y: int

    with pytest.raises(TypeError, match="y has no default"):
        Wrong(1, 2)


def test_the_first_object_may_be_of_a_subclass_with_a_constructor_of_its_own() -> None:
    @record.dataclass
    class Base:
        number: int = 3

    class Derived(Base):
        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    made = Derived("a")
    assert (made.number, made.text, Base().number) == (3, "a", 3)


def test_constructors_that_are_written_out() -> None:
    text = Path(record_patterns.__file__).read_text(encoding="utf-8")
    patterns = re.findall(r"^def init_(\w+)\(", text, re.MULTILINE)
    made = "".join(record.source(pattern.replace("_post", "+")) for pattern in patterns)
    assert len(set(patterns)) == len(patterns) > 20
    assert text.endswith(f"\n\n{made}")


def test_a_compilation_writes_no_constructors() -> None:
    """Those that it needs are in record_patterns.py: what this prints belongs there, what nothing needs does not."""
    sample = Path(__file__).parents[1] / "samples" / "04_kernel_a.pdsl"
    code = """
import os, sys
from ptxdsl import cli, record
source = record.source
def written(pattern):
    print(source(pattern))
    return source(pattern)
record.source = written
cli.main(["compile", sys.argv[1], "--no-cache", "-o", os.devnull])
"""
    done = subprocess.run([sys.executable, "-c", code, str(sample)], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("", "")


def test_slotted_classes_are_made_once_and_are_records() -> None:
    class Node(metaclass=record.Slotted):
        place: int

    class Leaf(Node):
        text: str = "leaf"
        parts: list[int] = record.field(default_factory=list)

    class Marked(Leaf):
        __slots__ = ("mark",)

    class Equal(metaclass=record.Slotted, eq=True):
        x: int

    assert Leaf(3) != Leaf(3) and Equal(1) == Equal(1) and hash(Equal(1)) == hash(Equal(1))
    assert repr(Leaf(3)).endswith("Leaf(place=3, text='leaf', parts=[])") and not hasattr(Leaf(3), "__dict__")
    assert Leaf.__slots__ == ("text", "parts") and Leaf.__match_args__ == ("place", "text", "parts")
    assert Node.__subclasses__() == [Leaf] and record.replace(Leaf(3), text="x").text == "x"
    assert Marked(4, "m").text == "m" and record.field_names(Marked) == ("place", "text", "parts")
