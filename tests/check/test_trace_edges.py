"""Every edge of the trace check: with it there is no finding, without it the one that it prevents.

A body marks what is left out by ``<<`` and ``>>``; ``<<a|b>>`` has b in the place of a.
"""

import re

import numpy as np
import pytest
from async_kernels import kernel as kernel_text
from traced import body, kinds, watched

from ptxdsl.sim.copies.tensor_map import TensorMap

# Thread t has word t of the tile at %r1, and that of the thread in the other warp at %r2.
MINE = """
shl.b32 %r0, %t, 2; mov.u32 %r9, tile; add.u32 %r1, %r9, %r0;
xor.b32 %r3, %t, 32; shl.b32 %r3, %r3, 2; add.u32 %r2, %r9, %r3;
mul.wide.u32 %d9, %t, 4; add.u64 %d1, %d0, %d9;
setp.lt.u32 %p1, %t, 32; setp.eq.u32 %p2, %t, 32;
"""
INIT = "@%p0 mbarrier.init.shared::cta.b64 [bar], {count}; {fence} bar.sync 0;\n"
FENCED = "@%p0 fence.mbarrier_init.release.cluster;"
WAIT = "{label}: mbarrier.try_wait.parity.shared::cta.b64 %p15, [bar], {parity}; @!%p15 bra {label};\n"
FULL = WAIT.format(label="FULL", parity=0)
LOAD = (
    "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;\n"
    "@%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%d0], 256, [bar];\n"
)
STORE = "cp.async.bulk.global.shared::cta.bulk_group [%d0], [tile], 256; cp.async.bulk.commit_group;\n"
HALF, OTHER_HALF = STORE.replace("256", "128"), STORE.replace("256", "128").replace("[%d0]", "[%d0+128]")

READ, OVER, RACE = "slot read before full", "slot overwritten before release", "data race"
FENCE, DRAIN, EARLY = "missing proxy fence", "undrained wgmma, bulk or cp.async read", "use before init is visible"
LIVE, EXIT, PARITY = "re-init or inval while live", "exit with work in flight", "wrong parity"

EDGES = {
    "bar.sync": (RACE, "st.shared.u32 [%r1], %t; <<bar.sync 0;>> ld.shared.u32 %r5, [%r2];"),
    "a barrier that the writer passes by": (
        RACE, "st.shared.u32 [%r1], %t; <<|@!%p1 bra END;>> bar.sync 0; ld.shared.u32 %r5, [%r2]; END:",
    ),
    "bar.sync before overwriting": (
        RACE, "ld.shared.u32 %r5, [%r2]; <<bar.sync 0;>> st.shared.u32 [%r1], %t;",
    ),
    "bar.sync before an atomic that orders": (
        RACE, "st.shared.u32 [%r1], %t; <<bar.sync 0;>> atom.acq_rel.cta.shared::cta.add.u32 %r5, [%r2], 1;",
    ),
    "bar.sync behind an atomic that orders": (
        RACE, "atom.acq_rel.cta.shared::cta.add.u32 %r5, [%r1], 1; <<bar.sync 0;>> ld.shared.u32 %r5, [%r2];",
    ),
    "bar.sync before a store that releases": (
        RACE, "ld.shared.u32 %r5, [%r2]; <<bar.sync 0;>> st.release.cta.shared::cta.u32 [%r1], %t;",
    ),
    "bar.sync behind a load that acquires": (
        RACE, "ld.acquire.cta.shared::cta.u32 %r5, [%r2]; <<bar.sync 0;>> st.shared.u32 [%r1], %t;",
    ),
    "bar.arrive and bar.sync": (
        RACE,
        "@!%p1 bra READ; st.shared.u32 [%r1], %t; bar.arrive 1, 64; bra END;"
        "READ: <<|ld.shared.u32 %r5, [%r2];>> bar.sync 1, 64; <<ld.shared.u32 %r5, [%r2];>> END:",
    ),
    "the order of two barriers": (
        RACE,
        "@!%p1 bra READ; <<st.shared.u32 [%r1], %t; bar.sync 1, 64;|bar.sync 1, 64; st.shared.u32 [%r1], %t;>> bra END;"
        "READ: bar.sync 1, 64; ld.shared.u32 %r5, [%r2]; END:",
    ),
    "mbarrier": (
        READ,
        INIT.format(count=64, fence="")
        + "st.shared.u32 [%r1], %t; mbarrier.arrive.shared::cta.b64 _, [bar];"
        + f"<<{FULL}>> ld.shared.u32 %r5, [%r2];",
    ),
    "an arrival after the write": (
        READ,
        INIT.format(count=32, fence="")
        + "@!%p1 bra READ; <<st.shared.u32 [%r1], %t; mbarrier.arrive.shared::cta.b64 _, [bar];|"
        + "mbarrier.arrive.shared::cta.b64 _, [bar]; st.shared.u32 [%r1], %t;>> bra END;"
        + f"READ: {FULL} ld.shared.u32 %r5, [%r2]; END:",
    ),
    "a relaxed arrival orders nothing": (
        READ,
        INIT.format(count=32, fence="")
        + "@!%p1 bra READ; st.shared.u32 [%r1], %t;"
        + "mbarrier.arrive.<<release|relaxed>>.cluster.shared::cta.b64 _, [bar]; bra END;"
        + f"READ: {FULL} ld.shared.u32 %r5, [%r2]; END:",
    ),
    "the parity that is meant": (
        {READ, PARITY},
        INIT.format(count=32, fence="")
        + "@!%p1 bra READ; st.shared.u32 [%r1], %t; mbarrier.arrive.shared::cta.b64 _, [bar]; bra END;"
        + "READ: <<F: mbarrier.try_wait.parity.shared::cta.b64 %p15, [bar], 0; @!%p15 bra F;|"
        + "F: mbarrier.try_wait.parity.shared::cta.b64 %p15, [bar], 1; @!%p15 bra F;>> ld.shared.u32 %r5, [%r2]; END:",
    ),
    "init before use": (
        EARLY,
        "@%p0 mbarrier.init.shared::cta.b64 [bar], 64; <<bar.sync 0;>> mbarrier.arrive.shared::cta.b64 _, [bar];",
    ),
    "init before a copy's use": (EARLY, INIT.format(count=1, fence=f"<<{FENCED}>>") + LOAD + FULL),
    "use before inval": (
        LIVE,
        INIT.format(count=64, fence="")
        + f"mbarrier.arrive.shared::cta.b64 _, [bar]; {FULL} <<bar.sync 0;>>"
        + "@%p0 mbarrier.inval.shared::cta.b64 [bar];",
    ),
    "data over a barrier": (
        LIVE,
        INIT.format(count=64, fence="")
        + f"mbarrier.arrive.shared::cta.b64 _, [bar]; {FULL} bar.sync 0; <<@%p0 mbarrier.inval.shared::cta.b64 [bar];>>"
        "@%p0 st.shared.u32 [bar], %t;",
    ),
    "a bulk load": (
        READ,
        INIT.format(count=1, fence=FENCED) + LOAD
        + f"<<{FULL}bar.sync 0;|@%p0 bra FULL; bra READ; {FULL} READ:>> ld.shared.u32 %r5, [%r1]; bar.sync 0;",
    ),
    "stores before a bulk store": (
        FENCE,
        "st.shared.u32 [%r1], %t; <<fence.proxy.async.shared::cta;>> bar.sync 0; @!%p0 bra END;"
        f"{STORE} cp.async.bulk.wait_group 0; END:",
    ),
    "a fence before the barrier, by those who wrote": (
        FENCE,
        "st.shared.u32 [%r1], %t; <<fence.proxy.async.shared::cta; bar.sync 0;|"
        f"bar.sync 0; @!%p0 fence.proxy.async.shared::cta;>> @!%p0 bra END; {STORE} cp.async.bulk.wait_group 0; END:",
    ),
    "a fence of the memory in question": (
        FENCE,
        "st.shared.u32 [%r1], %t; fence.proxy.async.<<shared::cta|global>>; bar.sync 0; @!%p0 bra END;"
        f"{STORE} cp.async.bulk.wait_group 0; END:",
    ),
    "loads before a bulk load": (
        FENCE,
        INIT.format(count=1, fence=FENCED)
        + "ld.shared.u32 %r5, [%r1]; <<fence.proxy.async.shared::cta;>> bar.sync 0;" + LOAD + FULL,
    ),
    "a bulk store has read": (
        DRAIN,
        f"@!%p0 bra READY; {STORE} <<cp.async.bulk.wait_group.read 0;>> READY: bar.sync 0; st.shared.u32 [%r1], %t;"
        "@%p0 cp.async.bulk.wait_group 0;",
    ),
    "a bulk store has written": (
        RACE,
        f"@!%p0 bra READY; {STORE} cp.async.bulk.wait_group<<|.read>> 0; READY: bar.sync 0; ld.global.u32 %r5, [%d1];",
    ),
    "a bulk store has written what the next one writes": (
        RACE, f"@!%p0 bra END; {STORE} cp.async.bulk.wait_group<<|.read>> 0; {STORE} cp.async.bulk.wait_group 0; END:",
    ),
    "bulk stores have written in their order": (
        RACE,
        f"@!%p0 bra END; {HALF} {OTHER_HALF} cp.async.bulk.wait_group <<1|2>>; {HALF} cp.async.bulk.wait_group 0; END:",
    ),
    "a bulk store before the exit": (EXIT, f"@!%p0 bra END; {STORE} <<cp.async.bulk.wait_group.read 0;>> END:"),
    "the groups that are waited for": (
        DRAIN,
        f"@!%p0 bra READY; {STORE} cp.async.bulk.wait_group.read <<0|1>>; READY: bar.sync 0; st.shared.u32 [%r1], %t;"
        "@%p0 cp.async.bulk.wait_group 0;",
    ),
    "cp.async": (
        READ,
        "cp.async.ca.shared.global [%r1], [%d1], 4; cp.async.commit_group; <<cp.async.wait_group 0;>> bar.sync 0;"
        "ld.shared.u32 %r5, [%r2]; cp.async.wait_all;",
    ),
    "cp.async and the barrier after it": (
        READ,
        "cp.async.ca.shared.global [%r1], [%d1], 4; cp.async.wait_all; <<bar.sync 0;>> ld.shared.u32 %r5, [%r2];",
    ),
    "cp.async on an mbarrier": (
        READ,
        INIT.format(count=64, fence="")
        + "cp.async.ca.shared.global [%r1], [%d1], 4; <<cp.async.mbarrier.arrive.noinc|mbarrier.arrive>>"
        + f".shared::cta.b64 <<|_,>> [bar]; {FULL} ld.shared.u32 %r5, [%r2]; cp.async.wait_all;",
    ),
    "stores before ldmatrix": (
        RACE,
        "st.shared.u32 [%r1], %t; <<bar.sync 0;>> and.b32 %r6, %t, 7; shl.b32 %r6, %r6, 4; add.u32 %r6, %r6, %r9;"
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r7}, [%r6];",
    ),
    "atomic operations and a read": (
        RACE, "atom.shared.add.u32 %r5, [tile], 1; <<bar.sync 0;>> ld.shared.u32 %r6, [tile];",
    ),
    "a store and atomic operations": (
        RACE, "@%p0 st.shared.u32 [tile], 0; <<bar.sync 0;>> red.shared.add.u32 [tile], 1;",
    ),
    "plain and volatile": (
        RACE, "@%p1 st.<<volatile.|>>shared.u32 [tile], 1; @!%p1 st.<<volatile.|>>shared.u32 [tile], 1;",
    ),
    "a flag with release and acquire": (
        RACE,
        "@%p0 st.shared.u32 [tile+64], 5; @%p0 st.<<release|relaxed>>.cta.shared.u32 [tile], 1; @!%p2 bra END;"
        "SPIN: ld.acquire.cta.shared.u32 %r5, [tile]; setp.ne.u32 %p3, %r5, 1; @%p3 bra SPIN;"
        "ld.shared.u32 %r6, [tile+64]; END:",
    ),
    "a flag with fences": (
        RACE,
        "@%p0 st.global.u32 [%d0+64], 5; <<membar.gl;>> @%p0 st.volatile.global.u32 [%d0], 1; @!%p2 bra END;"
        "SPIN: ld.volatile.global.u32 %r5, [%d0]; setp.ne.u32 %p3, %r5, 1; @%p3 bra SPIN;"
        "<<membar.gl;>> ld.global.u32 %r6, [%d0+64]; END:",
    ),
    "bytes of one word": (RACE, "@%p0 st.shared.u8 [tile], 1; @%p2 st.shared.u8 [tile+<<1|0>>], 1;"),
}  # fmt: skip


def parts(text: str) -> tuple[str, str]:
    """With the marked text, and without."""
    good = re.sub(r"<<(.*?)>>", lambda m: m[1].split("|")[0], text, flags=re.DOTALL)
    bad = re.sub(r"<<(.*?)>>", lambda m: m[1].partition("|")[2], text, flags=re.DOTALL)
    return good, bad


def array() -> np.ndarray:
    return np.zeros(64, np.uint32)


@pytest.mark.parametrize("name", EDGES)
def test_an_edge(name: str) -> None:
    kind, text = EDGES[name]
    good, bad = parts(MINE + text)
    assert kinds(body(good, array())) == []
    found = set(kinds(body(bad, array())))
    assert found == kind if isinstance(kind, set) else kind in found, found


def test_a_race_is_found_in_whatever_order_it_happened() -> None:
    text = MINE + "@%p1 st.shared.u32 [%r1], %t; @!%p1 ld.shared.u32 %r5, [%r2];"
    for schedule in ("slow:warp0", "slow:warp1", "random:3"):
        assert kinds(body(text, array(), schedule=schedule)) == [RACE]


def test_lanes_that_do_not_wait_for_one_of_them() -> None:
    """Lane 0 waits, the others go on without ``bar.warp.sync``, if it has to wait."""
    text = (
        MINE
        + INIT.format(count=32, fence="")
        + "@!%p1 bra READ; st.shared.u32 [%r1], %t; mbarrier.arrive.shared::cta.b64 _, [bar]; bra END;"
        + f"READ: @!%p2 bra GO; {FULL} GO: <<bar.warp.sync 0xffffffff;>> ld.shared.u32 %r5, [%r2]; END:"
    )
    good, bad = parts(text)
    assert kinds(body(good, array(), schedule="slow:warp0")) == []
    assert kinds(body(bad, array(), schedule="slow:warp0")) == [READ]


def test_the_two_places_and_the_memory_are_named() -> None:
    text = MINE + "@%p1 st.shared.u32 [%r1], %t;\n@!%p1 ld.shared.u32 %r5, [%r2];"
    (race,) = body(text, array()).races
    diagnostic = race.diagnostic
    assert diagnostic.message == (
        "data race: warp 1 reads tile in shared memory, and nothing orders that with the write elsewhere"
    )
    assert diagnostic.span.text.startswith("@!%p1 ld.shared") and race.place == "tile"
    ((span, label),) = diagnostic.notes
    assert span.text.startswith("@%p1 st.shared") and label == "warp 0 writes it here"


CLUSTER = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
PEER = MINE + "xor.b32 %r4, %rank, 1; mapa.shared::cluster.u32 %r8, %r1, %r4; mov.u32 %r7, bar;"
PEER += "mapa.shared::cluster.u32 %r6, %r7, %r4;"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (RACE, f"st.shared::cluster.u32 [%r8], %t; <<{CLUSTER}>> ld.shared.u32 %r5, [%r1]; {CLUSTER}"),
        (EXIT, f"{CLUSTER} setp.eq.u32 %p3, %rank, 0; @%p3 st.shared::cluster.u32 [%r8], %t; <<{CLUSTER}>>"),
        (
            EARLY,
            f"@%p0 mbarrier.init.shared::cta.b64 [bar], 64; <<{CLUSTER}|bar.sync 0;>>"
            f"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6]; {CLUSTER}",
        ),
        (
            EXIT,
            f"@%p0 mbarrier.init.shared::cta.b64 [bar], 64; {CLUSTER}"
            "setp.eq.u32 %p3, %rank, 0; @%p3 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];"
            f"<<{CLUSTER}>>",
        ),
        (
            RACE,
            f"st.shared::cluster.u32 [%r8], %t; barrier.cluster.arrive.<<release|relaxed>>.aligned;"
            f"barrier.cluster.wait.acquire.aligned; ld.shared.u32 %r5, [%r1]; {CLUSTER}",
        ),
    ],
    ids=["a store to the peer", "a store before its exit", "its barrier", "an arrival before its exit", "relaxed"],
)
def test_an_edge_in_a_cluster(kind: str, text: str) -> None:
    good, bad = parts(PEER + text)
    assert kinds(body(good, array(), grid=2, cluster=2)) == []
    assert kind in kinds(body(bad, array(), grid=2, cluster=2))


# Block 0 copies from global memory to block 1 and ends, with its copy under way; block 1 waits for it.
TO_THE_PEER = f"""
@%p0 mbarrier.init.shared::cta.b64 [bar], 1; @%p0 fence.mbarrier_init.release.cluster;
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16; {CLUSTER}
setp.eq.u32 %p3, %rank, 0; @%p3 bra ISSUE; {FULL} bra END;
ISSUE: @!%p0 bra END; mov.u16 %h0, <<2|3>>;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%d0], 16, [bar], %h0;
END:
"""


@pytest.mark.parametrize("schedule", ["round-robin", "slow:tma"])
def test_a_copy_is_waited_for_by_those_whose_memory_it_uses(schedule: str) -> None:
    """PTX ISA, "cp.async.bulk": source in global memory, destination and mbarrier in the blocks of the mask."""
    for text, found in zip(parts(TO_THE_PEER), ([], [EXIT]), strict=True):
        result, report = watched(kernel_text(text), grid=2, cluster=2, block=64, arguments=[array()], schedule=schedule)
        assert report.finished and kinds(result) == found
        assert [warning.code for warning in report.diagnostics] == (["W1191"] if found else [])


def test_blocks_of_a_grid_are_in_no_order() -> None:
    text = "mov.u32 %r1, %ctaid.x; @%p0 st.global.u32 [%d0], %r1;"
    (race,) = body(text, array(), grid=2).races
    assert race.kind == RACE and "warp 0 of CTA (1, 0, 0) writes byte 0 of argument 0" in race.diagnostic.message
    assert not body(text.replace("st.global", "st.relaxed.gpu.global"), array(), grid=2).races


def test_a_tile_that_a_tensor_copy_stores_is_a_tile_and_not_all_between() -> None:
    """Two blocks store neighbouring columns of one array."""
    text = """
    st.shared.u32 [tile], %t; fence.proxy.async.shared::cta; bar.sync 0; @!%p0 bra END;
    mov.u32 %r1, %ctaid.x; shl.b32 %r2, %r1, 4; mov.u64 %d40, map0;
    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d40, {%r2, 0}], [tile];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:
    """
    data = np.zeros((8, 32), np.float32)
    assert not body(text.replace("st.shared.u32 [tile], %t;", ""), TensorMap(data, (8, 16)), grid=2).races
    again = text.replace("shl.b32 %r2, %r1, 4;", "shl.b32 %r2, %r1, 3;").replace("st.shared.u32 [tile], %t;", "")
    assert kinds(body(again, TensorMap(data, (8, 16)), grid=2)) == [RACE]
