"""Which methods of RolePipeline a target has: `check`, `compile` and ptxas agree."""

from __future__ import annotations

import pytest

from ptxdsl.backend.assemble import assemble, find_tool
from ptxdsl.command.findings import findings
from ptxdsl.diagnostics import CompileError, DiagnosticSink
from ptxdsl.driver import Job, compile_source
from ptxdsl.options import Options
from ptxdsl.source import Source

PRODUCER, CONSUMER = ("acquire()", "commit()", "commit_mma()"), ("wait()", "release()")
OLD, HOPPER, LATER = ("sm_80", "sm_89"), ("sm_90", "sm_90a"), ("sm_100", "sm_120a")
TENSOR_CORES = ("sm_100a", "sm_103f")
# PTX ISA, "Target ISA Notes" of mbarrier.arrive, mbarrier.try_wait and tcgen05.commit
HAVE = {
    "commit()": (*OLD, *HOPPER, *LATER, *TENSOR_CORES),
    "release()": (*OLD, *HOPPER, *LATER, *TENSOR_CORES),
    "acquire()": (*HOPPER, *LATER, *TENSOR_CORES),
    "wait()": (*HOPPER, *LATER, *TENSOR_CORES),
    "commit_mma()": TENSOR_CORES,
}


def _source(method: str) -> Source:
    return Source("kernel.pdsl", (
        "@kernel(threads=64)\ndef kernel():\n"
        "    var bars = unsafe_stack_allocation[4, SharedMemBarrier, address_space=.SHARED, alignment=8]()\n"
        f"    var p = RolePipeline[2, {method in PRODUCER}](bars, bars.unsafe_offset(2))\n    p.{method}\n"
    ))  # fmt: skip


def _codes(errors: CompileError) -> list[str]:
    return [d.code for d in errors.diagnostics]


@pytest.mark.parametrize("arch", (*OLD, *HOPPER, *LATER, *TENSOR_CORES))
@pytest.mark.parametrize("method", HAVE)
def test_check_and_compile_have_the_same_methods(method: str, arch: str) -> None:
    options = Options(arch, check="off")
    try:
        compiled = compile_source(_source(method), options=options)
    except CompileError as errors:
        codes = _codes(errors)
    else:
        codes = []
        if find_tool("ptxas") is not None and arch == HAVE[method][0]:
            assert assemble(compiled.ptx, options, compiled.line_map).cubin
    try:
        found, verdicts = findings(Job(_source(method), None, options=options, sink=DiagnosticSink()))
        checked = [d.code for d in found if d.code.startswith("E07")]
    except CompileError as errors:
        checked, verdicts = _codes(errors), ()
    assert checked == codes == ([] if arch in HAVE[method] else ["E0701"])
    assert bool(verdicts) == (arch in HAVE[method])
