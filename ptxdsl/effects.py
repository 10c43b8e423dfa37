"""What an operation does to the world, in the terms of the PTX memory model.

Rows of ``intrinsics/`` refer to these; the verifier, the ring pass and the checker read them.
"""

from __future__ import annotations

from ptxdsl.enumeration import Enum
from ptxdsl.record import dataclass


class Kind(Enum):
    PURE = "pure"  # no effect: may be moved, duplicated, removed
    READ = "read"  # reads memory or a changing register (clock)
    WRITE = "write"
    ATOMIC = "atomic"
    ASYNC_COPY = "async-copy"  # starts work that completes later
    ASYNC_MMA = "async-mma"
    COMMIT = "commit"  # closes a group of asynchronous work, or tells a barrier when it is done
    WAIT_GROUP = "wait-group"
    BAR_INIT = "bar-init"
    BAR_INVAL = "bar-inval"
    BAR_ARRIVE = "bar-arrive"
    BAR_EXPECT = "bar-expect"  # expect-tx without or with an arrival (count)
    BAR_WAIT = "bar-wait"
    BAR_TEST = "bar-test"
    CTA_SYNC = "cta-sync"
    NAMED_SYNC = "named-sync"
    NAMED_ARRIVE = "named-arrive"
    WARP_SYNC = "warp-sync"  # shuffles, votes, elect, syncwarp
    CLUSTER_ARRIVE = "cluster-arrive"
    CLUSTER_WAIT = "cluster-wait"
    FENCE = "fence"
    REGISTERS = "registers"  # setmaxnreg
    GRID = "grid"  # griddepcontrol
    TRAP = "trap"


@dataclass(frozen=True)
class Effect:
    """kind: what it does. space: the memory it touches. proxy: generic or async. scope: cta, cluster, gpu, sys.

    barrier, count, bytes: which operand (by position) is the mbarrier address, the arrival or init count, the
    transaction byte count; a count of None on an arrive means one per thread. (On a BAR_EXPECT count is no operand
    but the arrivals that come with it: 1 or None.) completes_on: how asynchronous work says that it is done
    (``mbarrier``, ``bulk-group``, ``cp-async-group``, ``wgmma-group``). convergent: may not be made
    control-dependent on more or fewer threads than the source says.
    """

    kind: Kind = Kind.PURE
    space: str | None = None
    proxy: str = "generic"
    scope: str | None = None
    barrier: int | None = None
    count: int | None = None
    bytes: int | None = None
    completes_on: str | None = None
    convergent: bool = False


PURE = Effect()

ACCESSES = frozenset({Kind.READ, Kind.WRITE, Kind.ATOMIC})
SYNCHRONISES = frozenset(Kind.__members__.values()) - ACCESSES - {Kind.PURE, Kind.REGISTERS, Kind.TRAP}
