"""PTX to the protocol model: what barriers, shared memory and the integers behind them are, found again in the text.

    calls inlined → blocks → polling loops as waits → values of registers → structured program → tidy

It takes any kernel, of whatever compiler. What it cannot model, an ``Unmodelled`` says at the PTX line.
"""

from __future__ import annotations

from ptxdsl.diagnostics import CompileError
from ptxdsl.protocol import ptx_operations
from ptxdsl.protocol.by_step import by_step
from ptxdsl.protocol.expressions import ARRAY_SHIFT
from ptxdsl.protocol.model import ONE_RUN, Array, Kernel, Seq, Unmodelled
from ptxdsl.protocol.ptx_graph import Graph, Irreducible, blocks_of
from ptxdsl.protocol.ptx_operations import Operations, is_protocol, looks_anew, needs, written_root
from ptxdsl.protocol.ptx_structure import Structure, TooDeep
from ptxdsl.protocol.ptx_traps import leave_out_traps
from ptxdsl.protocol.ptx_uses import used_loads
from ptxdsl.protocol.ptx_values import Values
from ptxdsl.protocol.ptx_waits import contract_waits, merge_first_tests
from ptxdsl.protocol.ranges import turned_back
from ptxdsl.protocol.rerolled import rerolled
from ptxdsl.protocol.sums import as_sums
from ptxdsl.protocol.tidy import tidy
from ptxdsl.ptx.call_parameters import promote
from ptxdsl.ptx.inline import Flat, Inliner
from ptxdsl.ptx.liveness import reads_and_writes
from ptxdsl.ptx.module import Function, Instruction, Module, Variable
from ptxdsl.ptx.opcodes import effect
from ptxdsl.record import replace
from ptxdsl.registers import registers_at_launch
from ptxdsl.source import Span

DYNAMIC = "dynamic shared memory"


def kernel_models(module: Module) -> tuple[Kernel, ...]:
    """The protocol of each kernel of a module, in the order of the text."""
    return tuple(kernel_model(module, function) for function in module.kernels.values())


def kernel_model(module: Module, function: Function, *, by_position: bool = True) -> Kernel:
    """The protocol of one kernel. Never fails: what it cannot do is in the model.

    by_position: to cut unrolled loops into their copies (``by_position.py``); the kernel says whether it was done.
    """
    reader = _Reader(module, function, by_position)
    try:
        return reader.model()
    except CompileError as problem:
        found = problem.diagnostics[0]
        return reader.nothing(found.span, found.message)
    except Irreducible as problem:
        line = reader.lines[problem.block]
        return reader.nothing(reader.span_of(line), "the control flow here enters a loop at two places")
    except TooDeep:
        return reader.nothing(None, "the control flow is nested too deeply")


def span_of(module: Module, function: Function) -> Span:
    """Where a kernel begins."""
    return _Reader(module, function).span_of(function.line)


class _Reader:
    def __init__(self, module: Module, function: Function, by_position: bool = True) -> None:
        self.by_position = by_position
        self.module = module
        self.function = function
        self.inliner = Inliner(module, function)
        self.source = self.inliner.flat.source
        self.lines: list[int] = []
        self.arrays: list[Array] = []

    def span_of(self, line: int) -> Span:
        return self.source.line_span(line)

    def nothing(self, span: Span | None, why: str) -> Kernel:
        """The kernel without a program."""
        at = span or self.span_of(self.function.line)
        return self.kernel(Seq((Unmodelled(at, why, ONE_RUN),)), 0)

    def kernel(self, program: Seq, variables: int) -> Kernel:
        function = self.function
        return Kernel(
            function.name,
            self.span_of(function.line),
            program,
            tuple(self.arrays),
            variables,
            _shape(function.reqntid),
            _shape(function.reqnctapercluster),
            _shape(function.maxntid),
            registers=registers_at_launch(
                function.reqntid or function.maxntid, function.minnctapersm, function.maxnreg
            ),
        )

    def model(self) -> Kernel:
        flat = self.inliner.run()
        promote(flat)
        graph = self.graph(flat)
        symbols = self.allocate(flat)
        values = self.values(flat, graph, symbols)
        used = set() if self.forget_loads(graph, values) else used_loads(graph)
        operations = Operations(values, self.arrays, self.span_of, used)
        written = Structure(graph, values, operations, self.span_of).program()
        threads = _shape(self.function.reqntid)
        form = in_plain_form(written, values.turns, values.variables, threads, by_position=self.by_position)
        program, variables, placed = form
        return replace(self.kernel(program, variables), awaited=self.awaited(graph), by_position=placed)

    def awaited(self, graph: Graph) -> tuple[Span, ...]:
        """Loops without protocol that look at memory anew in each turn."""
        found = []
        for blocks in graph.loops.values():
            items = [item for number in blocks for item in graph.blocks[number].items]
            if not any(map(is_protocol, items)):
                found += [self.span_of(item.line) for item in items if looks_anew(item)][:1]
        return tuple(found)

    def graph(self, flat: Flat) -> Graph:
        blocks = blocks_of(flat)
        leave_out_traps(blocks)
        self.lines = [block.line for block in blocks]
        graph = Graph(blocks)
        changed = True
        while changed:
            changed = contract_waits(graph.blocks, graph)
            if changed:
                graph = Graph(graph.blocks)
            if merge_first_tests(graph.blocks, graph):
                graph = Graph(graph.blocks)
                changed = True
        return graph

    def allocate(self, flat: Flat) -> dict[str, int]:
        """Addresses for the shared variables; all dynamic ones are the same memory."""
        symbols: dict[str, int] = {}
        end = 0
        dynamic: list[Variable] = []
        for variable in flat.variables.values():
            if variable.space != "shared":
                continue
            if variable.size is None or variable.linkage == "extern":
                dynamic.append(variable)
                continue
            symbols[variable.name] = self.array(variable.name, end, variable.align, variable.size, variable.line)
            end = (symbols[variable.name] & ((1 << ARRAY_SHIFT) - 1)) + variable.size
        if dynamic:
            align = max(variable.align for variable in dynamic)
            base = self.array(DYNAMIC, end, align, None, dynamic[0].line)
            symbols.update((variable.name, base) for variable in dynamic)
        return symbols

    def array(self, name: str, end: int, align: int, size: int | None, line: int) -> int:
        base = ((len(self.arrays) + 1) << ARRAY_SHIFT) + -(-end // max(align, 1)) * max(align, 1)
        self.arrays.append(Array(name, base, size, 0, self.span_of(line)))
        return base

    def values(self, flat: Flat, graph: Graph, symbols: dict[str, int]) -> Values:
        wanted: set[str] = set()
        quiet = []
        for block in graph.blocks:
            protocol = [item for item in block.items if is_protocol(item)]
            quiet.append(not protocol)
            for item in protocol:
                wanted |= needs(item)
            if block.end is not None:
                wanted.update(reads_and_writes(block.end)[0])
        parameters = {p.name: f"{p.name}#{number}" for number, p in enumerate(self.function.parameters)}
        values = Values(graph, flat.registers, symbols, parameters, wanted | self.stored(graph), quiet)
        values.run()
        return values

    def stored(self, graph: Graph) -> set[str]:
        """The registers of addresses that are written: loads from there are unknown."""
        return {name for block in graph.blocks for item in block.items for name in ptx_operations.written(item)}

    def forget_loads(self, graph: Graph, values: Values) -> bool:
        """Gives whether something is written of which it is not seen that it is no shared memory."""
        written: set[str | None] = set()
        anywhere = False
        for number, block in enumerate(graph.blocks):
            for index, item in enumerate(block.items):
                values.look(number, index)
                root = written_root(item, values)
                if not isinstance(root, bool):
                    written.add(root)
                    anywhere = anywhere or (
                        root is None and isinstance(item, Instruction) and effect(item).space is None
                    )
        values.forget_loads(frozenset(written))
        return anywhere


def in_plain_form(
    program: Seq, turns: set[int], variables: int, threads: tuple[int, int, int] | None, *, by_position: bool
) -> tuple[Seq, int, bool]:
    """The program as people would have written it, with the number of its variables, and whether unrolled loops were
    cut into copies that differ."""
    counters = frozenset(turns)
    program, variables = turned_back(tidy(as_sums(tidy(program), threads, counters)), counters, variables)
    program = tidy(program)
    rolled = rerolled(program, counters, variables, by_position)
    program, variables = turned_back(tidy(rolled.program), rolled.turns, rolled.variables)
    program, variables = by_step(tidy(program), rolled.turns, variables)
    return tidy(program), variables, rolled.by_position


def _shape(numbers: tuple[int, ...] | None) -> tuple[int, int, int] | None:
    if numbers is None:
        return None
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z
