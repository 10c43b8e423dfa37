"""How many bytes a tensor copy moves: the tensor map says it, which the kernel does not see.

It is taken from how the kernel lays its stages out: copies whose addresses differ by constants fill a stage together,
and the stages lie one after another. ``(address of the stage) + stage * 16384`` filled by two copies means 8192 bytes
each. Where that does not tell, the size is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from ptxdsl.protocol.expressions import ARRAY_SHIFT, CONVERSIONS, Expr, const
from ptxdsl.protocol.model import Kernel, Node, Op, Place
from ptxdsl.source import Span

Sizes = dict[int, int]  # bytes by id of a Place


def box_sizes(kernel: Kernel) -> Sizes:
    """The bytes at each place of a tensor copy, as far as the layout tells."""
    groups: dict[tuple[object, ...], list[tuple[int, Place]]] = {}
    strides: dict[tuple[object, ...], int] = {}
    for node in kernel.nodes:
        if not isinstance(node, Op) or "tensor" not in node.name:
            continue
        for place in (*node.writes, *node.reads):
            if place.address is None or place.width is not None:
                continue
            terms: dict[Expr, int] = {}
            constant = affine(place.address, 1, terms)
            varying = tuple(sorted(((id(e), f) for e, f in terms.items() if f), key=lambda t: t[0]))
            stride = max((abs(f) for e, f in terms.items() if _varies(e)), default=0)
            key: tuple[object, ...] = (node.name, constant >> ARRAY_SHIFT, varying)
            groups.setdefault(key, []).append((constant, place))
            strides[key] = stride
    sizes: Sizes = {}
    for key, members in groups.items():
        for together in _stages(sorted(members, key=lambda pair: pair[0]), strides[key]):
            offsets = sorted({constant for constant, _ in together})
            gaps = {b - a for a, b in pairwise(offsets)}
            size = strides[key] // len(offsets)  # without stages nothing tells where the last copy ends
            if size > 0 and gaps <= {size}:
                sizes.update({id(place): size for _, place in together})
    return sizes


def copied(op: Op, sizes: Sizes) -> Expr | None:
    """How many bytes a copy moves; None where that is not known."""
    if op.bytes is not None or not op.writes:
        return op.bytes
    box = op.writes[0].width
    if box is None:
        box = sizes.get(id(op.writes[0]))
    return const(box) if isinstance(box, int) else box


def guesses(kernel: Kernel, sizes: Sizes) -> tuple[str, ...]:
    """What is taken for granted where a size was found so, for a verdict."""
    lines: dict[int, list[int]] = {}
    for node in kernel.nodes if sizes else ():
        if isinstance(node, Op):
            for size in {sizes[id(place)] for place in (*node.writes, *node.reads) if id(place) in sizes}:
                lines.setdefault(size, []).append(node.span.line)
    return tuple(
        f"for boxes of {size} bytes at line{'s' if len(at) > 1 else ''} {', '.join(map(str, sorted(at)))}"
        for size, at in lines.items()
    )


def _stages(members: list[tuple[int, Place]], stride: int) -> list[list[tuple[int, Place]]]:
    """The copies that fill one stage together: those less than a stage apart from the first."""
    stages: list[list[tuple[int, Place]]] = []
    for constant, place in members:
        if stages and (not stride or constant - stages[-1][0][0] < stride):
            stages[-1].append((constant, place))
        else:
            stages.append([(constant, place)])
    return stages


def _varies(expr: Expr) -> bool:
    """Whether it changes as a thread goes on: a stage's number does, the place of a warp's own ring does not."""
    return expr.op == "var" or any(map(_varies, expr.args))


def affine(expr: Expr, factor: int, terms: dict[Expr, int]) -> int:
    """Adds factor * expr to the terms; the constant part is given back. Sums are taken not to wrap."""
    op = expr.op
    if op == "const":
        return int(expr.value) * factor
    if op in ("add", "sub") and expr.bits >= 32:
        first = affine(expr.args[0], factor, terms)
        return first + affine(expr.args[1], factor if op == "add" else -factor, terms)
    if op in CONVERSIONS and expr.args[0].bits >= 32:
        return affine(expr.args[0], factor, terms)
    if op in ("mul", "shl"):
        a, b = expr.args
        if a.op == "const" and op == "mul":
            a, b = b, a
        if b.op == "const":
            return affine(a, factor * (b.value if op == "mul" else 1 << b.value), terms)
    terms[expr] = terms.get(expr, 0) + factor
    return 0


def published_maps(nodes: Iterable[Node]) -> Iterator[Span]:
    """Where a kernel publishes tensor maps that it has changed: who acquires them is not followed."""
    for node in nodes:
        if isinstance(node, Op) and "tensormap" in node.name:
            name = node.name.replace(".", "_")
            if name.startswith("tensormap_cp_fence") or (name.startswith("fence_proxy") and "release" in name):
                yield node.span
