"""Reads of shared memory on which it hangs where roles go: their results become variables.

    next[0] = fetch_add(counter, 1)    # by one thread
    barrier()
    var mine = next[0]                 # by all
    barrier()
    if mine >= n: break

What is loaded is data elsewhere. Where a branch or a loop that does more than access memory asks for it, it is followed
(``held.py``). That takes an address that hangs on no thread's number.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxdsl.check.accesses import only_accesses
from ptxdsl.check.written_out import of_threads
from ptxdsl.protocol.algebra import substitute
from ptxdsl.protocol.expressions import Expr, held, nodes, var
from ptxdsl.protocol.model import Assign, Branch, Kernel, Loop, Node, Op, Seq
from ptxdsl.protocol.rewriting import mapped, with_own_expressions
from ptxdsl.record import replace


def with_reads(kernel: Kernel) -> Kernel:
    """The kernel with their results as variables."""
    ops = [node for node in kernel.nodes if isinstance(node, Op)]
    reads = {op.value: op for op in ops if op.value is not None and op.reads}
    wanted = [value for value in _decisive(kernel) if value in reads] if reads else []
    if wanted:
        own = of_threads(kernel)
        wanted = [value for value in wanted if _is_alike(reads[value], own)]
    if not wanted:
        return kernel
    names = {value: var(kernel.variables + number, value.bits) for number, value in enumerate(wanted)}
    known: dict[Expr, Expr] = {}

    def named(expr: Expr) -> Expr:
        return substitute(expr, names.get, known)

    def change(node: Node) -> Node | None:
        name = names.get(node.value) if isinstance(node, Op) and node.value is not None and node.reads else None
        if name is None:
            return None
        read = with_own_expressions(node, named)
        assert isinstance(read, Op) and read.reads[0].address is not None
        return Seq((read, Assign((name.value,), (held(read.reads[0].address, name.bits),))))

    program = mapped(kernel.program, change, names.get, known)
    return replace(kernel, program=program, variables=kernel.variables + len(names))


def _is_alike(read: Op, own: frozenset[int]) -> bool:
    """Whether all threads read the same word. own: variables that threads may have each for itself."""
    (place,) = read.reads
    address = place.address
    return address is not None and not address.variables & own and all(e.op not in _OF_THREADS for e in nodes(address))


_OF_THREADS = frozenset({"tid", "elected", "unknown"})


def _decisive(kernel: Kernel) -> dict[Expr, None]:
    """What is unknown in conditions and ends of ranges of parts that do more than access memory."""
    made: dict[int, list[Expr]] = {}
    work: list[Expr] = []
    for node in kernel.nodes:
        if isinstance(node, Assign):
            for target, value in zip(node.targets, node.values, strict=True):
                made.setdefault(target, []).append(value)
        else:
            work += _asked(node)
    found: dict[Expr, None] = {}
    while work:
        for part in nodes(work.pop()):
            if part.op == "unknown":
                found[part] = None
            elif part.op == "var":
                work += made.pop(part.value, ())
    return found


def _asked(node: Node) -> Iterator[Expr]:
    if isinstance(node, Branch) and not (only_accesses(node.then) and only_accesses(node.orelse)):
        yield node.condition
    elif isinstance(node, Loop) and node.range is not None and not only_accesses(node.body):
        yield node.range.start
        yield node.range.stop
