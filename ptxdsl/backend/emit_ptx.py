"""LLVM IR text to PTX text: LLVM's passes and NVPTX backend, then the header, the line table and tidy text."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence

from ptxdsl.backend.concurrently import concurrently
from ptxdsl.diagnostics import CompileError, Diagnostic
from ptxdsl.hints import TYPE_CHECKING
from ptxdsl.lower.debug_info import file_key
from ptxdsl.lower.llvm_types import DATA_LAYOUT, TRIPLE
from ptxdsl.options import Options
from ptxdsl.record import dataclass
from ptxdsl.source import Span
from ptxdsl.targets import ptx_version, target, version_text
from ptxdsl.tir import Const, Module, walk
from ptxdsl.tir.features import PIPELINE_FEATURES, features
from ptxdsl.version import __version__

if TYPE_CHECKING:
    from ptxdsl.llvm_library import Machine


@dataclass(frozen=True)
class Emitted:
    """ptx: the text. line_map: for every line of it (the first is element 0) the text that it came from, if any."""

    ptx: str
    line_map: tuple[Span | None, ...]


def emit(llvm_ir: str, module: Module, options: Options, meanwhile: Callable[[], None] | None = None) -> Emitted:
    """The PTX of a module. ``meanwhile``: what is to be done while LLVM works.

    Raises E0703 and E0704 for an impossible PTX version, E0801 where LLVM does not take its input (our defect).
    """
    needed = features(module)
    version = ptx_version(target(options.arch), options.ptx_version, needed)
    raw = _run_llvm(llvm_ir, module, options, version, meanwhile)
    return tidy(raw, module, options)


REFUSED = "the compiler made LLVM IR that LLVM does not take: "


def _failure(module: Module, words: str) -> CompileError:
    span = module.kernels[0].span if module.kernels else None
    return CompileError(
        Diagnostic(
            "E0801",
            REFUSED + words.strip(),
            span,
            help="this is a defect of ptxdsl: please report it with the kernel",
        )
    )


@functools.cache
def _machine(arch: str, version: tuple[int, int], alone: bool) -> Machine:
    from ptxdsl.llvm_library import machine  # llvmlite: where there is something for it to do

    made = machine(TRIPLE, arch, f"+ptx{version[0]}{version[1]}", alone)
    if made.data_layout != DATA_LAYOUT:
        raise RuntimeError(f"LLVM's data layout is {made.data_layout}")
    return made


def _run_llvm(
    llvm_ir: str,
    module: Module,
    options: Options,
    version: tuple[int, int],
    meanwhile: Callable[[], None] | None,
) -> str:
    alone = optimised_alone(module)
    call = functools.partial(_machine(options.arch, version, bool(alone)).assembly, llvm_ir, alone)
    try:
        text = call() if meanwhile is None else concurrently(call, meanwhile)
    except RuntimeError as problem:
        raise _failure(module, str(problem)) from problem
    # A misspelt intrinsic is, for LLVM, a function of somebody else.
    if ".extern .func" in text:
        import re  # for print and assert, and for a defect of ours

        if missing := re.search(r"^\.extern \.func .*?(llvm\.[\w.]+)", text, re.M):
            raise _failure(module, f"there is no intrinsic {missing[1]}")
    return text


# What is to have a constant as its second operand there: the divisor, or the ring's index.
ON_CONSTANTS = frozenset({"div.s", "div.u", "floordiv.s", "mod.s", "floordiv.u", "mod.u", *PIPELINE_FEATURES})


def optimised_alone(module: Module) -> list[str]:
    """The kernels of a module, if LLVM makes as good code of them by a few passes over each.

    All its passes take two thirds of their compilation. Kernels call nothing, so there is nothing in them that goes
    from one function to another; but LLVM works on loops there too, keeps variables of the stack in registers, and has
    a division and its remainder share an instruction. Loops over a pipeline stay as they are, what does not change in
    them has been moved out (``rings/hoist.py``), and where they are unrolled by stage, their addresses need no care.
    """
    loops = 0
    for kernel in module.kernels:
        for op in walk(kernel.body):
            if op.name in ("loop", "for"):
                loops += 1
                if not any(inner.name in PIPELINE_FEATURES for inner in walk(op.blocks[0])):
                    return []
            elif op.name == "alloca" or (op.name in ON_CONSTANTS and not isinstance(op.operands[1], Const)):
                return []
    return [kernel.name for kernel in module.kernels] if loops else []


# tidying

# Beginnings of comments, and of labels for debug information.
_NOISE = ("//", "$L__tmp", "$L__func_begin", "$L__func_end")


def tidy(raw: str, module: Module, options: Options) -> Emitted:
    """LLVM's text without its comments and marks, under our header, with the table from lines to the user's text."""
    lines = raw.splitlines()
    files = dict(_file(line) for line in lines if _is_directive(line, ".file"))
    spans = _spans(module)
    header = _header(module, options)
    out: list[str] = list(header)
    spans_of: list[Span | None] = [None] * len(header)
    current: Span | None = None
    located: dict[str, tuple[bool, Span | None]] = {}  # by .loc line: whether it is one of a line, and whose
    for line in lines:
        if line[:1] == "\t" and line[1:2] not in "./":
            out.append(_without_comment(line))
            spans_of.append(current)
            continue
        if not line or line.startswith(("\t//", "$L__tmp")):
            continue
        if _is_directive(line, ".loc"):
            if line not in located:
                located[line] = _located(line, files, spans)
            known, place = located[line]
            current = place or current
            if options.lineinfo and known:
                out.append(line.rstrip())
                spans_of.append(current)
            continue
        if _is_directive(line, ".file"):
            continue
        if line.startswith((".visible", ".func", ".entry", "}")):
            current = None
        if _is_noise(line):
            continue
        if line.startswith(".visible"):
            out.append("")
            spans_of.append(None)
        out.append(_without_comment(line))
        spans_of.append(current)
    leave_from_last_loops(out, spans_of)
    if options.lineinfo:
        names = {file_key(span.source.name): span.source.name for span in spans.values()}
        out += [f'\t.file\t{number} "{_in_quotes(names.get(key, key))}"' for number, key in files.items()]
        spans_of += [None] * len(files)
    return Emitted("\n".join(out) + "\n", tuple(spans_of))


def _without_comment(line: str) -> str:
    comment = line.find("//", line.rfind('"') + 1)  # one with a quotation mark in it may be part of a string
    return (line if comment < 0 else line[:comment]).rstrip()


def _is_directive(line: str, name: str) -> bool:
    return name in line and line.split(None, 1)[0] == name


def _file(line: str) -> tuple[int, str]:
    """The number of a file, as ``.loc`` has it, and its name."""
    _, number, name = line.split(None, 2)
    return int(number), name[1 : name.rindex('"')]


def _is_noise(line: str) -> bool:
    """A line that says nothing: empty, a comment, or of debug information, which is not there."""
    words = line.split()
    if not words or words[0].startswith(_NOISE):
        return True
    return words[0] == ".section" and words[1].startswith(".debug_") and "".join(words[2:]) in ("", "{}")


def _located(
    line: str, files: Mapping[int, str], spans: Mapping[tuple[str, int, int], Span]
) -> tuple[bool, Span | None]:
    number, row, column = map(int, line.split()[1:4])
    name = files.get(number, "")
    return row > 0, (spans.get((name, row, column)) or spans.get((name, row, 0))) if row else None


def leave_from_last_loops(lines: list[str], spans: list[Span | None]) -> None:
    """Ends a loop behind which the kernel returns with "leave if done" and a branch back.

    ptxas then makes the way out an EXIT and needs no reconvergence barrier around the waits in the loop: two SASS
    instructions fewer for each wait (kernel A's consumer: 33 to 28 a turn), for one branch more a turn.
    """
    ends = [position for position, line in enumerate(lines) if line == "\tret;"]
    for end in reversed(ends):  # what is put in moves none of those that are still to come
        condition, _, target = lines[end - 2].removesuffix(";").partition(" bra")
        start = target.strip()
        if condition.startswith("\t@") and lines[end - 1].startswith("$L__BB") and f"{start}:" in lines[: end - 2]:
            predicate = condition.removeprefix("\t@")
            other = predicate[1:] if predicate.startswith("!") else f"!{predicate}"
            lines[end - 2] = f"\t@{other} bra \t{lines[end - 1].rstrip(':')};"
            lines.insert(end - 1, f"\tbra.uni \t{start};")
            spans.insert(end - 1, spans[end - 2])


def _in_quotes(name: str) -> str:
    """As ptxas reads a string: octal escapes, and no way to write a quotation mark."""
    data = name.replace('"', "'").encode("utf-8", "surrogateescape")
    return "".join(chr(b) if 32 <= b < 127 and b != ord("\\") else f"\\{b:03o}" for b in data)


def _spans(module: Module) -> dict[tuple[str, int, int], Span]:
    """Every place that a debug location can name. Column 0 stands for the first operation of a line."""
    spans: dict[tuple[str, int, int], Span] = {}
    for kernel in module.kernels:
        # Operations of one expression share one span: by identity is fast, and what is left twice does no harm.
        spans_here = {id(span): span for span in (kernel.span, *(op.span for op in walk(kernel.body)))}
        for span in spans_here.values():
            line, column = span.source.position(span.start)
            key = file_key(span.source.name)
            if spans.setdefault((key, line, column), span) != span:  # a function that several calls come to
                spans[key, line, column] = span.plain
            spans.setdefault((key, line, 0), span.plain)
    return spans


def _header(module: Module, options: Options) -> Sequence[str]:
    names = sorted({os.path.basename(kernel.span.source.name) for kernel in module.kernels})
    # A comment ends with its line, whatever the file is called.
    shown = "".join(c if c.isprintable() else "?" for c in ", ".join(names))
    return [
        f"// generated by ptxdsl {__version__} from {shown}",
        f"// {option_text(options)}",
        "",
    ]


def option_text(options: Options) -> str:
    """The options that the text depends on, as the command spells them."""
    words = [f"--arch {options.arch}"]
    if options.ptx_version:
        words.append(f"--ptx-version {version_text(options.ptx_version)}")
    words.append(f"--wait {options.wait}")
    if not options.contract:
        words.append("--no-contract")
    if options.lineinfo:
        words.append("--lineinfo")
    if not options.ring_unroll:
        words.append("--no-ring-unroll")
    return " ".join(words)
