"""Accesses whose address alone does not tell where they are: below their array for some threads."""

from __future__ import annotations

import pytest
from proofs import lines, verdict

HEAD = """\
@kernel(threads=64)
def kernel(src: Pointer[Float32, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin], n: Int32):
    var tile = {}
    var t = Int32(thread_idx.x)
"""
ONE = "unsafe_stack_allocation[64, Float32, address_space=.SHARED]()"
DYNAMIC = "external_memory[Float32, address_space=.SHARED, alignment=128]()"
FIRST = f"{ONE.replace('64', '128')}\n    tile[unsafe_offset=thread_idx.x] = 1\n    tile = "
SECOND, BEHIND = FIRST + ONE, FIRST + DYNAMIC
ALL = "tile[unsafe_offset=t] = src[unsafe_offset=t]\n"
HALF = f"if t < 32:\n        {ALL}"
# the array; who writes; who reads, and from where
NEIGHBOURS = {
    "the left neighbour": (ONE, ALL, "if t > 0 and t < n:", "t - 1"),
    "of a second array": (SECOND, ALL, "if t > 0 and t < n:", "t - 1"),
    "of dynamic memory": (DYNAMIC, ALL, "if t > 0 and t < n:", "t - 1"),
    "of dynamic memory behind an array": (BEHIND, ALL, "if t > 0 and t < n:", "t - 1"),
    "the other warp": (ONE, HALF, "if t >= 32 and t < n:", "t - 32"),
    "in the other arm": (ONE, ALL, "if t == 0 or t >= n:\n        pass\n    else:", "t - 1"),
    "in nested branches": (ONE, ALL, "if t < n:\n      if t > 0:", "t - 1"),
    "in a loop": (ONE, ALL, "for i in range(n):\n      if t > 0 and i > 3:", "t - 1"),
}


def _text(array: str, write: str, between: str, condition: str, at: str) -> str:
    read = f"        res[unsafe_offset=t] = tile[unsafe_offset={at}]\n"
    return HEAD.format(array) + f"    {write}{between}    {condition}\n{read}"


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_neighbours_are_met_before_they_are_read(name: str) -> None:
    array, write, condition, at = NEIGHBOURS[name]
    assert verdict(_text(array, write, "    barrier()\n", condition, at)).verdict == "proved"
    text = _text(array, write, "", condition, at)
    found = verdict(text)
    assert (found.verdict, found.kinds) == ("fault", ("data race",))
    assert text.count("\n") in lines(found)


@pytest.mark.parametrize("array", [ONE, SECOND, DYNAMIC, BEHIND], ids=["one", "second", "dynamic", "behind"])
@pytest.mark.parametrize("at", ["t - 1", "t - 200"])
def test_what_lies_below_its_array_is_not_proved(array: str, at: str) -> None:
    found = verdict(_text(array, ALL, "", "if t < n:", at))
    assert (found.verdict, found.kinds) == ("not provable here", ())
    assert "beyond the array" in found.diagnostics[0].message


SWIZZLED = """\
from layout import SharedTile
comptime Tile = SharedTile[DType.float32, 32, 32]

@kernel(threads=128)
def kernel(res: Pointer[Float32, MutAnyOrigin]):
    var a = Tile(stack_allocation[Tile.bytes, UInt8, address_space=.SHARED, alignment=1024]())
    var b = Tile(stack_allocation[Tile.bytes, UInt8, address_space=.SHARED, alignment=1024]())
    var lane = Int32(lane_id())
    var warp = Int32(warp_id())
    comptime for i in range(8):
        a.store(warp + Int32(i * 4), lane, Float32(1))
    barrier()
    for i in {turns}:
        b.store(lane, {row}, a.load({row}, lane))
    {meet}
    res[thread_idx.x] = b.load(31 - warp, lane)
"""


@pytest.mark.parametrize(
    ("turns", "row", "meet", "kinds"),
    [
        ("range(Int32(8))", "warp + i * 4", "barrier()", ()),
        ("range(warp, Int32(32), 4)", "i", "barrier()", ()),
        ("range(Int32(8))", "warp + i * 4", "pass", ("data race",)),
        ("range(Int32(8))", "warp + i", "barrier()", ("data race",)),  # a row by several warps
    ],
)
def test_tiles_with_a_swizzle_in_a_loop(turns: str, row: str, meet: str, kinds: tuple[str, ...]) -> None:
    """The bytes depend on the thread and the turn together, in no sum of the two."""
    assert verdict(SWIZZLED.format(turns=turns, row=row, meet=meet)).kinds == kinds
