"""Parts of the standard library that the package has of its own, so that less is imported: they do what its do."""

import contextlib
import enum
import pickle

import pytest

from ptxdsl import enumeration, generator_context
from ptxdsl.effects import Kind


@pytest.mark.parametrize("of", [contextlib, generator_context])
def test_contextmanager(of):
    told = []

    @of.contextmanager
    def told_of(name, *, settles=None):
        told.append(f"in {name}")
        try:
            yield name.upper()
        except ZeroDivisionError:
            if settles is None:
                raise
            if settles:
                raise settles from None
        finally:
            told.append(f"out {name}")

    with told_of("a") as a:
        told.append(a)
    assert told == ["in a", "A", "out a"]
    with told_of("b", settles=False):
        raise ZeroDivisionError
    problem = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError) as raised, told_of("c"):
        raise problem
    assert raised.value is problem
    with pytest.raises(KeyError), told_of("d", settles=KeyError("d")):
        raise problem
    assert told[-1] == "out d"


@pytest.mark.parametrize("of", [enum, enumeration])
def test_enum(of):
    class Side(of.Enum):
        LEFT = "left"
        RIGHT = "right"

    assert [(name, side.name, side.value) for name, side in Side.__members__.items()] == [
        ("LEFT", "LEFT", "left"),
        ("RIGHT", "RIGHT", "right"),
    ]
    assert isinstance(Side.LEFT, Side) and Side.LEFT is Side.__members__["LEFT"] and Side.LEFT != Side.RIGHT
    assert repr(Side.LEFT) == "<Side.LEFT: 'left'>"


def test_members_are_the_same_after_a_pickle():
    assert pickle.loads(pickle.dumps(Kind.PURE)) is Kind.PURE
