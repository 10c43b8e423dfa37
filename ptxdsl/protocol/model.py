"""The protocol of a kernel: a small structured program that every thread runs, with all that is not protocol cut away.

What is left: operations on barriers, accesses to shared and tensor memory, fences, collectives, groups of asynchronous
work, and the integers that feed their addresses, parities, counts, conditions and trip counts. ``from_tir.py`` makes it
of what the compiler has, ``from_ptx.py`` of PTX text; ``ptxdsl/check`` proves it. It knows neither of them.

    Kernel   program, arrays of shared memory, block and cluster shape
    Node     Seq | Op | Assign | Branch | Loop | Jump | Return | Unmodelled
    Expr     an integer (``expressions.py``)

Variables are assigned, as in any imperative language: ``Assign`` before a loop and at the end of its body makes what
TIR carries. A ``Loop`` goes on forever unless its ``range`` is exhausted or a ``Jump`` leaves it; with
``once`` it is a block that a Jump may leave. What the model does not say is an ``Unmodelled`` at the place where it
happens, with the reason: a proof that meets it is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from ptxdsl.effects import Effect, Kind
from ptxdsl.protocol.expressions import Expr, cta
from ptxdsl.record import Slotted, dataclass
from ptxdsl.source import Span


@dataclass(frozen=True, eq=False)
class Array:
    """A variable of shared memory, or all of its dynamic part.

    name: as the source has it. base: the address that stands for its first byte. bytes: None of dynamic shared memory.
    element: bytes of an element, 0 unknown.
    """

    name: str
    base: int
    bytes: int | None
    element: int
    span: Span | None


class Written:
    """What threads write at a place. It is looked at only where several of them write the same bytes."""

    def told_by(self) -> tuple[Expr, ...] | None:
        """Expressions of thread ids (and ``TURN``): threads for which all of them are the same write the same. None: it
        is not known."""
        raise NotImplementedError


@dataclass(frozen=True)
class Same(Written):
    """The same for all, always. what: constants."""

    what: tuple[object, ...]

    def told_by(self) -> tuple[Expr, ...]:
        return ()


# In what threads write that is the same for all, but another in each turn of a loop.
TURN = cta("turn")


@dataclass(frozen=True)
class Place:
    """width bytes of shared memory from an address, for each executing thread.

    address None: unknown. width None: unknown; an Expr: as many bytes (a bulk copy's). written: None: not known.
    used: of a read whether it is certain that somebody looks at what it gives.
    """

    address: Expr | None
    width: int | Expr | None
    written: Written | None = None
    used: bool = True


# ---------------------------------------------------------------------------------------------------- programs


class Op(metaclass=Slotted, eq=True):
    """One operation, done by every thread that comes to it.

    what: its effect. name: of the row of ``intrinsics/``, of a ``pipe.*`` operation, or the PTX opcode. span: where
    the user wrote it. barrier: the mbarrier (8 bytes); with a mask the one at the same offset in each CTA of the mask.
    parity: of a wait. count: of an init or an arrival (None: 1), the threads of a named barrier (None: all of the
    block), n of a wait_group. bytes: announced, completed or copied. id: of a named barrier. mask: of the CTAs of a
    multicast; of the lanes that take part in a warp collective (None: all). writes, reads: memory touched now, or by
    the asynchronous work that is started; by which proxy says ``what.proxy``. pipeline, method: the RolePipeline's
    variable and method as written, for messages. elected: one lane of the warp does it (``elect.sync`` is in it).
    value: the unknown that a read gives, where anything hangs on it; what is written, as far as that is followed.
    adds: of a product that writes to tensor memory, whether it adds to what lies there.
    """

    what: Effect
    name: str
    span: Span
    barrier: Place | None = None
    parity: Expr | None = None
    count: Expr | None = None
    bytes: Expr | None = None
    id: Expr | None = None
    mask: Expr | None = None
    writes: tuple[Place, ...] = ()
    reads: tuple[Place, ...] = ()
    pipeline: str = ""
    method: str = ""
    elected: bool = False
    value: Expr | None = None
    adds: Expr | None = None

    @property
    def kind(self) -> Kind:
        return self.what.kind

    @property
    def called(self) -> str:
        """The name by which the text calls it, for messages; of PTX the opcode."""
        return self.method or ("" if self.span.source.name.endswith(".ptx") else _called(self.span.text)) or self.name


def _called(text: str) -> str:
    """``wait`` of ``bars[unsafe_offset=i].wait(0)``: the last name that is called outside of brackets."""
    import re  # where there is a fault

    depth, name, found = 0, "", ""
    for token in re.findall(r"\w+|[][()]", text):
        if token in "[(":
            found = name if token == "(" and not depth else found
            depth += 1
        elif token in ")]":
            depth -= 1
        elif not depth:
            name = token
    return found


class Seq(metaclass=Slotted, eq=True):
    nodes: tuple[Node, ...]


class Assign(metaclass=Slotted, eq=True):
    """Variables by number get their values at once (simultaneously)."""

    targets: tuple[int, ...]
    values: tuple[Expr, ...]


class Branch(metaclass=Slotted, eq=True):
    condition: Expr
    then: Seq
    orelse: Seq
    span: Span


class Range(metaclass=Slotted, eq=True):
    """``for index in range(start, stop, step)``: index is a variable; the range is that of the integers."""

    index: int
    start: Expr
    stop: Expr
    step: int
    signed: bool = True


class Loop(metaclass=Slotted):
    """range None: until a Jump leaves it; once: a block that is left at its end as well."""

    body: Seq
    span: Span
    range: Range | None = None
    once: bool = False
    label: int = 0


class Jump(metaclass=Slotted, eq=True):
    """To the next iteration of the loop of that label (``again``) or behind it."""

    label: int
    again: bool


class Return(metaclass=Slotted, eq=True):
    span: Span


# What to do where the model has nothing for an operation.
ONE_RUN = "the trace check looks at single runs of such a kernel: `ptxdsl run … --races`"


class Unmodelled(metaclass=Slotted, eq=True):
    """why: as a clause that fits behind "not provable here:". remedy: what to do about it."""

    span: Span
    why: str
    remedy: str


@dataclass(frozen=True)
class Pipeline:
    """A RolePipeline value where it is made: for messages. full, empty: addresses of its tables' first barriers.

    full_subs, empty_subs: barriers a stage.
    """

    name: str
    producer: bool
    stages: int
    full: Expr
    empty: Expr
    full_subs: int
    empty_subs: int
    span: Span


Node = Seq | Op | Assign | Branch | Loop | Jump | Return | Unmodelled


@dataclass(frozen=True, eq=False)
class Kernel:
    """threads: the block's shape where it is known, cluster likewise. variables: how many there are, numbered from 0.

    hint, cluster_hint: the shape of a block and of a cluster that the source speaks of without promising them.
    thread_count: of a block, in whatever shape.
    awaited: loops without protocol in which threads wait for what others write to memory. endless: others without
    protocol that are not seen to end. registers: of a thread at the launch, where ``setmaxnreg`` moves them.
    by_position: whether the copies of unrolled loops of PTX are turns of their own.
    """

    name: str
    span: Span
    program: Seq
    arrays: tuple[Array, ...]
    variables: int
    threads: tuple[int, int, int] | None = None
    cluster: tuple[int, int, int] | None = None
    hint: tuple[int, int, int] | None = None
    pipelines: tuple[Pipeline, ...] = ()
    cluster_hint: tuple[int, int, int] | None = None
    awaited: tuple[Span, ...] = ()
    endless: tuple[Span, ...] = ()
    registers: int | None = None
    by_position: bool = False
    thread_count: int | None = None

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes of the program, in its order."""
        return tuple(walk(self.program))


def walk(node: Node) -> list[Node]:
    """A node and all below it, in program order."""
    found: list[Node] = []  # as of ``tir.walk``
    _collect(node, found)
    return found


def _collect(node: Node, found: list[Node]) -> None:
    found.append(node)
    if isinstance(node, Seq):
        for inner in node.nodes:
            if type(inner) in _INNER:
                _collect(inner, found)
            else:
                found.append(inner)  # most are
    elif isinstance(node, Branch):
        _collect(node.then, found)
        _collect(node.orelse, found)
    elif isinstance(node, Loop):
        _collect(node.body, found)


_INNER = frozenset({Seq, Branch, Loop})


def expressions_of(node: Node) -> Iterator[Expr]:
    """The expressions of a node itself, not those of nodes below it."""
    if isinstance(node, Assign):
        yield from node.values
    elif isinstance(node, Branch):
        yield node.condition
    elif isinstance(node, Loop) and node.range is not None:
        yield node.range.start
        yield node.range.stop
    elif isinstance(node, Op):
        yield from (e for e in (node.parity, node.count, node.bytes, node.id, node.mask, node.value) if e is not None)
        for place in (*node.writes, *node.reads, *((node.barrier,) if node.barrier is not None else ())):
            yield from (e for e in (place.address, place.width) if isinstance(e, Expr))
