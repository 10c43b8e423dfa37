"""What a compilation hands over to those who launch, simulate or check its PTX."""

from __future__ import annotations

from collections.abc import Mapping

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.options import Options
from ptxdsl.record import dataclass, field
from ptxdsl.signature import KernelSignature
from ptxdsl.source import Span


@dataclass(frozen=True)
class SharedName:
    """What the source calls a variable of shared memory, for messages.

    variable: its name in the source, None of dynamic shared memory. element: bytes of one of its elements, 0 unknown.

    roles: by byte offset, what the mbarrier there is to a RolePipeline (``consumer_mbar of stage 0``).
    """

    variable: str | None
    element: int
    roles: Mapping[int, str]


@dataclass(frozen=True)
class Compiled:
    """One PTX module.

    signatures: by PTX symbol, in the order of the module. line_map: for each PTX line (index 0 is line 1) the span it
    came from, or None. inputs_digest: hexadecimal, of every text read, the kernel asked for, its constants, the options
    and the compiler's version; equal digests have equal PTX. warnings: what was found besides, never errors.
    shared_names: by PTX symbol, what the source calls it.
    """

    signatures: Mapping[str, KernelSignature]
    ptx: str
    line_map: tuple[Span | None, ...]
    options: Options
    inputs_digest: str
    warnings: tuple[Diagnostic, ...] = ()
    shared_names: Mapping[str, SharedName] = field(default_factory=dict)
