"""The lowest layer of elaboration: the block being filled, the variables' values, where errors point, and limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ptxdsl import tir
from ptxdsl.diagnostics import CompileError, Diagnostic, DiagnosticSink, error
from ptxdsl.elaborate.alignment import Wanted
from ptxdsl.elaborate.entities import Place, RValue, Variable
from ptxdsl.elaborate.frames import FunctionFrame, LoopFrame, State
from ptxdsl.elaborate.library import Library
from ptxdsl.elaborate.scope import Scope
from ptxdsl.elaborate.tensor_maps import MapNeeds
from ptxdsl.generator_context import contextmanager
from ptxdsl.hints import TYPE_CHECKING, Any
from ptxdsl.options import Options
from ptxdsl.source import CalledSpan, Span
from ptxdsl.syntax import ast
from ptxdsl.targets import Target, require, target
from ptxdsl.tir.fold import fold

if TYPE_CHECKING:
    from ptxdsl.imports import Loader

MAX_OPS = 20_000  # operations of one kernel: what LLVM, whose passes are not all linear, compiles in seconds
MAX_STEPS = 300_000  # statements and calls evaluated, at compile time and while unrolling
CALL_STEPS = 32  # what the expansion of a call counts for: the time of so many plain statements
MAX_DEPTH = 100  # calls inside calls

COMPTIME_VALUES = "compile-time values come from literals, parameters, `comptime` names and functions of these"


class Exhausted(CompileError):
    """A limit is reached. No trial of an overload or a conversion catches it: the next would run into it as well."""


class _Comptime:
    """Inside: everything is evaluated at once."""

    # A class, as those below, and no generator: they are entered some hundred times a kernel.
    __slots__ = ("context",)

    def __init__(self, context: Context) -> None:
        self.context = context

    def __enter__(self) -> None:
        self.context.comptime_depth += 1

    def __exit__(self, *raised: object) -> None:
        self.context.comptime_depth -= 1


class _Outside:
    """Inside: no function, loop or region of the current place is seen."""

    __slots__ = ("context", "saved")

    def __init__(self, context: Context) -> None:
        self.context = context
        self.saved = context.function, context.loop, context.index_depth

    def __enter__(self) -> None:
        context = self.context
        context.function, context.loop, context.index_depth = None, None, 0

    def __exit__(self, *raised: object) -> None:
        context = self.context
        context.function, context.loop, context.index_depth = self.saved


class _Deeper:
    """Inside: one call deeper."""

    __slots__ = ("context",)

    def __init__(self, context: Context) -> None:
        self.context = context

    def __enter__(self) -> None:
        self.context.call_depth += 1

    def __exit__(self, *raised: object) -> None:
        self.context.call_depth -= 1


class Call:
    """A call of a function of the user's that is expanded. span: with the calls around it."""

    __slots__ = ("_inside", "name", "span")

    def __init__(self, span: Span, name: str) -> None:
        self.span, self.name = span, name
        self._inside: dict[Span, CalledSpan] = {}

    def inside(self, span: Span) -> CalledSpan:
        """A place in the function's body as this call comes to it; one object for all operations of a place."""
        found = self._inside.get(span)
        if found is None:
            found = self._inside[span] = CalledSpan(span.source, span.start, span.end, self.span, self.name)
        return found


class Context:
    """State shared by every layer above. A layer calls upwards only through the methods declared here."""

    def __init__(self, options: Options, loader: Loader, sink: DiagnosticSink, library: Library) -> None:
        self.options = options
        self.library = library
        self.modules: dict[ast.Module, Scope] = {}  # the program's own, by their trees
        self.target: Target = target(options.arch)
        self.loader = loader
        self.sink = sink
        self.ops: list[tir.Op] = []
        self.state: State = {}
        self.in_error: set[Variable] = set()  # what statements in error would have given a value
        self.site: Span | None = None  # the user's call, while library code is elaborated
        self.entered = ""  # the library function that the user's call names
        self.call: Call | None = None  # of a function of the user's, while that is elaborated
        self.comptime_depth = 0  # > 0: evaluate now; nothing may be left for run time
        self.index_depth = 0  # > 0: inside a pointer index, where overflow is unspecified
        self.call_depth = 0
        self.op_count = 0
        self.steps = 0
        self.function: FunctionFrame | None = None
        self.loop: LoopFrame | None = None
        self.uses_dynamic_shared = False
        self.dynamic_shared: tuple[int, Span] | None = None  # bytes that the kernel says it uses of it, and where
        self.thread_count: tuple[int, Span] | None = None  # of a block, as an operation of blocks of one size says
        self.kernel_threads: tuple[int, int, int] | None = None  # of a block, as ``@kernel(threads=…)`` says
        self.naming: str | None = None  # the variable that is being given a value
        self._at_comptime = _Comptime(self)
        self._one_deeper = _Deeper(self)
        self.known_offsets: dict[tir.Value, tuple[tir.Value, int]] = {}  # pointer → base and constant bytes after it
        self.alignments: list[Wanted] = []  # what must be aligned; looked at when the kernel is complete
        self.map_needs = MapNeeds()  # what copies need of the kernel's tensor maps
        self.retyped = False  # whether a pointer became one to elements of another type

    # ------------------------------------------------------------------------------------------ implemented above

    def evaluate(self, node: ast.Expr, scope: Scope, expected: Any = None) -> RValue:
        raise NotImplementedError

    def evaluate_both(self, first: ast.Expr, second: ast.Expr, scope: Scope) -> tuple[RValue, RValue]:
        raise NotImplementedError

    def evaluate_place(self, node: ast.Expr, scope: Scope) -> Place:
        raise NotImplementedError

    def execute(self, body: ast.Block, scope: Scope) -> None:
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------- diagnostics

    def at(self, span: Span) -> Span:
        """The span that a user should see: library code is shown as the user's call into it."""
        return self.site if self.site is not None and span.source.library else span

    def origin(self, span: Span) -> Span:
        """The place that an operation comes from: the span that a user should see, with the calls that led there."""
        shown = self.site if self.site is not None and span.source.library else span
        return shown if self.call is None else self.call.inside(shown)

    def fail(
        self, code: str, message: str, span: Span, *notes: tuple[Span, str], help: str | None = None
    ) -> CompileError:
        shown = tuple(n for n in notes if not n[0].source.library)
        return error(code, message, self.at(span).plain, *shown, help=help)

    def check_distinct(self, node: ast.FunctionDef) -> None:
        """E0202 for two arguments of one name."""
        first: dict[str, Span] = {}
        for argument in node.args:
            if argument.name in first and argument.name != "_":
                raise self.fail(
                    "E0202", f"`{argument.name}` is already an argument of `{node.name}`", argument.span,
                    (first[argument.name], "declared here"), help="choose another name",
                )  # fmt: skip
            first[argument.name] = argument.span

    def count_step(self, span: Span, steps: int = 1) -> None:
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise self.exhausted(
                "E0403",
                f"more than {MAX_STEPS:,} steps at compile time",
                span,
                "a compile-time loop or recursion does not end, or unrolls too far; use a run-time loop",
            )

    def exhausted(self, code: str, message: str, span: Span, help: str) -> Exhausted:
        return Exhausted(Diagnostic(code, message, self.at(span).plain, (), help))

    # ---------------------------------------------------------------------------------------------------- emission

    def emit(
        self, name: str, operands: list[tir.Value], result_types: list[tir.Ty], span: Span, /, **attrs: Any
    ) -> list[tir.Value]:
        """Appends an operation and returns its results; constants are folded."""
        if operands and operands[0].__class__ is tir.Const:
            folded = fold(name, operands, attrs, result_types)
            if folded is not None:
                return list(folded)
        return self.append(
            tir.Op(name, operands, [tir.Value(t) for t in result_types], attrs, self.origin(span))
        ).results

    def emit1(self, name: str, operands: list[tir.Value], ty: tir.Ty, span: Span, /, **attrs: Any) -> tir.Value:
        return self.emit(name, operands, [ty], span, **attrs)[0]

    def append(self, op: tir.Op) -> tir.Op:
        if self.comptime_depth:
            raise error(
                "E0401",
                "this is not known at compile time",
                op.span.plain,
                help=COMPTIME_VALUES,
            )
        # LLVM takes a long vector apart: as many operations as it has registers, or pairs of them.
        lanes = 1
        for value in (*op.results, *op.operands):
            if value.ty.lanes > lanes:
                lanes = value.ty.lanes
        self.op_count += 1 if lanes <= 4 else lanes // 4
        if self.op_count > MAX_OPS:
            raise self.exhausted(
                "E0404",
                f"the kernel grows beyond {MAX_OPS:,} operations",
                op.span.plain,
                "use a run-time loop instead of `comptime for`, or a smaller Array or SIMD width",
            )
        self.ops.append(op)
        return op

    def want_aligned(self, address: tir.Value, bytes: int, what: str, span: Span) -> None:
        """An error (E0617) at the end of the kernel if the address is known to be aligned to fewer bytes."""
        self.alignments.append(Wanted(address, bytes, what, self.origin(span)))

    @property
    def terminated(self) -> bool:
        """Whether the current block has ended: what follows is never reached."""
        return bool(self.ops) and self.ops[-1].name in tir.TERMINATORS

    @contextmanager
    def block(self) -> Iterator[tir.Block]:
        """A new block, filled inside the ``with``."""
        outer, block = self.ops, tir.Block()
        self.ops = block.ops
        try:
            yield block
        finally:
            self.ops = outer

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Inside: something is evaluated to see whether it can be. Nothing stays of what it emits and assigns."""
        undo = self.checkpoint()
        try:
            yield
        finally:
            undo()

    def checkpoint(self) -> Callable[[], None]:
        """Remembers this place. What it gives undoes whatever is emitted and assigned from now on."""
        ops, mark, count, state = self.ops, len(self.ops), self.op_count, self.state
        self.state = dict(state)

        def undo() -> None:
            del ops[mark:]
            self.op_count, self.state = count, state

        return undo

    def comptime(self) -> _Comptime:
        """Inside: everything is evaluated at once."""
        return self._at_comptime

    def outside(self) -> _Outside:
        """Inside: no function, loop or region of the current place is seen."""
        return _Outside(self)

    def deeper(self, span: Span) -> _Deeper:
        """Inside: one call deeper. E0406 where a recursion does not end."""
        if self.call_depth >= MAX_DEPTH:
            raise self.exhausted(
                "E0406", f"more than {MAX_DEPTH} calls inside one another", span,
                "calls are expanded at compile time: a recursion must end on compile-time parameters",
            )  # fmt: skip
        return self._one_deeper

    def require(self, feature: str | None, span: Span, what: str) -> None:
        """E0701 if the target lacks a feature."""
        if feature is not None:
            require(feature, self.target, self.at(span), what)
