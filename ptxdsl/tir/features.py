"""What operations need of a target: keys of ``targets.FEATURES``."""

from __future__ import annotations

from ptxdsl.intrinsics import ROWS
from ptxdsl.options import Options
from ptxdsl.source import Span
from ptxdsl.targets import require, target
from ptxdsl.tir import Module, Op, walk

PIPELINE_FEATURES = {
    "pipe.wait": "mbarrier.try_wait",
    "pipe.arrive": "mbarrier.arrive",
    "pipe.commit_mma": "tcgen05",
}
_CONVERSIONS = frozenset({"fcast", "itof.s", "itof.u", "ftoi.s", "ftoi.u"})
_NEEDING = _CONVERSIONS | PIPELINE_FEATURES.keys() | {name for name, row in ROWS.items() if row.feature is not None}


def features(module: Module) -> dict[str, tuple[Span, str]]:
    """What the module needs of its target: the feature, where it is first needed, and by what."""
    found: dict[str, tuple[Span, str]] = {}
    for kernel in module.kernels:
        if kernel.signature.cluster:
            found.setdefault("cluster", (kernel.span, "a cluster"))
        for op in walk(kernel.body):
            if op.name in _NEEDING and (feature := _feature_of(op)) is not None:
                found.setdefault(feature, (op.span, f"`{op.attrs.get('method') or op.name}`"))
    return found


def _feature_of(op: Op) -> str | None:
    row = ROWS.get(op.name)
    if row is not None:
        return row.feature
    if op.name in _CONVERSIONS:
        types = {value.ty.name for value in (*op.operands, *op.results)}
        return "fp8" if types & {"f8e4m3", "f8e5m2"} else None
    return PIPELINE_FEATURES.get(op.name)


def check_features(module: Module, options: Options) -> None:
    """Raises E0701 for an operation that the target of ``options`` lacks."""
    chosen = target(options.arch)
    for feature, (span, what) in features(module).items():
        require(feature, chosen, span, what)
