"""Matrix products on Hopper's tensor cores, for ``kernels.gemm``: how ``samples/08_gemm_hopper.pdsl`` is launched."""

from __future__ import annotations

from functools import cache
from typing import Any

from ptxdsl.gemm_configs import CONFIGS, ROW, Config, Kind, fault
from ptxdsl.gemm_configs import choose as choose_config
from ptxdsl.gemm_launch import Launch, sample_kernel
from ptxdsl.gemm_operands import Matrices, wrong
from ptxdsl.shown import shown

_STORED_ROWS = 64  # of a box of C


def launch_of(
    left: Matrices, right: Matrices, result: Matrices, epilogue: str, fields: tuple[Any, ...], b_of: str,
    numbers: tuple[Any, ...], kind: Kind, config: Config | None, count: int,
) -> Launch:  # fmt: skip
    """The launch of left · right on so many multiprocessors. b_of: the type that says which matrix of the right operand
    belongs to which rows, with its fields, ``numbers``. Raises LaunchError E0922 for what is no configuration."""
    m, k, n = left.rows, left.cols, right.cols
    depth = ROW // left.itemsize
    if config is None:
        config = _chosen(m, n, k, left.batch, count, kind)
    elif (why := fault(config, kind, count)) is not None:
        raise wrong(f"{shown(config)} is not for these matrices: {why}")
    a_rows = config.rows
    if not left.transposed:  # rows outside of A take as long to load as others
        least = 8 * config.across
        a_rows = min(least << ((m - 1) // least).bit_length(), a_rows)
    constants = {
        "T": f"DType.{left.dtype}", "T_B": f"DType.{right.dtype}", "C": f"DType.{result.dtype}", "E": epilogue,
        "B": b_of, "GROUPS": config.groups, "BN": config.columns, "STAGES": config.stages,
        "C_STAGES": config.c_stages, "CLUSTER": config.cluster, "ORDER": config.order, "SPLIT": config.split,
        "SIDEWAYS": config.sideways, "A_ROWS": a_rows, "A_MN": left.transposed, "B_MN": not right.transposed,
    }  # fmt: skip
    kernel = sample_kernel("08_gemm_hopper.pdsl", "sm_90a").specialize(**constants)
    threads, smem = 128 * (config.groups + 1), config.shared_bytes(result.itemsize)
    at_once = count // config.blocks
    if config.blocks > 2 and not left.host:  # clusters lie in parts of the card of uneven sizes
        at_once = kernel.occupancy(threads, smem=smem).clusters or at_once
    grid = min(config.clusters(m, n) * left.batch, at_once) * config.blocks
    arguments = (
        left.map(depth if left.transposed else a_rows // config.across),
        right.map(config.columns // config.down if right.transposed else depth),
        result.map(_STORED_ROWS, config.box(result.itemsize)),
        m, n, k, left.batch, fields, numbers,
    )  # fmt: skip
    return Launch(kernel, grid, threads, smem, arguments, pdl=True)


@cache
def _chosen(m: int, n: int, k: int, batches: int, count: int, kind: Kind) -> Config:
    """The configuration, of those that are for the matrices, on so many multiprocessors."""
    usable = [config for config in CONFIGS if fault(config, kind, count) is None]
    return choose_config(m, n, k * kind.itemsize, batches, count, usable)
