"""Host code: made once for all processes, by llvmlite's library itself or by its binding."""

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ptxdsl.files import cache
from ptxdsl.sim.launch import simulate
from ptxdsl.sim.translate import host_code

# A call of the runtime (the wait), memory, and lanes that go different ways.
PTX = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{ .reg .b32 %r<4>; .reg .b64 %d<3>; .reg .pred %p<2>; .shared .align 8 .b8 bar[8];
  mov.u32 %r0, %tid.x;
  setp.ne.u32 %p0, %r0, 0;
  @%p0 bra A;
  mbarrier.init.shared.b64 [bar], 32;
A: bar.sync 0;
  mbarrier.arrive.shared.b64 _, [bar];
W: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
  @!%p1 bra W;
  ld.param.u64 %d0, [out];
  mad.wide.u32 %d1, %r0, 4, %d0;
  atom.global.add.u32 %r1, [%d1], %r0;
  ret; }
"""
RUN = f"""
import numpy as np
from ptxdsl.sim.launch import simulate
out = np.zeros(32, np.uint32)
assert simulate({PTX!r}, grid=1, block=32, arguments=[out]).status == "finished"
assert (out == np.arange(32)).all()
"""


def kept():
    return sorted(Path(path).name for path, _ in cache.entries())


def test_the_same_ptx_is_the_same_code_in_each_process(tmp_path, monkeypatch):
    monkeypatch.setenv("PTXDSL_CACHE_DIR", str(tmp_path))
    found = []
    for _ in range(2):
        subprocess.run([sys.executable, "-c", RUN], check=True)
        found.append(kept())
    assert found[0] == found[1]
    assert {name.partition("-cpython")[0] for name in found[0]} == {"simulator-code", "simulator-runtime"}


TEXT = "define i32 @twice(i32 %x) { %y = add i32 %x, %x ret i32 %y }"


@pytest.fixture(params=["library", "binding"])
def way(request, monkeypatch):
    if request.param == "binding":
        host_code._host.cache_clear()
        monkeypatch.setattr(host_code, "library", lambda: None)
        yield
        host_code._host.cache_clear()
    elif host_code.library() is None:
        pytest.skip("llvmlite's library itself is not used of this version")
    else:
        yield


def test_code_is_kept_and_found(way, tmp_path, monkeypatch):
    monkeypatch.setenv("PTXDSL_CACHE_DIR", str(tmp_path))
    for _ in range(2):
        code = host_code.compile_ir(TEXT, 0, "test-code")
        assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(code.address("twice"))(21) == 42
    assert len(cache.entries()) == 1


def test_code_calls_symbols_of_the_process(way):
    inner = host_code.compile_ir(TEXT, 0)
    host_code.add_symbol("ptxdsl.test.twice", inner.address("twice"))
    outer = host_code.compile_ir(
        "declare i32 @ptxdsl.test.twice(i32)\n"
        "define i32 @four(i32 %x) { %y = call i32 @ptxdsl.test.twice(i32 %x)\n"
        "%z = call i32 @ptxdsl.test.twice(i32 %y) ret i32 %z }",
        2,
    )
    assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(outer.address("four"))(-3) == -12


def test_text_that_is_none(way):
    with pytest.raises(RuntimeError, match="expected"):
        host_code.compile_ir("define i32 @f( {", 0)


def test_both_ways_run_a_kernel_alike(way):
    out = np.zeros(32, np.uint32)
    assert simulate(PTX.replace("k(", "kk("), grid=1, block=32, arguments=[out]).status == "finished"
    assert (out == np.arange(32)).all()
