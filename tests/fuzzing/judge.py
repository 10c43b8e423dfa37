"""Whether a program ended as every program must: in PTX that ptxas takes, or in diagnostics with spans in the text."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from cases import Case

from ptxdsl.artifact import Compiled
from ptxdsl.backend.assemble import assemble, find_tool
from ptxdsl.command.findings import check
from ptxdsl.diagnostics import CompileError, Diagnostic
from ptxdsl.driver import Job, compiled, show
from ptxdsl.explanations import EXPLANATIONS
from ptxdsl.imports import source_of
from ptxdsl.options import Options

# Of an exception that nobody handled.
UNFORESEEN = ("E0001", "E1090", "E1091", "E1092")
CPU_LIMIT = 5.0  # seconds of processor time for one program


@dataclass(frozen=True)
class Failure:
    """kind: ``traceback``, ``death``, …; key: what tells this defect from others of its kind."""

    kind: str
    key: str
    detail: str


@dataclass
class Judge:
    """ptxas: the assembler's path, or None to do without. It is asked about programs with a line not seen before."""

    ptxas: str | None = None
    seen: set[bytes] = field(default_factory=set)
    asked: int = 0
    spent: float = 0.0  # seconds of processor time, for compiling the last program once

    @classmethod
    def with_ptxas(cls) -> Judge:
        try:
            return cls(find_tool("ptxas"))
        except CompileError:
            return cls(None)

    def judge(self, case: Case, thorough: bool = False) -> tuple[str, Failure | None]:
        """``ptx`` or the first diagnostic's code, and what is wrong. thorough: every stage, ``check``, ptxas."""
        self.spent = 0.0
        outcome, failure = self._compile(case, thorough)
        if failure is None and self.spent > CPU_LIMIT:
            said = f"{self.spent:.1f} s of processor time, then {outcome}"
            failure = Failure("hang", f"{case.origin} {outcome}", said)
        return outcome, failure

    def _compile(self, case: Case, thorough: bool) -> tuple[str, Failure | None]:
        start = time.process_time()
        try:
            job = self._job(case)
            result = compiled(job)
            self.spent = time.process_time() - start
        except CompileError as problem:
            self.spent = time.process_time() - start
            first = next((d.code for d in problem.diagnostics if d.severity == "error"), "nothing")
            failure = problem_of(problem)
            if failure is None and thorough:
                failure = self._other_ways(case)
            return first, failure
        except Exception as defect:
            return "E0001", _traceback(defect)
        failure = _diagnostics(result.warnings)
        failure = failure or self._assembled(case, result, thorough)
        if failure is None and thorough:
            failure = self._other_ways(case) or self._again(case, result)
        return "ptx", failure

    @staticmethod
    def _job(case: Case) -> Job:
        options = Options(arch=case.arch, wait=case.wait, lineinfo=case.lineinfo)  # type: ignore[arg-type]
        return Job(source_of(case.data, case.name), case.kernel, dict(case.constants), options)

    def _other_ways(self, case: Case) -> Failure | None:
        """``check``, and the printed form of every stage."""
        try:
            found = check(self._job(case))
        except CompileError as problem:
            return problem_of(problem)
        except Exception as defect:
            return _traceback(defect)
        failure = _diagnostics(found)
        for stage in ("tree", "ast", "tir", "rings", "llvm"):
            if failure is not None:
                return failure
            try:
                show(self._job(case), stage)
            except CompileError as problem:
                failure = problem_of(problem)
            except Exception as defect:
                failure = _traceback(defect)
        return failure

    def _again(self, case: Case, first: Compiled) -> Failure | None:
        second = compiled(self._job(case))
        if second.ptx == first.ptx:
            return None
        return Failure("differs", "second compile", "the second compile in one process differs from the first")

    # --------------------------------------------------------------------------------------------------------- ptxas

    def _assembled(self, case: Case, result: Compiled, thorough: bool) -> Failure | None:
        if self.ptxas is None or (not self._new(result.ptx, case.arch) and not thorough):
            return None
        self.asked += 1
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            path = Path(folder, "kernel.ptx")
            path.write_text(result.ptx, encoding="utf-8")
            level = "-O3" if thorough else "-O0"
            command = [self.ptxas, f"-arch={case.arch}", level, str(path), "-o", os.path.join(folder, "cubin")]
            try:
                done = subprocess.run(command, capture_output=True, timeout=60, check=False)
            except subprocess.TimeoutExpired:
                return Failure("ptxas", "timeout", "ptxas runs longer than 60 s")
        if done.returncode == 0:
            return None
        words = done.stderr.decode("utf-8", "replace").replace(str(path), "kernel.ptx")
        if "inlined_assembly" in case.text:
            return self._blamed(result)
        key = re.sub(r"line \d+|\d+|'[^']*'", "N", words.strip().split("\n")[0])
        return Failure("ptxas", key[:120], words[:2000])

    @staticmethod
    def _blamed(result: Compiled) -> Failure | None:
        """The user's own assembly: ptxas's words must come back at lines of the text."""
        try:
            assemble(result.ptx, result.options, result.line_map)
        except CompileError as problem:
            failure = problem_of(problem, backend=True)
            if failure is None and any(d.span is None for d in problem.diagnostics if d.severity == "error"):
                return Failure("ptxas", "no span", str(problem)[:2000])
            return failure
        return None

    def _new(self, ptx: str, arch: str) -> bool:
        """Whether the text has a line of a shape that ptxas has not been shown (for this target)."""
        fresh = False
        for line in ptx.split("\n"):
            shape = re.sub(r"\b\d+\b", "9", re.sub(r"%(\w+?)\d+|\b0[fd][0-9A-F]+\b|(?<=_)\d+|\$L__BB\w+", r"%\1", line))
            mark = hashlib.blake2b(f"{arch} {shape}".encode(), digest_size=8).digest()
            if mark not in self.seen:
                self.seen.add(mark)
                fresh = True
        return fresh


# -------------------------------------------------------------------------------------------------------- diagnostics


def problem_of(problem: CompileError, backend: bool = False) -> Failure | None:
    """What is wrong with a failed compilation's diagnostics; None if they are as they must be."""
    for diagnostic in problem.diagnostics:
        if diagnostic.code in UNFORESEEN:
            cause = problem.__cause__ or problem
            return _traceback(cause)
        if diagnostic.code in ("E0801", "E0802", "E0804") and not backend:
            key = re.sub(r"%?\b\w*\d\w*\b", "N", diagnostic.message)
            return Failure("backend", f"{diagnostic.code} {key[:100]}", diagnostic.message[:3000])
    if not any(d.severity == "error" for d in problem.diagnostics):
        return Failure("empty", "no error", _where(problem))
    return _diagnostics(problem.diagnostics)


def _diagnostics(found: tuple[Diagnostic, ...]) -> Failure | None:
    for diagnostic in found:
        detail = f"{diagnostic.code}: {diagnostic.message[:300]}"
        if diagnostic.code not in EXPLANATIONS:
            return Failure("unexplained", diagnostic.code, detail)
        if diagnostic.span is None and diagnostic.code[:3] not in ("E10", "E02", "E07"):
            return Failure("span", f"none {diagnostic.code}", detail)
        if len(diagnostic.message) > 20_000:
            return Failure("long", diagnostic.code, detail)
        for span in (diagnostic.span, *(s for s, _ in diagnostic.notes)):
            if span is None:
                continue
            if not 0 <= span.start <= span.end <= len(span.source.text):
                return Failure("span", f"outside {diagnostic.code}", f"{span.start}..{span.end} {detail}")
            if span.source.library:
                return Failure("span", f"library {diagnostic.code}", f"{span} {detail}")
        try:
            words = diagnostic.render()
            diagnostic.render(color=True).encode()
        except Exception as defect:
            return _traceback(defect)
        if len(words) > 20_000:
            return Failure("long", f"rendered {diagnostic.code}", words[:500])
    return None


def _traceback(defect: BaseException) -> Failure:
    frames = traceback.extract_tb(defect.__traceback__)
    own = [f for f in frames if f"{os.sep}ptxdsl{os.sep}" in f.filename] or frames
    at = f"{os.path.basename(own[-1].filename)}:{own[-1].name}:{own[-1].lineno}" if own else "?"
    if isinstance(defect, RecursionError):
        at = "recursion in " + os.path.basename(own[-1].filename)
    lines = traceback.format_exception(type(defect), defect, defect.__traceback__)
    return Failure("traceback", f"{type(defect).__name__} {at}", "".join(lines)[-3000:])


def _where(defect: BaseException) -> str:
    return "".join(traceback.format_tb(defect.__traceback__))[-2000:]
