"""What a command line asks of a compilation: its options and its constants."""

from __future__ import annotations

from collections.abc import Iterable

from ptxdsl.command.command_line import Arguments
from ptxdsl.command.streams import command_error
from ptxdsl.options import Options
from ptxdsl.source import Source
from ptxdsl.targets import target_of_ptx


def options_of(arguments: Arguments, source: Source | None = None) -> Options:
    """The options of a compilation; a PTX ``source`` is for the target that it names, unless another is asked for."""
    arch = arguments.arch
    if arch is None and source is not None and source.name.endswith(".ptx"):
        arch = target_of_ptx(source.text)
    arch = Options.arch if arch is None else arch
    if arguments.command == "check":
        return Options(arch, include=tuple(arguments.include or ()))
    return Options(
        arch,
        ptx_version=arguments.ptx_version,
        wait=arguments.wait,
        contract=not arguments.no_contract,
        lineinfo=arguments.lineinfo,
        ring_unroll=not arguments.no_ring_unroll,
        check=arguments.check,
        include=tuple(arguments.include or ()),
    )


def constants_of(entries: Iterable[str] | None) -> dict[str, str]:
    """``-D`` entries by name. Raises E1004/E1005."""
    constants: dict[str, str] = {}
    for entry in entries or ():
        name, equals, value = entry.partition("=")
        if not (equals and name.isidentifier() and value.strip()):
            help = "for example -D STAGES=3; the value is an expression such as 3, True or DType.float32"
            raise command_error("E1004", f"-D {entry}: expected NAME=VALUE", help)
        if name in constants:
            raise command_error("E1005", f"-D gives {name} twice")
        constants[name] = value
    return constants
