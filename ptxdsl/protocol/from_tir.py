"""TIR to the protocol model: the slice of a kernel (``tir_slice.py``), written down as a program."""

from __future__ import annotations

from collections.abc import Iterator

from ptxdsl.protocol import model
from ptxdsl.protocol.early_returns import without_early_returns
from ptxdsl.protocol.expressions import Expr, leaves
from ptxdsl.protocol.model import Assign, Branch, Jump, Loop, Node, Range, Return, Seq
from ptxdsl.protocol.polling import with_waits
from ptxdsl.protocol.tir_effects import is_protocol, looks_anew
from ptxdsl.protocol.tir_operations import Operations
from ptxdsl.protocol.tir_slice import CONTROL, Slice
from ptxdsl.protocol.tir_written import Sources
from ptxdsl.registers import registers_at_launch
from ptxdsl.source import Span
from ptxdsl.tir import Block, Kernel, Op, Value, walk


def kernel_model(kernel: Kernel) -> model.Kernel:
    """The protocol of one kernel, before its rings are unrolled."""
    return _Program(kernel).model()


class _Program(Slice):
    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self.labels: dict[Op, int] = {}
        sources = Sources(self.integers, self.place, self.sources)
        self.operations = Operations(self.integers, sources, self.arrays, self.casts())

    def casts(self) -> bool:
        return any(
            op.name == "ptr.cast" and op.results[0].ty.name == "ptr.generic" and op.operands[0].ty.name == "ptr.shared"
            for op in self.made.values()
        )

    def model(self) -> model.Kernel:
        program = without_early_returns(with_waits(self.seq(self.kernel.body)))
        signature = self.kernel.signature
        return model.Kernel(
            self.kernel.name,
            self.kernel.span,
            program,
            tuple(self.arrays),
            self.variable_count,
            signature.threads,
            signature.cluster,
            self.hint("block"),
            tuple(self.operations.pipelines),
            self.hint("cluster"),
            *self.perhaps_endless(),
            registers_at_launch(
                signature.threads or signature.max_threads, signature.min_blocks, signature.max_registers
            ),
            thread_count=signature.thread_count,
        )

    def perhaps_endless(self) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
        """Loops without protocol that look at memory anew in each turn, and others that are not seen to end."""
        awaited, endless = [], []
        protocol = {op for op in self.seeds if op.name != "return"}
        for loop in self.parent:
            inside = walk(loop.blocks[0]) if loop.name == "loop" else []
            if not inside or not protocol.isdisjoint(inside):
                continue
            if any(map(looks_anew, inside)):
                awaited.append(loop.span)
                continue
            from ptxdsl.protocol.loop_ends import comes_to_an_end  # few kernels have such loops

            if not comes_to_an_end(loop, self.made):
                endless.append(loop.span)
        return tuple(awaited), tuple(endless)

    def hint(self, word: str) -> tuple[int, int, int] | None:
        """What a line of the comment at the file's head says of the launch: the number after this word."""
        for line in _head(self.kernel.span.source.text):
            before, found, after = line.rpartition(f"{word} ")
            digits = after[: len(after) - len(after.lstrip("0123456789"))]
            alone = not (before[-1:] + after[len(digits) :][:1]).replace("_", "a").isalnum()
            if line.startswith("#") and found and digits and alone:
                return int(digits), 1, 1
        return None

    def seq(self, block: Block) -> Seq:
        nodes: list[Node] = []
        for op in block.ops:
            if op.name in CONTROL:
                if op in self.kept:
                    nodes.extend(self.control(op))
            elif op.name in ("repeat", "leave"):
                nodes.extend(self.jump(op))
            elif op.name == "return":
                nodes.append(Return(op.span))
            elif is_protocol(op):
                nodes.extend(self.operations.nodes(op))
            if op in self.integers.drawn:
                nodes.append(self.integers.draw(op))
        return Seq(tuple(nodes))

    def assign(self, targets: list[Value], values: list[Value]) -> Iterator[Node]:
        variables, of = self.integers.variables, self.integers.of
        pairs = [(variables[t], of(v)) for t, v in zip(targets, values, strict=True) if t in variables]
        pairs = [(t, e) for t, e in pairs if not (e.op == "var" and e.value == t)]
        if pairs:
            yield Assign(tuple(t for t, _ in pairs), tuple(e for _, e in pairs))

    def control(self, op: Op) -> Iterator[Node]:
        if op.name == "if":
            yield from self.branch(op)
            return
        label = self.labels[op] = len(self.labels)
        params = op.blocks[0].params
        if op.name == "for":
            yield from self.assign(params[1:], op.operands[2:])
            of, variables = self.integers.of, self.integers.variables
            if params[0] not in variables:
                variables[params[0]] = self.fresh()
            start, stop = (of(v) for v in op.operands[:2])
            span = Range(variables[params[0]], start, stop, int(op.attrs["step"]), bool(op.attrs["signed"]))
            yield Loop(self.seq(op.blocks[0]), op.span, span, label=label)
            return
        if op.name == "loop":
            yield from self.assign(params, op.operands)
        body = self.seq(op.blocks[0])
        end = op.blocks[0].terminator
        if op.name == "scope" and end is not None and end.name == "yield":
            body = Seq((*body.nodes, *self.assign(op.results, end.operands)))
        yield Loop(body, op.span, None, op.name == "scope", label)

    def branch(self, op: Op) -> Iterator[Node]:
        arms = []
        for block in op.blocks:
            arm = self.seq(block)
            end = block.terminator
            if end is not None and end.name == "yield":
                arm = Seq((*arm.nodes, *self.assign(op.results, end.operands)))
            arms.append(arm)
        if any(arm.nodes for arm in arms):
            yield nested(self.integers.of(op.operands[0]), arms[0], arms[1], op.span)

    def jump(self, op: Op) -> Iterator[Node]:
        target = op.attrs["target"]
        if target not in self.kept:
            return
        if target.name == "for":
            yield from self.assign(target.blocks[0].params[1:], op.operands)
        else:
            yield from self.assign(target.blocks[0].params if op.name == "repeat" else target.results, op.operands)
        yield Jump(self.labels[target], op.name == "repeat")


def _head(text: str) -> Iterator[str]:
    """The comment at the head of a text, by lines."""
    at = 0
    while (end := text.find("\n", at)) >= 0:
        line = text[at:end]
        if line.strip(" \t") and not line.lstrip(" \t").startswith("#"):
            return
        yield line
        at = end + 1


def nested(condition: Expr, then: Seq, orelse: Seq, span: Span) -> Branch:
    """A branch; on ``i > 0 and lane == 0`` as two, so that each asks about threads alone or not at all about them."""
    if condition.op in ("and", "or") and condition.bits == 1:
        a, b = condition.args
        if _asks_threads(a) != _asks_threads(b):
            outer, inner = (b, a) if _asks_threads(a) else (a, b)
            if condition.op == "and":
                return Branch(outer, Seq((nested(inner, then, orelse, span),)), orelse, span)
            return Branch(outer, then, Seq((nested(inner, then, orelse, span),)), span)
    return Branch(condition, then, orelse, span)


def _asks_threads(expr: Expr) -> bool:
    return any(leaf.op in ("tid", "elected") for leaf in leaves(expr))
