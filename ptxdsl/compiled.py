"""What the Python API hands out for compiled kernels: the artifact, what each stage makes of it, machine code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from ptxdsl import artifact
from ptxdsl.diagnostics import error
from ptxdsl.files.output_files import write_file
from ptxdsl.record import dataclass, field_names
from ptxdsl.source import Source

if TYPE_CHECKING:
    from ptxdsl.backend.assemble import Assembled, Resources

Constants = tuple[tuple[str, str], ...]


@dataclass(frozen=True, repr=False)
class Compiled(artifact.Compiled):
    """One PTX module, and where it comes from.

    ``ptx``, ``signatures``, ``warnings``, ``options`` and ``line_map`` are the compiler's results. ``tir`` and
    ``llvm_ir`` are the earlier stages, compiled again when they are asked for. ``resources``, ``cubin()`` and
    ``sass()`` need ptxas (the extra ``assemble``). ``save(path)`` writes whichever of these the path's suffix names.
    """

    source: Source | None = None
    kernel: str | None = None
    constants: Constants = ()

    def __repr__(self) -> str:
        names, lines = ", ".join(self.signatures), self.ptx.count("\n")
        return f"<ptxdsl PTX of {names or 'no kernel'} for {self.options.arch}: {lines} lines>"

    @property
    def tir(self) -> str:
        """The typed IR as text. Raises CompileError E1021 if an imported file has changed since."""
        return self._stage("tir")

    @property
    def llvm_ir(self) -> str:
        """The LLVM IR as text. Raises CompileError E1021 if an imported file has changed since."""
        return self._stage("llvm")

    @property
    def resources(self) -> Mapping[str, Resources]:
        """What each kernel uses, by PTX symbol: registers per thread, shared memory and spills in bytes. Raises like
        ``cubin``."""
        return self._assembled.resources

    def cubin(self) -> bytes:
        """The machine code. Raises CompileError: E0802 if ptxas rejects the PTX, E0803 if it is not installed."""
        return self._assembled.cubin

    def sass(self) -> str:
        """The machine code as nvdisasm lists it. Raises like ``cubin``, and E0805."""
        from ptxdsl.backend.assemble import disassemble

        return disassemble(self._assembled.cubin)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file, whole or not at all: ``.ptx``, ``.cubin``, ``.sass``, ``.ll`` or ``.tir`` by its suffix.

        Raises CompileError: E1007 if it cannot be written, E1022 for another suffix, and like what is written.
        """
        place = os.fsdecode(path)
        suffix = os.path.splitext(place)[1]
        if suffix not in _SAVED:
            raise error("E1022", f"'{place}' does not say what to save", None, help=f"end it with {', '.join(_SAVED)}")
        made = getattr(self, _SAVED[suffix])
        write_file(place, made() if callable(made) else made)

    @cached_property
    def _assembled(self) -> Assembled:
        from ptxdsl.backend.cubin_cache import assembled

        return assembled(self)

    def _stage(self, stop: str) -> str:
        from ptxdsl import driver

        assert self.source is not None
        job = driver.Job(self.source, self.kernel, dict(self.constants), self.options)
        text = driver.show(job, stop)
        if driver.inputs_digest(job) != self.inputs_digest:
            raise error(
                "E1021",
                f"a file that '{self.source.name}' imports has changed since it was compiled",
                None,
                help="reload the module and compile again",
            )
        assert isinstance(text, str)
        return text


_SAVED = {".ptx": "ptx", ".cubin": "cubin", ".sass": "sass", ".ll": "llvm_ir", ".tir": "tir"}


def from_artifact(made: artifact.Compiled, source: Source, kernel: str | None, constants: Constants) -> Compiled:
    fields = {name: getattr(made, name) for name in field_names(artifact.Compiled)}
    return Compiled(**fields, source=source, kernel=kernel, constants=constants)
