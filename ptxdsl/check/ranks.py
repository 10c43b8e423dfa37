"""Blocks of a cluster: which operations reach others, and what a block knows of its place."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from ptxdsl.check.values import Sum, Symbols, Value, add, scale
from ptxdsl.effects import Kind
from ptxdsl.protocol.expressions import Expr
from ptxdsl.protocol.model import Kernel, Loop, Op
from ptxdsl.source import Span


def is_clusters(op: Op) -> bool:
    if op.kind in (Kind.CLUSTER_ARRIVE, Kind.CLUSTER_WAIT) or op.what.space == "cluster":
        return True
    places = [*op.writes, *op.reads, *([op.barrier] if op.barrier is not None else [])]
    return any(place.address is not None and _maps(place.address) for place in places)


def is_pairs(op: Op) -> bool:
    """Whether one block of a pair does it for both."""
    if op.what.space == "tensor":
        matrices = op.kind in (Kind.ASYNC_MMA, Kind.ASYNC_COPY)
        return matrices and op.count is not None and op.count.op == "const" and op.count.value == 2
    return op.kind is Kind.ASYNC_COPY and op.mask is not None and ("pair" in op.name or "cta_group::2" in op.name)


@lru_cache(4096)
def _maps(expr: Expr) -> bool:
    return expr.op == "mapa" or any(_maps(arg) for arg in expr.args)


@lru_cache(4096)
def names_rank(expr: Expr) -> bool:
    """Whether an address is one in the block of a rank, as ``mapa`` gives it: of rank -1 it looks like one's own."""
    if expr.op in ("add", "sub", "ext.u", "ext.s", "trunc"):
        return any(map(names_rank, expr.args))
    return expr.op == "mapa"


def by_rank(kernel: Kernel) -> Span | None:
    """A loop whose number of turns names the block's place in its cluster."""
    for node in kernel.nodes:
        if isinstance(node, Loop) and node.range is not None and any(map(_places, (node.range.start, node.range.stop))):
            return node.span
    return None


def _places(expr: Expr) -> bool:
    return (expr.op == "cta" and str(expr.value).startswith("cluster_cta")) or any(map(_places, expr.args))


def any_rank(shape: tuple[int, int, int], kernel: Kernel, symbols: Symbols) -> dict[str, Value]:
    """The same of blocks that have nothing to do with others of their cluster: one of them stands for all."""
    if kernel.cluster is None:
        return {}
    known: dict[str, Value] = {"cluster_nctarank": prod(shape)}
    known["cluster_ctarank"] = Sum(0, ((symbols.atom("symbol", "cluster_ctarank", (), 0, prod(shape) - 1), 1),))
    for axis, size in zip("xyz", shape, strict=True):
        known[f"cluster_nctaid_{axis}"] = size
        name = f"cluster_ctaid_{axis}"
        known[name] = 0 if size == 1 else Sum(0, ((symbols.atom("symbol", name, (), 0, size - 1), 1),))
    return known


def ranks(cta: int, shape: tuple[int, int, int], symbols: Symbols) -> dict[str, Value]:
    """What a CTA of a cluster knows of its place."""
    x, y, z = shape
    at = {"x": cta % x, "y": cta // x % y, "z": cta // (x * y)}
    known: dict[str, Value] = {"cluster_ctarank": cta, "cluster_nctarank": x * y * z}
    for axis, size in zip("xyz", shape, strict=True):
        cluster = symbols.symbol(f"clusterid_{axis}", 0)
        known[f"cluster_ctaid_{axis}"] = at[axis]
        known[f"cluster_nctaid_{axis}"] = size
        known[f"clusterid_{axis}"] = cluster
        known[f"ctaid_{axis}"] = add(scale(cluster, size), at[axis])
    return known
