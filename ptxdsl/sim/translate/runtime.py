"""Functions that compiled kernels call: compiled once per process, when a kernel first needs them.

They are LLVM IR text in tables (``runtime_*.py``). A kernel's text calls them as ``@rt.name``: symbols of the process,
so that the text, and the code made of it, is the same in each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from threading import RLock

from ptxdsl.sim.translate import (
    runtime_arrivals,
    runtime_atomics,
    runtime_collectives,
    runtime_control,
    runtime_mbarriers,
    runtime_meetings,
    runtime_memory,
    runtime_named,
    runtime_pointers,
    runtime_turns,
    runtime_waits,
    runtime_warpgroups,
)
from ptxdsl.sim.translate.host_code import HostCode, add_symbol, compile_ir

_NAME = re.compile(r"@rt\.(\w+)")
# A table's maker is asked for the text of one function by its name; None if the name is not its own.
_TABLES: tuple[Callable[[str], str | None], ...] = (
    runtime_control.text,
    runtime_meetings.text,
    runtime_pointers.text,
    runtime_memory.text,
    runtime_atomics.text,
    runtime_collectives.text,
    runtime_turns.text,
    runtime_waits.text,
    runtime_mbarriers.text,
    runtime_arrivals.text,
    runtime_named.text,
    runtime_warpgroups.text,
)
_INTRINSIC = re.compile(r"call ([^@()]*?) @(llvm\.[\w.]+)\(((?:[^()]|\([^()]*\))*)\)")

_addresses: dict[str, int] = {}
_codes: list[HostCode] = []  # kept forever: compiled kernels call into them
_lock = RLock()


def link(text: str) -> str:
    """Declarations of the runtime's functions that a text calls; compiles those that no kernel has wanted before."""
    names = set(_NAME.findall(text))
    with _lock:
        _compile(names)
    return _declared(names)


def address(name: str) -> int:
    """Host address of a function."""
    with _lock:
        _compile({name})
        return _addresses[name]


def _declared(names: Iterable[str]) -> str:
    """A call says itself what it hands over, and what it gets."""
    return "".join(f"declare void @rt.{name}()\n" for name in sorted(names))


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
        texts[name] = found
        work.extend(used for used in _NAME.findall(found) if used not in _addresses)
    if not texts:
        return

    body = "\n".join(texts[name] for name in sorted(texts))
    others = set(_NAME.findall(body)) - texts.keys()
    code = compile_ir(body + declarations(body) + _declared(others), 2, "simulator-runtime")
    _codes.append(code)
    for name in texts:
        _addresses[name] = code.address(f"rt.{name}")
        add_symbol(f"rt.{name}", _addresses[name])


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
