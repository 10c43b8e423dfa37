"""The command: ``ptxdsl compile|check|explain|targets|version|cache``.

Exit codes: 0 success, 1 diagnostics, 2 usage. The answer goes to standard output, diagnostics to standard error.
Start-up is part of every compilation, so modules are imported where they are used.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any, NoReturn

from ptxdsl.diagnostics import CompileError, Diagnostic, error

if TYPE_CHECKING:
    from ptxdsl.options import Options
    from ptxdsl.source import Source, Span

OK, FOUND, USAGE = 0, 1, 2
# The shell's number for a process that ended by SIGINT.
_INTERRUPTED = 130

# Objects; what a large kernel takes, so that memory stays bounded all the same.
_COLLECT_AFTER = 500_000

# The version of the form of ``--json``'s output.
JSON_SCHEMA = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; its exit code. argv: without the program's name, None for the process's own."""
    as_json = False
    # A compilation makes trees and keeps them: looking for garbage in them is a seventh of its time.
    thresholds = gc.get_threshold()
    gc.set_threshold(_COLLECT_AFTER, *thresholds[1:])
    try:
        arguments = _parser().parse_args(argv)
        as_json = getattr(arguments, "json", False)
        try:
            code: int = arguments.run(arguments)
        except CompileError as problem:
            code = _report(problem.diagnostics, as_json)
            _show_traceback(problem.__cause__)
        sys.stdout.flush()
        return code
    except SystemExit as end:  # argparse: its --help and its usage errors
        return end.code if isinstance(end.code, int) else USAGE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader has gone: nothing more to say, and Python must not complain at exit either.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.dup2(nowhere, sys.stderr.fileno())
        return OK
    except Exception as defect:
        from ptxdsl.driver import internal_error

        code = _report([internal_error(defect)], as_json)
        _show_traceback(defect)
        return code
    finally:
        gc.set_threshold(*thresholds)


# ------------------------------------------------------------------------------------------------------- arguments


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message}\n{self.format_usage()}")


def _parser() -> argparse.ArgumentParser:
    from ptxdsl.driver import STAGE_NAMES

    parser = _Parser(prog="ptxdsl", description="Compiles warp-specialised GPU kernels to PTX.", allow_abbrev=False)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, run: Any, text: str) -> argparse.ArgumentParser:
        added: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        added.set_defaults(run=run)
        return added

    compile_ = command("compile", _compile, "Compile a file to PTX, or to any stage on the way.")
    compile_.add_argument("file", metavar="FILE", help=".pdsl, .mojo, .ll or .ptx; - reads standard input")
    compile_.add_argument("--kernel", metavar="K", help="the def to compile (else all @kernel ones, else the only one)")
    compile_.add_argument(
        "-D", dest="constants", action="append", default=[], metavar="NAME=VALUE", help="a comptime parameter"
    )
    compile_.add_argument("--emit", choices=STAGE_NAMES, default="ptx", help="the stage to print (ptx)")
    compile_.add_argument("-o", dest="output", metavar="OUT", help="the file to write (standard output)")
    compile_.add_argument("--no-contract", action="store_true", help="keep a*b+c apart instead of fusing it to fma")
    compile_.add_argument("--no-ring-unroll", action="store_true", help="keep ring loops as written")
    compile_.add_argument("--lineinfo", action="store_true", help="keep .loc lines in the PTX")
    compile_.add_argument("--ptx-version", metavar="X.Y", type=_ptx_version, help="the .version to write")
    compile_.add_argument("--wait", choices=("try", "probe"), default="try", help="the form of a barrier wait (try)")
    compile_.add_argument("--check", choices=("off", "warn", "error"), default="warn", help="protocol findings (warn)")

    check = command("check", _check, "Check everything in a file, reached by a kernel or not.")
    check.add_argument("file", metavar="FILE", help="- reads standard input")

    for each in (compile_, check):
        each.add_argument("--arch", metavar="A", default=None, help="the target (sm_90a); `ptxdsl targets` lists them")
        each.add_argument("--json", action="store_true", help="diagnostics as one JSON object on standard error")

    explain = command("explain", _explain, "Explain a diagnostic's code.")
    explain.add_argument("code", metavar="CODE", help="as printed: E0301")
    command("targets", _targets, "List the targets and the features they have.")
    command("version", _version, "Print the versions of ptxdsl and of what it works with.")
    cache = command("cache", _cache, "Show or clear the cache of parse tables.")
    cache.add_argument("action", choices=("info", "clear"))
    return parser


def _ptx_version(text: str) -> tuple[int, int]:
    major, dot, minor = text.partition(".")
    if not (dot and major.isascii() and major.isdigit() and minor.isascii() and minor.isdigit()):
        raise argparse.ArgumentTypeError(f"'{text}' is no PTX version: write it as 8.6")
    return int(major), int(minor)


def _options(arguments: argparse.Namespace) -> Options:
    from ptxdsl.options import Options

    arch = {} if arguments.arch is None else {"arch": arguments.arch}
    if arguments.run is _check:
        return Options(**arch)
    return Options(
        **arch,
        ptx_version=arguments.ptx_version,
        wait=arguments.wait,
        contract=not arguments.no_contract,
        lineinfo=arguments.lineinfo,
        ring_unroll=not arguments.no_ring_unroll,
        check=arguments.check,
    )


def _constants(entries: Iterable[str]) -> dict[str, str]:
    """``-D`` entries by name. Raises E1004/E1005."""
    constants: dict[str, str] = {}
    for entry in entries:
        name, equals, value = entry.partition("=")
        if not (equals and name.isidentifier() and value.strip()):
            raise error("E1004", f"-D {entry}: expected NAME=VALUE", None, help="for example -D STAGES=3")
        if name in constants:
            raise error("E1005", f"-D gives {name} twice", None)
        constants[name] = value
    return constants


# -------------------------------------------------------------------------------------------------------- commands


def _compile(arguments: argparse.Namespace) -> int:
    from ptxdsl import driver

    output = arguments.output if arguments.output != "-" else None
    if arguments.emit == "cubin" and output is None and sys.stdout.isatty():
        raise error("E1006", "a cubin is binary and not for a terminal", None, help="name a file with -o")
    job = driver.Job(_source(arguments.file), arguments.kernel, _constants(arguments.constants), _options(arguments))
    text = driver.show(job, arguments.emit)
    _report(job.sink.items, arguments.json)
    if output is not None:
        _write_file(output, text)
    else:
        _write(text)
    return OK


def _check(arguments: argparse.Namespace) -> int:
    from ptxdsl import driver

    job = driver.Job(_source(arguments.file), options=_options(arguments))
    return _report(driver.check(job), arguments.json)


def _explain(arguments: argparse.Namespace) -> int:
    from ptxdsl.explain import explain

    _write(explain(arguments.code))
    return OK


def _targets(arguments: argparse.Namespace) -> int:
    from ptxdsl.targets import DRIVERS, FEATURES, TARGETS, version_text

    targets = [(name, version_text(row.ptx), str(DRIVERS[row.ptx])) for name, row in TARGETS.items()]
    _write(_table(("target", "PTX ISA", "driver"), targets) + "\n")
    features = [
        (name, version_text(row.ptx), " ".join(t for t in TARGETS if t in row.targets))
        for name, row in FEATURES.items()
    ]
    _write(_table(("feature", "PTX ISA", "targets"), features))
    return OK


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)]
    return "".join(line.rstrip() + "\n" for line in lines)


def _version(arguments: argparse.Namespace) -> int:
    from importlib.metadata import PackageNotFoundError, version

    from ptxdsl.version import __version__

    _write(f"ptxdsl {__version__}\npython {'.'.join(map(str, sys.version_info[:3]))}\n")
    for package in ("lark", "llvmlite", "numpy", "cuda-python", "nvidia-cuda-nvcc", "nvidia-cuda-nvdisasm"):
        try:
            _write(f"{package} {version(package)}\n")
        except PackageNotFoundError:
            _write(f"{package} not installed\n")
    return OK


def _cache(arguments: argparse.Namespace) -> int:
    from ptxdsl import cache

    where = cache.directory()
    if arguments.action == "clear":
        removed = cache.clear()
        _write(f"removed {removed} {'entry' if removed == 1 else 'entries'}\n")
    else:
        found = cache.entries()
        _write(f"directory {where or 'none'}\nentries {len(found)}\nbytes {sum(size for _, size in found)}\n")
    return OK


# --------------------------------------------------------------------------------------------- input and output


def _source(path: str) -> Source:
    """The text of a file or, for ``-``, of standard input. Raises E1002, E1003 or E01xx."""
    from ptxdsl.imports import read_file, source_of

    if path != "-":
        return read_file(path)
    try:
        return source_of(sys.stdin.buffer.read(), "<stdin>")
    except OSError as problem:
        raise error("E1003", f"cannot read standard input: {problem.strerror}", None) from None


def _write(text: str | bytes) -> None:
    """To standard output, to the byte as it is: no translation of line ends, UTF-8 whatever the locale."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    stream: IO[bytes] | None = getattr(sys.stdout, "buffer", None)
    try:
        if stream is None:  # a stand-in without bytes below it
            sys.stdout.write(data.decode("utf-8", "replace"))
        else:
            sys.stdout.flush()
            stream.write(data)
            stream.flush()
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise error("E1007", f"cannot write to standard output: {problem.strerror}", None) from None


def _write_file(path: str, text: str | bytes) -> None:
    """The whole file or none of it: written beside its place, then renamed. Raises E1007."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            if os.path.isdir(path):
                raise error("E1007", f"cannot write '{path}': it is a folder", None)
            with open(path, "wb") as device:  # /dev/null, a pipe: nothing to rename
                device.write(data)
            return
        place = os.path.realpath(path)
        temporary = f"{place}.{os.getpid()}.tmp"
        try:
            with open(temporary, "xb") as file:
                file.write(data)
            if os.path.exists(place):
                os.chmod(temporary, os.stat(place).st_mode & 0o7777)
            os.replace(temporary, place)
        finally:
            if os.path.exists(temporary):
                os.unlink(temporary)
    except OSError as problem:
        raise error("E1007", f"cannot write '{path}': {problem.strerror}", None) from None


# ------------------------------------------------------------------------------------------------------ diagnostics


def _report(diagnostics: Sequence[Diagnostic], as_json: bool) -> int:
    """Prints diagnostics to standard error; FOUND if there is an error among them."""
    if as_json:
        import json

        document = {"schema": JSON_SCHEMA, "diagnostics": [_as_json(d) for d in diagnostics]}
        print(json.dumps(document), file=sys.stderr)
    elif diagnostics:
        color = _wants_color(sys.stderr)
        texts = [d.render(color) for d in diagnostics]
        print("\n\n".join(texts), file=sys.stderr)
    return FOUND if any(d.severity == "error" for d in diagnostics) else OK


def _show_traceback(defect: BaseException | None) -> None:
    """Where in the compiler an internal error came from, for those who asked for it."""
    if defect is not None and os.environ.get("PTXDSL_DEBUG") == "1":
        import traceback

        traceback.print_exception(defect)


def _wants_color(stream: Any) -> bool:
    return bool(stream.isatty()) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _as_json(diagnostic: Diagnostic) -> dict[str, Any]:
    """The stable form: keys are added with a new schema number, never renamed."""
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        **_place(diagnostic.span),
        "notes": [{"message": label, **_place(span)} for span, label in diagnostic.notes],
        "help": diagnostic.help,
    }


def _place(span: Span | None) -> dict[str, Any]:
    """1-based lines and columns in characters; the end is exclusive."""
    if span is None:
        return {"file": None, "start": None, "end": None}
    line, column = span.source.position(span.start)
    end_line, end_column = span.source.position(span.end)
    return {
        "file": span.source.name,
        "start": {"line": line, "column": column},
        "end": {"line": end_line, "column": end_column},
    }
