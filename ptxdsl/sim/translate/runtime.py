"""Functions that compiled kernels call: compiled once a process, when a kernel first needs them.

They are LLVM IR text in tables (``runtime_*.py``). A kernel's text calls them as ``@rt.name``; ``link`` puts the host
address of the compiled function in its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from threading import RLock

from ptxdsl.sim.translate import (
    runtime_atomics,
    runtime_collectives,
    runtime_control,
    runtime_meetings,
    runtime_memory,
    runtime_pointers,
)
from ptxdsl.sim.translate.host_code import HostCode, compile_ir

_NAME = re.compile(r"@rt\.(\w+)")
_PLACE = re.compile(r"%to\d+")
# A table's maker is asked for the text of one function by its name; None if the name is not its own.
_TABLES: tuple[Callable[[str], str | None], ...] = (
    runtime_control.text,
    runtime_meetings.text,
    runtime_pointers.text,
    runtime_memory.text,
    runtime_atomics.text,
    runtime_collectives.text,
)
_INTRINSIC = re.compile(r"call ([^@()]*?) @(llvm\.[\w.]+)\(((?:[^()]|\([^()]*\))*)\)")

_addresses: dict[str, int] = {}
_codes: list[HostCode] = []  # kept for ever: the addresses are in compiled kernels
_lock = RLock()


def link(text: str) -> str:
    """The text with the addresses of the runtime's functions; compiles those that no kernel has wanted before."""
    with _lock:
        _compile(set(_NAME.findall(text)))
        return _NAME.sub(_address, text)


def _address(match: re.Match[str]) -> str:
    return f"inttoptr (i64 {_addresses[match[1]]} to ptr)"


def _compile(names: set[str]) -> None:
    texts: dict[str, str] = {}
    work = [name for name in names if name not in _addresses]
    while work:
        name = work.pop()
        if name in texts:
            continue
        found = next((text for make in _TABLES if (text := make(name)) is not None), None)
        if found is None:
            raise KeyError(f"no runtime function {name}")
        texts[name] = found = _renumbered(found)
        work.extend(used for used in _NAME.findall(found) if used not in _addresses)
    if not texts:
        return

    def place(match: re.Match[str]) -> str:
        return _address(match) if match[1] in _addresses else match[0]

    body = _NAME.sub(place, "\n".join(texts[name] for name in sorted(texts)))
    first = not _addresses  # later ones hold addresses of this process
    code = compile_ir(body + declarations(body), optimise=2, keep="simulator-runtime" if first else None)
    _codes.append(code)
    for name in texts:
        _addresses[name] = code.address(f"rt.{name}")


def _renumbered(text: str) -> str:
    """Names of places to store to are counted over all functions; a text gets its own, whatever was made before."""
    places: dict[str, str] = {}
    return _PLACE.sub(lambda match: places.setdefault(match[0], f"%to{len(places)}"), text)


def declarations(body: str, known: Container[str] = ()) -> str:
    """``declare`` lines of the intrinsics that a text calls, but for those known."""
    found: dict[str, str] = {}
    for result, name, arguments in _INTRINSIC.findall(body):
        if name not in found and name not in known:
            types = ", ".join(_type(piece.strip()) for piece in split_arguments(arguments))
            found[name] = f"declare {result} @{name}({types})\n"
    return "\n" + "".join(found.values())


def split_arguments(text: str) -> list[str]:
    """At the commas outside of brackets."""
    pieces, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c in "<({[":
            depth += 1
        elif c in ">)}]":
            depth -= 1
        elif c == "," and not depth:
            pieces.append(text[start:i])
            start = i + 1
    pieces.append(text[start:])
    return pieces


def _type(argument: str) -> str:
    return argument[: argument.index(">") + 1] if argument.startswith("<") else argument.partition(" ")[0]
