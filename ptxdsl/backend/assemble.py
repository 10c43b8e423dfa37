"""PTX to cubin and SASS with NVIDIA's ptxas and nvdisasm, whose words come back as diagnostics at the user's lines."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ptxdsl.diagnostics import CompileError, Diagnostic, Severity, error
from ptxdsl.files.temporary import temporary_folder
from ptxdsl.options import Options
from ptxdsl.record import dataclass
from ptxdsl.source import Span

if TYPE_CHECKING:
    import subprocess

TIMEOUT = 120  # seconds; ptxas takes well under one for a kernel of a thousand lines

_ELF = b"\x7fELF"  # machine code begins with it
_SAID_LIMIT = 200  # characters of a tool's words that are not understood

INSTALL = (
    "pip install '.[assemble]' in a checkout, elsewhere pip install nvidia-cuda-nvcc nvidia-cuda-nvdisasm; or put the "
    "CUDA toolkit's bin folder on PATH"
)


@dataclass(frozen=True)
class Resources:
    """What ptxas says that one kernel uses. Bytes, except registers (a thread) and barriers (named CTA barriers)."""

    registers: int = 0
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    shared: int = 0
    constant: int = 0
    barriers: int = 0


@dataclass(frozen=True)
class Assembled:
    """log: performance notes and warnings of ptxas. resources: by kernel name."""

    cubin: bytes
    log: tuple[Diagnostic, ...]
    resources: Mapping[str, Resources]


def find_tool(name: str) -> str:
    """The path of ``ptxas`` or ``nvdisasm``: the installed package's, then PATH's, then that of CUDA_HOME.

    Raises E0803 with the command that installs it.
    """
    found = _packaged(name) or shutil.which(name)
    if found is None:
        for variable in ("CUDA_HOME", "CUDA_PATH"):
            root = os.environ.get(variable)
            if root:
                found = found or shutil.which(name, path=os.path.join(root, "bin"))
    if found is None:
        raise error("E0803", f"{name} is not installed", None, help=INSTALL)
    return found


def _packaged(name: str) -> str | None:
    """Inside the ``nvidia`` namespace package: ``cu13/bin`` and, in older packages, ``cuda_nvcc/bin``."""
    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        return None
    for root in (spec.submodule_search_locations or ()) if spec else ():
        for folder in sorted(Path(root).glob("*/bin"), reverse=True):
            tool = shutil.which(name, path=str(folder))
            if tool:
                return tool
    return None


def run_tool(command: Sequence[str], tool: str) -> subprocess.CompletedProcess[bytes]:
    import subprocess  # where machine code does not come from the cache

    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        help = "it hangs, or the machine has too much to do: try again, or a smaller kernel"
        raise error("E0804", f"{tool} did not finish within {TIMEOUT} s", None, help=help) from None
    except OSError as problem:
        raise error("E0803", f"{tool} cannot be run: {problem.strerror}", None, help=INSTALL) from None


def tool_in_use(name: str) -> str:
    """Which ``ptxas`` or ``nvdisasm`` there is, by version and path, or why it is of no use."""
    try:
        path = find_tool(name)
        said = run_tool([path, "--version"], name).stdout.decode("utf-8", "replace")
    except CompileError as problem:
        return problem.diagnostics[0].message
    found = re.search(r"\bV(\d+(?:\.\d+)+)", said)
    return f"{name} {found[1] if found else 'of unknown version'} ({path})"


def assemble(ptx: str, options: Options, line_map: Sequence[Span | None] = ()) -> Assembled:
    """The cubin for the target of ``options``.

    Raises E0802 with ptxas's words at the line that the PTX came from, E0803 where there is no ptxas, E0804 where it
    does not come to an end.
    """
    return understand(*run_ptxas(ptx, options), ptx, line_map)


def understand(code: int, words: str, cubin: bytes, ptx: str, line_map: Sequence[Span | None]) -> Assembled:
    """What ``run_ptxas`` gave, its words at the kernel's lines. Raises E0802 where it failed."""
    log = parse_log(words, line_map, ptx)
    if code != 0:
        raise _failure(code, words, log)
    return Assembled(cubin, log, parse_resources(words))


def run_ptxas(ptx: str, options: Options) -> tuple[int, str, bytes]:
    """ptxas's exit status, its words, and the cubin (empty where it failed). Raises E0803, E0804 and E1009, and E0802
    where there is no cubin though it did not fail."""
    tool = find_tool("ptxas")
    with temporary_folder() as folder:
        source, cubin = os.path.join(folder, "kernel.ptx"), os.path.join(folder, "kernel.cubin")
        Path(source).write_text(ptx, encoding="utf-8", newline="\n")
        command = [tool, "-v", f"-arch={options.arch}", source, "-o", cubin]
        if options.lineinfo:
            command.insert(1, "-lineinfo")
        done = run_tool(command, "ptxas")
        words = done.stderr.decode("utf-8", "replace") + done.stdout.decode("utf-8", "replace")
        made = Path(cubin).read_bytes() if done.returncode == 0 and os.path.isfile(cubin) else b""
        if done.returncode == 0 and not made.startswith(_ELF):
            raise error(
                "E0802", "ptxas made no machine code", None, help=f"'{tool}' is damaged, or no ptxas: {INSTALL}"
            )
        return done.returncode, words.replace(source, "kernel.ptx"), made


def _failure(code: int, words: str, log: Sequence[Diagnostic]) -> CompileError:
    errors = [d for d in log if d.severity == "error"]
    # "aborted due to errors" says nothing beside the errors themselves.
    telling = [d for d in errors if "aborted due to errors" not in d.message] or errors
    if not telling:
        end = f"was ended by signal {-code}" if code < 0 else f"ended with exit status {code}"
        lines = [line.strip() for line in words.splitlines() if line.strip()]
        said = f": {lines[-1][:_SAID_LIMIT]}" if lines else " and said nothing"
        help = "ptxas is damaged or lacks something; where it says nothing, it has a defect"
        telling = [Diagnostic("E0802", f"ptxas {end}{said}", help=help)]
    return CompileError(telling)


_MESSAGE = re.compile(
    r"ptxas (?:(?P<file>.+?), line (?P<line>\d+); )?(?P<kind>error|fatal|warning|info)\s*: (?P<words>.*)"
)
_NOTE = re.compile(r"\((?P<number>C\d+)\)\s*(?P<words>.*)")
_KINDS: dict[str, tuple[str, Severity]] = {
    "error": ("E0802", "error"),
    "fatal": ("E0802", "error"),
    "warning": ("W0802", "warning"),
    "info": ("W0803", "warning"),
}


def parse_log(words: str, line_map: Sequence[Span | None], ptx: str = "") -> tuple[Diagnostic, ...]:
    """Errors, warnings and performance notes of ptxas, each once; what ``-v`` prints besides is no finding."""
    found: list[Diagnostic] = []
    lines = ptx.splitlines()
    for text in words.splitlines():
        match = _MESSAGE.match(text)
        if match is None:
            continue
        note = _NOTE.match(match["words"])
        if match["kind"] == "info" and note is None:
            continue
        code, severity = _KINDS[match["kind"]]
        last = re.search(r"on line (\d+)$", match["words"].strip())  # of a character that is not ASCII
        number = int(match["line"] or (last[1] if last else 0))
        span = line_map[number - 1] if 0 < number <= len(line_map) else None
        if span is None:
            span = _span_of_kernel(match["words"], lines, line_map)
        message = "ptxas: " + (f"{note['words']} ({note['number']})" if note else match["words"].strip())
        instruction = lines[number - 1].strip() if 0 < number <= len(lines) else ""
        help = f"the PTX is '{instruction}'" if instruction else None
        diagnostic = Diagnostic(code, message, span, help=help, severity=severity)
        if diagnostic not in found:
            found.append(diagnostic)
    return tuple(found)


def _span_of_kernel(words: str, lines: Sequence[str], line_map: Sequence[Span | None]) -> Span | None:
    """A note without a line may name its kernel: then its first mapped line will do."""
    for number, line in enumerate(lines):
        entry = re.match(r"\s*\.visible \.entry ([\w$]+)", line)
        if entry and re.search(rf"(?<![\w$]){re.escape(entry[1])}(?![\w$])", words):
            return next((span for span in line_map[number:] if span is not None), None)
    return None


_USED = {
    "registers": re.compile(r"Used (\d+) registers"),
    "barriers": re.compile(r"used (\d+) barriers"),
    "shared": re.compile(r"(\d+) bytes smem"),
    "constant": re.compile(r"(\d+) bytes cmem"),
    "stack": re.compile(r"(\d+) bytes stack frame"),
    "spill_stores": re.compile(r"(\d+) bytes spill stores"),
    "spill_loads": re.compile(r"(\d+) bytes spill loads"),
}


def parse_resources(words: str) -> dict[str, Resources]:
    """The figures of ``ptxas -v`` for each kernel."""
    found: dict[str, Resources] = {}
    parts = re.split(r"Compiling entry function '([^']+)'[^\n]*\n", words)
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        values = {key: sum(map(int, pattern.findall(text))) for key, pattern in _USED.items()}
        found[name] = Resources(**values)
    return found


def disassemble(cubin: bytes) -> str:
    """The SASS of a cubin, as ``nvdisasm -c`` lists it. Raises E0803 (no nvdisasm) or E0805 (it failed)."""
    tool = find_tool("nvdisasm")
    with temporary_folder() as folder:
        path = os.path.join(folder, "kernel.cubin")
        Path(path).write_bytes(cubin)
        done = run_tool([tool, "-c", path], "nvdisasm")
        if done.returncode != 0:
            words = done.stderr.decode("utf-8", "replace").replace(path, "kernel.cubin").strip()
            raise error("E0805", f"nvdisasm: {words}", None)
        return done.stdout.decode("utf-8", "replace")
