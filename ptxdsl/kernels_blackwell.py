"""Matrix products on Blackwell's tensor cores, for ``kernels.gemm``: how they are cut up, and what is launched.

The kernel is ``samples/10_gemm_blackwell.pdsl``. No card of Blackwell's was at hand: which configuration is taken
follows from counting tiles, and is not measured.
"""

from __future__ import annotations

from typing import Any

from ptxdsl.api.program import device_arch
from ptxdsl.cuda.driver_interface import Device
from ptxdsl.gemm_configs import MOST_ORDER, ROW, SHARED
from ptxdsl.gemm_launch import Launch, sample_kernel
from ptxdsl.gemm_operands import Matrices, wrong
from ptxdsl.record import dataclass
from ptxdsl.shown import shown

_ROWS = 128  # of a block's tile
_THREADS = 256
_STORED_ROWS = 32  # of a box of C, two for each of four warps
_MOST_COLUMNS = 256


@dataclass(frozen=True)
class BlackwellConfig:
    """How a product is cut up. ctas: 2 for pairs of blocks that multiply together, 1 for single ones, each of 128 rows
    of a tile. columns: of a tile, a multiple of 64 up to 256. stages: of the ring of loads; K is taken in steps of so
    many times 128 bytes. order: rows of tiles (of a pair) that are worked on together. clc: whether the launch has a
    block, or a pair, for each tile, and those that run take over the tiles of others (cluster launch control); without
    it there are as many as there is room for, and each has its tiles from the start."""

    ctas: int = 2
    columns: int = 256
    stages: int = 4
    order: int = 16
    clc: bool = False

    def clusters(self, m: int, n: int) -> int:
        """Tiles of one matrix."""
        return -(-m // (_ROWS * self.ctas)) * -(-n // self.columns)

    @property
    def smem(self) -> int:
        """Bytes of dynamic shared memory: the ring of loads, and what is being stored."""
        return self.stages * (_ROWS + self.columns // self.ctas) * ROW + 8 * _STORED_ROWS * ROW


def _fault(config: BlackwellConfig, right: Matrices, result: Matrices) -> str | None:
    """Why a configuration is none, or none for these matrices; None where nothing is wrong with it."""
    *numbers, clc = map(type, (config.ctas, config.columns, config.stages, config.order, config.clc))
    if numbers != [int] * 4:
        return "its numbers are ints"
    if clc is not bool:
        return "clc is True or False"
    if config.ctas not in (1, 2):
        return "ctas is 1 or 2"
    step = 64 if right.transposed else ROW // right.itemsize * config.ctas  # columns of a box of an MN-major B
    step = max(step, ROW // result.itemsize)
    if config.columns % step or not 0 < config.columns <= _MOST_COLUMNS:
        return f"columns are a multiple of {step} up to {_MOST_COLUMNS} for these matrices"
    if config.stages < 1 or not 1 <= config.order <= MOST_ORDER:
        return f"stages is 1 or more, order 1 to {MOST_ORDER}"
    if config.smem > SHARED:
        return f"it has {config.smem} bytes of shared memory, a block {SHARED}"
    return None


# from large tiles to small ones, which many multiprocessors share
_CONFIGS = (BlackwellConfig(), BlackwellConfig(columns=128, stages=6), BlackwellConfig(ctas=1, columns=64, stages=6))


def choose(m: int, n: int, batches: int, multiprocessors: int) -> BlackwellConfig:
    """The largest tiles of which there are enough for all multiprocessors, or the smallest."""
    enough = (c for c in _CONFIGS if c.clusters(m, n) * batches * c.ctas >= multiprocessors)
    return next(enough, _CONFIGS[-1])


def has_tensor_memory(capability: tuple[int, int]) -> bool:
    """Whether a device of this compute capability runs the kernel: those of data centres, and Thor."""
    return capability[0] in (10, 11)


def multiplies_bytes(device: Device) -> bool:
    """Whether its tensor cores multiply 8-bit integers: those of sm_103 do not."""
    from ptxdsl.targets import FEATURES

    return device_arch(device) in FEATURES["tcgen05.bytes"].targets


def launch_of(
    left: Matrices, right: Matrices, result: Matrices, epilogue: str, fields: tuple[Any, ...], config: BlackwellConfig,
    count: int,
) -> Launch:  # fmt: skip
    """The launch of left · right on so many multiprocessors. Raises LaunchError E0922 for what is no configuration."""
    if (why := _fault(config, right, result)) is not None:
        raise wrong(f"{shown(config)} is not for these matrices: {why}")
    constants = {
        "T": f"DType.{left.dtype}", "C": f"DType.{result.dtype}", "E": epilogue, "CTAS": config.ctas,
        "BN": config.columns, "STAGES": config.stages, "ORDER": config.order, "CLC": config.clc,
        "A_MN": left.transposed, "B_MN": not right.transposed,
    }  # fmt: skip
    depth = ROW // left.itemsize
    m, k, n = left.rows, left.cols, right.cols
    clusters = config.clusters(m, n) * left.batch
    if not config.clc:
        clusters = min(clusters, max(count // config.ctas, 1))
    arguments = (
        left.map(depth if left.transposed else _ROWS),
        right.map(config.columns // config.ctas if right.transposed else depth),
        result.map(_STORED_ROWS),
        m, n, k, left.batch, fields,
    )  # fmt: skip
    kernel = sample_kernel("10_gemm_blackwell.pdsl", "sm_100a").specialize(**constants)
    return Launch(kernel, clusters * config.ctas, _THREADS, config.smem, arguments, pdl=False)  # nothing waits in it
