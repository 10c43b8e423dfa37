"""Parameters of device functions as registers.

``st.param``/``ld.param`` of a call sequence name a parameter and a fixed offset. Each piece that is accessed becomes a
register; a parameter whose address is taken, or with pieces that overlap in part, becomes a local variable.
"""

from __future__ import annotations

from collections.abc import Mapping

from ptxdsl.ptx.inline import Flat, rename, symbol_names
from ptxdsl.ptx.module import (
    TYPE_BYTES,
    Address,
    Arguments,
    Instruction,
    Label,
    Operand,
    Register,
    Sink,
    Symbol,
    Variable,
    Vector,
)
from ptxdsl.record import replace


def access_of(instruction: Instruction) -> tuple[str, int, str, int] | None:
    """Of ``ld.param``/``st.param`` of a symbol: (name, byte offset, type, elements); else None."""
    parts = instruction.parts
    if parts[0] not in ("ld", "st") or len(parts) < 3 or not parts[1].startswith("param"):
        return None
    place = instruction.operands[1 if parts[0] == "ld" else 0] if len(instruction.operands) == 2 else None
    if not isinstance(place, Address) or not isinstance(place.base, Symbol):
        return None
    count = {"v2": 2, "v4": 4, "v8": 8}.get(parts[-2], 1)
    return place.base.name, place.base.offset + place.offset, parts[-1], count


def promote(flat: Flat) -> None:
    """Rewrites the accesses of ``flat.parameters``."""
    if not flat.parameters:
        return
    pieces: dict[str, dict[int, int]] = {name: {} for name in flat.parameters}  # offset -> bytes
    in_memory: set[str] = set()
    for item in flat.body:
        if isinstance(item, Label):
            continue
        access = access_of(item)
        if access is not None and access[0] in pieces:
            name, offset, type, count = access
            width = TYPE_BYTES.get(type, 0)
            if width in (0, 16):  # 0: there is no such type, which is said later
                in_memory.add(name)
                continue
            for start in range(offset, offset + width * count, width):
                if pieces[name].setdefault(start, width) != width:
                    in_memory.add(name)
        elif not item.opcode.startswith("call."):
            in_memory.update(name for operand in item.operands for name in symbol_names(operand) if name in pieces)
    for name, widths in pieces.items():
        size = flat.parameters[name].size or 0
        end = 0
        for start in sorted(widths):
            if start < end or start < 0 or start + widths[start] > size:
                in_memory.add(name)
            end = start + widths[start]
    for item in flat.body:
        # What a host function sees is one register, or memory.
        if isinstance(item, Instruction) and item.opcode.startswith("call."):
            for operand in item.operands:
                for name in symbol_names(operand):
                    widths = pieces.get(name, {0: 0})
                    if len(widths) > 1 or any(start for start in widths):
                        in_memory.add(name)
    for name in in_memory & pieces.keys():
        flat.variables[name] = replace(flat.parameters[name], space="local")
        del pieces[name]
    body: list[Instruction | Label] = []
    for item in flat.body:
        if isinstance(item, Instruction):
            body.extend(_rewritten(item, pieces, flat))
        else:
            body.append(item)
    flat.body = body


def _register(flat: Flat, name: str, offset: int, width: int) -> Register:
    register = f"{name}+{offset}" if offset else name
    flat.registers.setdefault(register, f"b{8 * width}")
    return Register(register)


def _rewritten(item: Instruction, pieces: Mapping[str, Mapping[int, int]], flat: Flat) -> list[Instruction]:
    access = access_of(item)
    if access is not None:
        name, offset, type, count = access
        load = item.opcode.startswith("ld")
        if name in pieces:
            value = item.operands[0 if load else 1]
            values = value.items if isinstance(value, Vector) else (value,)
            width = TYPE_BYTES[type]
            if len(values) != count:
                return [item]
            moves = []
            for i, one in enumerate(values):
                if isinstance(one, Sink):
                    continue
                register = _register(flat, name, offset + i * width, width)
                operands: tuple[Operand, ...] = (one, register) if load else (register, one)
                moves.append(replace(item, opcode=f"mov.{type}", operands=operands))
            return moves
        if name in flat.variables and flat.variables[name].space == "local":
            rest = item.parts[2:]
            return [replace(item, opcode=".".join((item.parts[0], "local", *rest)))]
        return [item]
    if item.opcode.startswith("call."):
        operands = tuple(_call_operand(operand, pieces, flat) for operand in item.operands)
        return [replace(item, operands=operands)]
    return [item]


def _call_operand(operand: Operand, pieces: Mapping[str, Mapping[int, int]], flat: Flat) -> Operand:
    assert isinstance(operand, Arguments)
    items: list[Operand] = []
    for item in operand.items:
        if isinstance(item, Symbol) and item.name in pieces:
            variable: Variable = flat.parameters[item.name]
            width = pieces[item.name].get(0) or min(variable.size or 4, 8)
            items.append(_register(flat, item.name, 0, width))
        else:
            items.append(rename(item, {}, {}))
    return Arguments(tuple(items))
