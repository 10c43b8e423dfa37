"""Warp collectives: what lanes get, and who has to be there."""

import numpy as np
import pytest
from harness import Launch, compile_kernel, launch, run

from ptxdsl.sim import layout

LANE = np.arange(32)
VALUES = np.random.default_rng(5).integers(0, 1 << 32, 32, np.uint32)


def shuffle(mode: str, b: int, clamp: int, segment: int) -> tuple[np.ndarray, np.ndarray]:
    """The ISA's rule, lane by lane."""
    found, inside = [], []
    for lane in range(32):
        highest = (lane & segment) | (clamp & ~segment)
        lowest = lane & segment
        j = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": lowest | (b & ~segment)}[mode]
        ok = j >= highest if mode == "up" else j <= highest
        found.append(VALUES[j if ok else lane])
        inside.append(ok)
    return np.array(found), np.array(inside)


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("b", [0, 1, 5, 16, 31])
@pytest.mark.parametrize("width", [32, 8])
def test_shuffles(mode: str, b: int, width: int) -> None:
    segment = 32 - width & 31
    clamp = 0 if mode == "up" else 31
    c = segment << 8 | clamp
    found = run(f"shfl.sync.{mode}.b32 %d|%p, %a, {b}, {c}, -1;", {"%a": VALUES}, {"%d": "u32", "%p": "pred"})
    values, inside = shuffle(mode, b, clamp, segment)
    assert (found["%d"] == values).all() and (found["%p"] == inside).all()


def test_a_shuffle_from_a_lane_that_each_lane_names() -> None:
    index = np.random.default_rng(6).integers(0, 32, 32, np.uint32)
    found = run("shfl.sync.idx.b32 %d, %a, %b, 31, -1;", {"%a": VALUES, "%b": index}, {"%d": "u32"})
    assert (found["%d"] == VALUES[index]).all()


SAID = LANE % 3 == 0


@pytest.mark.parametrize(
    ("instruction", "type", "want"),
    [
        ("vote.sync.ballot.b32 %d, %s, -1;", "u32", sum(1 << i for i in range(0, 32, 3))),
        ("vote.sync.ballot.b32 %d, !%s, -1;", "u32", sum(1 << i for i in range(32) if i % 3)),
        ("vote.sync.any.pred %d, %s, -1;", "pred", True),
        ("vote.sync.all.pred %d, %s, -1;", "pred", False),
        ("vote.sync.uni.pred %d, %s, -1;", "pred", False),
        (
            "match.any.sync.b32 %d, %m, -1;",
            "u32",
            [sum(1 << j for j in range(32) if j % 5 == i % 5) for i in range(32)],
        ),
        (
            "match.any.sync.b64 %d, %w, -1;",
            "u32",
            [sum(1 << j for j in range(32) if j % 7 == i % 7) for i in range(32)],
        ),
        ("activemask.b32 %d;", "u32", 0xFFFFFFFF),
        ("mov.u32 %d, %laneid;", "u32", LANE),
        ("mov.u32 %d, %lanemask_lt;", "u32", (1 << LANE) - 1),
        ("mov.u32 %d, %lanemask_le;", "u32", (2 << LANE) - 1),
        ("mov.u32 %d, %lanemask_gt;", "u32", (1 << 32) - (2 << LANE)),
        ("mov.u32 %d, %lanemask_ge;", "u32", (1 << 32) - (1 << LANE)),
        ("mov.u32 %d, %lanemask_eq;", "u32", 1 << LANE),
        ("redux.sync.add.u32 %d, %m, -1;", "u32", sum(LANE % 5)),
        ("redux.sync.max.s32 %d, %n, -1;", "s32", 15),
        ("redux.sync.min.s32 %d, %n, -1;", "s32", -16),
        ("redux.sync.max.u32 %d, %n, -1;", "u32", 0xFFFFFFFF),
        ("redux.sync.or.b32 %d, %m, -1;", "u32", 7),
        ("redux.sync.and.b32 %d, %m, -1;", "u32", 0),
        ("redux.sync.xor.b32 %d, %m, -1;", "u32", np.bitwise_xor.reduce(LANE % 5)),
        ("elect.sync %d|%q, -1;", "u32", 0),
    ],
)
def test_results(instruction: str, type: str, want: object) -> None:
    inputs = {
        "%s": SAID,
        "%m": (LANE % 5).astype(np.uint32),
        "%w": ((LANE % 7).astype(np.uint64) << np.uint64(40)),
        "%n": (LANE - 16).astype(np.int32),
    }
    found = run(instruction, inputs, {"%d": type}, ".reg .pred %q;")
    assert (found["%d"] == want).all()


def test_match_all() -> None:
    same = np.full(32, 9, np.uint32)
    found = run("match.all.sync.b32 %d|%p, %a, -1;", {"%a": same}, {"%d": "u32", "%p": "pred"})
    assert (found["%d"] == 0xFFFFFFFF).all() and found["%p"].all()
    same[3] = 8
    found = run("match.all.sync.b32 %d|%p, %a, -1;", {"%a": same}, {"%d": "u32", "%p": "pred"})
    assert not found["%d"].any() and not found["%p"].any()


def test_elect_gives_the_lowest_member() -> None:
    body = """mov.u32 %m, 0xffffffff; mov.u32 %d, 99; setp.ge.u32 %g, %a, 12; setp.ne.u32 %p, %a, %a;
    @%g elect.sync %d|%p, 0xfffff000;"""
    found = run(body, {"%a": LANE.astype(np.uint32)}, {"%d": "u32", "%p": "pred"}, ".reg .b32 %m; .reg .pred %g;")
    assert found["%d"].tolist() == [99] * 12 + [12] * 20
    assert found["%p"].tolist() == [lane == 12 for lane in range(32)]


FLOATS = np.random.default_rng(7).standard_normal(32).astype(np.float32)


@pytest.mark.parametrize(
    ("operation", "want"),
    [("min", FLOATS.min()), ("max", FLOATS.max()), ("min.abs", abs(FLOATS).min()), ("max.abs", abs(FLOATS).max())],
)
def test_float_reductions(operation: str, want: np.float32) -> None:
    assert (run(f"redux.sync.{operation}.f32 %d, %a, -1;", {"%a": FLOATS}, {"%d": "f32"})["%d"] == want).all()
    holed = FLOATS.copy()
    holed[[0, 31]] = np.nan
    rest = abs(FLOATS[1:31]) if "abs" in operation else FLOATS[1:31]
    found = run(f"redux.sync.{operation}.f32 %d, %a, -1;", {"%a": holed}, {"%d": "f32"})["%d"]
    assert (found == (rest.min() if "min" in operation else rest.max())).all()
    found = run(f"redux.sync.{operation}.NaN.f32 %d, %a, -1;", {"%a": holed}, {"%d": "u32"})["%d"]
    assert (found == 0x7FFFFFFF).all()


def test_zeros_of_a_float_reduction_have_an_order() -> None:
    zeros = np.zeros(32, np.float32)
    zeros[5] = -0.0
    assert (run("redux.sync.min.f32 %d, %a, -1;", {"%a": zeros}, {"%d": "u32"})["%d"] == 1 << 31).all()
    assert (run("redux.sync.max.f32 %d, %a, -1;", {"%a": zeros}, {"%d": "u32"})["%d"] == 0).all()


def test_a_collective_waits_for_members_that_come_by_another_way() -> None:
    """The lanes below 16 skip a loop that the others run; the vote names all."""
    body = """
    mov.u32 %i, 0; setp.lt.u32 %p, %a, 16; @%p bra MEET;
    L: add.u32 %i, %i, 1; setp.lt.u32 %p, %i, %a; @%p bra L;
    MEET: setp.ge.u32 %p, %a, 4; vote.sync.ballot.b32 %d, %p, -1;"""
    found = run(body, {"%a": LANE.astype(np.uint32)}, {"%d": "u32"}, ".reg .b32 %i; .reg .pred %p;")
    assert (found["%d"] == 0xFFFFFFF0).all()


def test_halves_of_a_warp_use_one_instruction_with_their_own_masks() -> None:
    body = """mov.u32 %m, 0xffff; setp.ge.u32 %p, %a, 16; @%p mov.u32 %m, 0xffff0000;
    redux.sync.add.u32 %d, %a, %m;"""
    found = run(body, {"%a": LANE.astype(np.uint32)}, {"%d": "u32"}, ".reg .b32 %m; .reg .pred %p;")
    assert found["%d"].tolist() == [120] * 16 + [376] * 16


def test_barriers_of_a_warp_meet_from_different_places() -> None:
    """Each half has its own bar.warp.sync; the second half's value must be there when the first has passed."""
    target = np.zeros(32, np.uint32)
    launch(
        """.visible .entry k(.param .u64 p0) {
.reg .b64 %d<4>; .reg .b32 %t, %r<9>; .reg .pred %p<3>; .shared .align 4 .b8 s[128];
ld.param.u64 %d1, [p0]; mov.u32 %t, %tid.x; mad.wide.u32 %d2, %t, 4, %d1;
mov.u32 %r1, s; shl.b32 %r2, %t, 2; add.u32 %r2, %r2, %r1; xor.b32 %r3, %r2, 64;
setp.lt.u32 %p1, %t, 16; @%p1 bra LOW;
st.shared.u32 [%r2], %t; bar.warp.sync -1; bra END;
LOW: bar.warp.sync -1; ld.shared.u32 %r5, [%r3]; st.global.u32 [%d2], %r5;
END: ret; }""",
        [target],
    )
    assert target.tolist() == [lane + 16 for lane in range(16)] + [0] * 16


def test_exited_lanes_are_not_waited_for() -> None:
    target = np.zeros(32, np.uint32)
    launch(
        """.visible .entry k(.param .u64 p0) { .reg .b64 %d<4>; .reg .b32 %t, %r<9>; .reg .pred %p<3>;
ld.param.u64 %d1, [p0]; mov.u32 %t, %tid.x; mad.wide.u32 %d2, %t, 4, %d1;
setp.ge.u32 %p1, %t, 8; @%p1 exit;
setp.ne.u32 %p2, %t, 99; vote.sync.ballot.b32 %r1, %p2, -1; st.global.u32 [%d2], %r1; ret; }""",
        [target],
    )
    assert target.tolist() == [255] * 8 + [0] * 24


def gathering(body: str) -> Launch:
    made = Launch(
        compile_kernel(
            f".visible .entry k() {{ .reg .b32 %t, %r<9>; .reg .pred %p<4>; mov.u32 %t, %laneid; {body} ret; }}"
        )
    )
    return made


def test_a_collective_that_will_never_be_complete_comes_back() -> None:
    """Lanes 0 to 7 vote with a mask that names all; the others wait at a barrier of their own with that mask."""
    made = gathering(
        "setp.lt.u32 %p1, %t, 8; @%p1 bra A; match.any.sync.b32 %r1, %t, -1; bra E;"
        "A: vote.sync.any.pred %p2, %p1, -1; E:"
    )
    assert made.run() == layout.GATHER
    record = made.warps[0]
    assert (record["mask"], record["members"]) == (0xFF, 0xFFFFFFFF)
    assert made.code.sites[record["site"]].instruction.opcode == "vote.sync.any.pred"
    assert (record["status"] == layout.RUNNABLE).all()


def test_a_lane_that_does_not_name_itself_is_a_fault() -> None:
    made = gathering("vote.sync.any.pred %p2, %p1, 0xfffffffe;")
    assert made.run() == layout.FAULT
    assert (made.warps[0]["fault_kind"], made.warps[0]["fault_lane"]) == (layout.BAD_MEMBERS, 0)
