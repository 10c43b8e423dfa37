"""Kernels with random delays at the operations of their protocols.

Which warp waits where, and for how long, is said by an argument: one compilation serves for all delays.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "check"))
from mutant_program import BARRIER_USE, Program

# Half of the warps are slow at a place, always or now and then, by up to some microseconds.
PAUSE = """

def pause(seed: UInt32, place: UInt32):
    var x = seed * 0x9E3779B1 + place * 0x85EBCA77 + UInt32(thread_idx.x // 32) * 0xC2B2AE3D
    x += UInt32(block_idx.x) * 0x27D4EB2F
    x = (x ^ (x >> 15)) * 0x2C1B3C6D
    x = (x ^ (x >> 12)) * 0x297A2D39
    x ^= x >> 15
    if x % 4 == 0 or (x % 4 == 1 and (clock() >> 7) % 4 == 0):
        nanosleep((x >> 8) % 3000)
"""


def delayed(text: str) -> str:
    """The kernel with one more argument, ``seed: UInt32``, and a pause before whatever uses a barrier or a slot."""
    program = Program(text)
    lines, places = [], 0
    for i, line in enumerate(program.lines):
        code = program.code[i]
        if i > program.last_init + 1 and not code.endswith((":", "continue", "break")) and _matters(program, i):
            lines.append(f"{' ' * program.indent(i)}pause(seed, {places})")
            places += 1
        lines.append(line)
    made, count = re.subn(r"(def kernel(?:\[[^\]]*\])?\([^)]*)\)", r"\1, seed: UInt32)", "\n".join(lines))
    assert count == 1 and places >= 2
    return made.rstrip("\n") + "\n" + PAUSE


def _matters(program: Program, i: int) -> bool:
    if program.indent(i) < 8 and "barrier" not in program.code[i]:
        return False
    return program.touches(i) or BARRIER_USE.search(program.code[i]) is not None
