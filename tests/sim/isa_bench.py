"""A kernel around a few tcgen05 instructions, for comparisons with ``isa_tables``.

It fills shared and tensor memory of a CTA, or of both CTAs of a pair, with given bytes and words, lets one thread issue
the instructions, waits for them with tcgen05.commit and gives back what tensor memory holds then. Of tcgen05 it relies
on .ld and .st in shape .32x32b alone (thread = lane, register = column), besides alloc, dealloc and commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ptxdsl.diagnostics import CompileError
from ptxdsl.sim.launch import Report, simulate

Words = npt.NDArray[np.uint32]

DATA = 1024  # offset in shared memory of the given bytes; before them: the allocation's address and the barriers
STEP = 32  # columns that a tcgen05.st or .ld takes
THREADS = 128
LANES = 128

_REGISTERS = ", ".join(f"%v{i}" for i in range(STEP))
_QUADS = ["{" + ", ".join(f"%v{i + k}" for k in range(4)) + "}" for i in range(0, STEP, 4)]
_LOADS = "\n".join(f"ld.global.v4.b32 {quad}, [%at + {16 * i}];" for i, quad in enumerate(_QUADS))
_STORES = "\n".join(f"st.global.v4.b32 [%at + {16 * i}], {quad};" for i, quad in enumerate(_QUADS))

_KERNEL = """
.version 9.0
.target {target}
.address_size 64
.extern .shared .align 1024 .b8 smem[];
.visible .entry probe(
    .param .u64 p_shared, .param .u64 p_lanes, .param .u64 p_after, .param .u64 p_numbers, .param .u64 p_output)
.reqntid {threads}
{{
.reg .pred %p, %q, %issuer, %no, %yes;
.reg .b32 %thread, %warp, %rank, %base, %t, %mine, %column, %x, %y, %bar, %data, %w<8>, %v<{step}>, %u<128>;
.reg .b64 %at, %start, %numbers, %from, %d<8>, %wide, %out;
mov.u32 %thread, %tid.x; shr.u32 %warp, %thread, 5; mov.u32 %rank, %cluster_ctarank;
mov.u32 %base, smem; add.u32 %bar, %base, 16; add.u32 %data, %base, {data};
setp.ne.u32 %no, %thread, %thread; setp.eq.u32 %yes, %thread, %thread;
setp.eq.u32 %p, %thread, 0;
@%p mbarrier.init.shared.b64 [%bar], 1;
@%p fence.mbarrier_init.release.cluster;
setp.eq.u32 %q, %rank, {issuer}; and.pred %issuer, %p, %q;
setp.eq.u32 %p, %warp, 0;
@!%p bra ALLOCATED;
tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [%base], {columns};
ALLOCATED:
// The given bytes: 16 a thread at a time.
ld.param.u64 %from, [p_shared];
mul.wide.u32 %wide, %rank, {shared}; add.u64 %from, %from, %wide;
mul.wide.u32 %wide, %thread, 16; add.u64 %from, %from, %wide;
mad.lo.u32 %x, %thread, 16, %data; add.u32 %y, %data, {shared};
FILL:
setp.ge.u32 %p, %x, %y;
@%p bra FILLED;
ld.global.v4.b32 {{%v0, %v1, %v2, %v3}}, [%from];
st.shared.v4.b32 [%x], {{%v0, %v1, %v2, %v3}};
add.u64 %from, %from, {stride}; add.u32 %x, %x, {stride};
bra FILL;
FILLED:
fence.proxy.async.shared::cta;
bar.sync 0;
ld.shared.b32 %t, [%base];
shl.b32 %x, %warp, 21; add.u32 %mine, %t, %x;
// The given words: thread = lane.
ld.param.u64 %start, [p_lanes];
mad.lo.u32 %x, %rank, {threads}, %thread; mul.wide.u32 %wide, %x, {pitch}; add.u64 %start, %start, %wide;
mov.u32 %column, 0; mov.b64 %at, %start; mov.u32 %x, %mine;
STORE:
{loads}
tcgen05.st.sync.aligned.32x32b.x{step}.b32 [%x], {{{registers}}};
add.u64 %at, %at, {bytes}; add.u32 %x, %x, {step}; add.u32 %column, %column, {step};
setp.lt.u32 %p, %column, {columns};
@%p bra STORE;
tcgen05.wait::st.sync.aligned;
// What the instructions may use.
ld.param.u64 %out, [p_output]; ld.param.u64 %numbers, [p_numbers];
and.b32 %x, %data, 0x3ffff; shr.u32 %x, %x, 4; cvt.u64.u32 %wide, %x;
{operands}
tcgen05.fence::before_thread_sync;
{meet}
tcgen05.fence::after_thread_sync;
{every}
@!%issuer bra ISSUED;
{body}
{commit}
ISSUED:
setp.ne.u32 %q, %rank, {issuer};
@%q bra WAITED;
{wait}
WAITED:
tcgen05.fence::before_thread_sync;
{meet}
tcgen05.fence::after_thread_sync;
// Tensor memory as it is now.
ld.param.u64 %start, [p_after];
mad.lo.u32 %x, %rank, {threads}, %thread; mul.wide.u32 %wide, %x, {pitch}; add.u64 %start, %start, %wide;
mov.u32 %column, 0; mov.b64 %at, %start; mov.u32 %x, %mine;
LOAD:
tcgen05.ld.sync.aligned.32x32b.x{step}.b32 {{{registers}}}, [%x];
tcgen05.wait::ld.sync.aligned;
{stores}
add.u64 %at, %at, {bytes}; add.u32 %x, %x, {step}; add.u32 %column, %column, {step};
setp.lt.u32 %p, %column, {columns};
@%p bra LOAD;
tcgen05.fence::before_thread_sync;
{meet}
setp.eq.u32 %p, %warp, 0;
@!%p bra DONE;
tcgen05.relinquish_alloc_permit.cta_group::{group}.sync.aligned;
tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %t, {columns};
DONE:
ret;
}}
"""
_MEET = {1: "bar.sync 0;", 2: "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"}


@dataclass
class Probe:
    """A kernel and what it starts with.

    body: one thread's instructions. ``%t`` is tensor memory's address, ``%d0``… and ``%w0``… are descriptors and words,
    ``%yes`` and ``%no`` predicates, ``%x``, ``%y``, ``%v…`` free. every: every thread's instructions before them;
    ``%mine`` is the address of its warp's lanes, ``%out`` that of output, ``%u…`` are free.
    """

    body: str = ""
    every: str = ""
    shared: Sequence[bytes] = (b"",)  # for %data of each CTA; two of them make a pair, with cta_group::2
    lanes: Words | None = None  # tensor memory before: (CTA, lane, column); None: zeros
    descriptors: Sequence[int] = ()  # with start addresses relative to the given bytes
    words: Sequence[int] = ()
    columns: int = 512
    issuer: int = 0  # the CTA whose thread 0 issues
    target: str = "sm_100a"
    output: Words = field(default_factory=lambda: np.zeros(1, np.uint32))

    def run(self, **options: object) -> tuple[Report, Words]:
        """The run's report, and tensor memory after: (CTA, lane, column)."""
        ctas = len(self.shared)
        size = max(-(-max(map(len, self.shared)) // 16) * 16, 16)
        image = np.zeros((ctas, size), np.uint8)
        for number, part in enumerate(self.shared):
            image[number, : len(part)] = np.frombuffer(part, np.uint8)
        before = np.zeros((ctas, LANES, self.columns), np.uint32)
        if self.lanes is not None:
            before[...] = self.lanes
        after = np.zeros_like(before)
        numbers = np.zeros(16, np.uint64)
        numbers[: len(self.descriptors)] = self.descriptors
        numbers[8 : 8 + len(self.words)] = self.words
        arguments = [image.reshape(-1), before.reshape(-1), after.reshape(-1), numbers, self.output]
        report = simulate(
            self._text(ctas, size),
            None,
            grid=ctas,
            block=THREADS,
            cluster=ctas if ctas > 1 else None,
            shared_bytes=DATA + size,
            arguments=arguments,
            **options,
        )
        return report, after

    def _text(self, ctas: int, size: int) -> str:
        operands = [
            f"ld.global.u64 %d{i}, [%numbers + {8 * i}]; add.u64 %d{i}, %d{i}, %wide;"
            for i in range(len(self.descriptors))
        ]
        operands += [f"ld.global.u32 %w{i}, [%numbers + {64 + 8 * i}];" for i in range(len(self.words))]
        commit = f"tcgen05.commit.cta_group::{ctas}.mbarrier::arrive::one.shared::cluster.b64 [%bar];"
        wait = "WAIT: mbarrier.try_wait.parity.shared.b64 %p, [%bar], 0; @!%p bra WAIT;"
        return _KERNEL.format(
            target=self.target,
            threads=THREADS,
            step=STEP,
            data=DATA,
            shared=size,
            stride=16 * THREADS,
            pitch=4 * self.columns,
            bytes=4 * STEP,
            columns=self.columns,
            group=ctas,
            issuer=self.issuer,
            loads=_LOADS,
            stores=_STORES,
            registers=_REGISTERS,
            operands="\n".join(operands),
            meet=_MEET[ctas],
            every=self.every,
            body=self.body,
            commit=commit if self.body else "",
            wait=wait if self.body else "",
        )


def run(probe: Probe, **options: object) -> Words:
    """Tensor memory after a kernel that must finish."""
    report, after = probe.run(**options)
    assert report.finished, report.render()
    return after


def mistake(probe: Probe) -> str:
    """The code of the error that a kernel must end with, before or during its execution."""
    try:
        report, _ = probe.run()
    except CompileError as error:
        return error.diagnostics[0].code
    errors = [d.code for d in report.diagnostics if d.severity == "error"]
    assert errors and not report.finished, report.render()
    return errors[0]
