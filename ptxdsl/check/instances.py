"""Small launches of a kernel of which it cannot be told in general whether a fault happens.

What decides about it, as ``n * (s + 1) // S`` in one role and the same rounded up in another, may be too much for what
is known of unknown values. With numbers for them it is arithmetic: the kernel is searched anew for launches with small
ones. A fault that is found so is one of that launch. That none is found says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from ptxdsl.check.findings import Finding
from ptxdsl.check.values import Atom
from ptxdsl.check.witness import facts_of, goes_by_memory, smallest_first, symbols, told
from ptxdsl.protocol.expressions import Expr, const
from ptxdsl.protocol.model import Kernel
from ptxdsl.protocol.rewriting import mapped
from ptxdsl.record import replace

MOST_STATES, MOST_STEPS = 200, 20_000  # of each launch
_MOST_LAUNCHES = 24
_VALUES = (1, 2, 3, 4, 5, 0, 7, 8)


def instances(kernel: Kernel, finding: Finding) -> Iterator[tuple[Kernel, str]]:
    """The kernel with numbers for what decides about a fault, and which these are."""
    if goes_by_memory(finding.path):
        return
    found: dict[str, Atom] = {}
    for terms, _ in facts_of(finding.path):
        for atom, _ in terms:
            found.update((str(symbol.name), symbol) for symbol in symbols(atom) if symbol.op == "symbol")
    choices = [[value for value in _VALUES if value >= symbol.low] for symbol in found.values()]
    for values in islice(smallest_first(choices), _MOST_LAUNCHES) if found else ():
        known = dict(zip(found, values, strict=True))
        if all(known.get(f"ctaid_{axis}", 0) < known.get(f"nctaid_{axis}", 1 << 31) for axis in "xyz"):
            yield _with(kernel, known), told(known)


def _with(kernel: Kernel, known: Mapping[str, int]) -> Kernel:
    def of(expr: Expr) -> Expr | None:
        named = expr.op in ("uniform", "cta") and expr.value in known
        return const(known[expr.value], expr.bits) if named else None

    return replace(kernel, program=mapped(kernel.program, lambda _: None, of, {}))
