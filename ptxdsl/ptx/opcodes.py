"""The instructions of PTX, one row an opcode, with what each does to the world (``effect``).

Rows are found by the longest dotted prefix of an opcode. Space and scope come from the opcode's modifiers; operand
positions in an Effect count the sources alone (``sources``), so that an instruction has the Effect of its row in
``intrinsics/``.

Source: PTX ISA, "Instruction Set" and "Memory Consistency Model".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from ptxdsl.effects import PURE, Effect, Kind
from ptxdsl.ptx.module import Immediate, Instruction, Label, Operand, Register, Symbol
from ptxdsl.record import dataclass, replace

# What an operand list and an opcode's parts say beyond the row.
Refine = Callable[[Effect, tuple[str, ...], tuple[Operand, ...]], Effect]


@dataclass(frozen=True)
class Row:
    """results: destinations at the front of the operands. refine: what modifiers and operands change in the effect."""

    effect: Effect
    results: int = 1
    refine: Refine | None = None


def row(opcode: str) -> Row | None:
    """The row of a dotted opcode, or None: PTX has no such instruction."""
    while opcode not in ROWS:
        opcode, dot, _ = opcode.rpartition(".")
        if not dot:
            return None
    return ROWS[opcode]


def effect(instruction: Instruction) -> Effect:
    """What one instruction does; one that PTX does not have is taken to write any memory."""
    found, parts = _row_and_parts(instruction.opcode)
    if found is None:
        return UNKNOWN
    if found.refine is None:
        return found.effect
    return found.refine(found.effect, parts, instruction.operands[found.results :])


def sources(instruction: Instruction) -> tuple[Operand, ...]:
    """The operands without the destinations: what an Effect's positions count."""
    found = _row_and_parts(instruction.opcode)[0]
    return instruction.operands if found is None else instruction.operands[found.results :]


def effects(body: Sequence[Instruction | Label]) -> list[tuple[Instruction, Effect]]:
    """Each instruction of a function's body with its effect; a test that only branches back to itself is a wait.

    That loop is ``L: mbarrier.try_wait p, …; @!p bra L;``, or ``@p bra D; bra L; D:`` in the place of the branch.
    """
    result = []
    for index, statement in enumerate(body):
        if not isinstance(statement, Label):
            what = effect(statement)
            if what.kind is Kind.BAR_TEST and _branches_back(body, index):
                what = replace(what, kind=Kind.BAR_WAIT, convergent=True)
            result.append((statement, what))
    return result


def _branches_back(body: Sequence[Instruction | Label], index: int) -> bool:
    before = body[index - 1] if index else None
    test, after = body[index], body[index + 1 : index + 4]
    if not isinstance(before, Label) or not isinstance(test, Instruction) or test.guard is not None:
        return False
    if not after or not test.operands:
        return False
    done = test.operands[0]

    def branch(statement: Instruction | Label, negated: bool | None) -> str | None:
        """The target of a branch that is taken when the test has failed (True), has not (False), or always (None)."""
        guard = None if negated is None else (done, negated)
        if isinstance(statement, Label) or statement.opcode not in ("bra", "bra.uni") or statement.guard != guard:
            return None
        target = statement.operands[0]
        return target.name if isinstance(target, Symbol) else None

    if branch(after[0], True) == before.name:
        return True
    if len(after) < 3 or not isinstance(after[2], Label):
        return False
    return branch(after[0], False) == after[2].name and branch(after[1], None) == before.name


@lru_cache(maxsize=4096)
def _row_and_parts(opcode: str) -> tuple[Row | None, tuple[str, ...]]:
    return row(opcode), tuple(opcode.split("."))


# Modifiers

# The state spaces of opcodes in the terms of Effect. A generic address has none.
_SPACES = {
    "global": "global", "const": "const", "local": "local", "param": "param", "param::entry": "param",
    "param::func": "param", "shared": "shared", "shared::cta": "shared", "shared::cluster": "cluster",
}  # fmt: skip
_SCOPES = {"cta": "cta", "cluster": "cluster", "gpu": "gpu", "gl": "gpu", "sys": "sys"}
_STRONG = frozenset(("relaxed", "acquire", "release", "acq_rel", "mmio"))


def _space_of(parts: tuple[str, ...]) -> str | None:
    return next((_SPACES[part] for part in parts if part in _SPACES), None)


def _scope_of(parts: tuple[str, ...]) -> str | None:
    return next((_SCOPES[part] for part in parts if part in _SCOPES), None)


def _in_space(of: Effect, parts: tuple[str, ...], sources: tuple[Operand, ...]) -> Effect:
    return replace(of, space=_space_of(parts))


def _in_scope(of: Effect, parts: tuple[str, ...], sources: tuple[Operand, ...]) -> Effect:
    return replace(of, scope=_scope_of(parts) or of.scope)


def _access(of: Effect, parts: tuple[str, ...], sources: tuple[Operand, ...]) -> Effect:
    """A load or store: with a memory order it is atomic, in its scope."""
    space = _space_of(parts)
    if not _STRONG.isdisjoint(parts):
        return Effect(Kind.ATOMIC, space, scope=_scope_of(parts))
    return replace(of, space=space)


def _atomic(of: Effect, parts: tuple[str, ...], sources: tuple[Operand, ...]) -> Effect:
    return replace(of, space=_space_of(parts), scope=_scope_of(parts) or "gpu")


def _mbarrier(of: Effect, parts: tuple[str, ...], sources: tuple[Operand, ...]) -> Effect:
    """An mbarrier is in the CTA's own shared memory unless the opcode says ``.shared::cluster``."""
    space = _space_of(parts) or "shared"
    return replace(of, space=space, scope=(_scope_of(parts) or of.scope) if of.scope else None)


def _arrive(of: Effect, parts: tuple[str, ...], sources: tuple[Operand, ...]) -> Effect:
    what = _mbarrier(of, parts, sources)
    if "expect_tx" in parts:
        return replace(what, kind=Kind.BAR_EXPECT, count=1, bytes=1)
    return replace(what, count=1) if len(sources) > 1 else what


def _barrier(of: Effect, parts: tuple[str, ...], sources: tuple[Operand, ...]) -> Effect:
    """Barrier 0 of all threads is the CTA's; others, and those of fewer threads, are named barriers."""
    predicates = 1 if "red" in parts else 0
    if sources and sources[0] == Immediate(0) and len(sources) == 1 + predicates:
        return of
    return replace(of, kind=Kind.NAMED_SYNC, barrier=0)


def _fence(of: Effect, parts: tuple[str, ...], sources: tuple[Operand, ...]) -> Effect:
    return replace(of, scope=_scope_of(parts))


def _fence_async(of: Effect, parts: tuple[str, ...], sources: tuple[Operand, ...]) -> Effect:
    space = _space_of(parts)
    return replace(of, space=space, scope={"shared": "cta", "cluster": "cluster"}.get(space or "", _scope_of(parts)))


def _bulk(of: Effect, parts: tuple[str, ...], sources: tuple[Operand, ...]) -> Effect:
    """A bulk or tensor copy: the first space is the destination's; ``bulk_group`` or an mbarrier tells of its end."""
    tensor = "tensor" in parts
    size = None if tensor else 2
    spaces = [_SPACES[part] for part in parts if part in _SPACES]
    if "bulk_group" in parts:
        return replace(of, space=spaces[0] if spaces else None, bytes=size, completes_on="bulk-group")
    # From global memory `.shared::cluster` is written also for the own CTA; only a multicast leaves it, or a copy
    # between CTAs.
    leaves = "multicast::cluster" in parts or (spaces[:1] == ["cluster"] and "global" not in spaces)
    return replace(
        of,
        space="cluster" if leaves else "shared",
        scope="cluster" if "cluster" in spaces else "cta",
        barrier=2 if tensor else 3,
        bytes=size,
        completes_on="mbarrier",
    )


def _async_store(of: Effect, parts: tuple[str, ...], sources: tuple[Operand, ...]) -> Effect:
    """Into another block of the cluster, whose mbarrier is told; into global memory nobody is told."""
    if "global" not in parts:
        return of
    return Effect(Kind.WRITE if parts[0] == "st" else Kind.ATOMIC, "global")


def _wait_bulk(of: Effect, parts: tuple[str, ...], sources: tuple[Operand, ...]) -> Effect:
    return replace(of, space="shared" if "read" in parts else "global")


def _try_cancel(of: Effect, parts: tuple[str, ...], sources: tuple[Operand, ...]) -> Effect:
    everywhere = "multicast::cluster::all" in parts
    return replace(of, space="cluster" if everywhere else "shared", scope="cluster" if everywhere else "cta")


def _moved(of: Effect, parts: tuple[str, ...], sources: tuple[Operand, ...]) -> Effect:
    return _READ if any(isinstance(s, Register) and s.name in CHANGING_REGISTERS for s in sources) else of


def _cluster_arrive(of: Effect, parts: tuple[str, ...], sources: tuple[Operand, ...]) -> Effect:
    return replace(of, scope=None) if "relaxed" in parts else of


# Special registers whose value can differ from one read to the next.
CHANGING_REGISTERS = frozenset((
    "%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi", "%smid", "%warpid",
    *(f"%pm{n}{suffix}" for n in range(8) for suffix in ("", "_64")),
))  # fmt: skip

# Effects that several rows share.
UNKNOWN = Effect(Kind.WRITE, convergent=True)
_READ, _WRITE, _ATOMIC = Effect(Kind.READ), Effect(Kind.WRITE), Effect(Kind.ATOMIC)
_WARP = Effect(Kind.WARP_SYNC, convergent=True)
_STOP = Effect(Kind.TRAP, convergent=True)
_CTA_SYNC = Effect(Kind.CTA_SYNC, scope="cta", convergent=True)
_NAMED_ARRIVE = Effect(Kind.NAMED_ARRIVE, scope="cta", barrier=0, convergent=True)
_ARRIVE = Effect(Kind.BAR_ARRIVE, scope="cta", barrier=0)
_EXPECT = Effect(Kind.BAR_EXPECT, scope="cta", barrier=0, bytes=1)
_TEST = Effect(Kind.BAR_TEST, scope="cta", barrier=0)
_FENCE = Effect(Kind.FENCE)
_TO_CLUSTER = Effect(Kind.ASYNC_COPY, "cluster", scope="cluster", barrier=2, completes_on="mbarrier")
_ASYNC = Effect(Kind.ASYNC_COPY, proxy="async")
_WGMMA = Effect(Kind.ASYNC_MMA, "shared", proxy="async", completes_on="wgmma-group", convergent=True)
_TCGEN05_MMA = Effect(Kind.ASYNC_MMA, "tensor", proxy="async", completes_on="mbarrier")
_TCGEN05_LOAD = Effect(Kind.READ, "tensor", completes_on="tcgen05-wait-ld", convergent=True)
_TCGEN05_COPY = Effect(Kind.ASYNC_COPY, "tensor", proxy="async", completes_on="mbarrier")

# Registers to registers, lane by lane.
_ARITHMETIC = (
    "abs", "add", "addc", "and", "bfe", "bfi", "bfind", "bmsk", "brev", "clz", "cnot", "copysign", "cos", "cvt",
    "div", "dp2a", "dp4a", "ex2", "fma", "fns", "lg2", "lop3", "mad", "mad24", "madc", "max", "min", "mul", "mul24",
    "neg", "not", "or", "popc", "prmt", "rcp", "rem", "rsqrt", "sad", "selp", "set", "setp", "shf", "shl", "shr",
    "sin", "slct", "sqrt", "sub", "subc", "szext", "tanh", "testp", "xor", "createpolicy", "cvta", "getctarank",
    "isspacep", "istypep", "mapa", "txq", "suq", "vabsdiff", "vabsdiff2", "vabsdiff4", "vadd", "vadd2", "vadd4",
    "vavrg2", "vavrg4", "vmad", "vmax", "vmax2", "vmax4", "vmin", "vmin2", "vmin4", "vset", "vset2", "vset4", "vshl",
    "vshr", "vsub", "vsub2", "vsub4",
)  # fmt: skip

ROWS: dict[str, Row] = {
    **{name: Row(PURE) for name in _ARITHMETIC},
    "mov": Row(PURE, 1, _moved),
    # memory
    "ld": Row(_READ, 1, _access),
    "ldu": Row(_READ, 1, _access),
    "st": Row(_WRITE, 0, _access),
    "atom": Row(_ATOMIC, 1, _atomic),
    "red": Row(_ATOMIC, 0, _atomic),
    "multimem.ld_reduce": Row(_ATOMIC, 1, _atomic),
    "multimem.st": Row(_ATOMIC, 0, _atomic),
    "multimem.red": Row(_ATOMIC, 0, _atomic),
    "prefetch": Row(_READ, 0, _in_space),
    "prefetchu": Row(_READ, 0),
    "applypriority": Row(_READ, 0, _in_space),
    "discard": Row(_WRITE, 0, _in_space),
    "tex": Row(Effect(Kind.READ, "global", proxy="texture")),
    "tld4": Row(Effect(Kind.READ, "global", proxy="texture")),
    "suld": Row(Effect(Kind.READ, "global", proxy="texture")),
    "sust": Row(Effect(Kind.WRITE, "global", proxy="texture"), 0),
    "sured": Row(Effect(Kind.ATOMIC, "global", proxy="texture"), 0),
    "alloca": Row(Effect(Kind.WRITE, "local")),
    "stacksave": Row(_READ),
    "stackrestore": Row(Effect(Kind.WRITE, "local"), 0),
    # control
    "bra": Row(PURE, 0),
    "brx.idx": Row(PURE, 0),
    "ret": Row(PURE, 0),
    "call": Row(UNKNOWN, 0),
    "exit": Row(_STOP, 0),
    "trap": Row(Effect(Kind.TRAP), 0),
    "brkpt": Row(Effect(Kind.TRAP), 0),
    "nanosleep": Row(_READ, 0),
    "pmevent": Row(_READ, 0),
    "setmaxnreg": Row(Effect(Kind.REGISTERS, convergent=True), 0),
    "griddepcontrol": Row(Effect(Kind.GRID), 0),
    # barriers of threads
    "bar": Row(_CTA_SYNC, 0, _barrier),
    "bar.red": Row(_CTA_SYNC, 1, _barrier),
    "bar.arrive": Row(_NAMED_ARRIVE, 0),
    "bar.cta": Row(_CTA_SYNC, 0, _barrier),
    "bar.cta.red": Row(_CTA_SYNC, 1, _barrier),
    "bar.cta.arrive": Row(_NAMED_ARRIVE, 0),
    "bar.warp.sync": Row(_WARP, 0),
    "barrier": Row(_CTA_SYNC, 0, _barrier),
    "barrier.red": Row(_CTA_SYNC, 1, _barrier),
    "barrier.arrive": Row(_NAMED_ARRIVE, 0),
    "barrier.cta": Row(_CTA_SYNC, 0, _barrier),
    "barrier.cta.red": Row(_CTA_SYNC, 1, _barrier),
    "barrier.cta.arrive": Row(_NAMED_ARRIVE, 0),
    "barrier.cluster.arrive": Row(Effect(Kind.CLUSTER_ARRIVE, scope="cluster", convergent=True), 0, _cluster_arrive),
    "barrier.cluster.wait": Row(Effect(Kind.CLUSTER_WAIT, scope="cluster", convergent=True), 0),
    # fences
    "membar": Row(_FENCE, 0, _fence),
    "membar.proxy": Row(Effect(Kind.FENCE, proxy="async"), 0, _fence_async),
    "membar.proxy.alias": Row(Effect(Kind.FENCE, proxy="alias"), 0),
    "fence": Row(_FENCE, 0, _fence),
    "fence.proxy.async": Row(Effect(Kind.FENCE, proxy="async"), 0, _fence_async),
    "fence.proxy.async::generic": Row(Effect(Kind.FENCE, proxy="async"), 0, _fence),
    "fence.proxy.alias": Row(Effect(Kind.FENCE, proxy="alias"), 0),
    "fence.proxy.tensormap::generic": Row(Effect(Kind.FENCE, proxy="tensormap"), 0, _fence),
    # warp collectives
    "shfl": Row(_WARP),
    "vote": Row(_WARP),
    "match": Row(_WARP),
    "redux": Row(_WARP),
    "elect": Row(_WARP),
    "activemask": Row(Effect(Kind.READ, convergent=True)),
    # matrices in registers of a warp
    "mma": Row(_WARP),
    "movmatrix": Row(_WARP),
    "wmma.mma": Row(_WARP),
    "wmma.load": Row(Effect(Kind.READ, convergent=True), 1, _in_space),
    "wmma.store": Row(Effect(Kind.WRITE, convergent=True), 0, _in_space),
    "ldmatrix": Row(Effect(Kind.READ, "shared", convergent=True)),
    "stmatrix": Row(Effect(Kind.WRITE, "shared", convergent=True), 0),
    # mbarrier objects
    "mbarrier.init": Row(Effect(Kind.BAR_INIT, barrier=0, count=1), 0, _mbarrier),
    "mbarrier.inval": Row(Effect(Kind.BAR_INVAL, barrier=0), 0, _mbarrier),
    "mbarrier.arrive": Row(_ARRIVE, 1, _arrive),
    "mbarrier.arrive_drop": Row(_ARRIVE, 1, _arrive),
    "mbarrier.expect_tx": Row(_EXPECT, 0, _mbarrier),
    "mbarrier.complete_tx": Row(Effect(Kind.COMMIT, scope="cta", barrier=0, bytes=1), 0, _mbarrier),
    "mbarrier.test_wait": Row(_TEST, 1, _mbarrier),
    "mbarrier.try_wait": Row(_TEST, 1, _mbarrier),
    "mbarrier.pending_count": Row(PURE),
    # asynchronous copies
    "cp.async": Row(Effect(Kind.ASYNC_COPY, "shared", completes_on="cp-async-group"), 0),
    "cp.async.commit_group": Row(Effect(Kind.COMMIT, completes_on="cp-async-group"), 0),
    "cp.async.wait_group": Row(Effect(Kind.WAIT_GROUP, "shared", completes_on="cp-async-group"), 0),
    "cp.async.wait_all": Row(Effect(Kind.WAIT_GROUP, "shared", completes_on="cp-async-group"), 0),
    "cp.async.mbarrier.arrive": Row(Effect(Kind.COMMIT, scope="cta", barrier=0, completes_on="mbarrier"), 0, _mbarrier),
    "cp.async.bulk": Row(_ASYNC, 0, _bulk),
    "cp.async.bulk.prefetch": Row(Effect(Kind.READ, "global", bytes=1), 0),
    "cp.async.bulk.prefetch.tensor": Row(Effect(Kind.READ, "global"), 0),
    "cp.async.bulk.commit_group": Row(Effect(Kind.COMMIT, proxy="async", completes_on="bulk-group"), 0),
    "cp.async.bulk.wait_group": Row(Effect(Kind.WAIT_GROUP, proxy="async", completes_on="bulk-group"), 0, _wait_bulk),
    "cp.reduce.async.bulk": Row(_ASYNC, 0, _bulk),
    "st.async": Row(_TO_CLUSTER, 0, _async_store),
    "red.async": Row(_TO_CLUSTER, 0, _async_store),
    "st.bulk": Row(Effect(Kind.WRITE, "shared", bytes=1), 0),
    "tensormap.replace": Row(Effect(Kind.WRITE, proxy="tensormap"), 0, _in_space),
    # what it writes in global memory is seen by its opcode
    "tensormap.cp_fenceproxy": Row(Effect(Kind.READ, "shared", convergent=True), 0, _in_scope),
    "clusterlaunchcontrol.try_cancel": Row(
        Effect(Kind.ASYNC_COPY, proxy="async", barrier=1, completes_on="mbarrier"), 0, _try_cancel
    ),
    "clusterlaunchcontrol.query_cancel": Row(PURE),
    # warpgroup matrices
    "wgmma.mma_async": Row(_WGMMA),
    "wgmma.fence": Row(Effect(Kind.FENCE, proxy="async", convergent=True), 0),
    "wgmma.commit_group": Row(Effect(Kind.COMMIT, proxy="async", completes_on="wgmma-group", convergent=True), 0),
    "wgmma.wait_group": Row(Effect(Kind.WAIT_GROUP, proxy="async", completes_on="wgmma-group", convergent=True), 0),
    # tensor memory; `tensor` is its space
    "tcgen05.alloc": Row(Effect(Kind.WRITE, "shared", convergent=True), 0),
    "tcgen05.dealloc": Row(Effect(Kind.WRITE, "tensor", convergent=True), 0),
    "tcgen05.relinquish_alloc_permit": Row(Effect(Kind.WRITE, "tensor", convergent=True), 0),
    "tcgen05.mma": Row(_TCGEN05_MMA, 0),
    "tcgen05.cp": Row(_TCGEN05_COPY, 0),
    "tcgen05.shift": Row(_TCGEN05_COPY, 0),
    "tcgen05.commit": Row(
        Effect(Kind.COMMIT, "shared", proxy="async", scope="cluster", barrier=0, completes_on="mbarrier"), 0
    ),
    "tcgen05.ld": Row(_TCGEN05_LOAD),
    "tcgen05.ld.red": Row(_TCGEN05_LOAD, 2),
    "tcgen05.st": Row(Effect(Kind.WRITE, "tensor", completes_on="tcgen05-wait-st", convergent=True), 0),
    "tcgen05.wait::ld": Row(Effect(Kind.WAIT_GROUP, "tensor", completes_on="tcgen05-wait-ld", convergent=True), 0),
    "tcgen05.wait::st": Row(Effect(Kind.WAIT_GROUP, "tensor", completes_on="tcgen05-wait-st", convergent=True), 0),
    "tcgen05.fence::before_thread_sync": Row(Effect(Kind.FENCE, "tensor", proxy="async"), 0),
    "tcgen05.fence::after_thread_sync": Row(Effect(Kind.FENCE, "tensor", proxy="async"), 0),
}
