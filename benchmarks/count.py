"""Counts PTX and SASS instructions of kernels and of their loops: the rules behind data/oracle_counts.csv.

    python benchmarks/count.py ptx|ptxloops|sass|sassloops FILE

PTX: all instructions of the first entry. SASS: all of an ``nvdisasm -c`` listing, NOPs excluded. A loop goes from its
head to its back branch and counts where it has an arrive or a commit: an unrolled ring has several, one a stage. The
out-of-line slow paths of SASS waits are left out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

ARRIVES = re.compile(r"mbarrier\.arrive|tcgen05\.commit|ARRIVE|UTCBAR")
# what tells a producer's loop from a consumer's, in the kernels that are counted
PRODUCER = re.compile(r"tcgen05\.commit|UTCBAR|ld\.global|\bLDG")
CONSUMER = re.compile(r"st\.global|\bSTG")


@dataclass(frozen=True)
class LoopCount:
    """length: instructions, slow paths excepted. arrives: how many stages the loop covers."""

    length: int
    arrives: int
    role: str

    @property
    def per_stage(self) -> float:
        return self.length / self.arrives

    def __str__(self) -> str:
        return f"{self.length}/{self.arrives}"


def ptx_lines(text: str) -> list[str]:
    """Instructions and labels of the first entry, in order; a label ends with ':'."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    found = []
    for line in text[text.index("{", text.index(".entry")) :].splitlines():
        for statement in re.sub(r"//.*", "", line).split(";"):
            # operand lists such as {%r1, %r2} stay; scope braces stand alone, before .reg or after a statement
            part = re.sub(r"^\s*[{}]\s*", "", statement)
            if not re.search(r"\{[^}]*\}?\s*$", part) or part.strip() in "{}":
                part = re.sub(r"\s*[{}]\s*$", "", part)
            part = part.strip()
            label = re.match(r"^([$\w]+):\s*(.*)$", part)
            if label:
                found.append(label.group(1) + ":")
                part = label.group(2).strip()
            if part and not part.startswith(".") and part not in "{}":
                found.append(part)
    return found


def ptx_count(text: str) -> int:
    return sum(not line.endswith(":") for line in ptx_lines(text))


def ptx_loops(text: str) -> list[LoopCount]:
    heads: dict[str, int] = {}
    code: list[str] = []
    loops = []
    for line in ptx_lines(text):
        if line.endswith(":"):
            heads[line[:-1]] = len(code)
            continue
        code.append(line)
        branch = re.search(r"\bbra(?:\.uni)?\s+(\$[$\w]+)", line)  # labels inside inline assembly have no $
        if branch and branch.group(1) in heads:
            loops.append(_loop(code[heads[branch.group(1)] :]))
    return _in_role_order(loop for loop in loops if loop.arrives)


def sass_lines(listing: str) -> tuple[list[str], list[tuple[int, int]]]:
    """The instructions, and (first, past the last) of every backward branch."""
    code: list[str] = []
    labels: dict[str, int] = {}
    back = []
    for line in listing.splitlines():
        label = re.match(r"\s*(\.L_x_\d+):", line)
        if label:
            labels[label.group(1)] = len(code)
            continue
        instruction = re.search(r"/\*[0-9a-f]{4,}\*/\s+(.*?);", line)
        if instruction:
            code.append(instruction.group(1))
            branch = re.search(r"BRA(?:\.\w+)*\s+(?:!?U?P\w+, )?`\((\.L_x_\d+)\)", instruction.group(1))
            if branch and branch.group(1) in labels:
                back.append((labels[branch.group(1)], len(code)))
    return code, back


def sass_count(listing: str) -> int:
    return sum("NOP" not in instruction for instruction in sass_lines(listing)[0])


def sass_loops(listing: str) -> list[LoopCount]:
    code, back = sass_lines(listing)
    loops = []
    for first, end in back:
        part = code[first:end]
        if not any(instruction.startswith(("EXIT", "BRA ")) for instruction in part[:-1]):
            loops.append(_loop(part))
    return _in_role_order(loop for loop in loops if loop.arrives)


def loop_of(listing: str, opcode: str = "MMA", count: int | None = None) -> int | None:
    """Instructions of the shortest loop that has such an opcode (so often), NOPs and slow paths excluded."""
    code, back = sass_lines(listing)
    lengths = []
    for first, end in back:
        part = code[first:end]
        found = sum(opcode in instruction for instruction in part)
        whole = not any(instruction.startswith(("EXIT", "BRA ")) for instruction in part[:-1])
        if whole and found and count in (None, found):
            lengths.append(sum("NOP" not in instruction for instruction in part))
    return min(lengths, default=None)


def _loop(code: list[str]) -> LoopCount:
    arrives = sum(bool(ARRIVES.search(line)) and "expect_tx" not in line for line in code)
    text = "\n".join(code)
    role = "producer" if PRODUCER.search(text) else "consumer" if CONSUMER.search(text) else "?"
    return LoopCount(len(code), arrives, role)


def _in_role_order(loops: Iterator[LoopCount]) -> list[LoopCount]:
    """Producers first, then loops without a mark in the order of the text, then consumers."""
    return sorted(loops, key=lambda loop: ("producer", "?", "consumer").index(loop.role))


def main(mode: str, path: str) -> None:
    with open(path) as file:
        text = file.read()
    if mode in ("ptx", "sass"):
        print((ptx_count if mode == "ptx" else sass_count)(text))
    loops = {"ptxloops": ptx_loops, "sassloops": sass_loops}.get(mode)
    for loop in () if loops is None else loops(text):
        print(f"{loop.role}: {loop.length} instructions, {loop.arrives} arrives")


if __name__ == "__main__":
    main(*sys.argv[1:])
