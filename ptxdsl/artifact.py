"""What a compilation hands over to those who launch, simulate or check its PTX."""

from __future__ import annotations

from collections.abc import Mapping

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.options import Options
from ptxdsl.record import dataclass
from ptxdsl.signature import KernelSignature
from ptxdsl.source import Span


@dataclass(frozen=True)
class Compiled:
    """One PTX module.

    signatures: by PTX symbol, in the order of the module. line_map: for each PTX line (index 0 is line 1) the span it
    came from, or None. inputs_digest: hexadecimal, of every text read, the kernel asked for, its constants, the options
    and the compiler's version; equal digests have equal PTX. warnings: what was found besides, never errors.
    """

    signatures: Mapping[str, KernelSignature]
    ptx: str
    line_map: tuple[Span | None, ...]
    options: Options
    inputs_digest: str
    warnings: tuple[Diagnostic, ...] = ()
