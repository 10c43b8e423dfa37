"""Rows of instructions that touch shared memory are accesses of the model, or it says that they are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from pipeline_kernels import block
from proofs import verdict, verdict_of_ptx

import ptxdsl
from ptxdsl.check.report import Verdict
from ptxdsl.effects import Kind
from ptxdsl.intrinsics import ROWS
from ptxdsl.intrinsics.row import Row
from ptxdsl.races.trace import check_trace

LEFT_OUT = frozenset({Kind.PURE, Kind.READ, Kind.WRITE, Kind.REGISTERS, Kind.GRID})  # unless their space is shared


def _has_address(row: Row) -> bool:
    return "[$" in row.text or "ptr" in row.text


def _reading(between: str) -> str:
    written, read = "buf[unsafe_offset=t] = 1", "res[unsafe_offset=t] = load_volatile(buf.unsafe_offset(63 - t))"
    return block(written, between, read).replace("@kernel", "from atomic import load_volatile\n\n@kernel")


def test_no_row_with_an_address_is_taken_for_one_without() -> None:
    """A row without a space of its own has that of its operand, and is then an access as the operation says."""
    spaceless = {name for name, row in ROWS.items() if row.effect.kind in LEFT_OUT and row.effect.space is None}
    assert {name for name in spaceless if _has_address(ROWS[name])} == {"ld_volatile", "tensormap_prefetch"}
    assert "{space}" in ROWS["ld_volatile"].text
    assert ROWS["tensormap_prefetch"].text.startswith("prefetch.")  # a tensor map is a parameter


def test_atomics_name_their_space() -> None:
    assert all("{space}" in row.text for row in ROWS.values() if row.effect.kind is Kind.ATOMIC)


@pytest.mark.parametrize("verdict_of", [verdict, verdict_of_ptx])
def test_a_volatile_load_reads_what_others_write(verdict_of: Callable[[str], Verdict]) -> None:
    assert verdict_of(_reading("barrier()")).verdict == "proved"
    assert verdict_of(_reading("pass")).kinds == ("data race",)


MAP = """
from tensormap import SharedTensorMap, acquire_tensor_map
from tma import cp_async_bulk_tensor_prefetch


@kernel(threads=64)
def kernel(like: TensorMap, room: Pointer[UInt8, MutAnyOrigin], n: Int32):
    var maps = unsafe_stack_allocation[256, UInt8, address_space=.SHARED, alignment=128]()
    var map = SharedTensorMap(maps.unsafe_offset(128 * Int32(warp_id())))
    map.copy_from(like)
    {before}
    if lane_id() == 0:
        map.set_size[1](UInt32(n))
    {after}
    map.publish(room.unsafe_offset(128 * Int32(warp_id())))
    cp_async_bulk_tensor_prefetch(acquire_tensor_map(room), [0, 0])
"""


@pytest.mark.parametrize("verdict_of", [verdict, verdict_of_ptx])
def test_a_tensor_map_in_shared_memory_is_written_and_read_by_a_warp(verdict_of: Callable[[str], Verdict]) -> None:
    for before in ("syncwarp()", "barrier()", "pass"):
        for after in ("syncwarp()", "pass"):
            said = verdict_of(MAP.format(before=before, after=after))
            assert said.kinds == (("data race",) if "pass" in (before, after) else ())
            assert (said.verdict == "proved") == ("pass" not in (before, after))
    shared = MAP.replace("maps.unsafe_offset(128 * Int32(warp_id()))", "maps")  # both warps change the same one
    assert verdict_of(shared.format(before="syncwarp()", after="syncwarp()")).kinds == ("data race",)


def test_who_acquires_a_tensor_map_is_not_followed() -> None:
    text = MAP.format(before="syncwarp()", after="syncwarp()")
    line = 1 + text[: text.index("map.publish")].count("\n")
    clause = f"if the tensor map published at line {line} is acquired before copies use it"
    assert verdict(text).assumptions == (clause,)
    (of_ptx,) = verdict_of_ptx(text).assumptions
    assert of_ptx.startswith("if the tensor map published at line ")


def test_a_tensor_map_is_published_by_a_whole_warp() -> None:
    text = MAP.replace("    map.publish", "    if lane_id() < 16:\n        map.publish")
    said = verdict(text.format(before="syncwarp()", after="syncwarp()"))
    assert said.verdict == "fault"


@pytest.mark.parametrize(
    ("place", "room", "races"),
    [
        ("maps.unsafe_offset(128 * Int32(warp_id()))", "room.unsafe_offset(128 * Int32(warp_id()))", set()),
        ("maps", "room.unsafe_offset(128 * Int32(warp_id()))", {"maps"}),
        ("maps.unsafe_offset(128 * Int32(warp_id()))", "room", {"byte 0 of argument 'room'"}),
    ],
)
def test_a_run_shows_who_writes_a_tensor_map(place: str, room: str, races: set[str]) -> None:
    """Warps that change one map in shared memory, or that publish to one place."""
    text = MAP.format(before="syncwarp()", after="syncwarp()").replace(
        "maps.unsafe_offset(128 * Int32(warp_id()))", place
    )
    text = text.replace("room.unsafe_offset(128 * Int32(warp_id()))", room)
    memory = np.zeros(512, np.uint8)
    aligned = memory[-memory.ctypes.data % 128 :][:384]
    like = ptxdsl.TensorMap(np.zeros((16, 16), np.float32), (4, 4))
    found, report = check_trace(ptxdsl.loads(text)["kernel"], (like, aligned, 16), grid=1)
    assert report.finished
    assert {race.place for race in found.races} == races
