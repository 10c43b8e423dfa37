"""What becomes of an exception that nobody handled: a diagnostic that says whose fault it is."""

from __future__ import annotations

import errno

from ptxdsl.diagnostics import CompileError, Diagnostic

# Characters of an internal error's own words: some print whole data structures.
_SAID_LIMIT = 200

_LIMITS = "the process has limits (ulimit -a), or the machine is at its own"
_HELP = {
    errno.ENOSPC: "make room on the disk",
    errno.EDQUOT: "make room on the disk",
    errno.EFBIG: "files may not be so large here (ulimit -f)",
    errno.EMFILE: "the process has too many files open (ulimit -n)",
}


def diagnostics_of(problem: Exception) -> tuple[Diagnostic, ...]:
    """What an exception says to the user: its own diagnostics, or the one that tells whose fault it is."""
    return problem.diagnostics if isinstance(problem, CompileError) else (diagnostic_of(problem),)


def diagnostic_of(problem: Exception) -> Diagnostic:
    """E1090 for a part of the installation that is missing, E1091 and E1092 for what the system refuses, else E0001: a
    defect of the compiler, never the user's."""
    said = " ".join(f"{type(problem).__name__}: {problem}".split()).rstrip(":")
    if len(said) > _SAID_LIMIT:
        said = said[:_SAID_LIMIT] + "…"
    if isinstance(problem, MemoryError):
        return Diagnostic("E1092", "there is no more memory", help=_LIMITS)
    if isinstance(problem, OSError):
        of = f"'{problem.filename}': " if problem.filename else ""
        words = f"{of}{problem.strerror}" if problem.strerror else said.partition(": ")[2]
        help = _HELP.get(problem.errno or 0, _LIMITS)
        return Diagnostic("E1091", f"the operating system reports: {words}", help=help)
    if isinstance(problem, ImportError):
        return Diagnostic("E1090", f"a part of ptxdsl cannot be loaded: {problem}", help="install ptxdsl again")
    return Diagnostic(
        "E0001",
        f"internal error, please report it: {said}",
        help="PTXDSL_DEBUG=1 in the environment shows where in the compiler it happened",
    )
