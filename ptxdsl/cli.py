"""The command: ``ptxdsl compile|build|run|check|explain|targets|version|cache``.

Exit codes: 0 success, 1 diagnostics, a failed expectation, a deadlock or a fault, 2 usage; a process that a signal ends
ends by it, in order. The answer goes to standard output, diagnostics to standard error. Start-up is part of every
compilation, so modules are imported where they are used.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # signal.py around it takes 2 ms
import os
import sys
from functools import partial

from ptxdsl.command.command_line import Arguments, Help, read
from ptxdsl.command.streams import FOUND, OK, command_error, read_input, tell, write, write_lines
from ptxdsl.garbage import rare_collections

TYPE_CHECKING = False  # the typing module costs 4 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from typing import NoReturn

    from ptxdsl.diagnostics import Diagnostic

USAGE = 2  # an exit code, as those of ``streams``
# The shell's numbers for processes that ended by a signal begin above this one.
_SIGNALLED = 128
_INTERRUPTED = _SIGNALLED + 2  # SIGINT


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; its exit code. argv: without the program's name, None for the process's own."""
    as_json = False
    try:
        arguments = read(sys.argv[1:] if argv is None else argv)
        as_json = arguments.json
        with rare_collections:
            code = _COMMANDS[arguments.command](arguments)
        if sys.stdout is not None:  # closed by who started the process
            sys.stdout.flush()
        return code
    except Help as asked:
        return tell(partial(write, str(asked)), (), as_json)
    except _Signalled as end:
        return _SIGNALLED + end.number
    except SystemExit as end:  # argparse: its usage errors
        return end.code if isinstance(end.code, int) else USAGE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as problem:
        return _failed(problem, as_json)


def command() -> NoReturn:
    """``main`` as a process, which ends at once: freeing all trees and LLVM's tables first takes 20 ms, and to look
    for garbage among them 4 ms."""
    with rare_collections:
        _process()


def _process() -> NoReturn:
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:  # not under nohup
            signal.signal(number, _end)
    try:
        code = main()
        for stream in (sys.stdout, sys.stderr):
            try:
                if stream is not None:
                    stream.flush()
            except (OSError, ValueError):  # what was written may not have arrived
                code = code or FOUND
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except _Signalled as end:
        code = _SIGNALLED + end.number
    if code > _SIGNALLED and os.name == "posix":  # a shell asks how a process ended: Ctrl-C ends its loops too
        signal.signal(code - _SIGNALLED, signal.SIG_DFL)
        os.kill(os.getpid(), code - _SIGNALLED)
    os._exit(code)


class _Signalled(BaseException):
    """A signal asks for the end. No SystemExit: that is also what an ``exit()`` in ``--expect`` raises."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _end(number: int, frame: object) -> NoReturn:
    """A signal that asks for the end: half-written files and tools that run go first. The next one does not wait."""
    signal.signal(number, signal.SIG_DFL)
    raise _Signalled(number)


def _failed(problem: Exception, as_json: bool) -> int:
    from ptxdsl.command.json_diagnostics import report, show_traceback
    from ptxdsl.unhandled import diagnostics_of

    report(diagnostics_of(problem), as_json)
    show_traceback(problem)
    return FOUND


# -------------------------------------------------------------------------------------------------------- commands


def _compile(arguments: Arguments) -> int:
    from ptxdsl.command import ptx_cache

    output = arguments.output if arguments.output != "-" else None
    if output is not None:
        from ptxdsl.files.output_files import check_outputs

        check_outputs([("-o", output)], [arguments.file])
    if arguments.emit == "cubin" and output is None and sys.stdout.isatty():
        raise command_error("E1006", "a cubin is binary and not for a terminal", help="name a file with -o")
    name, data = read_input(arguments.file)
    key = ptx_cache.key(arguments, name, data)
    known = None if key is None else ptx_cache.look_up(key, arguments, name)
    text, found = _made(arguments, name, data, key) if known is None else (known, ())
    if output is None:
        return tell(partial(write, text), found, arguments.json)
    from ptxdsl.files.output_files import write_file

    return tell(partial(write_file, output, text), found, arguments.json)


def _made(arguments: Arguments, name: str, data: bytes, key: bytes | None) -> tuple[str | bytes, Sequence[Diagnostic]]:
    """What the stage printed, and what was found on the way."""
    from ptxdsl import driver
    from ptxdsl.command import ptx_cache
    from ptxdsl.command.settings import constants_of, options_of
    from ptxdsl.imports import source_of

    source = source_of(data, name)
    job = driver.Job(source, arguments.kernel, constants_of(arguments.constants), options_of(arguments, source))
    text = driver.show(job, arguments.emit)
    if key is not None and isinstance(text, str) and not job.sink.items:
        ptx_cache.keep(key, job.loader.resolutions, text)
    return text, job.sink.items


def _build(arguments: Arguments) -> int:
    from ptxdsl.aot.files import build_files
    from ptxdsl.command.settings import constants_of, options_of
    from ptxdsl.imports import source_of

    name, data = read_input(arguments.file)
    source = source_of(data, name)
    constants = tuple(sorted(constants_of(arguments.constants).items()))
    options, formats = options_of(arguments), arguments.formats or ("c",)
    archs = arguments.archs or (options.arch,)
    built = build_files(source, arguments.output or "", arguments.kernel, constants, options, archs, formats)
    return tell(partial(write_lines, built.paths), built.warnings, arguments.json)


def _run(arguments: Arguments) -> int:
    from ptxdsl.command.run import run
    from ptxdsl.command.settings import constants_of
    from ptxdsl.imports import source_of

    name, data = read_input(arguments.file)
    ran = run(arguments, source_of(data, name), constants_of(arguments.constants))
    told = {"good": ran.good, **ran.told}
    code = tell(partial(write_lines, ran.lines), ran.diagnostics, arguments.json, run=told)
    if ran.told.get("status") == "interrupted":
        return _INTERRUPTED
    return code if ran.good else FOUND


def _check(arguments: Arguments) -> int:
    from ptxdsl.command.check import check

    return check(arguments)


def _explain(arguments: Arguments) -> int:
    from ptxdsl.command.explain import explain

    write(explain(arguments.code))
    return OK


def _targets(arguments: Arguments) -> int:
    from ptxdsl.targets import DRIVERS, FEATURES, TARGETS, version_text

    targets = [(name, version_text(row.ptx), str(DRIVERS[row.ptx])) for name, row in TARGETS.items()]
    write(_table(("target", "PTX ISA", "driver"), targets) + "\n")
    features = [(name, version_text(row.ptx), _among(row.targets, TARGETS)) for name, row in FEATURES.items()]
    write(_table(("feature", "PTX ISA", "targets"), features))
    return OK


def _among(some: Collection[str], all_: Iterable[str]) -> str:
    """Some of the targets in words, where these are fewer; all are in order."""
    names, known = [name for name in all_ if name in some], list(all_)
    if names == known:
        return "all"
    return f"{names[0]} and later" if len(names) > 1 and names == known[-len(names) :] else " ".join(names)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)]
    return "".join(line.rstrip() + "\n" for line in lines)


def _version(arguments: Arguments) -> int:
    from importlib.metadata import PackageNotFoundError, version

    from ptxdsl.backend.assemble import tool_in_use
    from ptxdsl.version import __version__

    write(f"ptxdsl {__version__}\npython {'.'.join(map(str, sys.version_info[:3]))}\n")
    for package in ("lark", "llvmlite", "numpy", "cuda-python"):
        try:
            write(f"{package} {version(package)}\n")
        except PackageNotFoundError:
            write(f"{package} not installed\n")
    for tool in ("ptxas", "nvdisasm"):
        write(f"{tool_in_use(tool)}\n")
    return OK


def _cache(arguments: Arguments) -> int:
    from ptxdsl.files import cache

    where, unused = cache.directory(), cache.is_distrusted()
    if arguments.action == "clear":
        removed, left = cache.clear(), len(cache.entries())
        write(f"removed {removed} {'entry' if removed == 1 else 'entries'}\n")
        if left or unused:
            what = f"'{where}' is not a folder that you alone can write to" if unused else f"{left} cannot be removed"
            raise command_error("E1026", f"the cache is not empty: {what}", f"look at the permissions of '{where}'")
    else:
        found = cache.entries()
        used = ", which is not used: others can write to it, or it is not a folder" if unused else ""
        size = sum(size for _, size in found)
        write(f"directory {where or 'none'}{used}\nentries {len(found)}\nbytes {size}\n")
    return OK


_COMMANDS: dict[str, Callable[[Arguments], int]] = {
    "compile": _compile,
    "build": _build,
    "run": _run,
    "check": _check,
    "explain": _explain,
    "targets": _targets,
    "version": _version,
    "cache": _cache,
}
