"""Which classes of findings are right for the mutants of each operator, and why; operators that change nothing."""

from __future__ import annotations

from ptxdsl.check.classes import (
    BYTE_MISMATCH,
    CYCLIC_WAIT,
    DATA_RACE,
    DIVERGENT,
    EARLY_USE,
    EXIT_IN_FLIGHT,
    LIVE_REINIT,
    MISSING_ARRIVE,
    OVERWRITTEN,
    PROXY_FENCE,
    READ_BEFORE_FULL,
    STALE_STAGE,
    UNDRAINED,
    WRONG_COUNT,
    WRONG_PARITY,
)

# Nobody arrives any more: the one who waits for it is blocked, or waits in a circle with others.
_BLOCKED = (MISSING_ARRIVE, CYCLIC_WAIT)
# Two roles are no longer at the same stage: whichever of its consequences comes first.
_APART = (*_BLOCKED, WRONG_PARITY, STALE_STAGE, READ_BEFORE_FULL, OVERWRITTEN, WRONG_COUNT, BYTE_MISMATCH)
_APART = (*_APART, EXIT_IN_FLIGHT, UNDRAINED)  # copies to stages that nobody comes to, or to one stage at once
# A phase completes before all of its work is done.
_EARLY = (WRONG_COUNT, WRONG_PARITY, READ_BEFORE_FULL, OVERWRITTEN)
_SLOT = (STALE_STAGE, READ_BEFORE_FULL, OVERWRITTEN)
_RACES = (READ_BEFORE_FULL, OVERWRITTEN, DATA_RACE)

ACCEPTED: dict[str, tuple[str, ...]] = {
    # without its wait a role runs ahead: it writes what is still read, and its barriers get two phases ahead
    "drop acquire": (OVERWRITTEN, WRONG_PARITY, WRONG_COUNT, BYTE_MISMATCH, EXIT_IN_FLIGHT),
    "drop wait": (READ_BEFORE_FULL, OVERWRITTEN, WRONG_PARITY, EXIT_IN_FLIGHT),
    "drop raw wait": (*_RACES, WRONG_PARITY, EXIT_IN_FLIGHT, WRONG_COUNT, BYTE_MISMATCH),
    "drop arrival of commit": (*_BLOCKED, WRONG_COUNT),
    # the step goes with it: the next wait is for a phase that is complete
    "drop commit": _APART,
    "drop arrival of release": (*_BLOCKED, WRONG_COUNT),
    "drop release": _APART,
    "drop release_no_step": (*_BLOCKED, WRONG_COUNT),
    # also of an asynchronous store, which brings bytes
    "drop raw arrival": (*_BLOCKED, WRONG_COUNT, BYTE_MISMATCH),
    "drop step": _APART,
    "drop proxy fence": (PROXY_FENCE,),
    "drop syncwarp": _RACES,
    "drop init fence": (EARLY_USE,),
    "drop init": (EARLY_USE,),
    "drop barrier after init": (EARLY_USE, LIVE_REINIT, READ_BEFORE_FULL),  # of what else the barrier publishes
    "drop barrier": (*_RACES, LIVE_REINIT, EARLY_USE),
    "drop last cluster sync": (EXIT_IN_FLIGHT,),
    "drop elect": (WRONG_COUNT, BYTE_MISMATCH),
    "drop expect": (BYTE_MISMATCH, WRONG_COUNT, *_BLOCKED),
    "drop copy": (BYTE_MISMATCH, *_BLOCKED),
    "drop commit group": (UNDRAINED, EXIT_IN_FLIGHT, *_RACES),
    "drop wait group": (UNDRAINED, EXIT_IN_FLIGHT, *_RACES),
    "drop fill": (READ_BEFORE_FULL,),
    "fill in the first turns alone": (READ_BEFORE_FULL,),
    "drop named barrier": (*_RACES, DIVERGENT, *_BLOCKED),
    # the arrival counts for a stage that is not filled or not read
    "double commit": _APART,
    "double arrival of commit": (*_EARLY, *_BLOCKED),
    "double release": _APART,
    "double arrival of release": (*_EARLY, *_BLOCKED),
    "double release_no_step": (*_EARLY, *_BLOCKED),
    "double step": _APART,
    "double raw arrival": (*_EARLY, *_BLOCKED),
    "double expect": (WRONG_COUNT, BYTE_MISMATCH),
    "double copy": (BYTE_MISMATCH, OVERWRITTEN, READ_BEFORE_FULL),
    # PTX ISA, mbarrier.init: undefined on a valid mbarrier
    "double init": (LIVE_REINIT, EARLY_USE),
    "double acquire": (),
    "double wait": (),
    "double meeting": (),
    "double fence": (),
    "double commit group": (),
    "double wait group": (),
    "more arrivals expected": (WRONG_COUNT, *_BLOCKED),
    "fewer arrivals expected": _EARLY,
    "other first phase": (WRONG_PARITY, *_BLOCKED, READ_BEFORE_FULL, OVERWRITTEN),
    "other first stage": _APART,
    "other number of stages": _APART,
    "exchanged barriers": _APART,
    "other parity": (WRONG_PARITY, *_BLOCKED, *_RACES),
    "other slot": _SLOT,
    "other bytes expected": (BYTE_MISMATCH, *_BLOCKED),
    "other bytes copied": (BYTE_MISMATCH, *_BLOCKED),
    "consumer goes round once more": (*_BLOCKED, WRONG_PARITY),
    "producer goes round once less": (*_BLOCKED, WRONG_PARITY, EXIT_IN_FLIGHT),
    "more groups under way": (UNDRAINED, EXIT_IN_FLIGHT, *_RACES),
    "other named barrier": (DIVERGENT, *_BLOCKED, *_RACES),
    "other multicast mask": (BYTE_MISMATCH, *_BLOCKED, WRONG_COUNT),
    "other block of the cluster": (*_BLOCKED, WRONG_COUNT, WRONG_PARITY, *_RACES),
    "fill before acquire": (OVERWRITTEN, STALE_STAGE, WRONG_COUNT, WRONG_PARITY, BYTE_MISMATCH),
    "fill after commit": _SLOT,
    "read before wait": (READ_BEFORE_FULL, OVERWRITTEN, STALE_STAGE),
    "read after release": _SLOT,
    "fence after arrival": (PROXY_FENCE,),
    "fence before write": (PROXY_FENCE,),
    "group waited for after arrival": (UNDRAINED, *_RACES),
    "arrival before syncwarp": _RACES,
    "copy announced after its start": (),
    "barrier before init": (EARLY_USE, LIVE_REINIT),
}

# Operators whose mutants are right, by the argument given.
HARMLESS: dict[str, str] = {
    "double acquire": "a wait changes no barrier, and the phase it has seen complete stays the last one until its own "
    "role arrives again: the second wait returns at once",
    "double wait": "as of acquire: the next phase cannot be complete before the role's own release",
    "double meeting": "all threads that meet once meet twice, and nothing lies between the two",
    "double fence": "a fence orders what is before it with what is after it; a second one orders no less",
    "double commit group": "the second group is empty and complete at once; waits for all but the last n groups then "
    "wait for no less than before",
    "double wait group": "after the first wait at most n groups are under way, which is what the second waits for",
    "copy announced after its start": "the arrival of expect_bytes itself holds the phase open until the bytes "
    "are announced, and a transaction count may be negative for a while (PTX ISA, mbarrier: its range is symmetric)",
}

_TURN = "the warps exchange one value at a time: what one waits for next comes after the other's use of the slot"
_NO_PARITY = "this copy of the pipeline only arrives; its phase is never waited with"
_GENERIC = "cluster_sync releases and acquires, and only threads use these barriers: no other proxy has to see them"
_COMMIT = "an arrival of tcgen05.commit is in no other proxy by the ISA, and the reference compiler has no fence for it"
_READ = "the store has read its stage, and what it writes is complete when the grid is"
_LATE = "slots are written and read in order, only a turn late: which values they have is not the protocol's matter"

# Single mutants that are right: kernel, operator, the line as it was (the second such line: with `` (2)``) → why.
_ASYNC, _STORES = "async_copies_in_groups", "stores_left_under_way"
_REMOTE = "c.consumer_mbar()[].arrive_cluster(UInt32(lane))"
_BOTH = "two lanes arrive at the two blocks: exchanged they arrive at the same two"
_BOTH_ROWS = (
    "res[unsafe_offset=i * 32 + lane] = tile[unsafe_offset=Int32(c.state.index()) * 32 + lane]"
    " + tile[unsafe_offset=Int32(back.state.index()) * 32 + lane]"
)
_LAST = "cp_async_bulk_wait_group[0, read=False]()"
EQUIVALENT: dict[tuple[str, str, str], str] = {
    ("both_ends_at_once", "drop acquire", "a.acquire()"): _TURN,
    ("both_ends_at_once", "drop acquire", "b.acquire()"): _TURN,
    ("both_ends_at_once", "fill before acquire", "a.acquire()"): _TURN,
    ("both_ends_at_once", "fill before acquire", "b.acquire()"): _TURN,
    ("both_ends_at_once", "read after release", "total += tile[unsafe_offset=32 + lane]"): _TURN,
    ("both_ends_at_once", "read after release", "var value = tile[unsafe_offset=lane]"): _TURN,
    (_ASYNC, "other first phase", "var ready = RolePipeline[3, True](bars, bars.unsafe_offset(3))"): _NO_PARITY,
    (_STORES, "other first phase", "var done = RolePipeline[3, False](bars, bars.unsafe_offset(3))"): _NO_PARITY,
    ("bulk_stores", "drop wait group", _LAST): _READ,
    ("bulk_stores", "more groups under way", _LAST): _READ,
    ("tensor_copies", "drop wait group", _LAST): _READ,
    ("tensor_copies", "more groups under way", _LAST): _READ,
    (
        "cluster_multicast",
        "other block of the cluster",
        "c.consumer_mbar()[].arrive_cluster(UInt32(lane))",
    ): "two lanes arrive at the two blocks: exchanged they arrive at the same two",
    ("cluster_of_neighbours", "drop init fence", "fence_mbarrier_init()"): _GENERIC,
    ("commits_of_tensor_cores", "drop init fence", "fence_mbarrier_init()"): _COMMIT,
    ("peeled_turn_and_tail", "drop release", "c.release()"): _LATE,
    ("resident_tile", "drop raw wait", "bars[unsafe_offset=4].wait(0)"): "every commit of the ring comes after it",
    (
        "tokens_and_a_table",
        "read after release",
        "res[unsafe_offset=i * 32 + lane] = tile[unsafe_offset=lane]",
    ): "the table is never written again",
    ("read_far_ahead", "read after release", _BOTH_ROWS): "with its release `back` goes to the stage that is held",
    (
        "release_by_warps",
        "more groups under way",
        "var result = wgmma_wait_group_sync[0](sums)",
    ): "the loop has waited for every group",
    (
        "tensor_cores_ring",
        "more groups under way",
        "var result = wgmma_wait_group_sync[0](sums)",
    ): "the loop has waited for every group",
}


def equivalent(kernel: str, operator: str, place: str) -> str | None:
    """Why a mutant does what the kernel did, None where it does not."""
    return HARMLESS.get(operator) or EQUIVALENT.get((kernel, operator, place))
