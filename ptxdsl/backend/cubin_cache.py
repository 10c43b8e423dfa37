"""Machine code of PTX that was assembled before: by the text, the target and the assembler.

An entry has ptxas' words too: its notes are shown at the lines of the text that is compiled now.
"""

from __future__ import annotations

import os

from ptxdsl.artifact import Compiled
from ptxdsl.backend.assemble import Assembled, find_tool, run_ptxas, understand
from ptxdsl.files import cache
from ptxdsl.files.compilations import turned_off

_NAME = "cubin"


def assembled(compiled: Compiled) -> Assembled:
    """The machine code of an artifact, of the cache or made now. Raises as ``assemble.assemble`` does."""
    options, ptx, line_map = compiled.options, compiled.ptx, compiled.line_map
    key = None if turned_off() else cache.key("cubin", assembler(), options.arch, str(options.lineinfo), ptx)
    found = None if key is None else cache.load_own(_NAME, key)
    if found is not None:
        length, _, rest = found.partition(b"\0")
        return understand(0, rest[: int(length)].decode("utf-8", "replace"), rest[int(length) :], ptx, line_map)
    code, words, cubin = run_ptxas(ptx, options)
    made = understand(code, words, cubin, ptx, line_map)
    if key is not None:
        said = words.encode()
        cache.store(_NAME, key, b"%d\0" % len(said) + said + cubin)
    return made


def assembler() -> str:
    """Which ptxas there is: its file, as the file system knows it. Raises E0803 where there is none."""
    path = os.path.realpath(find_tool("ptxas"))
    status = os.stat(path)
    return f"{path}:{status.st_size}:{status.st_mtime_ns}"
