"""The command: ``ptxdsl compile|build|run|check|explain|targets|version|cache``.

Exit codes: 0 success, 1 diagnostics, a failed expectation, a deadlock or a fault, 2 usage; a process that a signal ends
ends by it, in order. The answer goes to standard output, diagnostics to standard error. Start-up is part of every
compilation, so modules are imported where they are used.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # signal.py around it takes 2 ms
import errno
import os
import sys
from functools import partial

from ptxdsl.command.command_line import Arguments, Help, read
from ptxdsl.garbage import rare_collections

TYPE_CHECKING = False  # the typing module costs 4 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import IO, Any, NoReturn

    from ptxdsl.diagnostics import Diagnostic
    from ptxdsl.options import Options
    from ptxdsl.source import Source

OK, FOUND, USAGE = 0, 1, 2
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
        return _tell(partial(_write, str(asked)), (), as_json)
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
    from ptxdsl.diagnostics import CompileError

    if isinstance(problem, CompileError):
        report(problem.diagnostics, as_json)
        show_traceback(problem.__cause__)
    else:
        from ptxdsl.unhandled import diagnostic_of

        report([diagnostic_of(problem)], as_json)
        show_traceback(problem)
    return FOUND


def _error(code: str, message: str, help: str | None = None) -> Exception:
    from ptxdsl.diagnostics import error

    return error(code, message, None, help=help)


# ------------------------------------------------------------------------------------------------------- arguments


def _options(arguments: Arguments, source: Source | None = None) -> Options:
    """The options of a compilation; a PTX ``source`` is for the target that it names, unless another is asked for."""
    from ptxdsl.options import Options
    from ptxdsl.targets import target_of_ptx

    arch = arguments.arch
    if arch is None and source is not None and source.name.endswith(".ptx"):
        arch = target_of_ptx(source.text)
    arch = Options.arch if arch is None else arch
    if arguments.command == "check":
        return Options(arch)
    return Options(
        arch,
        ptx_version=arguments.ptx_version,
        wait=arguments.wait,
        contract=not arguments.no_contract,
        lineinfo=arguments.lineinfo,
        ring_unroll=not arguments.no_ring_unroll,
        check=arguments.check,
    )


def _constants(entries: Iterable[str] | None) -> dict[str, str]:
    """``-D`` entries by name. Raises E1004/E1005."""
    constants: dict[str, str] = {}
    for entry in entries or ():
        name, equals, value = entry.partition("=")
        if not (equals and name.isidentifier() and value.strip()):
            help = "for example -D STAGES=3; the value is an expression such as 3, True or DType.float32"
            raise _error("E1004", f"-D {entry}: expected NAME=VALUE", help)
        if name in constants:
            raise _error("E1005", f"-D gives {name} twice")
        constants[name] = value
    return constants


# -------------------------------------------------------------------------------------------------------- commands


def _compile(arguments: Arguments) -> int:
    from ptxdsl.command import ptx_cache

    output = arguments.output if arguments.output != "-" else None
    if output is not None:
        from ptxdsl.files.output_files import check_outputs

        check_outputs([("-o", output)], [arguments.file])
    if arguments.emit == "cubin" and output is None and sys.stdout.isatty():
        raise _error("E1006", "a cubin is binary and not for a terminal", help="name a file with -o")
    name, data = _input(arguments.file)
    key = ptx_cache.key(arguments, name, data)
    known = None if key is None else ptx_cache.look_up(key)
    text, found = _made(arguments, name, data, key) if known is None else (known, ())
    write = partial(_write, text) if output is None else partial(_write_file, output, text)
    return _tell(write, found, arguments.json)


def _made(arguments: Arguments, name: str, data: bytes, key: bytes | None) -> tuple[str | bytes, Sequence[Diagnostic]]:
    """What the stage printed, and what was found on the way."""
    from ptxdsl import driver
    from ptxdsl.command import ptx_cache
    from ptxdsl.imports import source_of

    source = source_of(data, name)
    job = driver.Job(source, arguments.kernel, _constants(arguments.constants), _options(arguments, source))
    text = driver.show(job, arguments.emit)
    if key is not None and isinstance(text, str) and not job.sink.items:
        ptx_cache.keep(key, job.loader.resolutions, text)
    return text, job.sink.items


def _build(arguments: Arguments) -> int:
    from ptxdsl.aot.files import build_files
    from ptxdsl.imports import source_of

    name, data = _input(arguments.file)
    source = source_of(data, name)
    constants = tuple(sorted(_constants(arguments.constants).items()))
    options, formats = _options(arguments), arguments.formats or ("c",)
    archs = arguments.archs or (options.arch,)
    built = build_files(source, arguments.output or "", arguments.kernel, constants, options, archs, formats)
    return _tell(partial(_write_lines, built.paths), built.warnings, arguments.json)


def _run(arguments: Arguments) -> int:
    from ptxdsl.command.run import run
    from ptxdsl.imports import source_of

    name, data = _input(arguments.file)
    ran = run(arguments, source_of(data, name), _constants(arguments.constants))
    told = {"good": ran.good, **ran.told}
    code = _tell(partial(_write_lines, ran.lines), ran.diagnostics, arguments.json, run=told)
    if ran.told.get("status") == "interrupted":
        return _INTERRUPTED
    return code if ran.good else FOUND


def _check(arguments: Arguments) -> int:
    from ptxdsl.command.findings import findings
    from ptxdsl.driver import Job
    from ptxdsl.files.output_files import check_outputs
    from ptxdsl.imports import source_of

    if arguments.sarif not in (None, "-"):
        check_outputs([("--sarif", arguments.sarif)], [arguments.file])
    if arguments.witness is not None:
        from ptxdsl.files.output_files import make_folder

        make_folder(arguments.witness)
    name, data = _input(arguments.file)
    source = source_of(data, name)
    constants = _constants(arguments.constants)
    job = Job(source, arguments.kernel, constants, _options(arguments, source))
    found, verdicts = findings(job, arguments.block, arguments.cluster)
    told = [{**verdict.as_json(), "witnesses": []} for verdict in verdicts]

    def write() -> None:
        if arguments.sarif is not None:
            from ptxdsl.command.sarif import sarif

            _write(sarif(found)) if arguments.sarif == "-" else _write_file(arguments.sarif, sarif(found))
        elif not arguments.json:
            _write_lines(verdict.text for verdict in verdicts)
        if arguments.witness is not None:
            from ptxdsl.command.counterexamples import write_witnesses

            lines, written = write_witnesses(arguments, source, constants, verdicts)
            for verdict in told:
                verdict["witnesses"] = written.get(verdict["kernel"], [])
            if arguments.sarif is None and not arguments.json:
                _write_lines(lines)

    return _tell(write, found, arguments.json, verdicts=told)


def _explain(arguments: Arguments) -> int:
    from ptxdsl.command.explain import explain

    _write(explain(arguments.code))
    return OK


def _targets(arguments: Arguments) -> int:
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


def _version(arguments: Arguments) -> int:
    from importlib.metadata import PackageNotFoundError, version

    from ptxdsl.backend.assemble import tool_in_use
    from ptxdsl.version import __version__

    _write(f"ptxdsl {__version__}\npython {'.'.join(map(str, sys.version_info[:3]))}\n")
    for package in ("lark", "llvmlite", "numpy", "cuda-python"):
        try:
            _write(f"{package} {version(package)}\n")
        except PackageNotFoundError:
            _write(f"{package} not installed\n")
    for tool in ("ptxas", "nvdisasm"):
        _write(f"{tool_in_use(tool)}\n")
    return OK


def _cache(arguments: Arguments) -> int:
    from ptxdsl.files import cache

    where, unused = cache.directory(), cache.is_distrusted()
    if arguments.action == "clear":
        removed, left = cache.clear(), len(cache.entries())
        _write(f"removed {removed} {'entry' if removed == 1 else 'entries'}\n")
        if left or unused:
            what = f"'{where}' is not a folder that you alone can write to" if unused else f"{left} cannot be removed"
            raise _error("E1026", f"the cache is not empty: {what}", f"look at the permissions of '{where}'")
    else:
        found = cache.entries()
        used = ", which is not used: others can write to it, or it is not a folder" if unused else ""
        size = sum(size for _, size in found)
        _write(f"directory {where or 'none'}{used}\nentries {len(found)}\nbytes {size}\n")
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


# --------------------------------------------------------------------------------------------- input and output


def _input(path: str) -> tuple[str, bytes]:
    """The name and the bytes of a file or, for ``-``, of standard input. Raises E1001 to E1003."""
    from ptxdsl.files.text_files import SIZE_LIMIT, read_bytes

    if path != "-":
        return path, read_bytes(path)
    if sys.stdin is None:  # closed by who started the process
        raise _error("E1003", "there is no standard input", help="name a file")
    try:
        return "<stdin>", sys.stdin.buffer.read(SIZE_LIMIT + 1)
    except OSError as problem:
        raise _error("E1003", f"cannot read standard input: {problem.strerror}") from None


def _tell(write: Callable[[], None], found: Sequence[Diagnostic], as_json: bool, **more: Any) -> int:
    """Writes the answer, and tells what was found, which is not lost where the answer cannot be written. The exit
    code. more: of ``report``."""
    try:
        write()
    except Exception as problem:
        from ptxdsl.diagnostics import CompileError  # for mistakes only

        if not isinstance(problem, CompileError):
            raise
        found = (*found, *problem.diagnostics)
    if not (found or as_json):
        return OK
    from ptxdsl.command.json_diagnostics import report

    return FOUND if report(found, as_json, **more) else OK


def _write_file(path: str, text: str | bytes) -> None:
    from ptxdsl.files.output_files import write_file

    write_file(path, text)


def _write_lines(lines: Iterable[str]) -> None:
    _write("".join(f"{line}\n" for line in lines))


def _write(text: str | bytes) -> None:
    """To standard output, to the byte as it is: no translation of line ends, UTF-8 whatever the locale."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    if sys.stdout is None:
        raise _error("E1007", "there is no standard output", help="name a file with -o")
    stream: IO[bytes] | None = getattr(sys.stdout, "buffer", None)
    try:
        if stream is None:  # a stand-in without bytes below it
            sys.stdout.write(data.decode("utf-8", "replace"))
        else:
            sys.stdout.flush()
            rest = memoryview(data)
            while rest:  # under `python -u` a stream takes what it can and says how much
                taken = stream.write(rest)
                if taken is None:
                    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
                rest = rest[taken:]
            stream.flush()
    except BrokenPipeError:  # what was found is still told, and the exit code is its
        from ptxdsl.command.json_diagnostics import silence

        silence(sys.stdout)
    except OSError as problem:
        help = "name a file, with -o or with the shell's >"
        raise _error("E1007", f"cannot write to standard output: {problem.strerror}", help) from None
