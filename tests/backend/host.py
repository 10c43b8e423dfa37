"""Runs lowered kernels on this machine's CPU: arithmetic is the same LLVM IR for every target.

The PTX conversions (``llvm.nvvm.f2i.rz`` …) are replaced by models of the hardware: they saturate, and for a NaN give 0
only from float32 to 32 bits, otherwise the sign bit alone.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding as llvm
from backend_kernels import DTYPES, Build

from ptxdsl.lower.convert import FLOAT_TO_INT
from ptxdsl.lower.llvm_types import DATA_LAYOUT, TRIPLE
from ptxdsl.lower.module import lower
from ptxdsl.options import Options
from ptxdsl.signature import KernelSignature, PointerParam, ScalarParam
from ptxdsl.tir import Kernel, Module, Ty, Value, ptr

C_TYPES: dict[str, Any] = {
    "i1": ctypes.c_bool, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32, "i64": ctypes.c_int64,
    "f32": ctypes.c_float, "f64": ctypes.c_double,
}  # fmt: skip


def _models() -> str:
    text = ""
    for (source, bits, signed), name in FLOAT_TO_INT.items():
        float_type = {"f32": "float", "f64": "double"}[source]
        kind = "fptosi" if signed else "fptoui"
        nan = 0 if source == "f32" and bits == 32 else -(1 << (bits - 1))
        text += f"""
declare i{bits} @llvm.{kind}.sat.i{bits}.{source}({float_type})
define i{bits} @model_{name}({float_type} %x) {{
  %value = call i{bits} @llvm.{kind}.sat.i{bits}.{source}({float_type} %x)
  %nan = fcmp uno {float_type} %x, %x
  %result = select i1 %nan, i{bits} {nan}, i{bits} %value
  ret i{bits} %result
}}
"""
    return text


def function(name: str, operands: Sequence[Ty], result: Ty, body: Callable[[Build, list[Value]], Value]) -> Kernel:
    """A kernel that stores what ``body`` makes of its scalar parameters."""
    k = Build(name)
    out = Value(ptr("global"), "out")
    values = [Value(ty) for ty in operands]
    k.store(out, body(k, values))
    params = (
        PointerParam("out", DTYPES[result.name], result.bytes, result.bytes, True),
        *(ScalarParam(f"x{number}", DTYPES[ty.name]) for number, ty in enumerate(operands)),
    )
    kernel = k.kernel()
    return Kernel(name, [out, *values], kernel.body, KernelSignature(name, params), kernel.span)


class Host:
    """Compiled kernels, callable by name with Python numbers."""

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        text = lower(Module(list(kernels)), Options())
        text = text.replace(f'target datalayout = "{DATA_LAYOUT}"\ntarget triple = "{TRIPLE}"\n', "")
        text = text.replace("ptx_kernel ", "").replace(" addrspace(1)", "")
        text = re.sub(r"declare [^\n]*@llvm\.nvvm\.[^\n]*\n", "", text)
        text = re.sub(r"@llvm\.nvvm\.(\w+)\.rz", r"@model_\1", text) + _models()
        declared: set[str] = set()
        lines = [line for line in text.splitlines() if not (line.startswith("declare") and line in declared) and not
                 (line.startswith("declare") and declared.add(line))]  # fmt: skip
        module = llvm.parse_assembly("\n".join(lines))
        module.verify()
        machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
        passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
        passes.getModulePassManager().run(module, passes)  # what is undefined shows only when it is made use of
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        self._calls: dict[str, tuple[Any, Any]] = {}
        for kernel in kernels:
            result = next(op.operands[1].ty for op in kernel.body.ops if op.name == "store")
            types = [C_TYPES[value.ty.name] for value in kernel.params[1:]]
            prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *types)
            address = self._engine.get_function_address(kernel.name)
            self._calls[kernel.name] = (prototype(address), C_TYPES[result.name])

    def __call__(self, name: str, *arguments: float) -> Any:
        call, result = self._calls[name]
        out = result()
        call(ctypes.addressof(out), *arguments)
        return out.value
