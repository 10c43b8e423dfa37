"""Writes of one role between two steps: different threads must not write the same bytes in two places of the text."""

from __future__ import annotations

import pytest
from pipeline_kernels import kernel
from proofs import lines, verdict

FIRST = "buf[unsafe_offset=t] = 1"
LOADED = "Int32(src[unsafe_offset=t])"
# what comes after the first write: each byte of one thread
APART = {
    "a thread's own place again": (FIRST,),
    "another array's part": ("buf[unsafe_offset=127 - t] = 2",),
    "between the others": ("buf[unsafe_offset=t ^ 64] = 2",),
    "one thread": ("if t == n:", "    buf[unsafe_offset=64] = 2", "    buf[unsafe_offset=64] = 3"),
    "one thread, at an unknown place": (
        "barrier()",
        "if t == n:",
        f"    buf[unsafe_offset=64 + {LOADED} % 64] = 2",
        "    buf[unsafe_offset=64] = 3",
    ),
    "after a barrier": ("barrier()", "buf[unsafe_offset=63 - t] = 2"),
    "turns of a loop": ("for i in range(1, 4):", "    buf[unsafe_offset=64 * Int32(i) + t] = 2"),
}
SHARED = {
    "the other way round": ("buf[unsafe_offset=63 - t] = 2",),
    "one place of all": ("buf[unsafe_offset=5] = 2",),
    "some of the threads": ("if t < n:", "    buf[unsafe_offset=128] = 2", "    buf[unsafe_offset=128 + t] = 3"),
    "a neighbour in the next turn": ("for i in range(1, 4):", "    buf[unsafe_offset=64 + Int32(i) + t] = 2"),
    "unrolled": ("comptime for i in range(1, 4):", "    buf[unsafe_offset=64 + Int32(i) + t] = 2"),
}


def _text(*statements: str) -> str:
    return kernel("\n".join((FIRST, *statements)))


@pytest.mark.parametrize("name", APART)
def test_writes_of_different_bytes_are_proved(name: str) -> None:
    found = verdict(_text(*APART[name]))
    assert (found.verdict, found.kinds) == ("proved", ())


@pytest.mark.parametrize("name", SHARED)
def test_writes_of_the_same_bytes_race(name: str) -> None:
    text = _text(*SHARED[name])
    found = verdict(text)
    assert (found.verdict, found.kinds) == ("fault", ("data race",))
    assert text.count("\n", 0, text.rindex(" = 2")) + 1 in lines(found)


@pytest.mark.parametrize("condition", ["True", "t == n", "t < n"])
def test_writes_to_unknown_places_are_not_proved(condition: str) -> None:
    scattered = (f"buf[unsafe_offset={LOADED}] = 2", "buf[unsafe_offset=64 + t] = 3")
    found = verdict(_text(f"if {condition}:", *(f"    {write}" for write in scattered)))
    assert (found.verdict, found.kinds) == ("not provable here", ())
    assert "depends on data" in found.diagnostics[0].message
