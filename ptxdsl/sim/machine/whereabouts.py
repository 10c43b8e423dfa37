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
    """A note for each place at which warps run or wait, the most crowded first."""
    places: dict[tuple[int, str], tuple[Instruction, str, list[Warp]]] = {}

    def at(instruction: Instruction, how: str, warp: Warp) -> None:
        _, _, warps = places.setdefault((instruction.line, how), (instruction, how, []))
        if warp not in warps:
            warps.append(warp)

    for cluster in list(machine.resident.values()):
        for cta in cluster.ctas:
            for warp in cta.warps:
                for pc in sorted(set(warp.pc[warp.status == RUNNABLE].tolist())):
                    at(machine.program.blocks[pc].instructions[0], "run", warp)
                for blocked in warp.waits:
                    at(blocked.instruction, "wait", warp)
    found = sorted(places.values(), key=lambda place: -len(place[2]))
    for instruction, how, warps in found[:MOST_PLACES]:
        first = warps[0]
        who = f"warp {first.index} of {cta_text(first.cta)}"
        others = len(warps) - 1
        many = f" and {others} other warp{'' if others == 1 else 's'} {how}" if others else f" {how}s"
        yield machine.places.span(instruction), f"{who}{many} here"
