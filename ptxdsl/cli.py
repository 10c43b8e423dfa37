"""The command: ``ptxdsl compile|build|run|check|explain|targets|version|cache``.

Exit codes: 0 success, 1 diagnostics, a failed expectation, a deadlock or a fault, 2 usage. The answer goes to standard
output, diagnostics to standard error. Start-up is part of every compilation, so modules are imported where they are
used.
"""

from __future__ import annotations

import os
import sys

from ptxdsl.command.command_line import Arguments, read
from ptxdsl.garbage import seldom

TYPE_CHECKING = False  # the typing module costs 4 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import IO, NoReturn

    from ptxdsl.options import Options
    from ptxdsl.source import Source

OK, FOUND, USAGE = 0, 1, 2
# The shell's number for a process that ended by SIGINT.
_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; its exit code. argv: without the program's name, None for the process's own."""
    as_json = False
    try:
        arguments = read(sys.argv[1:] if argv is None else argv)
        as_json = arguments.json
        with seldom:
            code = _COMMANDS[arguments.command](arguments)
        if sys.stdout is not None:  # closed by who started the process
            sys.stdout.flush()
        return code
    except SystemExit as end:  # argparse: its --help and its usage errors
        return end.code if isinstance(end.code, int) else USAGE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:  # of argparse's help
        from ptxdsl.command.json_diagnostics import silence

        silence(sys.stdout)
        return OK
    except Exception as problem:
        return _failed(problem, as_json)


def command() -> NoReturn:
    """``main`` as a process, which ends at once: freeing all trees and LLVM's tables first takes 20 ms."""
    code = main()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):  # what was written may not have arrived
            code = code or FOUND
        except KeyboardInterrupt:
            code = _INTERRUPTED
    os._exit(code)


def _failed(problem: Exception, as_json: bool) -> int:
    from ptxdsl.command.json_diagnostics import report, show_traceback
    from ptxdsl.diagnostics import CompileError

    if isinstance(problem, CompileError):
        report(problem.diagnostics, as_json)
        show_traceback(problem.__cause__)
    else:
        from ptxdsl.driver import internal_error

        report([internal_error(problem)], as_json)
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
    text = _made(arguments, name, data, key) if known is None else known
    if output is not None:
        from ptxdsl.files.output_files import write_file

        write_file(output, text)
    else:
        _write(text)
    return OK


def _made(arguments: Arguments, name: str, data: bytes, key: bytes | None) -> str | bytes:
    from ptxdsl import driver
    from ptxdsl.command import ptx_cache
    from ptxdsl.imports import source_of

    source = source_of(data, name)
    job = driver.Job(source, arguments.kernel, _constants(arguments.constants), _options(arguments, source))
    text = driver.show(job, arguments.emit)
    if job.sink.items or arguments.json:
        from ptxdsl.command.json_diagnostics import report

        report(job.sink.items, arguments.json)
    if key is not None and isinstance(text, str) and not job.sink.items:
        ptx_cache.keep(key, job.loader.resolutions, text)
    return text


def _build(arguments: Arguments) -> int:
    from ptxdsl.aot.files import build_files
    from ptxdsl.command.json_diagnostics import report
    from ptxdsl.imports import source_of

    name, data = _input(arguments.file)
    source = source_of(data, name)
    constants = tuple(sorted(_constants(arguments.constants).items()))
    options = _options(arguments)
    archs = arguments.archs or (options.arch,)
    folder = arguments.output or "."
    built = build_files(source, folder, arguments.kernel, constants, options, archs, arguments.formats or ("c",))
    _write("".join(f"{path}\n" for path in built.paths))
    return FOUND if report(built.warnings, arguments.json) else OK


def _run(arguments: Arguments) -> int:
    from ptxdsl.command.json_diagnostics import report
    from ptxdsl.command.run import run
    from ptxdsl.imports import source_of

    name, data = _input(arguments.file)
    ran = run(arguments, source_of(data, name), _constants(arguments.constants))
    _write("".join(f"{line}\n" for line in ran.lines))
    wrong = report(ran.diagnostics, arguments.json, run={"good": ran.good, **ran.told})
    return FOUND if wrong or not ran.good else OK


def _check(arguments: Arguments) -> int:
    from ptxdsl.command.findings import findings
    from ptxdsl.command.json_diagnostics import report
    from ptxdsl.driver import Job
    from ptxdsl.files.output_files import check_outputs
    from ptxdsl.imports import source_of

    if arguments.sarif not in (None, "-"):
        check_outputs([("--sarif", arguments.sarif)], [arguments.file])
    name, data = _input(arguments.file)
    source = source_of(data, name)
    constants = _constants(arguments.constants)
    job = Job(source, arguments.kernel, constants, _options(arguments, source))
    found, verdicts = findings(job, arguments.block, arguments.cluster)
    if arguments.sarif is not None:
        from ptxdsl.command.sarif import sarif
        from ptxdsl.files.output_files import write_file

        _write(sarif(found)) if arguments.sarif == "-" else write_file(arguments.sarif, sarif(found))
    elif not arguments.json:
        _write("".join(f"{verdict.text}\n" for verdict in verdicts))
    written: dict[str, list[str]] = {}
    if arguments.witness is not None:
        from ptxdsl.command.counterexamples import write_witnesses

        lines, written = write_witnesses(arguments, source, constants, verdicts)
        if arguments.sarif is None and not arguments.json:
            _write("".join(f"{line}\n" for line in lines))
    told = [{**verdict.as_json(), "witnesses": written.get(verdict.kernel, [])} for verdict in verdicts]
    return FOUND if report(found, arguments.json, told) else OK


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

    from ptxdsl.version import __version__

    _write(f"ptxdsl {__version__}\npython {'.'.join(map(str, sys.version_info[:3]))}\n")
    for package in ("lark", "llvmlite", "numpy", "cuda-python", "nvidia-cuda-nvcc", "nvidia-cuda-nvdisasm"):
        try:
            _write(f"{package} {version(package)}\n")
        except PackageNotFoundError:
            _write(f"{package} not installed\n")
    return OK


def _cache(arguments: Arguments) -> int:
    from ptxdsl.files import cache

    where = cache.directory()
    if arguments.action == "clear":
        removed = cache.clear()
        _write(f"removed {removed} {'entry' if removed == 1 else 'entries'}\n")
    else:
        found = cache.entries()
        _write(f"directory {where or 'none'}\nentries {len(found)}\nbytes {sum(size for _, size in found)}\n")
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
            stream.write(data)
            stream.flush()
    except BrokenPipeError:  # what was found is still told, and the exit code is its
        from ptxdsl.command.json_diagnostics import silence

        silence(sys.stdout)
    except OSError as problem:
        raise _error("E1007", f"cannot write to standard output: {problem.strerror}") from None
