"""Lane-wise code on other hosts: no functions that may be missing there, and the same results to the bit."""

import platform
import re

import llvmlite.binding as llvm
import numpy as np
import pytest
from exact import interesting
from lane_arrays import compute, lane_code

from ptxdsl.sim.translate import host_code

# One of each way in which code is made.
INSTRUCTIONS = """
add.rn.f32 %d0, %f0, %f1; fma.rn.f32 %d1, %f0, %f1, %f2; mul.rz.f32 %d2, %f0, %f1; fma.rm.ftz.f32 %d3, %f0, %f1, %f2;
div.rn.f32 %d4, %f0, %f1; div.rp.f32 %d5, %f0, %f1; sqrt.rn.f32 %d6, %f0; rcp.approx.ftz.f32 %d7, %f0;
ex2.approx.f32 %d8, %f0; lg2.approx.f32 %d9, %f0; sin.approx.f32 %d10, %f0; tanh.approx.f32 %d11, %f0;
min.NaN.f32 %d12, %f0, %f1; max.xorsign.abs.f32 %d13, %f0, %f1; cvt.rni.f32.f32 %d14, %f0; cvt.rmi.s32.f32 %d15, %f0;
cvt.rn.f16x2.f32 %d16, %f0, %f1; cvt.rz.bf16x2.f32 %d17, %f0, %f1; cvt.rna.tf32.f32 %d18, %f0;
fma.rn.f16x2 %d19, %f0, %f1, %f2; add.bf16x2 %d20, %f0, %f1; mul.bf16x2 %d21, %f0, %f1; ex2.approx.f16x2 %d22, %f0;
div.s32 %d23, %f0, %f1; mul.hi.u32 %d24, %f0, %f1; popc.b32 %d25, %f0; clz.b32 %d26, %f0; brev.b32 %d27, %f0;
prmt.b32 %d28, %f0, %f1, %f2; fns.b32 %d29, %f0, %f1, %f2; lop3.b32 %d30, %f0, %f1, %f2, 0xD8;
cvt.rn.f32.u32 %d31, %f0; cvt.rz.f32.u64 %d32, %q0; cvt.rn.f32.s64 %d33, %q0; cvt.rn.f32.f64 %d34, %q0;
cvt.rzi.u32.f64 %d35, %q0; cvt.rs.satfinite.e4m3x4.f32 %d36, {%f0, %f1, %f2, %f0}, %f1; bfind.s64 %d37, %q0;
fma.rn.f64 %e0, %q0, %q1, %q2; fma.rp.f64 %e1, %q0, %q1, %q2; div.rz.f64 %e2, %q0, %q1; sqrt.rm.f64 %e3, %q0;
mul.hi.s64 %e4, %q0, %q1; div.u64 %e5, %q0, %q1; cvt.rn.f64.u64 %e6, %q0; cvt.rm.f64.s64 %e7, %q0;
cvt.rzi.s64.f64 %e8, %q0; cvt.rni.u64.f32 %e9, %f0; rsqrt.approx.f64 %e10, %q0; rcp.approx.ftz.f64 %e11, %q0;
cvt.rpi.f64.f64 %e12, %q0; shr.s64 %e13, %q0, %f0;
"""
OUTPUTS = {f"%d{i}": "b32" for i in range(38)} | {f"%e{i}": "b64" for i in range(14)}


def inputs():
    rng = np.random.default_rng(21)
    f = interesting("f32", rng, 100)
    q = interesting("f64", rng, 100)
    return {f"%f{i}": rng.permutation(f) for i in range(3)} | {f"%q{i}": rng.permutation(q) for i in range(3)}


# Functions of the C library that a host without the instruction needs; correctly rounded, or exact, everywhere.
ALLOWED = {"fma", "fmaf", "rint", "rintf", "floor", "floorf", "ceil", "ceilf", "trunc", "truncf"}


@pytest.mark.parametrize(
    "triple,cpu", [("x86_64-unknown-linux-gnu", "x86-64"), ("aarch64-unknown-linux-gnu", "generic")]
)
def test_only_exact_functions_of_the_c_library_are_called(triple, cpu):
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(lane_code(INSTRUCTIONS, inputs(), OUTPUTS))
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=1)
    defined = {f.name for f in module.functions if not f.is_declaration}
    undefined = external_symbols(machine.emit_assembly(module)) - defined
    assert undefined <= ALLOWED
    assert ("fmaf" in undefined) == (
        cpu == "x86-64"
    )  # the baseline has no such instruction: what is looked for is found


def external_symbols(assembly):
    """Names that instructions call or load the address of (x86-64: movabsq $name; aarch64: bl name)."""
    found = re.findall(
        r"^\s+(?:callq?|bl|b|jmp)\s+([\w.]+)(?:@PLT)?$|^\s+movabsq\s+\$([a-zA-Z_][\w.]*)", assembly, re.MULTILINE
    )
    return {name for pair in found for name in pair if name}


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="runs code for older x86-64 hosts")
@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3"])
def test_older_hosts_give_the_same_results(cpu, monkeypatch):
    usual = compute(INSTRUCTIONS, inputs(), OUTPUTS)
    monkeypatch.setattr(host_code, "_host", lambda: (cpu, ""))
    older = compute(INSTRUCTIONS, inputs(), OUTPUTS)
    for name in OUTPUTS:
        assert np.array_equal(usual[name], older[name]), name
