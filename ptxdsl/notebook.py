"""Kernels in notebooks: ``%load_ext ptxdsl``, then cells that begin with ``%%pdsl``."""

from __future__ import annotations

import html
import os
import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from keyword import iskeyword
from types import FrameType
from typing import Any

from ptxdsl.api.module import Module
from ptxdsl.api.program import device_arch
from ptxdsl.command.command_line import CELL
from ptxdsl.compiled import Compiled
from ptxdsl.diagnostics import CompileError, Diagnostic, LaunchError, error
from ptxdsl.imports import source_of
from ptxdsl.options import Options
from ptxdsl.record import replace
from ptxdsl.sim.launch import Report
from ptxdsl.source import Source

MAGIC = "pdsl"
_TIMELINE_HEIGHT = 480  # pixels


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext ptxdsl``: the cell magic, and how artifacts and reports are shown."""

    def pdsl(line: str, cell: str | None = None) -> None:
        try:
            _cell(shell, line, cell)
        except CompileError as problem:
            words = _rendered(problem.diagnostics, _colors(shell))
            problem._render_traceback_ = lambda: [words]  # type: ignore[attr-defined]  # IPython asks for it
            raise

    pdsl.__doc__ = f"The cell is a module of ptxdsl.\n\n{_Parser().format_help()}"
    shell.register_magic_function(pdsl, "line_cell", MAGIC)
    for kind, shown in _SHOWN.items():
        shell.display_formatter.formatters["text/html"].for_type(kind, shown)


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext ptxdsl``."""
    for magics in shell.magics_manager.magics.values():
        magics.pop(MAGIC, None)
    for kind in _SHOWN:
        shell.display_formatter.formatters["text/html"].pop(kind, None)


# ------------------------------------------------------------------------------------------------------------ the cell


class _Parser(ArgumentParser):
    def __init__(self) -> None:
        super().__init__(
            prog=f"%%{MAGIC}",
            description="Checks the cell, a module of ptxdsl, and gives it a name; a cell that is run again takes its "
            "place. Kernels are attributes: NAME.kernel[grid, block](…). Without a name each kernel has its own.",
            allow_abbrev=False,
        )
        self.add_argument("name", metavar="NAME", nargs="?", help="of the module")
        for option, row in CELL.items():
            self.add_argument(option, **row)

    def error(self, message: str) -> Any:
        raise error("E1040", f"%%{MAGIC}: {message}", None, help=f"`%{MAGIC} --help` has the options")


def _cell(shell: Any, line: str, cell: str | None) -> None:
    """Raises CompileError."""
    given = _arguments(line if cell is not None else "--help")
    if given is None:
        return
    if given.name is not None and (not given.name.isidentifier() or iskeyword(given.name)):
        raise error("E1040", f"%%{MAGIC}: '{given.name}' is not a Python name", None, help=f"%%{MAGIC} NAME")
    # the cell's first line is that of the magic
    source = source_of(f"\n{cell}".encode("utf-8", "surrogatepass"), _name(shell))
    options = Options(
        given.arch or _arch(),
        ptx_version=given.ptx_version,
        wait=given.wait,
        contract=not given.no_contract,
        lineinfo=given.lineinfo,
        ring_unroll=not given.no_ring_unroll,
        include=tuple(given.include or ()),
    )
    warnings = _checked(source, options)
    if warnings:
        print(_rendered(warnings, _colors(shell)), file=sys.stderr)
    module = Module(source, replace(options, check="off"))  # it has been checked, and in full
    if not module.kernels:
        raise error("E1040", f"%%{MAGIC}: the cell has no def to be a kernel", None, help="write a `def`")
    shell.push({given.name: module} if given.name else {name: module[name] for name in module.kernels})


def _arguments(line: str) -> Namespace | None:
    """None where help was asked for, and given."""
    try:
        return _Parser().parse_args(shlex.split(line))
    except ValueError as problem:  # of quotes
        raise error("E1040", f"%%{MAGIC}: {problem}", None, help=f"%%{MAGIC}? shows what can stand here") from None
    except SystemExit:
        return None


def _name(shell: Any) -> str:
    """``In[3]``: what IPython calls the cell that is being run."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        known = shell.compile.format_code_name(frame.f_code.co_filename)
        if known is not None:
            return str(known[1])
        frame = frame.f_back
    return "<cell>"


def _arch() -> str:
    """The target of the machine's GPU, for which no context is made."""
    from ptxdsl.cuda.driver import current_driver

    try:
        driver = current_driver()
        return device_arch(driver.describe(driver.current_device() or 0))
    except LaunchError:
        return Options.arch


def _checked(source: Source, options: Options) -> Sequence[Diagnostic]:
    """What the command ``check`` finds in a text: of the protocols, and warnings; not what it could not look at.

    Raises CompileError for errors.
    """
    from ptxdsl.command.findings import findings
    from ptxdsl.driver import Job

    found, verdicts = findings(Job(source, options=options))
    # of the text itself: a kernel whose protocol has a fault can still be run, and looked at
    if not verdicts and any(d.severity == "error" for d in found):
        raise CompileError(found)
    return [d for d in found if d.severity != "note"]


# ------------------------------------------------------------------------------------------------ what a notebook shows


def _colors(shell: Any) -> bool:
    return str(shell.colors).lower() != "nocolor" and not os.environ.get("NO_COLOR")


def _rendered(diagnostics: Sequence[Diagnostic], color: bool) -> str:
    return "\n\n".join(d.render(color) for d in diagnostics)


def _compiled(compiled: Compiled) -> str:
    parts = []
    for name, signature in compiled.signatures.items():
        arguments = ", ".join(param.name for param in signature.params)
        shared = f"{signature.shared_bytes} bytes of shared memory" + (" and more" if signature.dynamic_shared else "")
        parts.append(f"<code>{html.escape(f'{name}({arguments})')}</code>, {shared}<br>")
    head = f"PTX for {compiled.options.arch}, {compiled.ptx.count(chr(10))} lines"
    warnings = f"<pre>{html.escape(_rendered(compiled.warnings, False))}</pre>" if compiled.warnings else ""
    ptx = f"<details><summary>{html.escape(head)}</summary><pre>{html.escape(compiled.ptx)}</pre></details>"
    return "".join(parts) + warnings + ptx


def _report(report: Report) -> str:
    """With the timeline where its events were kept."""
    shown = "<pre>" + html.escape(f"{report.render()}\n{report.counts}") + "</pre>"
    if report.output:
        shown += f"<pre>{html.escape(report.output)}</pre>"
    if report.events:
        from ptxdsl.run.lanes import lanes
        from ptxdsl.run.timeline_page import timeline_page

        page = timeline_page(lanes(report.events), report.line_map, f"kernel {report.kernel}", report.events_cut)
        shown += f'<iframe width="100%" height="{_TIMELINE_HEIGHT}" srcdoc="{html.escape(page)}"></iframe>'
    return shown


_SHOWN: dict[type, Callable[[Any], str]] = {Compiled: _compiled, Report: _report}
