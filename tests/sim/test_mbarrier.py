"""Mbarriers: the object against what an H200 did, then programs that use or misuse it.

Expected values are from the PTX ISA's section on mbarrier and from tests/sim/data/async.json (dump_async.py).
"""

import json
from pathlib import Path

import numpy as np
import pytest
from async_kernels import CLUSTER_SYNC, SYNC, deadlock, fault, finish, wait

from ptxdsl.sim.barriers.mbarrier import COUNT_LIMIT, Barriers
from ptxdsl.sim.barriers.mbarrier_word import pack, token_pending, tokens
from ptxdsl.sim.host import Fault

CARD = json.loads((Path(__file__).parent / "data" / "async.json").read_text())


class OneCta:
    """As much of a CTA and its memory as the object needs: 64 bytes from shared address 0x400."""

    def __init__(self):
        self.rank, self.host_writes = 0, 0
        self.cluster = self.shared = self
        self.ctas = [self]
        self.window = np.zeros(64, np.uint8)
        self.symbols, self.places = self, {}

    def view(self, cta, space, address, size, *, write, align=1):
        return self.window[address - 0x400 : address - 0x400 + size]

    def place(self, address):
        return f"bar at {address:#x}"

    def role(self, address):
        return ""


class Line:
    line = 7


def barrier(count):
    cta = OneCta()
    return Barriers(cta).init(cta, 0x400, count, Line()), cta


def words(cta):
    return int(cta.window[:8].view(np.uint64)[0])


# The object


@pytest.mark.parametrize("sequence", CARD["barriers"], ids=lambda steps: steps[0]["operation"] + " …")
def test_a_sequence_of_operations_is_as_on_the_card(sequence):
    made, cta, last = None, None, 0
    for step in sequence:
        name, number = step["operation"].split()
        number = int(number)
        beyond = name == "expect_tx" and made.tx + number > COUNT_LIMIT  # the card's range is one more than the ISA's
        if "LAUNCH_FAILED" in step["result"] or beyond:
            with pytest.raises(Fault):
                apply(made, name, number)
            return
        if name == "init":
            made, cta = barrier(number)
        elif name == "test_parity":
            last = int(made.completed(number))
            assert last == int(step["result"], 16)
        elif name == "pending_count":
            assert token_pending(last) == int(step["result"], 16)
        else:
            result = apply(made, name, number)
            if result is not None:
                last = result
                card = int(step["result"], 16)
                assert (last >> 63, token_pending(last)) == (card >> 63, token_pending(card)), step
        assert f"{words(cta):016x}" == step["word"], step


def apply(made, name, number):
    made.saw()  # the sequences leave out the waits that the ISA asks for between phases; the card does not mind
    if name == "expect_tx":
        return made.expect_tx(number)
    if name == "complete_tx":
        return made.complete_tx(number)
    if name == "cp_async_arrive":
        made.add_pending(1)
        made.arrive(1, 1)
        return None
    if name == "noinc":
        made.arrive(1, 1)
        return None
    return made.arrive(
        1,
        1 if name == "arrive_expect_tx" else number,
        complete=name != "arrive_no_complete",
        drop=name == "arrive_drop",
        expect=number if name == "arrive_expect_tx" else 0,
    )


def test_a_fresh_barrier_passes_parity_1_and_blocks_parity_0():
    made, _ = barrier(1)
    assert made.completed(1) and not made.completed(0)
    made.arrive(1, 1)
    assert made.completed(0) and not made.completed(1)


def test_lanes_arrive_one_after_another():
    made, _ = barrier(7)
    mask = 0b1011
    states = tokens(made.arrive(3, 2), mask, 2)
    assert [token_pending(int(states[lane])) for lane in (0, 1, 3)] == [7, 5, 3]
    assert made.pending == 1


def test_a_state_is_good_for_its_phase_and_the_next():
    made, _ = barrier(1)
    state = made.arrive(1, 1)
    assert made.completed_token(state)
    made.saw()
    later = made.arrive(1, 1)
    assert made.completed_token(later)
    with pytest.raises(Fault, match="phase 0; the barrier is in phase 2"):
        made.completed_token(state)


def test_bytes_that_come_before_they_are_expected_do_not_complete_a_phase():
    made, _ = barrier(1)
    made.complete_tx(48)
    assert "48 bytes more have come than were expected" in made.state()
    made.arrive(1, 1)
    assert made.phase == 0
    made.expect_tx(48)
    assert made.phase == 1 and made.tx == 0


def test_counts_have_the_ranges_of_the_isa():
    for count in (0, COUNT_LIMIT + 1):
        with pytest.raises(Fault) as problem:
            barrier(count)
        assert problem.value.code == "E1133"
    made, _ = barrier(COUNT_LIMIT)
    with pytest.raises(Fault, match="1048575 arrivals pending"):
        made.add_pending(1)
    made.expect_tx(COUNT_LIMIT)
    with pytest.raises(Fault) as problem:
        made.expect_tx(1)
    assert problem.value.code == "E1135"
    made.complete_tx(COUNT_LIMIT)
    made.complete_tx(COUNT_LIMIT)
    with pytest.raises(Fault):
        made.complete_tx(1)


def test_the_word_holds_the_whole_state():
    made, cta = barrier(9)
    made.expect_tx(160)
    made.arrive(2, 1, drop=True)
    assert words(cta) == pack(phase=0, pending=7, tx=160, expected=7)


def test_dropped_arrivals_are_not_expected_again():
    made, _ = barrier(3)
    made.arrive(1, 1, drop=True)
    made.arrive(2, 1)
    made.saw()
    assert made.pending == made.expected == 2
    with pytest.raises(Fault, match="2 after arrive_drop"):
        made.arrive(3, 1)


# Programs

INIT = "@%p0 mbarrier.init.shared::cta.b64 [bar], {};\n" + SYNC


def test_two_warps_meet_in_every_phase():
    """Each adds one to the other's element of the phase before: wrong if a wait let one through too early."""
    out = np.zeros(64, np.uint32)
    body = (
        INIT.format(64)
        + """
mov.u32 %r0, 0; xor.b32 %r1, %t, 32; mul.wide.u32 %d2, %t, 4; mul.wide.u32 %d3, %r1, 4;
add.u64 %d2, %d2, %d0; add.u64 %d3, %d3, %d0;
LOOP:
ld.global.u32 %r2, [%d3];
mbarrier.arrive.shared::cta.b64 %d4, [bar];
WAIT: mbarrier.try_wait.shared::cta.b64 %p1, [bar], %d4; @!%p1 bra WAIT;
add.u32 %r2, %r2, 1; st.global.u32 [%d2], %r2;
mbarrier.arrive.shared::cta.b64 %d4, [bar];
AGAIN: mbarrier.test_wait.shared::cta.b64 %p1, [bar], %d4; @!%p1 bra AGAIN;
add.u32 %r0, %r0, 1; setp.lt.u32 %p1, %r0, 20; @%p1 bra LOOP;
"""
    )
    for schedule in ("round-robin", "random:3", "slow:cta0.warp0"):
        out[:] = 0
        finish(body, out, threads=64, schedule=schedule)
        assert (out == 20).all()


def test_each_lane_has_its_own_barrier():
    """Lane i arrives i + 1 times on barrier i, which has i + 2 arrivals; odd lanes arrive once more."""
    out = np.zeros(32, np.uint32)
    body = """
mov.u32 %r1, tile; mad.lo.u32 %r1, %l, 8, %r1; add.u32 %r2, %l, 2; add.u32 %r3, %l, 1;
mbarrier.init.shared::cta.b64 [%r1], %r2;
mbarrier.arrive.shared::cta.b64 %d2, [%r1], %r3;
mbarrier.test_wait.shared::cta.b64 %p1, [%r1], %d2; selp.u32 %r4, 100, 0, %p1;
and.b32 %r5, %l, 1; setp.eq.u32 %p2, %r5, 1;
@%p2 mbarrier.arrive.shared::cta.b64 %d2, [%r1];
mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0; selp.u32 %r5, 1, 0, %p1;
add.u32 %r4, %r4, %r5; mul.wide.u32 %d3, %l, 4; add.u64 %d3, %d3, %d0; st.global.u32 [%d3], %r4;
"""
    finish(body, out)
    assert (out == np.arange(32) % 2).all()


def test_pending_count_is_of_before_the_arrival():
    """What libcu++ does on sm_80: all but one arrival without completing, then one."""
    out = np.zeros(32, np.uint32)
    body = (
        "@%p0 mbarrier.init.shared::cta.b64 [bar], 96;\n"
        + SYNC
        + """
mbarrier.arrive.noComplete.shared::cta.b64 %d2, [bar], 2;
mbarrier.pending_count.b64 %r1, %d2;
mbarrier.arrive.shared::cta.b64 %d2, [bar];
WAIT: mbarrier.test_wait.shared::cta.b64 %p1, [bar], %d2; @!%p1 bra WAIT;
mul.wide.u32 %d3, %l, 4; add.u64 %d3, %d3, %d0; st.global.u32 [%d3], %r1;
"""
    )
    finish(body, out)
    assert (out == 96 - 2 * np.arange(32)).all()


def test_generic_addresses():
    out = np.zeros(1, np.uint32)
    body = """
mov.u32 %r1, bar; cvt.u64.u32 %d1, %r1; cvta.shared.u64 %d1, %d1;
@%p0 mbarrier.init.b64 [%d1], 32;
bar.sync 0;
mbarrier.arrive.b64 %d2, [%d1];
WAIT: mbarrier.try_wait.b64 %p1, [%d1], %d2; @!%p1 bra WAIT;
@%p0 st.global.u32 [%d0], 5;
"""
    finish(body, out)
    assert out[0] == 5


def test_remote_arrivals_and_bytes():
    """CTA 1 arrives on CTA 0's barrier by a shared::cluster and by a generic address, and expects bytes there."""
    out = np.zeros(1, np.uint32)
    body = (
        "@%p0 mbarrier.init.shared::cta.b64 [bar], 3;\n"
        + CLUSTER_SYNC
        + """
setp.eq.u32 %p1, %rank, 1; setp.ne.u32 %p2, %t, 0; @%p2 bra REST;
@!%p1 bra ZERO;
mov.u32 %r1, bar; mapa.shared::cluster.u32 %r2, %r1, 0;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2];
mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r2], 20;
mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r2], 20;
cvt.u64.u32 %d1, %r1; cvta.shared.u64 %d1, %d1; mapa.u64 %d1, %d1, 0;
mbarrier.arrive.release.cluster.b64 _, [%d1];
bra REST;
ZERO:
"""
        + wait("bar", 0, "W")
        + """
st.global.u32 [%d0], 9;
REST:
"""
        + CLUSTER_SYNC
    )
    finish(body, out, grid=2, cluster=2)
    assert out[0] == 9


# Misuse: PTX, code, what the message says

ONE = "@!%p0 bra END;\n"
MISUSE = {
    "never initialised": (ONE + "mbarrier.arrive.shared::cta.b64 _, [bar];", "E1130", "no mbarrier has been init"),
    "wait on nothing": (ONE + "mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar+8], 0;", "E1130", "bar[1]"),
    "invalidated": (
        ONE + "mbarrier.init.shared::cta.b64 [bar], 1; mbarrier.inval.shared::cta.b64 [bar];"
        "mbarrier.arrive.shared::cta.b64 _, [bar];",
        "E1130",
        "has been invalidated",
    ),
    "not in shared memory": (ONE + "mbarrier.arrive.b64 _, [%d0];", "E1130", "not in shared memory"),
    "data over it": (
        ONE + "mbarrier.init.shared::cta.b64 [bar], 1; st.shared.u32 [bar+4], 3;"
        "mbarrier.arrive.shared::cta.b64 _, [bar];",
        "E1131",
        "overwritten",
    ),
    "initialised twice": (
        ONE + "mbarrier.init.shared::cta.b64 [bar], 1; mbarrier.init.shared::cta.b64 [bar], 1;",
        "E1132",
        "initialised with 1 arrival",
    ),
    "initialised by all lanes": ("mbarrier.init.shared::cta.b64 [bar], 32;", "E1132", "32 arrivals"),
    "count zero": (ONE + "mov.u32 %r1, 0; mbarrier.init.shared::cta.b64 [bar], %r1;", "E1133", "1 to 1048575"),
    "arrival of none": (
        ONE + "mov.u32 %r1, 0; mbarrier.init.shared::cta.b64 [bar], 1; mbarrier.arrive.shared::cta.b64 _, [bar], %r1;",
        "E1133",
        "an arrival of 0",
    ),
    "too many": (
        ONE + "mbarrier.init.shared::cta.b64 [bar], 2; mbarrier.arrive.shared::cta.b64 _, [bar], 3;",
        "E1134",
        "initialised with 2 arrivals per phase",
    ),
    "all lanes where one is expected": (
        "@%p0 mbarrier.init.shared::cta.b64 [bar], 1;" + SYNC + "mbarrier.arrive.shared::cta.b64 _, [bar];",
        "E1134",
        "32 lanes arrive on the mbarrier bar[0]",
    ),
    "tx overflow": (
        ONE + "mbarrier.init.shared::cta.b64 [bar], 1; mov.u32 %r1, 1048576;"
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], %r1;",
        "E1135",
        "1048576",
    ),
    "noComplete completes": (
        ONE + "mbarrier.init.shared::cta.b64 [bar], 2; mbarrier.arrive.noComplete.shared::cta.b64 %d1, [bar], 2;",
        "E1137",
        "completes phase 0",
    ),
    "parity 2": (
        ONE + "mbarrier.init.shared::cta.b64 [bar], 1; mov.u32 %r1, 2;"
        "mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], %r1;",
        "E1138",
        "parity 2",
    ),
    "a state of long ago": (
        ONE + "mbarrier.init.shared::cta.b64 [bar], 1; mbarrier.arrive.shared::cta.b64 %d1, [bar];"
        "mbarrier.test_wait.shared::cta.b64 %p1, [bar], %d1; mbarrier.arrive.shared::cta.b64 %d2, [bar];"
        "mbarrier.test_wait.shared::cta.b64 %p1, [bar], %d2; mbarrier.test_wait.shared::cta.b64 %p1, [bar], %d1;",
        "E1138",
        "state of phase 0; the barrier is in phase 2",
    ),
    "misaligned": (ONE + "mbarrier.init.shared::cta.b64 [bar+4], 1;", "E1121", "multiple of 8"),
    "outside": (ONE + "mov.u32 %r1, 0xfff000; mbarrier.init.shared::cta.b64 [%r1], 1;", "E1120", "ends at"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISUSE)
def test_misuse_is_a_fault(name):
    body, code, words = MISUSE[name]
    found, message = fault(body + "\nEND:", np.zeros(1, np.uint32))
    assert found == code
    assert words in message


def test_arrivals_that_nobody_waits_for_count_in_the_next_phase_and_are_warned_of():
    """PTX ISA, "Phase of the mbarrier object": a phase that is complete is followed by the next one at once, with its
    count pending, whether or not anybody has looked; of the two arrivals of a phase the second one completes it."""
    out = np.zeros(1, np.uint32)
    body = (
        ONE
        + "mbarrier.init.shared::cta.b64 [bar], 2; mbarrier.arrive.shared::cta.b64 _, [bar], 2; mov.u32 %r1, 0;\n"
        + "MORE: mbarrier.arrive.shared::cta.b64 %d1, [bar];\n"
        + "add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 3; @%p1 bra MORE;\n"
        + wait("bar", 1, "PHASE_1")
        + "mbarrier.pending_count.b64 %r2, %d1; st.global.u32 [%d0], %r2;\nEND:"
    )
    report = finish(body, out)
    assert out[0] == 2  # of phase 2 nobody had come before the third one
    (found,) = report.diagnostics  # one, though all three run ahead
    assert (found.code, found.severity) == ("W1196", "warning")
    assert "phase 1 of the mbarrier bar[0], though nobody has waited for phase 0" in found.message


REMOTE = {
    "wait": "mbarrier.test_wait.parity.b64 %p1, [%d1], 0;",
    "init": "mbarrier.init.b64 [%d1], 1;",
    "inval": "mbarrier.inval.b64 [%d1];",
    "state": "mbarrier.arrive.release.cluster.b64 %d2, [%d1];",
}


@pytest.mark.parametrize("name", REMOTE)
def test_what_another_cta_may_not_do(name):
    body = (
        "@%p0 mbarrier.init.shared::cta.b64 [bar], 1;\n"
        + CLUSTER_SYNC
        + "mov.u32 %r1, bar; cvt.u64.u32 %d1, %r1; cvta.shared.u64 %d1, %d1; mapa.u64 %d1, %d1, 0;\n"
        + "setp.eq.u32 %p2, %rank, 1; and.pred %p2, %p2, %p0;\n@!%p2 bra END;\n"
        + REMOTE[name]
        + "\nEND:\n"
        + CLUSTER_SYNC
    )
    code, message = fault(body, np.zeros(1, np.uint32), grid=2, cluster=2)
    assert code == "E1136" and "rank" in message


def test_an_arrival_before_the_peers_init():
    body = (
        """
mov.u32 %r1, bar; mapa.shared::cluster.u32 %r2, %r1, 1;
setp.eq.u32 %p1, %rank, 0; and.pred %p1, %p1, %p0;
@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2];
@%p0 mbarrier.init.shared::cta.b64 [bar], 1;
"""
        + CLUSTER_SYNC
    )
    code, message = fault(body, np.zeros(1, np.uint32), grid=2, cluster=2)
    assert code == "E1130" and "of the CTA of rank 1" in message


def test_memory_of_a_dead_barrier_can_be_used():
    out = np.zeros(1, np.uint32)
    body = """
@!%p0 bra END;
mbarrier.init.shared::cta.b64 [bar], 1; mbarrier.inval.shared::cta.b64 [bar];
st.shared.u32 [bar], 77; ld.shared.u32 %r1, [bar]; st.global.u32 [%d0], %r1;
mbarrier.init.shared::cta.b64 [bar], 2; mbarrier.arrive.shared::cta.b64 _, [bar], 2;
END:
"""
    finish(body, out)
    assert out[0] == 77


# Deadlocks tell who is missing


def test_one_lane_arrives_where_all_are_expected():
    report = deadlock(
        INIT.format(32) + "@%p0 mbarrier.arrive.shared::cta.b64 _, [bar];\n" + wait("bar", 0, "W"),
        np.zeros(1, np.uint32),
    )
    assert "parity 0: phase 0, 31 of 32 arrivals pending" in report


def test_bytes_that_never_come():
    report = deadlock(
        INIT.format(1) + "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;\n" + wait("bar", 0, "W"),
        np.zeros(1, np.uint32),
    )
    assert "all arrivals have come, 1024 bytes still expected" in report


def test_polling_is_waiting_too():
    body = INIT.format(1) + "W: mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 0;\n@!%p1 bra W;"
    assert "1 of 1 arrival pending" in deadlock(body, np.zeros(1, np.uint32))


def test_lanes_that_wait_for_one_another_come_on():
    """Lane 0 waits for barrier 0, the others for barrier 1, which lane 0 completes afterwards."""
    out = np.zeros(1, np.uint32)
    body = """
@%p0 mbarrier.init.shared::cta.b64 [bar], 1;
@%p0 mbarrier.init.shared::cta.b64 [bar+8], 1;
bar.sync 0;
mov.u32 %r1, bar; @!%p0 add.u32 %r1, %r1, 8;
@%p0 mbarrier.arrive.shared::cta.b64 _, [bar];
W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0; @!%p1 bra W;
@%p0 mbarrier.arrive.shared::cta.b64 _, [bar+8];
setp.eq.u32 %p2, %t, 31; @%p2 st.global.u32 [%d0], 3;
"""
    finish(body, out)
    assert out[0] == 3
