"""Schedules: the same one gives the same result to the bit, and another one another interleaving."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sim_kernels import kernel, run

from ptxdsl.diagnostics import CompileError
from ptxdsl.sim.machine.schedule import Recorder, Schedule, parse_schedule

# Each of four warps writes its number four times into a list; a turn is one entry.
ORDER = kernel(
    """
    mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; setp.ne.u32 %p1, %r2, 0; @%p1 ret;
    shr.u32 %r2, %r1, 5; mov.u32 %r6, 4;
    LOOP: atom.global.add.u32 %r3, [$out], 1;
    mul.wide.u32 %rd1, %r3, 4; add.u64 %rd1, %rd1, $out; st.global.u32 [%rd1+4], %r2;
    nanosleep.u32 10;
    add.u32 %r6, %r6, -1; setp.ne.u32 %p2, %r6, 0; @%p2 bra LOOP; ret;
    """,
    "out:u64",
)


def order(schedule: Schedule | str | None) -> list[int]:
    out = np.zeros(17, np.uint32)
    assert run(ORDER, out, block=128, schedule=schedule).finished
    return out[1:].tolist()  # type: ignore[no-any-return]


def test_round_robin_takes_turns() -> None:
    assert order(None) == order("round-robin") == [0, 1, 2, 3] * 4


def test_random_is_a_function_of_its_seed() -> None:
    orders = [order(f"random:{seed}") for seed in range(4)]
    assert [order(f"random:{seed}") for seed in range(4)] == orders
    assert len({tuple(o) for o in orders}) == 4


@pytest.mark.parametrize(
    ("name", "last"),
    [("warp0", [0] * 4), ("cta0.warp2", [2] * 4), ("warps1-2", [1, 2] * 4), ("tma", None)],
)
def test_slow_runs_when_nothing_else_can(name: str, last: list[int] | None) -> None:
    found = order(f"slow:{name}")
    assert found == [0, 1, 2, 3] * 4 if last is None else found[-len(last) :] == last


def test_slow_cta_and_unit_names() -> None:
    class Thing:
        def __init__(self, name: str, unit: str) -> None:
            self.name, self.unit, self.index = name, unit, 0

    things = [Thing("cta0.tma#0", "tma"), Thing("cta1.warp0", "warp"), Thing("cta10.warp0", "warp")]
    for text, slow in (("tma", 0), ("cta0.tma#0", 0), ("cta1", 1), ("cta10.warp0", 2)):
        picker = parse_schedule(f"slow:{text}").picker()
        for thing in things:
            picker.add(thing)
        assert [picker.take() for _ in things][-1] is things[slow]


def test_a_recording_is_replayed_exactly() -> None:
    out = np.zeros(17, np.uint32)
    report = run(ORDER, out, block=128, schedule="random:5", record=True)
    assert report.recording is not None and order(report.recording.to_json()) == out[1:].tolist()
    assert order(Schedule("recorded", recorded=report.recording)) == out[1:].tolist()


def test_a_recording_may_be_a_beginning() -> None:
    beginning = json.dumps({"names": ["cta0.warp3"], "turns": [[0, 3]]})
    assert order(beginning)[:2] == [3, 3]


def test_a_recording_that_does_not_fit() -> None:
    with pytest.raises(CompileError) as caught:
        order(json.dumps({"names": ["cta0.warp0", "cta0.tma#0"], "turns": [[0, 2], [1, 1]]}))
    (found,) = caught.value.diagnostics
    assert found.code == "E1195"
    assert found.message == (
        "the recorded schedule does not fit this program: turn 3 is cta0.tma#0's, which cannot move there; "
        "cta0.warp1, cta0.warp2, cta0.warp3, cta0.warp0 can"
    )


def test_recordings_count_turns_in_a_row() -> None:
    recorder = Recorder(7)
    for name in "aabacc":
        recorder.took(name)
    made = recorder.recording()
    assert made.turns == ((0, 2), (1, 1), (0, 1), (2, 2))
    assert parse_schedule(made.to_json()).recorded == made


@pytest.mark.parametrize("text", ["random:12", "slow:warps4-7", "round-robin"])
def test_the_text_of_a_schedule_is_the_schedule(text: str) -> None:
    assert str(parse_schedule(text)) == text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("warp2", "this launch has 2 warps in a CTA, numbered from 0"),
        ("cta0.warp2", "this launch has 2 warps in a CTA"),
        ("warps2-7", "this launch has 2 warps in a CTA"),
        ("cta3", "this launch has 3 CTAs, numbered from 0"),
        ("cta3.warp0", "this launch has 3 CTAs"),
        ("cta3.tma#0", "this launch has 3 CTAs"),
        ("warp1", None), ("cta2.warps1-7", None), ("cta2.tma#9", None), ("wgmma", None),
    ],
)  # fmt: skip
def test_who_is_slow_is_in_the_launch(name: str, words: str | None) -> None:
    def simulated() -> None:
        assert run(kernel("", "out:u64"), np.zeros(1, np.uint32), grid=3, block=48, schedule=f"slow:{name}").finished

    if words is None:
        simulated()
        return
    with pytest.raises(CompileError) as caught:
        simulated()
    assert words in caught.value.diagnostics[0].message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fair", "schedule 'fair' is not valid: it is not one of the known ones"),
        ("random:x", "'x' is not a number"),
        ("slow:", "not one of the known ones"),
        ("slow:warps5-2", "there are no warps from 5 to 2"),
        ("slow:3", "it names no warp and no unit"),
        ("slow:tmas", "it names no warp and no unit"),
        ("{", "recorded schedule is not valid: it cannot be read"),
        ('{"names":["a"],"turns":[[1,1]]}', "a number in it is out of range"),
        ('{"names":["a"],"turns":[[0,0]]}', "a number in it is out of range"),
        ("[1]", "not one of the known ones"),
        ('{"names":["a"],"turns":[],"fuel":0}', "a number in it is out of range"),
        ('{"names":["a"],"turns":[],"fuel":4294967296}', "a number in it is out of range"),
        ('{"names":["a"],"turns":[],"fuel":Infinity}', "it cannot be read (OverflowError"),
        ('{"names":' + "[" * 100_000, "it cannot be read (RecursionError"),
        ("slow:warp" + "9" * 5000, "it names no warp and no unit"),
    ],
)
def test_what_is_no_schedule(text: str, words: str) -> None:
    with pytest.raises(CompileError) as caught:
        parse_schedule(text)
    (found,) = caught.value.diagnostics
    assert found.code == "E1103" and words in found.message


def test_slow_ones_run_even_if_others_count_how_long_they_wait() -> None:
    # warp 0 counts its looks, so it can always move; warp 1 is slow
    body = """
    mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 32; @%p1 bra WRITER; mov.u32 %r3, 0;
    LOOP: ld.volatile.global.u32 %r2, [$out]; add.u32 %r3, %r3, 1; setp.eq.u32 %p2, %r2, 0; @%p2 bra LOOP; ret;
    WRITER: st.volatile.global.u32 [$out], 1; ret;
    """
    assert run(kernel(body, "out:u64"), np.zeros(1, np.uint32), block=64, schedule="slow:warp1").finished
