"""The command's input and output: a text to read, the answer on standard output, what was found on standard error."""

from __future__ import annotations

import errno
import os
import sys

TYPE_CHECKING = False  # the typing module costs 4 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import IO, Any

    from ptxdsl.diagnostics import Diagnostic

OK, FOUND = 0, 1  # exit codes
_HEAD = 1 << 16  # bytes of standard input that say what it is: a text may begin with long comments


def command_error(code: str, message: str, help: str | None = None) -> Exception:
    from ptxdsl.diagnostics import error

    return error(code, message, None, help=help)


def read_input(path: str) -> tuple[str, bytes]:
    """The name and the bytes of a file or, for ``-``, of standard input. Raises E1001 to E1003.

    Standard input has no suffix: its first lines say whether it is PTX or LLVM's text.
    """
    from ptxdsl.files.text_files import SIZE_LIMIT, read_bytes

    if path != "-":
        return path, read_bytes(path)
    if sys.stdin is None:  # closed by who started the process
        raise command_error("E1003", "there is no standard input", help="name a file")
    try:
        data = sys.stdin.buffer.read(SIZE_LIMIT + 1)
    except OSError as problem:
        raise command_error("E1003", f"cannot read standard input: {problem.strerror}") from None
    return f"<stdin>{_suffix(data)}", data


def _suffix(data: bytes) -> str:
    """What a file with this text would be called: neither form's beginning is one of a program."""
    lines = (line.strip() for line in data[:_HEAD].splitlines())
    first = next((line for line in lines if line and not line.startswith(b"//")), b"")
    return ".ptx" if first.startswith(b".version") else ".ll" if first.startswith((b";", b"target ")) else ""


def tell(answer: Callable[[], None], found: Sequence[Diagnostic], as_json: bool, **more: Any) -> int:
    """Writes the answer, and tells what was found, which is not lost where the answer cannot be written. The exit
    code. more: of ``report``."""
    try:
        answer()
    except Exception as problem:
        from ptxdsl.diagnostics import CompileError  # for mistakes only

        if not isinstance(problem, CompileError):
            raise
        found = (*found, *problem.diagnostics)
    if not (found or as_json):
        return OK
    from ptxdsl.command.json_diagnostics import report

    return FOUND if report(found, as_json, **more) else OK


def write_lines(lines: Iterable[str]) -> None:
    write("".join(f"{line}\n" for line in lines))


def write(text: str | bytes) -> None:
    """To standard output, to the byte as it is: no translation of line ends, UTF-8 whatever the locale."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    if sys.stdout is None:
        raise command_error("E1007", "there is no standard output", help="name a file with -o")
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
        raise command_error("E1007", f"cannot write to standard output: {problem.strerror}", help) from None
