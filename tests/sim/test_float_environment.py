"""A process in which some library has let the processor flush subnormal numbers."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterator

import numpy as np
import pytest
from sim_kernels import kernel, run

from ptxdsl.sim.translate.host_code import compile_ir

CONTROL = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define i32 @get() {
 %p = alloca i32
 call void @llvm.x86.sse.stmxcsr(ptr %p)
 %v = load i32, ptr %p
 ret i32 %v
}
define void @set(i32 %v) {
 %p = alloca i32
 store i32 %v, ptr %p
 call void @llvm.x86.sse.ldmxcsr(ptr %p)
 ret void
}
"""
FLUSH = 0x8040  # flush-to-zero, denormals-are-zero


@pytest.fixture
def flushing() -> Iterator[ctypes._CFuncPtr]:
    """The processor flushes; gives the function that reads its control register."""
    if platform.machine() != "x86_64":
        pytest.skip("the control register of x86-64")
    code = compile_ir(CONTROL, 0)
    get = ctypes.CFUNCTYPE(ctypes.c_uint32)(code.address("get"))
    put = ctypes.CFUNCTYPE(None, ctypes.c_uint32)(code.address("set"))
    before = get()
    put(before | FLUSH)
    yield get
    put(before)


def test_subnormal_numbers_stay(flushing: ctypes._CFuncPtr) -> None:
    tiny = np.array([0x0001_0000], np.uint32).view(np.float32)
    out = np.zeros(1, np.uint32)
    body = "ld.global.f32 %f1, [$in]; mul.f32 %f2, %f1, 0f40000000; st.global.f32 [$out], %f2; ret;"
    assert run(kernel(body, "in:u64 out:u64"), tiny, out, block=1).finished
    assert out[0] == 0x0002_0000, "twice the number"
    assert flushing() & FLUSH == FLUSH, "the process has its own environment again"
    assert (tiny * np.float32(2)).view(np.uint32)[0] == 0, "and NumPy still flushes, so the test tests something"
