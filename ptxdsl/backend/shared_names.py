"""What the source calls a kernel's shared memory: for messages about the PTX, where it has symbols and bytes.

A variable's PTX symbol is made of its kernel's name and its own (``lower/memory.py``); a RolePipeline's mbarriers lie
at constant places of such variables, where its ``pipe.new`` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ptxdsl.artifact import SharedName
from ptxdsl.tir import Const, Kernel, Op, Value, walk

_MBARRIER_BYTES = 8
_MOST_SHARED_BYTES = 1 << 18  # more than any target's
_SIDES = ("producer_mbar", "consumer_mbar")


def shared_names(kernels: Iterable[Kernel]) -> dict[str, SharedName]:
    """By PTX symbol. A variable whose symbol had to be another one (its name was taken) is left out."""
    found: dict[str, SharedName] = {}
    for kernel in kernels:
        ops = list(walk(kernel.body))
        made: dict[Value, Op] = {r: op for op in ops for r in op.results}
        roles = _roles([op for op in ops if op.name == "pipe.new"], made)
        taken: set[str] = set()
        for op in made.values():
            if op.name not in ("shared.alloc", "shared.dynamic"):
                continue
            dynamic = op.name == "shared.dynamic"
            symbol = f"{kernel.name}_{'dynamic' if dynamic else op.attrs['name']}"
            known = {} if dynamic else roles.get(op, {})
            if dynamic:
                for other, those in roles.items():
                    known |= those if other.name == "shared.dynamic" else {}
            elif symbol in taken:
                found.pop(symbol, None)  # which of the two it is depends on the order of lowering
                continue
            taken.add(symbol)
            name = None if dynamic else op.attrs["name"]
            found[symbol] = SharedName(name, op.attrs.get("element", 0), known)
    return found


def _roles(pipelines: Iterable[Op], made: Mapping[Value, Op]) -> dict[Op, dict[int, str]]:
    """By allocation and byte offset the names of the pipelines' mbarriers; with the pipelines' own names where an
    mbarrier has several roles or producers."""
    said: dict[tuple[Op, int], dict[str, list[str]]] = {}
    producers: dict[tuple[Op, int], set[str]] = {}
    for op in pipelines:
        subs = (op.attrs.get("full_subs", 1), op.attrs.get("empty_subs", 1))
        for side, base, count in zip(_SIDES, op.operands, subs, strict=True):
            place = _place(base, made)
            if place is None:
                continue
            allocation, start = place
            # What lies behind an allocation has no name, however many stages there are said to be.
            room = (int(allocation.attrs.get("bytes", _MOST_SHARED_BYTES)) - start) // _MBARRIER_BYTES
            for number in range(min(op.attrs["stages"] * count, room)):
                stage, sub = divmod(number, count)
                text = f"{side}{f'[{sub}]' if count > 1 else ''} of stage {stage}"
                at = allocation, start + number * _MBARRIER_BYTES
                said.setdefault(at, {}).setdefault(text, []).append(op.attrs["pipeline"])
                if op.attrs["producer"]:
                    producers.setdefault(at, set()).add(op.attrs["pipeline"])
    found: dict[Op, dict[int, str]] = {}
    for (allocation, offset), texts in said.items():
        if len(texts) == 1 and len(producers.get((allocation, offset), ())) < 2:
            words = next(iter(texts))
        else:
            words = ", ".join(f"{text} of `{'`, `'.join(dict.fromkeys(names))}`" for text, names in texts.items())
        found.setdefault(allocation, {})[offset] = words
    return found


def _place(pointer: Value, made: Mapping[Value, Op]) -> tuple[Op, int] | None:
    """The allocation that a pointer points into, and the byte offset, if that is constant."""
    offset = 0
    while (op := made.get(pointer)) is not None:
        if op.name in ("shared.alloc", "shared.dynamic"):
            return op, offset
        if op.name == "ptr.add" and isinstance(op.operands[1], Const):
            offset += int(op.operands[1].value) * int(op.attrs["scale"]) + int(op.attrs.get("offset", 0))
        elif op.name != "ptr.cast":
            return None
        pointer = op.operands[0]
    return None
