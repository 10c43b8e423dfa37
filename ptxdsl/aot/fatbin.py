"""A fat binary: machine code and PTX for several targets in one file, made by NVIDIA's ``fatbinary``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ptxdsl.backend.assemble import INSTALL, find_tool, run_tool
from ptxdsl.compiled import Compiled
from ptxdsl.diagnostics import CompileError, error
from ptxdsl.files.temporary import temporary_folder


def fatbin(compiled: Sequence[Compiled]) -> bytes:
    """Of each artifact the cubin and the PTX. Raises CompileError: as ``Compiled.cubin``, E1023 where there is no
    ``fatbinary``, E1024 where it fails."""
    try:
        tool = find_tool("fatbinary")
    except CompileError:
        raise error("E1023", "a fat binary is made by NVIDIA's fatbinary, which is not installed", None, help=INSTALL) \
            from None  # fmt: skip
    with temporary_folder() as folder:
        output = Path(folder, "kernels.fatbin")
        command = [tool, "--64", f"--create={output}"]
        for number, made in enumerate(compiled):
            for kind, suffix, data in (("elf", "cubin", made.cubin()), ("ptx", "ptx", made.ptx.encode())):
                path = os.path.join(folder, f"{number}.{suffix}")
                Path(path).write_bytes(data)
                command.append(f"--image3=kind={kind},sm={made.options.arch.removeprefix('sm_')},file={path}")
        done = run_tool(command, "fatbinary")
        if done.returncode != 0:
            words = (done.stderr or done.stdout).decode("utf-8", "replace").replace(folder + os.sep, "").strip()
            raise error("E1024", f"fatbinary: {words}", None)
        if not output.is_file():
            raise error("E1024", "fatbinary wrote nothing", None, help=f"'{tool}' is damaged: {INSTALL}")
        return output.read_bytes()
