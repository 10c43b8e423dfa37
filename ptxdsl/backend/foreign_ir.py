"""LLVM IR that others wrote, to PTX. In a process of its own: what LLVM cannot select ends the process it is in.

(The compiler's own IR needs no such care: every operation in it was checked against ``targets.py``.)
"""

from __future__ import annotations

import os
import subprocess
import sys

from ptxdsl.backend.emit_ptx import REFUSED, Emitted, emit
from ptxdsl.diagnostics import CompileError, Diagnostic, error
from ptxdsl.options import Options
from ptxdsl.processes import command_of
from ptxdsl.source import Source, Span
from ptxdsl.tir import Module

TIMEOUT = 120  # seconds


def emit_apart(source: Source, options: Options) -> Emitted:
    """The PTX of a text of LLVM IR; its line map is empty. Raises E0806 with LLVM's words."""
    version = "" if options.ptx_version is None else ".".join(map(str, options.ptx_version))
    command = command_of("ptxdsl.backend.foreign_ir", options.arch, version)
    try:
        done = subprocess.run(command, input=source.text.encode(), capture_output=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        raise error("E0806", f"LLVM did not finish within {TIMEOUT} s", Span(source, 0, 0)) from None
    if done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        # Of a crash, the line that names its reason; a stack of addresses follows it.
        said = next((line for line in words if "LLVM ERROR" in line), words[-1] if words else "it said nothing")
        raise CompileError(Diagnostic("E0806", f"LLVM does not accept this file: {said}", Span(source, 0, 0)))
    # The header names the kernels' file, and the child knew of none.
    ptx = done.stdout.decode("utf-8").replace(" from \n", f" from {os.path.basename(source.name)}\n", 1)
    return Emitted(ptx, (None,) * len(ptx.splitlines()))


def _child() -> int:
    arch, version = sys.argv[1:]
    major, _, minor = version.partition(".")
    options = Options(arch, (int(major), int(minor)) if version else None)
    try:
        emitted = emit(sys.stdin.buffer.read().decode("utf-8"), Module([]), options)
    except CompileError as problem:
        said = str(problem.__cause__ or problem.diagnostics[0].message).removeprefix(REFUSED)
        print(" ".join(said.split()), file=sys.stderr)
        return 1
    sys.stdout.buffer.write(emitted.ptx.encode("utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(_child())
