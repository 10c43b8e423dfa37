"""Diagnostics of a simulated program: where in the PTX text and in its source, in which CTA, warp and lanes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.ptx.module import Instruction, Location, Module
from ptxdsl.ptx.named_files import NamedFiles
from ptxdsl.record import replace
from ptxdsl.sim import layout
from ptxdsl.sim.machine.memory import SPACES, AccessFault, Memory, access_bytes
from ptxdsl.sim.machine.memory_words import address_text, bytes_text
from ptxdsl.sim.machine.waits import lanes_text
from ptxdsl.source import Source, Span

if TYPE_CHECKING:
    from ptxdsl.sim.machine.cta import Cta
    from ptxdsl.sim.machine.warp import Warp

Note = tuple[Span, str]

# The codes of accesses that memory refuses, by layout's fault_kind.
ACCESS_CODES = {
    layout.BAD_ADDRESS: "E1120",
    layout.MISALIGNED: "E1121",
    layout.READ_ONLY: "E1122",
    layout.WRONG_SPACE: "E1123",
    layout.BAD_MEMBERS: "E1124",
}
NOT_UNIFORM = "E1115"
BARRIER_MISUSE, CLUSTER_MISUSE, REGISTERS_MISUSE = "E1116", "E1117", "E1118"
TRAP, ASSERTION, HEAP = "E1125", "E1126", "E1127"
DIVERGENT = "E1180"
INTERRUPTED = "E1187"
DEADLOCK = "E1190"
IN_FLIGHT, SHARED_ID, STRAY = "W1191", "W1195", "W1197"  # warnings


class SimulationFault(Exception):
    """Ends a simulation: what the program did wrong."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


class Places:
    """Spans of instructions. line_map: by PTX line (index 0 is line 1) the span of the source, where known."""

    def __init__(self, module: Module, kernel: str, line_map: Sequence[Span | None] | None) -> None:
        self.kernel = kernel
        self.source = Source(module.text_name, module.text)
        self.line_map = line_map or ()
        self._files = NamedFiles()

    def ptx_span(self, instruction: Instruction) -> Span:
        return self.source.line_span(instruction.line)

    def source_span(self, instruction: Instruction) -> Span | None:
        """The place in the text that was compiled, by the line map or by ``.loc`` where its file can be read."""
        mapped = _mapped(self.line_map, instruction.line)
        if mapped is not None:
            return mapped
        return self._files.span(instruction.location)

    def span(self, instruction: Instruction) -> Span:
        """The best place to show."""
        return self.source_span(instruction) or self.ptx_span(instruction)

    def notes(self, instruction: Instruction) -> tuple[Note, ...]:
        """The PTX line, where the diagnostic itself stands at the source; the file of a ``.loc`` that is not there."""
        source = self.source_span(instruction)
        if source is not None:
            return ((self.ptx_span(instruction), "the PTX instruction"),)
        if instruction.location is not None:
            return ((self.ptx_span(instruction), f"compiled from {location_text(instruction.location)}"),)
        return ()

    def line_text(self, instruction: Instruction) -> str:
        """``a.pdsl:12`` or ``a.ptx:30``."""
        span = self.span(instruction)
        return f"{span.source.name}:{span.line}"

    def who(self, warp: Warp, mask: int) -> str:
        return f"{cta_text(warp.cta)}, warp {warp.index}, {lanes_text(mask)} of kernel '{self.kernel}'"

    def diagnostic(
        self,
        code: str,
        message: str,
        instruction: Instruction,
        warp: Warp | None = None,
        mask: int = 0,
        help: str | None = None,
        notes: tuple[Note, ...] = (),
        at: Sequence[tuple[Instruction, str]] = (),
    ) -> Diagnostic:
        """An error at an instruction that lanes of a warp execute. notes, and at instructions: what else is shown."""
        if warp is not None:
            message = f"{message} ({self.who(warp, mask)})"
        notes += tuple((self.span(there), words) for there, words in at)
        return Diagnostic(code, message, self.span(instruction), notes + self.notes(instruction), help)


def at_source(found: Diagnostic, line_map: Sequence[Span | None] | None) -> Diagnostic:
    """A diagnostic that stands in the PTX text, at the line of the source that this comes from, if that is known."""
    source = _mapped(line_map or (), found.span.line) if found.span is not None else None
    if found.span is None or source is None:
        return found
    return replace(found, span=source, notes=((found.span, "the PTX instruction"), *found.notes))


def _mapped(line_map: Sequence[Span | None], line: int) -> Span | None:
    return line_map[line - 1] if 0 < line <= len(line_map) else None


def access_text(memory: Memory, cta: Cta, parts: Sequence[str], kind: int, address: int) -> str:
    """What is wrong with an access of compiled code: the parts of its opcode, its ``fault_kind`` and address."""
    space = next((part for part in parts if part in SPACES), "generic")
    size = access_bytes(parts) or 1
    if kind == layout.MISALIGNED:
        return f"address {address_text(space, address)} is not a multiple of the {bytes_text(size)} that are accessed"
    if kind == layout.BAD_MEMBERS:
        return f"the member mask {address & 0xFFFFFFFF:#010x} does not name all lanes that execute it"
    try:
        memory.view(cta, space, address, size, write=parts[0] in ("st", "atom", "red"), thread=0)
    except AccessFault as fault:
        return fault.text
    return f"{bytes_text(size)} at address {address_text(space, address)} cannot be accessed"


def cta_text(cta: Cta) -> str:
    return f"CTA ({', '.join(map(str, cta.id))})"


def location_text(location: Location) -> str:
    return f"{location.file}:{location.line}" + (f":{location.column}" if location.column else "")
