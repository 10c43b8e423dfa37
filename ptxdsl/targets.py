"""Targets, the features that each has, and the PTX ISA versions that they need. Facts only: one table for each.

A feature is a *set* of targets and not a threshold: ``wgmma`` exists on sm_90a alone, ``tcgen05`` on the ``a`` and
``f`` targets of three architectures. Sources: PTX ISA 9.0, "Release Notes" (the version that a target or an instruction
came with) and the "Target ISA Notes" of each instruction; a test asks ptxas about every cell.
"""

from __future__ import annotations

from collections.abc import Iterable

from ptxdsl.diagnostics import error, nearest
from ptxdsl.record import dataclass
from ptxdsl.source import Span

PtxVersion = tuple[int, int]


@dataclass(frozen=True)
class Target:
    """name: as in ``.target`` and as LLVM's cpu. capability: 10 * major + minor. ptx: the first PTX ISA that knows it.

    suffix: "" (portable to later architectures), "f" (to the same family) or "a" (this architecture only).
    """

    name: str
    ptx: PtxVersion

    @property
    def suffix(self) -> str:
        return self.name[-1] if self.name[-1] in "af" else ""

    @property
    def capability(self) -> int:
        return int(self.name.removeprefix("sm_").rstrip("af"))


@dataclass(frozen=True)
class Feature:
    """targets: the names of those that have it. ptx: the first PTX ISA with the forms that we write.

    what: its name in messages, and whether that is a plural.
    """

    targets: frozenset[str]
    ptx: PtxVersion
    what: str
    plural: bool = True


TARGETS: dict[str, Target] = {
    name: Target(name, ptx)
    for name, ptx in {
        "sm_80": (7, 0),
        "sm_86": (7, 1),
        "sm_89": (7, 8),
        "sm_90": (7, 8),
        "sm_90a": (8, 0),
        "sm_100": (8, 6),
        "sm_100a": (8, 6),
        "sm_100f": (8, 8),
        "sm_103a": (8, 8),
        "sm_103f": (8, 8),
        "sm_110a": (9, 0),
        "sm_110f": (9, 0),
        "sm_120a": (8, 7),
        "sm_120f": (8, 8),
        "sm_121a": (8, 8),
    }.items()
}

# Bytes of shared memory that a CTA can have, static and dynamic, by compute capability: the last that is not greater
# counts (CUDA Programming Guide, "Technical Specifications per Compute Capability").
_SHARED = {0: 48 << 10, 70: 96 << 10, 75: 64 << 10, 80: 163 << 10, 86: 99 << 10, 87: 163 << 10, 89: 99 << 10}
_SHARED |= {90: 227 << 10, 120: 99 << 10}


def shared_bytes(capability: int) -> int:
    """Bytes of shared memory that a CTA can have; capability: 10 * major + minor."""
    return _SHARED[max(known for known in _SHARED if known <= capability)]


# The first driver that takes each PTX ISA version (Linux branch numbers; CUDA Toolkit release notes, table 3). LLVM 22
# writes no later version, and ignores a request for one silently.
DRIVERS: dict[PtxVersion, int] = {
    (7, 0): 450,
    (7, 1): 455,
    (7, 2): 460,
    (7, 3): 465,
    (7, 4): 470,
    (7, 5): 495,
    (7, 6): 510,
    (7, 7): 515,
    (7, 8): 520,
    (8, 0): 525,
    (8, 1): 530,
    (8, 2): 535,
    (8, 3): 545,
    (8, 4): 550,
    (8, 5): 555,
    (8, 6): 565,
    (8, 7): 570,
    (8, 8): 575,
    (9, 0): 580,
}


def _at_least(capability: int) -> frozenset[str]:
    return frozenset(t.name for t in TARGETS.values() if t.capability >= capability)


def _exactly(*names: str) -> frozenset[str]:
    return frozenset(names)


_ALL = _at_least(80)
_SM90 = _at_least(90)
_TCGEN05 = _exactly("sm_100a", "sm_100f", "sm_103a", "sm_103f", "sm_110a", "sm_110f")
_SPECIFIC = frozenset(name for name in _SM90 if name[-1] in "af")

FEATURES: dict[str, Feature] = {
    "cp.async": Feature(_ALL, (7, 0), "asynchronous copies of 4, 8 or 16 bytes a thread (cp.async)"),
    "mbarrier": Feature(_ALL, (7, 0), "mbarriers"),
    "mbarrier.arrive": Feature(_ALL, (7, 8), "arriving at an mbarrier (mbarrier.arrive.shared::cta)", plural=False),
    "mbarrier.parity": Feature(_ALL, (7, 1), "testing an mbarrier by parity (mbarrier.test_wait.parity)", plural=False),
    "mbarrier.try_wait": Feature(_SM90, (7, 8), "waiting on an mbarrier (mbarrier.try_wait)", plural=False),
    "mbarrier.expect_tx": Feature(_SM90, (8, 0), "mbarrier transaction counts (expect_tx)"),
    "mbarrier.cluster": Feature(_SM90, (8, 0), "mbarriers of other CTAs in the cluster"),
    "cluster": Feature(_SM90, (8, 0), "thread block clusters"),
    "cache.hint": Feature(_ALL, (7, 4), "eviction priorities and cache policies"),
    "fence.proxy.async": Feature(_SM90, (8, 0), "fences between the generic and the async proxy"),
    "elect": Feature(_SM90, (8, 0), "elect.sync", plural=False),
    "tma": Feature(_SM90, (8, 0), "bulk copies and tensor maps (cp.async.bulk)"),
    "tma.shared_cta": Feature(_SM90, (8, 6), "bulk copies whose destination is .shared::cta"),
    "tma.multicast": Feature(_SM90, (8, 0), "bulk copies into several CTAs (.multicast::cluster)"),
    "tma.cta_group": Feature(_TCGEN05, (8, 6), "tensor copies that signal a CTA pair (.cta_group)"),
    "tma.gather4": Feature(_TCGEN05, (8, 6), "tensor copies of four rows (tile::gather4, ::scatter4)"),
    "tensormap.replace": Feature(_SPECIFIC, (8, 3), "changing tensor maps (tensormap.replace)", plural=False),
    "tensormap.fence": Feature(_SM90, (8, 3), "fences between tensor maps and memory (fence.proxy.tensormap)"),
    "setmaxnreg": Feature(_SPECIFIC, (8, 0), "moving registers between warps (setmaxnreg)", plural=False),
    "wgmma": Feature(_exactly("sm_90a"), (8, 0), "warpgroup matrix multiply (wgmma)", plural=False),
    "wgmma.mixed": Feature(_exactly("sm_90a"), (8, 4), "products of signed by unsigned bytes (wgmma)"),
    "wgmma.sparse": Feature(_exactly("sm_90a"), (8, 4), "products of sparse matrices (wgmma.mma_async.sp)"),
    "tcgen05": Feature(_TCGEN05, (8, 6), "fifth-generation tensor cores (tcgen05)"),
    "tcgen05.scaled": Feature(_TCGEN05, (8, 8), "products with scale factors (tcgen05.mma…block_scale)"),
    "tcgen05.k96": Feature(_exactly("sm_103a"), (8, 8), "products with a K of 96 (tcgen05.mma…block_scale)"),
    "tcgen05.bytes": Feature(_exactly("sm_100a", "sm_110a"), (8, 6), "products of bytes (tcgen05.mma.kind::i8)"),
    "tcgen05.divided": Feature(
        _exactly("sm_100a", "sm_100f", "sm_103a", "sm_103f"), (8, 6), "products that divide D (tcgen05.mma)"
    ),
    "tcgen05.packed": Feature(
        _exactly("sm_100a", "sm_103a", "sm_110a"),
        (8, 8),
        "products of a sparse A of two e2m1 in a byte (tcgen05.mma.sp)",
    ),
    "tcgen05.ld.red": Feature(
        _exactly("sm_103a", "sm_103f", "sm_110a", "sm_110f"),
        (8, 8),
        "loads from tensor memory that find the least or greatest (tcgen05.ld.red)",
    ),
    "tcgen05.shift": Feature(
        _exactly("sm_100a", "sm_103a", "sm_110a"), (8, 6), "shifts of tensor memory (tcgen05.shift)"
    ),
    "mma.m16n8k16": Feature(_ALL, (7, 0), "warp matrix multiply (mma.sync.m16n8k16)", plural=False),
    "mma.float8": Feature(_at_least(89), (8, 4), "warp matrix multiply of 8-bit floats (mma.sync)", plural=False),
    "ldmatrix": Feature(_ALL, (7, 0), "ldmatrix", plural=False),
    "ldmatrix.b8": Feature(
        frozenset(name for name in _SPECIFIC if not name.startswith("sm_90")),
        (8, 6),
        "transposed matrices of bytes (ldmatrix.m16n16)",
    ),
    "stmatrix": Feature(_SM90, (7, 8), "stmatrix", plural=False),
    "griddepcontrol": Feature(_SM90, (7, 8), "programmatic dependent launch (griddepcontrol)", plural=False),
    "redux": Feature(_ALL, (7, 0), "integer warp reductions (redux.sync)"),
    "redux.f32": Feature(
        _exactly("sm_100a", "sm_100f", "sm_103a", "sm_103f"), (8, 6), "float warp reductions (redux.sync.f32)"
    ),
    "multimem": Feature(_SM90, (8, 1), "multicast memory (multimem)", plural=False),
    "st.async": Feature(_SM90, (8, 1), "asynchronous stores to the cluster (st.async)"),
    "st.bulk": Feature(_at_least(100), (8, 6), "zeroing shared memory in bulk (st.bulk)", plural=False),
    "bf16": Feature(_ALL, (7, 0), "bfloat16 conversions and fused multiply-add"),
    "bf16.add": Feature(_SM90, (7, 8), "bfloat16 addition and multiplication"),
    "fp8": Feature(_at_least(89), (8, 1), "8-bit float conversions"),
    "fp4": Feature(_SPECIFIC - {"sm_90a"}, (8, 6), "4-bit and 6-bit float conversions"),
    "tanh": Feature(_ALL, (7, 0), "tanh.approx", plural=False),
    "atom.v": Feature(_SM90, (8, 1), "vector atomics on global memory"),
    "atom.b128": Feature(_SM90, (8, 3), "128-bit atomics"),
    "f32x2": Feature(_at_least(100), (8, 6), "packed pairs of float32 (add.f32x2, fma.f32x2)"),
    "ld.v8": Feature(_at_least(100), (8, 8), "256-bit global loads and stores"),
    "clusterlaunchcontrol": Feature(_at_least(100), (8, 6), "clusterlaunchcontrol", plural=False),
    "clusterlaunchcontrol.multicast": Feature(
        frozenset(name for name in _at_least(100) if name[-1] in "af"),
        (8, 6),
        "answers of clusterlaunchcontrol to a whole cluster",
    ),
    "max3": Feature(_at_least(100), (8, 8), "three-input float minimum and maximum"),
}  # fmt: skip


def target(name: str) -> Target:
    """The target of a name. Raises E0702 with the nearest name, or the list."""
    if name in TARGETS:
        return TARGETS[name]
    family = [known for known in TARGETS if known.rstrip("af") == name.rstrip("abcdefghijklmnopqrstuvwxyz")]
    near = family or [near for near in (nearest(name, TARGETS),) if near]
    known = ", ".join(TARGETS)
    help = f"did you mean {' or '.join(near)}?" if near else f"the targets are {known}"
    import re  # for mistakes only

    if re.fullmatch(r"sm_[2-7]\d[a-z]?", name):  # a GPU that exists
        help = f"the oldest target is {min(TARGETS.values(), key=lambda known: known.capability).name}"
    raise error("E0702", f"unknown target '{name}'", None, help=help)


def target_of_ptx(text: str) -> str | None:
    """The target that a PTX text names in its ``.target``; None where it names none of ours."""
    import re  # for PTX only

    found = re.search(r"^[ \t]*\.target[ \t]+(sm_\w+)", text, re.MULTILINE)  # \s would try every blank line anew
    return found[1] if found and found[1] in TARGETS else None


def require(feature: str, target: Target, span: Span | None, what: str) -> None:
    """Raises E0701 where the target lacks the feature; ``what`` is the operation as the user wrote it."""
    row = FEATURES[feature]
    if target.name in row.targets:
        return
    if row.targets == _at_least(min(TARGETS[name].capability for name in row.targets)):
        lowest = min((TARGETS[name] for name in row.targets), key=lambda t: (t.capability, len(t.name)))
        have = f"{lowest.name} and later"
    else:
        have = ", ".join(name for name in TARGETS if name in row.targets)
    first = next(name for name in TARGETS if name in row.targets)
    raise error(
        "E0701",
        f"{what} does not exist on {target.name}: {row.what} {'need' if row.plural else 'needs'} {have}",
        span,
        help=f"compile for one of them: --arch {first}",
    )


def version_text(version: PtxVersion) -> str:
    return f"{version[0]}.{version[1]}"


def ptx_version(
    target: Target,
    requested: PtxVersion | None = None,
    features: Iterable[str] = (),
) -> PtxVersion:
    """The ``.version`` to write: as requested, or the lowest that the target and the features need.

    Raises E0703 for a version that does not exist or that LLVM cannot write, E0704 where it is below what is needed.
    """
    features = sorted(set(features))
    needed = max([target.ptx, *(FEATURES[name].ptx for name in features)])
    reasons = [target.name] if target.ptx == needed else []
    reasons += [FEATURES[name].what for name in features if FEATURES[name].ptx == needed]
    version = needed if requested is None else requested
    if version not in DRIVERS:
        raise error(
            "E0703",
            f"PTX ISA {version_text(version)} cannot be written",
            None,
            help="the versions are " + ", ".join(version_text(v) for v in DRIVERS),
        )
    if version < needed:
        raise error(
            "E0704",
            f"PTX ISA {version_text(version)} is too old: {reasons[0]} came with {version_text(needed)}",
            None,
            help=f"ask for --ptx-version {version_text(needed)} or leave the option out",
        )
    return version
