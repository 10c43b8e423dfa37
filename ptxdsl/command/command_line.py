"""The command's arguments: a table for each subcommand, read by argparse, and for plain commands without it.

argparse with its formatting and translation costs 10 ms of start-up, as long as a compilation that the cache answers.
``plain`` reads what has no abbreviation, no error and no help in it; all else is argparse's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

TYPE_CHECKING = False  # the typing module costs 4 ms
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from typing import Any, Literal

FORMATS = ("ptx", "cubin", "fatbin", "c")  # of ``build``
STAGE_NAMES = ("tree", "ast", "tir", "rings", "llvm", "ptx", "cubin", "sass")
_STAGE_OF_SUFFIX = {".ptx": "ptx", ".cubin": "cubin", ".sass": "sass", ".ll": "llvm", ".tir": "tir"}


class Help(Exception):
    """The answer to ``--help``, which is its text."""


class Arguments:
    """``command`` is the subcommand; the others are the options by their names."""

    command: str
    file: str
    files: list[str]  # of ``check``
    output: str | None
    emit: str
    kernel: str | None
    constants: list[str] | None
    arch: str | None = None
    archs: list[str] | None
    formats: list[str] | None
    ptx_version: tuple[int, int] | None
    wait: Literal["try", "probe"]
    check: Literal["off", "warn", "error"]
    no_contract: bool
    no_ring_unroll: bool
    include: list[str] | None
    lineinfo: bool
    json: bool = False
    no_cache: bool
    code: str
    action: str
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    cluster: tuple[int, int, int] | None
    smem: int | None
    args: list[str] | None
    target: Literal["sim", "gpu", "auto"]
    schedule: str | None
    steps: int | None
    save: list[str] | None
    expect: list[str] | None
    rtol: float
    atol: float
    trace: str | None
    sarif: str | None
    witness: str | None
    explore: str | None
    timeline: str | None
    races: bool
    lanes: bool


def _ptx_version(text: str) -> tuple[int, int]:
    major, dot, minor = text.partition(".")
    if not (dot and _is_number(major) and _is_number(minor)):
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(f"'{text}' is not a PTX version: write it as 8.6")
    return int(major), int(minor)


def _shape(text: str) -> tuple[int, int, int]:
    numbers = text.strip().strip("()").replace(",", "x").split("x")
    if not (1 <= len(numbers) <= 3 and all(_is_number(n.strip()) and int(n) for n in numbers)):
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(f"'{text}' is not a shape: write up to three numbers from 1 as 4 or 4x2x1")
    x, y, z = (*map(int, numbers), 1, 1)[:3]
    return x, y, z


def _tolerance(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not found >= 0:
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(f"'{text}' is not a tolerance: write a number from 0 as 1e-5")
    return found


def _count(text: str) -> int:
    if not (_is_number(text) and int(text)):
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(f"'{text}' is not a number from 1")
    return int(text)


def _is_number(text: str) -> bool:
    """Whether it is digits that ``int`` takes: it refuses more than a few thousand."""
    return text.isascii() and text.isdigit() and len(text) < 1000


_FLAG = "store_true"

# Option: argparse's words for it.
_BOTH: dict[str, dict[str, Any]] = {
    "--arch": {
        "metavar": "A",
        "default": None,
        "help": "the target (sm_90a; a .ptx file's own); `ptxdsl targets` lists them",
    },
    "--json": {"action": _FLAG, "help": "diagnostics as one JSON object on standard error"},
}
_INCLUDE: dict[str, Any] = {
    "dest": "include",
    "action": "append",
    "metavar": "DIR",
    "help": "a folder of modules to import, besides the file's own; repeat for several",
}
_KERNEL: dict[str, dict[str, Any]] = {
    "--kernel": {"metavar": "K", "help": "the def to compile (default: all @kernel defs, or else the only def)"},
    "-D": {
        "dest": "constants",
        "action": "append",
        "metavar": "NAME=VALUE",
        "help": "a comptime parameter; the value is an expression such as 3, True or DType.float32",
    },
    "-I": _INCLUDE,
}
_CODE: dict[str, dict[str, Any]] = {
    "--no-contract": {"action": _FLAG, "help": "keep a*b+c apart instead of fusing it to fma"},
    "--no-ring-unroll": {"action": _FLAG, "help": "keep ring loops as written"},
    "--wait": {"choices": ("try", "probe"), "default": "try", "help": "the form of a barrier wait (try)"},
}
_PTX: dict[str, dict[str, Any]] = {
    **_CODE,
    "--lineinfo": {"action": _FLAG, "help": "keep .loc lines in the PTX"},
    "--ptx-version": {"metavar": "X.Y", "type": _ptx_version, "help": "the .version to write"},
    "--check": {
        "choices": ("off", "warn", "error"),
        "default": "warn",
        "help": "faults of the barrier protocol are warnings (warn), errors (error), or not checked (off)",
    },
}
_COMPILE: dict[str, dict[str, Any]] = {
    **_KERNEL,
    "--emit": {"choices": STAGE_NAMES, "default": "", "help": "the stage to print (that of OUT's suffix, else ptx)"},
    "-o": {"dest": "output", "metavar": "OUT", "help": "the file to write (standard output)"},
    **_PTX,
    "--no-cache": {"action": _FLAG, "help": "neither read nor write the cache of PTX"},
    **_BOTH,
}
_BUILD: dict[str, dict[str, Any]] = {
    **_KERNEL,
    "--format": {
        "dest": "formats",
        "action": "append",
        "choices": FORMATS,
        "help": "what to write (c): c is a header and a source that launch the kernel; repeat for several",
    },
    "-o": {"dest": "output", "default": ".", "metavar": "DIR", "help": "the folder to write to (the current one)"},
    **_PTX,
    **_BOTH,
    "--arch": {"dest": "archs", "action": "append", "metavar": "A", "help": "the target (sm_90a); repeat for several"},
}
_RUN: dict[str, dict[str, Any]] = {
    **_KERNEL,
    "--grid": {"type": _shape, "metavar": "X[xYxZ]", "help": "blocks (1)"},
    "--block": {"type": _shape, "metavar": "X[xYxZ]", "help": "threads per block (default: @kernel(threads=…))"},
    "--cluster": {"type": _shape, "metavar": "X[xYxZ]", "help": "blocks per cluster (default: @kernel(cluster=…))"},
    "--smem": {"type": int, "metavar": "BYTES", "help": "dynamic shared memory per block, in bytes"},
    "--arg": {
        "dest": "args",
        "action": "append",
        "metavar": "NAME=SPEC",
        "help": "an argument: a number, a .npy file or a generator such as randn:f32:1024x64:seed=3; "
        "`ptxdsl explain E1013` lists all forms. NAME may be a position from 0",
    },
    "--target": {
        "choices": ("sim", "gpu", "auto"),
        "default": "auto",
        "help": "where it runs: the simulator, this machine's GPU, or the GPU if there is one (auto)",
    },
    "--schedule": {
        "metavar": "S",
        "help": "the simulator's interleaving: round-robin, random:SEED, slow:NAME or a recorded schedule's file",
    },
    "--steps": {"type": _count, "metavar": "N", "help": "thread-instructions after which the simulator gives up"},
    "--save": {"action": "append", "metavar": "NAME=FILE", "help": "write an argument's array to a .npy file"},
    "--expect": {
        "action": "append",
        "metavar": "EXPR",
        "help": "a NumPy expression over the arguments that must hold, such as 'res == a + b'",
    },
    "--rtol": {"type": _tolerance, "default": 0.0, "metavar": "T", "help": "relative tolerance of --expect (0: equal)"},
    "--atol": {"type": _tolerance, "default": 0.0, "metavar": "T", "help": "absolute tolerance of --expect (0: equal)"},
    "--trace": {"metavar": "FILE", "help": "write the simulated run as Chrome trace events (opens in Perfetto)"},
    "--timeline": {"metavar": "FILE", "help": "write the simulated run as one self-contained HTML page"},
    "--races": {
        "action": _FLAG,
        "help": "find races in the simulated run, including those that only another schedule would show",
    },
    "--lanes": {
        "action": _FLAG,
        "help": "find races also between the lanes of a warp; takes longer than --races",
    },
    "--explore": {
        "metavar": "DIR",
        "help": "simulate all interleavings of a small launch, and write a schedule for each outcome",
    },
    **_CODE,
    **_BOTH,
}
_CHECK: dict[str, dict[str, Any]] = {
    **_KERNEL,
    "--block": {"type": _shape, "metavar": "X[xYxZ]", "help": "threads per block, if there is no @kernel(threads=…)"},
    "--cluster": {
        "type": _shape,
        "metavar": "X[xYxZ]",
        "help": "blocks per cluster, if there is no @kernel(cluster=…)",
    },
    "--sarif": {"metavar": "FILE", "help": "write the findings in SARIF, for code hosts; - is standard output"},
    "--witness": {
        "metavar": "DIR",
        "help": "for each fault, write a launch and a schedule that show it, for `ptxdsl run FILE --schedule`",
    },
    "--arg": {**_RUN["--arg"], "help": "with --witness: an argument that cannot be made up, such as a tensor map"},
    **_BOTH,
}
# Of a notebook's cell (`ptxdsl/notebook.py`).
CELL: dict[str, dict[str, Any]] = {
    "-I": _INCLUDE,
    **_CODE,
    **{option: _COMPILE[option] for option in ("--lineinfo", "--ptx-version")},
    "--arch": {"metavar": "A", "default": None, "help": "the target to check for (the GPU's, or sm_90a without a GPU)"},
}


def read(argv: Sequence[str]) -> Arguments:
    """The arguments of a command. Raises Help, and SystemExit as argparse does, after its words."""
    found = plain(argv) or by_argparse(argv)
    if found.command == "compile" and not found.emit:
        output = found.output or ""
        found.emit = next((stage for suffix, stage in _STAGE_OF_SUFFIX.items() if output.endswith(suffix)), "ptx")
    return found


def by_argparse(argv: Sequence[str]) -> Arguments:
    """The same by argparse, which also says what is wrong, and with which command."""
    if list(argv) == ["--version"]:
        argv = ["version"]
    parser, commands = _parsers()
    found, unknown = parser.parse_known_args(argv, Arguments())
    if unknown:
        commands[found.command].error(f"unrecognized arguments: {' '.join(unknown)}")
    return found


def plain(argv: Sequence[str]) -> Arguments | None:
    """The arguments of a ``compile`` or ``run`` command in which every option is spelled out; None where it is
    another."""
    table = {"compile": _COMPILE, "run": _RUN}.get(argv[0]) if argv else None
    if table is None:
        return None
    values: dict[str, Any] = {"command": argv[0], "file": None}
    for option, row in table.items():
        values[_destination(option, row)] = False if row.get("action") == _FLAG else row.get("default")
    words = iter(argv[1:])
    for word in words:
        option, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        row = table.get(option, {})
        if not row:
            if values["file"] is not None or not word or (word.startswith("-") and word != "-"):
                return None
            values["file"] = word
        elif row.get("action") == _FLAG:
            if equals:
                return None
            values[_destination(option, row)] = True
        else:
            value = value if equals else next(words, "")
            if not value or value.startswith("-") or value not in row.get("choices", (value,)):
                return None
            place = _destination(option, row)
            if "type" in row:
                try:
                    values[place] = row["type"](value)
                except Exception:  # argparse says it
                    return None
            else:
                values[place] = [*(values[place] or ()), value] if row.get("action") == "append" else value
    if values["file"] is None:
        return None
    found = Arguments()
    found.__dict__.update(values)
    return found


def _destination(option: str, row: dict[str, Any]) -> str:
    name: str = row.get("dest") or option.lstrip("-").replace("-", "_")
    return name


def _parsers() -> tuple[ArgumentParser, Mapping[str, ArgumentParser]]:
    """The command's parser, and those of its subcommands by their names."""
    import argparse

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> Any:
            self.exit(2, f"{self.prog}: {message}\n{self.format_usage()}")

        def print_help(self, file: Any = None) -> None:  # argparse's own says nothing of a stream that takes nothing
            raise Help(self.format_help())

    parser = Parser(prog="ptxdsl", description="Compiles warp-specialised GPU kernels to PTX.", allow_abbrev=False)
    suppressed = argparse.SUPPRESS  # no attribute of it: where it stands alone it is read as `version`
    parser.add_argument("--version", action=_FLAG, default=suppressed, help="the same as the command 'version'")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, dest="command")

    def command(name: str, text: str, options: Iterable[tuple[str, dict[str, Any]]] = ()) -> ArgumentParser:
        added: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        for option, row in options:
            added.add_argument(option, **row)
        return added

    compile_ = command("compile", "Compile a file to PTX, or to any stage on the way.", _COMPILE.items())
    compile_.add_argument("file", metavar="FILE", help=".pdsl, .mojo, .ll or .ptx; - reads standard input")
    build = command("build", "Write files that launch a kernel without Python.", _BUILD.items())
    build.add_argument("file", metavar="FILE", help=".pdsl or .mojo; - reads standard input")
    run = command("run", "Run a kernel, on the GPU or in the simulator, and examine what it did.", _RUN.items())
    run.add_argument("file", metavar="FILE", help=".pdsl, .mojo or .ptx; - reads standard input")
    check = command("check", "Check files, and prove the barrier protocols of their kernels.", _CHECK.items())
    check.add_argument("files", metavar="FILE", nargs="+", help=".pdsl, .mojo or .ptx; - reads standard input")
    command("explain", "Explain a diagnostic's code.").add_argument("code", metavar="CODE", help="as printed: E0301")
    command("targets", "List the targets and the features they have.")
    command("version", "Print the versions of ptxdsl and of the tools that it uses.")
    cache = command("cache", "Show or clear the cache of parse tables, library trees and PTX.")
    cache.add_argument("action", choices=("info", "clear"))
    return parser, commands.choices
