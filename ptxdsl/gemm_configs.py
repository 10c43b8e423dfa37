"""How products of matrices are cut up for Hopper: configurations of ``samples/08_gemm_hopper.pdsl``, and the choice."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

from ptxdsl.record import dataclass

ROW = 128  # bytes of a row of a swizzle
GROUP_ROWS = 128  # of A that share a matrix of B
MOST_ORDER = 4096  # rows of tiles that are worked on together
SHARED = 227 * 1024 - 1024  # bytes of dynamic shared memory beside the barriers
_MOST_BLOCKS = 8  # of a cluster that every card runs


@dataclass(frozen=True)
class Config:
    """How a product is cut up. groups: warpgroups that compute, 1 to 3, each 64 rows of a tile. columns: of a tile, 16,
    32, … 256, with three groups up to 192. stages: of the ring of loads, 2 or more; c_stages: of each warpgroup's ring
    of stores. cluster: blocks below one another that share loads of B, or, sideways, beside one another that share A.
    order: rows of tiles (of a cluster) that are worked on together. split: blocks of a cluster that share a tile's K;
    one of split and cluster is 1, and columns a multiple of 16 * split."""

    groups: int = 2
    columns: int = 256
    stages: int = 3
    c_stages: int = 4
    cluster: int = 1
    order: int = 16
    split: int = 1
    sideways: bool = False

    @property
    def rows(self) -> int:
        """Of a block's tile."""
        return 64 * self.groups

    @property
    def across(self) -> int:
        """Tiles of a cluster side by side."""
        return self.cluster if self.sideways else 1

    @property
    def down(self) -> int:
        """Tiles of a cluster below one another."""
        return 1 if self.sideways else self.cluster

    @property
    def blocks(self) -> int:
        """Of a cluster."""
        return self.cluster * self.split

    def box(self, itemsize: int) -> int:
        """Columns of C that are stored together. Where they do not divide a block's, the last two boxes overlap."""
        size = self.columns // self.split * itemsize
        return next(row for row in (128, 64, 32) if size >= row) // itemsize

    def shared_bytes(self, itemsize: int) -> int:
        """Bytes of dynamic shared memory for a result of such elements: both rings, and sums of other blocks."""
        stores = self.c_stages * self.rows * self.box(itemsize) * itemsize
        sums = (self.split - 1) * self.rows * (self.columns // self.split) * 4
        return self.stages * (self.rows + self.columns) * ROW + stores + sums

    def clusters(self, m: int, n: int) -> int:
        """Clusters' shares of one matrix."""
        return -(-m // (self.rows * self.down)) * -(-n // (self.columns * self.across))


@dataclass(frozen=True)
class Kind:
    """What a configuration must fit. itemsize, result_size: bytes of an element of the operands and of the result;
    a_mn, b_mn: whether A and B are MN-major; grouped: groups of rows have a B each; in_place: the result's old elements
    may be read, and boxes of C that overlap are stored twice."""

    itemsize: int
    result_size: int
    a_mn: bool
    b_mn: bool
    grouped: bool
    in_place: bool


def fault(config: Config, kind: Kind, multiprocessors: int) -> str | None:
    """Why a configuration is none, or none for such matrices; None where nothing is wrong with it."""
    c = config
    numbers = (c.groups, c.columns, c.stages, c.c_stages, c.cluster, c.order, c.split)
    if any(type(number) is not int for number in numbers) or type(c.sideways) is not bool:
        return "its numbers are ints, sideways is a bool"
    if not 1 <= c.groups <= 3:
        return "groups is 1, 2 or 3"
    if min(c.cluster, c.split) != 1 or c.blocks > _MOST_BLOCKS:
        return f"one of cluster and split is 1, the other 1 to {_MOST_BLOCKS}"
    if c.blocks > multiprocessors:
        return f"a cluster of {c.blocks} blocks has more than the {multiprocessors} multiprocessors"
    most = 192 if c.groups == 3 else 256
    if c.columns % (16 * c.split) or not 0 < c.columns <= most:
        return f"columns is a multiple of {16 * c.split} up to {most}"
    if c.stages < 2 or c.c_stages < 1 or not 1 <= c.order <= MOST_ORDER:
        return f"stages is 2 or more, c_stages 1 or more, order 1 to {MOST_ORDER}"
    if c.shared_bytes(kind.result_size) > SHARED:
        return f"it has {c.shared_bytes(kind.result_size)} bytes of shared memory, a block {SHARED}"
    # what a block of a cluster loads are whole boxes of 128 bytes, or eight rows of them
    depth = ROW // kind.itemsize
    for what, size, parts, step in (
        ("rows of a tile", c.rows, c.across, depth if kind.a_mn else 8),
        ("columns", c.columns, c.down, depth if kind.b_mn else 8),
    ):
        if size % (parts * step):
            return f"{size} {what} are no multiple of {parts * step}"
    if kind.grouped and GROUP_ROWS % (c.rows * c.down):
        return f"{c.rows * c.down} rows of tiles that share B do not divide a group's {GROUP_ROWS}"
    if kind.in_place and c.columns // c.split % c.box(kind.result_size):
        return "boxes of C overlap, and a residual would be added twice where it is the result"
    return None


_PAIR: dict[str, Any] = {"cluster": 2, "order": 4}
CONFIGS = (
    Config(**_PAIR),
    Config(stages=4, c_stages=2, **_PAIR),
    Config(),
    Config(stages=4, c_stages=2),
    *(
        Config(columns=columns, stages=stages, c_stages=c_stages, **cluster)
        for columns, stages, c_stages in (
            (240, 4, 2), (224, 4, 3), (208, 4, 3), (192, 4, 3), (176, 5, 2), (160, 5, 2), (144, 5, 2), (128, 6, 2),
        )
        for cluster in (_PAIR, {})
    ),
    Config(stages=4, c_stages=2, sideways=True, **_PAIR),
    Config(columns=176, stages=4, c_stages=4, sideways=True, **_PAIR),
    Config(groups=3, columns=160, stages=4, c_stages=2),
    Config(groups=1, columns=128, stages=6, c_stages=2),
    Config(groups=1, columns=128, stages=6, c_stages=2, **_PAIR),
    Config(groups=1, columns=112, stages=7, c_stages=2),
    Config(groups=1, columns=96, stages=8, c_stages=2),
    Config(groups=1, columns=64, stages=12, c_stages=1),
    Config(groups=1, columns=64, stages=12, c_stages=1, **_PAIR),
    Config(groups=1, columns=128, stages=7, c_stages=2, split=2),
    Config(groups=1, columns=64, stages=12, c_stages=1, split=2),
    Config(columns=64, stages=8, c_stages=1, split=2),
    Config(columns=128, stages=4, c_stages=1, split=4),
    Config(groups=1, columns=64, stages=10, c_stages=1, split=4),
    Config(groups=1, columns=128, stages=6, c_stages=1, split=8),
)  # fmt: skip


def choose(
    m: int, n: int, row_bytes: int, batches: int, multiprocessors: int, among: Sequence[Config] = CONFIGS
) -> Config:
    """The configuration that takes the least time by ``_cycles``, for matrices whose K has so many bytes."""
    return min(among, key=lambda config: _cycles(config, m, n, row_bytes, batches, multiprocessors))


# Bytes a cycle on an H200, as they were measured (docs/gemm.md)
_INTO_BLOCK = 77  # from L2
_OUT_OF_L2 = 7000  # where rows are far from one another
_INTO_SUM = 14  # from the other blocks of a cluster
_OUT_OF_MEMORY = 2500
_OUT_OF_MEMORY_INTO_BLOCK = 34
_FAR = 4096  # bytes
_L2 = 40e6  # bytes that stay there from one product to the next
_LINE = 1.95  # cycles in which a block asks for a line of L2
_START = 2500  # cycles until the first products
_LONG = 60_000  # cycles after which the card is at its limit of power, of which narrow tiles cost more


def _cycles(config: Config, m: int, n: int, row_bytes: int, batches: int, multiprocessors: int) -> float:
    """Cycles that a product takes.

    In each step of 128 bytes of K a block multiplies at the tensor cores' rate, or as fast as it gets its operands. A
    tile has its epilogue, and the last one is written when there is nothing more to compute.
    """
    clusters = config.clusters(m, n) * batches
    fit = multiprocessors // config.blocks
    if config.blocks > 2:  # the parts of the card that clusters lie in have odd numbers of multiprocessors
        fit = fit * 10 // 11
    at_once = max(1, min(clusters, fit))
    area = config.groups * config.columns  # of a tile, 64 elements each
    tensor = 2 * area * (1.2 if config.groups == 1 else 1.0)  # one warpgroup leaves gaps between its products
    shift = gcd(row_bytes, ROW)  # half a line more or less costs nothing
    lines = 2 - shift / ROW if shift < ROW // 2 else 1.0  # of L2 that a row of an operand's box lies in, on average
    if lines > 1:
        asked = _LINE * lines * (config.rows / config.across + config.columns / config.down)
        step = float((tensor**5 + asked**5) ** 0.2)  # they get into each other's way
    else:
        step = max(tensor, ROW * (config.rows + config.columns) / _INTO_BLOCK)
        if row_bytes > _FAR:
            step = max(step, ROW * (config.rows + config.columns) * at_once * config.blocks / _OUT_OF_L2)
    waves = -(-clusters // at_once)
    if waves == 1 and config.stages < 4:  # operands that few blocks share come from further away
        step *= 1.02
    steps = -(-row_bytes // (ROW * config.split))
    # a ring with room for a tile of C but one box delays the products less, and then has more to write at the end
    epilogue, last = (1.5, 3.5) if (config.c_stages + 1) * 64 >= config.columns else (4.0, 2.0)
    tile = steps * step + 150 + epilogue * area
    if config.split > 1:
        others = (config.split - 1) * config.rows * (config.columns // config.split) * 4
        tile += 500 + others / _INTO_SUM
    total = _START + waves * tile + last * area
    operands = (m + n) * row_bytes * batches
    if operands > _L2:
        memory = operands / min(_OUT_OF_MEMORY, _OUT_OF_MEMORY_INTO_BLOCK * at_once * config.blocks)
        total = max(total, memory) + 0.02 * total * multiprocessors / (at_once * config.blocks)
    if total > _LONG and lines == 1:
        total *= 1 + 0.08 * (512 / max(area, 2 * config.columns) - 1)
    if config.split > 1:
        return total * (1 + 0.01 * (config.split - 1))
    if config.sideways:  # the larger operand is read once less
        total *= 0.96 if lines > 1 else 0.99 if waves == 1 and n <= m else 1.01
    # pairs start later and have less to load: worth it for wide tiles
    return total * (1.02 if (config.cluster == 1) == (config.columns > 128) else 1.0)
