"""The memory that compiled warp code and the machine share: one record a warp, one a CTA, one a launch.

Compiled code gets one pointer, to a warp's record, and finds the rest from there. NumPy structured types give both
sides the same offsets (``OFFSET``). Pointers are host addresses (uint64); every record is 64-byte aligned.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

LANES = 32
CTA_WARPS = 32
CHUNK = 8  # lanes that compiled code works on together, and whose accesses are one record

# Status of a lane.
RUNNABLE, BLOCKED, EXITED = 0, 1, 2

# Why compiled code came back.
ALL_STOPPED = 0  # no lane of the warp is runnable
HOST = 1  # the lanes of `mask` stand before host instruction `site`
FUEL = 2  # `fuel` turns of loops have been executed; the lanes of `mask` are runnable still
FAULT = 3  # instruction `site` made an error: `fault_kind`, `fault_lane`, `fault_address`
GATHER = 4  # the lanes of `mask` stand before a warp collective (instruction `site`) that names `members` too
TRAPPED = 5  # `trap` or `brkpt` executed by the lanes of `mask`

# fault_kind
BAD_ADDRESS, MISALIGNED, READ_ONLY, WRONG_SPACE, BAD_MEMBERS = 1, 2, 3, 4, 5

LAUNCH = np.dtype(
    [
        # Global, const and kernel-parameter memory are regions of one virtual address range that starts at `base`:
        # granule (address - base) >> granule_shift -> region number in `granules` (uint16, 0 = none) -> REGION.
        ("granules", "u8"),
        ("granule_count", "u8"),
        ("regions", "u8"),
        ("region_count", "u8"),
        ("parameters", "u8"),  # host address of the kernel's parameter bytes
        ("parameter_bytes", "u8"),
        ("cta_count", "u4", 3),  # %nctaid
        ("thread_count", "u4", 3),  # %ntid
        ("cluster_shape", "u4", 3),  # %cluster_nctaid
        ("cluster_count", "u4", 3),  # %nclusterid
        ("clock", "i8"),  # the machine's time in cycles, for %clock and %globaltimer
        ("writes", "u8"),  # stores and atomics that changed memory: "has anything happened since"
        ("dynamic_shared", "u4"),  # %dynamic_smem_size
        ("total_shared", "u4"),  # %total_smem_size
        ("trace", "u8"),  # host address of LOG, 0 if accesses are not traced
    ],
    align=True,
)

# The access log (``translate(…, trace=True)``): ``count`` ACCESS records have been made since the machine set it to 0,
# the first ``capacity`` of them are at ``entries``. Once half of them are used, compiled code comes back with FUEL at
# the next turn of a loop.
LOG = np.dtype([("count", "u8"), ("capacity", "u8"), ("entries", "u8")], align=True)

# A load, store or atomic operation of up to eight neighbouring lanes, before it is checked. bytes: of one lane. kind: 0
# a load, 1 a store, 3 an atomic operation, 4 a fence (``membar``, ``fence`` but those of proxies; without addresses), 8
# a warp collective at which the lanes of ``group`` meet. space: of the instruction, as in SPACES. mask: which of the
# lanes from ``first`` on; addresses: theirs, as the instruction has them. form: ROW where all access neighbours in
# their order, ALIKE where they access the same (then all addresses are that one). group: all lanes that run together.
ROW, ALIKE = 1, 2
ACCESS = np.dtype(
    [
        ("warp", "u8"),  # host address of WARP
        ("site", "i4"),
        ("bytes", "u2"),
        ("kind", "u2"),
        ("space", "u1"),
        ("first", "u1"),
        ("mask", "u1"),
        ("form", "u1"),
        ("group", "u4"),
        ("addresses", "u8", 8),
    ],
    align=True,
)
SPACES = {"generic": 0, "global": 1, "shared": 2, "local": 3, "cluster": 4}  # const and param memory count as global

REGION = np.dtype([("start", "u8"), ("end", "u8"), ("host", "u8"), ("writable", "u8")], align=True)

CTA = np.dtype(
    [
        ("launch", "u8"),  # host address of LAUNCH
        ("shared", "u8"),  # host address of this CTA's shared window, offset 0 (bytes below SHARED_START are invalid)
        ("shared_end", "u4"),  # one past its last valid offset
        ("rank", "u4"),  # %cluster_ctarank
        ("peers", "u8"),  # host address of 16 uint64: the shared windows of the cluster's CTAs by rank, 0 = none
        ("id", "u4", 3),  # %ctaid
        ("cluster_id", "u4", 3),  # %clusterid
        ("cluster_cta_id", "u4", 3),  # %cluster_ctaid
        ("smid", "u4"),
        ("local", "u8"),  # host address of local memory: thread t of the CTA has [t * local_bytes, + local_bytes)
        ("local_bytes", "u4"),
        (
            "barriers",
            "u8",
        ),  # host address of 16 uint64: where the cluster's CTAs by rank have, for every eight bytes of
        # their windows, the host address of the BARRIER there, or 0
        ("named", "u8"),  # host address of its NAMED records by number, 0: nobody has come to any so far
        ("warpgroups", "u8", CTA_WARPS // 4),  # host addresses of WARPGROUP, 0: it has not executed any wgmma
        ("warps", "u4"),
        ("live", "u4"),  # threads that have not exited, as far as known
    ],
    align=True,
)

WARP = np.dtype(
    [
        ("pc", "i4", LANES),  # the block at which each lane stands
        ("status", "i4", LANES),
        ("cta", "u8"),  # host address of CTA
        ("registers", "u8"),  # host address of the register file
        ("fuel", "i4"),  # turns of loops (entries of a block that a jump comes back to) before coming back with FUEL
        ("mask", "u4"),  # the lanes that the exit code speaks of, as are the next three
        ("site", "i4"),
        ("members", "u4"),
        ("fault_kind", "i4"),
        ("fault_lane", "i4"),
        ("fault_address", "u8"),
        ("retired", "u8"),  # thread-instructions executed
        ("issued", "u8"),  # warp-instructions executed
        ("index", "u4"),  # %warpid within the CTA
        ("tid", "u4", (3, LANES)),  # %tid
        # Compiled code's own: what it keeps from one call to the next, and room for what does not fit into registers.
        # The machine sets it to zero when it makes the record, and never looks at it.
        ("issued_before", "u8"),
        ("own", "u4", 128),
        ("wide", "u8", 128),
        # The machine's, which turns in host code (``runtime_turns``) keep as well. See ``cta.Warp``.
        ("clock", "i8"),
        ("changes", "u8"),
        ("woken_at", "i8"),
        ("told_issued", "u8"),
        ("told_retired", "u8"),
        ("turns_alone", "u4"),
        ("blocked", "u4"),  # lanes
        ("live", "u4"),  # lanes
        ("queued", "u4"),
        ("slot", "u4"),  # in the tables of TURNS
        ("number", "u4"),  # in its cluster
        ("unfenced", "u4"),  # live mbarriers that it has initialised and that no fence of it has made known
        ("cluster", "u8"),  # host address of CLUSTER
        # Lanes that wait for the phase of a parity on one mbarrier, for the end of a generation (its low 32 bits) of a
        # named barrier, or for a product by its number, all of the warp's that wait: BARRIER, NAMED, WARPGROUP, or 0.
        ("wait", "u8"),
        ("wait_mask", "u4"),
        ("wait_for", "u4"),
        ("wait_at", "u8"),  # host address of SITE
        ("stray_site", "u4"),  # 1 + that of the first shuffle from lanes that did not take part, 0: none
        ("stray_lanes", "u4"),  # who took their values
    ],
    align=True,
)

# What turns in host code know of a cluster: the slots of its entities that wait, in the order in which they began to.
CLUSTER = np.dtype([("blocked", "u8"), ("count", "u4")], align=True)

# Turns in host code, one record a machine. They go on as long as the next one is of a warp that has nothing but what
# they know, and come back with a reason.
TURNS = np.dtype(
    [
        ("run", "u8"),  # host address of the function that runs a warp
        ("launch", "u8"),  # host address of LAUNCH
        ("sites", "u8"),  # of SITE
        # By slot the host address of WARP; NOT_KNOWN where its turns are the machine's, INERT where besides it waits
        # for what no mbarrier brings.
        ("warps", "u8"),
        ("queue", "u8"),  # slots of those that can move, in a ring
        ("ring", "u4"),  # its size less one: a power of two
        ("head", "u4"),
        ("count", "u4"),
        ("fuel", "i4"),
        ("left", "u4"),  # turns until it comes back
        # What it has done since the machine set them to 0:
        ("hosts", "u4"),  # host instructions
        ("changes", "u4"),
        ("writes", "u4"),  # of barriers
        ("issued", "u8"),
        ("retired", "u8"),
        # For whoever watches: EVENT records and the phases of their mbarriers, and how many; how many records of the
        # access log they speak of, after how many it comes back, and for how many there was no room.
        ("events", "u8"),
        ("phases", "u8"),
        ("happened", "u4"),
        ("logged", "u4"),
        ("log_room", "u4"),
        ("lost", "u4"),
        # How the last turn ended:
        ("reason", "u4"),
        ("slot", "u4"),
        ("code", "i4"),  # that compiled code gave
        ("before", "u8"),  # LAUNCH.writes at its beginning
    ],
    align=True,
)
# What has happened in a turn. kind: RAN, compiled code has come back, after ``logged`` accesses; else that the lanes of
# ``mask`` have executed an instruction. On an mbarrier: ARRIVED, or by that COMPLETED its phase; SAW the phase before
# complete, at once or, RESUMED, after a wait; WAITED for it. On a named barrier, whose generations count as phases:
# CAME to it, WENT on behind it after a wait, or both at once: MET. ISSUED: its part of a product, of which phase says
# how many it had issued before. EXECUTED: there is no more to say.
RAN, RESUMED, WAITED, ARRIVED, COMPLETED, SAW, EXECUTED, CAME, WENT, MET, ISSUED = range(1, 12)
EVENT = np.dtype(
    [("kind", "u4"), ("slot", "u4"), ("site", "u4"), ("mask", "u4"), ("barrier", "u8"), ("logged", "u8")], align=True
)
MOST_EVENTS = 3  # of a turn

NOT_KNOWN, INERT = 0, 1
# Reasons. UNFINISHED: the machine has to go on where compiled code came back. APART: the lanes of WARP.mask have been
# alone for long, so others are to run. CHANGED: somebody may be ready of whom the machine alone knows.
NEXT, UNFINISHED, APART, CHANGED = range(4)
ALONE = 64  # host instructions of some lanes while others of the warp could run

# A host instruction that host code can execute. kind: 0 none. address (of a named barrier its number), operand: byte
# offsets in the register file, -1 where ``plus`` and ``constant`` are the values themselves; result: of a predicate or
# a state, -1 if nobody reads it. Of a product the descriptors of A and B, and scale-d instead of a result; A in
# registers has none.
ARRIVE, EXPECT, TRY_WAIT, TEST_WAIT, FENCE, SYNC, COME, GROUP_FENCE, GROUP_COMMIT, GROUP_WAIT, PART = range(1, 12)
SITE = np.dtype(
    [
        ("kind", "u4"),
        ("number", "u4"),  # the site's
        ("next", "i4"),  # block
        ("address", "i4"),
        ("wide", "u4"),  # whether the address has 64 bits
        ("local", "u4"),  # whether it must be the CTA's own
        ("aligned", "u4"),  # whether all lanes of the warp must be there
        ("operand", "i4"),
        ("constant", "u4"),
        ("result", "i4"),
        ("executed", "u4"),
        ("plus", "i8"),
    ],
    align=True,
)

# The fields of an mbarrier's 64-bit word, as read on an H200 after mbarrier.inval; its counts are negative: they count
# up to zero.
COUNT_LIMIT = (1 << 20) - 1  # of expected and pending arrivals, and of the tx-count in both directions
COUNT_FIELD = COUNT_LIMIT
EXPECTED_SHIFT = 1
TX_SHIFT, TX_FIELD = 21, (1 << 21) - 1
PENDING_SHIFT = 43
PARITY_SHIFT = 63
# A state token (what an arrive returns) has parity and pending count where the word has them, and below them the
# whole number of the phase: a token of a phase long past is told from a good one.
TOKEN_PHASE = (1 << PENDING_SHIFT) - 1

# What warps bring to an mbarrier in a phase, and what is known of a warp: where it arrived last (a site + 1; 0: it has
# not, -1: the machine knows), and the last phase that some sets of its lanes (0: none) have seen complete.
BROUGHT = np.dtype(
    [("phase", "i8"), ("warp", "u4"), ("site", "u4"), ("arrivals", "u4"), ("expected", "u4")], align=True
)
LANE_SETS = 4
KNOWN = np.dtype([("arrived", "i4"), ("masks", "u4", LANE_SETS), ("phases", "i8", LANE_SETS)], align=True)
MOST_BROUGHT = 48
# See ``mbarrier.Barrier``.
BARRIER = np.dtype(
    [
        ("cell", "u8"),  # host address of its 8 bytes
        ("word", "u8"),
        ("phase", "i8"),
        ("seen", "i8"),
        ("latest", "i8"),
        ("done_at", "i8"),
        ("pending", "i4"),
        ("expected", "i4"),
        ("tx", "i4"),
        ("brought", "u4"),  # how many records of BROUGHT there are
        ("brought_before", "u4"),  # of the phase before
        ("known", "u8"),  # host address of KNOWN of each warp of the cluster
        ("records", BROUGHT, MOST_BROUGHT),
    ],
    align=True,
)

# A named barrier of a CTA (``named_barrier.NamedBarrier``). first: the site, plus 1, at which the generation under way
# began (0: it has not, -1: the machine knows). who: warps that have come, lanes: theirs. touched: by warp the site,
# plus 1, at which it has come last (0: never, -1: the machine knows). party: sets of warps that have met.
MOST_PARTIES = 8
NAMED = np.dtype(
    [
        ("generation", "i8"),
        ("latest", "i8"),
        ("done_at", "i8"),
        ("arrived", "u4"),
        ("count", "u4"),
        ("first", "i4"),
        ("who", "u4"),
        ("voted", "u4"),
        ("parties", "u4"),
        ("party", "u4", MOST_PARTIES),
        ("lanes", "u4", CTA_WARPS),
        ("touched", "i4", CTA_WARPS),
    ],
    align=True,
)

# What a warpgroup has issued (``warpgroup.Warpgroup``): how many products have been carried out, how many not yet; by
# warp how many it has issued, and of its wgmma-groups those that may be pending, rings of ``ring`` + 1 COMMITTED each.
# A product lies where its number, less 1, says modulo MOST_PRODUCTS; open: other warps may issue their parts in host
# code; joined: which of the four have.
MOST_PRODUCTS = 16
PRODUCT = np.dtype(
    [
        ("a", "u8"),
        ("b", "u8"),
        ("number", "u4"),
        ("site", "u4"),
        ("open", "u4"),
        ("accumulate", "u4"),
        ("joined", "u4"),
    ],
    align=True,
)
COMMITTED = np.dtype([("number", "u4"), ("time", "i8")], align=True)
WARPGROUP = np.dtype(
    [
        ("carried_out", "u4"),
        ("pending", "u4"),
        ("issued", "u4", 4),
        ("fenced", "u4", 4),
        ("head", "u4", 4),
        ("count", "u4", 4),
        ("ring", "u4"),
        ("latest", "i8", 4),
        ("groups", "u8"),
        ("products", PRODUCT, MOST_PRODUCTS),
    ],
    align=True,
)

# Addresses as PTX code sees them.
GLOBAL_BASE = 0x7000_0000_0000  # global memory, module variables, constants, kernel parameters: regions from here
GRANULE_SHIFT = 12
PARAMETERS = GLOBAL_BASE + (1 << GRANULE_SHIFT)  # the kernel's parameters (read-only): at most 32764 bytes
VARIABLES = GLOBAL_BASE + (16 << GRANULE_SHIFT)  # module variables (``symbols``), then the launch's arrays
SHARED_WINDOW = 0x7E00_0000_0000  # generic address of shared address 0
LOCAL_WINDOW = 0x7D00_0000_0000  # generic address of local address 0
# A shared address is (CTA rank in the cluster) << RANK_SHIFT | offset, for .shared::cta and .shared::cluster alike, as
# the card has it. The first KiB of a CTA is the system's, as on the card since sm_90.
RANK_SHIFT = 24
SHARED_START = 0x400


def offset(record: np.dtype, name: str) -> int:
    """The byte offset of a field of one of the records above."""
    fields = record.fields
    assert fields is not None
    return int(fields[name][1])


def cells(bytes: npt.NDArray[np.uint8], format: Literal["i", "I", "q", "Q"]) -> memoryview:
    """Bytes as numbers of 32 bits (``I``, with a sign ``i``) or 64 (``Q``, ``q``): single ones are read and written
    sooner than NumPy's."""
    return memoryview(bytes).cast(format)  # type: ignore[arg-type]  # NumPy's types do not say that it is a buffer
