"""Where the warps of an unfinished run are, for the report of a limit or an interruption."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ptxdsl.ptx.module import Instruction
from ptxdsl.sim.layout import RUNNABLE
from ptxdsl.sim.machine.faults import Note, cta_text
from ptxdsl.sim.machine.warp import Warp

if TYPE_CHECKING:
    from ptxdsl.sim.machine.machine import Machine

MOST_PLACES = 8


def whereabouts(machine: Machine) -> Iterable[Note]:
    """A note for each loop in which warps go round and each place at which they run or wait, the most crowded first."""
    places: dict[tuple[int, str], tuple[Instruction, str, list[Warp]]] = {}

    def at(instruction: Instruction, key: int, how: str, warp: Warp) -> None:
        _, _, warps = places.setdefault((key, how), (instruction, how, []))
        if warp not in warps:
            warps.append(warp)

    for cluster in list(machine.resident.values()):
        for cta in cluster.ctas:
            for warp in cta.warps:
                for pc in sorted(set(warp.pc[warp.status == RUNNABLE].tolist())):
                    loop, instruction = machine.program.deciding.loop(pc), machine.program.blocks[pc].instructions[0]
                    if loop:
                        at(instruction, min(loop), f"go round here{_lines(machine, loop)}", warp)
                    else:
                        at(instruction, instruction.line, "run here", warp)
                for blocked in warp.waits:
                    at(blocked.instruction, blocked.instruction.line, "wait here", warp)
    found = sorted(places.values(), key=lambda place: -len(place[2]))
    for instruction, how, warps in found[:MOST_PLACES]:
        first, others = warps[0], len(warps) - 1
        who = f"warp {first.index} of {cta_text(first.cta)}"
        verb, _, rest = how.partition(" ")
        many = f" and {others} other warp{'' if others == 1 else 's'} {how}" if others else f" {_of_one(verb)} {rest}"
        yield machine.places.span(instruction), f"{who}{many}"


def _of_one(verb: str) -> str:
    return "goes" if verb == "go" else f"{verb}s"


def _lines(machine: Machine, loop: set[int]) -> str:
    """The lines of a loop in the text in which most of it stands; nothing where that is one."""
    spans = [machine.places.span(i) for block in loop for i in machine.program.blocks[block].instructions]
    sources = [span.source for span in spans]
    most = max(sources, key=sources.count)
    lines = [span.line for span in spans if span.source is most]
    return f", in lines {min(lines)} to {max(lines)}" if min(lines) < max(lines) else ""
