"""A model as text, for those who look at what the checker sees."""

from __future__ import annotations

from collections.abc import Iterator

from ptxdsl.protocol.algebra import linear
from ptxdsl.protocol.expressions import ARRAY_SHIFT, CTA_SHIFT, Expr
from ptxdsl.protocol.model import Array, Assign, Branch, Jump, Kernel, Loop, Node, Op, Place, Return, Seq, Unmodelled

_SIGNS = {
    "eq": "==", "ne": "!=", "lt.s": "<", "le.s": "<=", "gt.s": ">", "ge.s": ">=", "lt.u": "<u", "le.u": "<=u",
    "gt.u": ">u", "ge.u": ">=u", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr.s": ">>", "shr.u": ">>u",
    "div.s": "/", "div.u": "/u", "floordiv.s": "//", "floordiv.u": "//u", "mod.s": "%", "mod.u": "%u", "rem.s": "rem",
    "rem.u": "remu", "mul": "*",
}  # fmt: skip
_AXES = ("tid.x", "tid.y", "tid.z", "thread")
_INDENT = "  "


def protocol_text(kernel: Kernel) -> str:
    """One line a node. Variables are ``v0``, ``v1`` …; addresses begin with their array."""
    shape = "" if kernel.threads is None else f" threads={'x'.join(map(str, kernel.threads))}"
    head = f"kernel {kernel.name}{shape}"
    arrays = [f"{_INDENT}shared {array.name}: {_size(array)}" for array in kernel.arrays]
    return "\n".join([head, *arrays, *_Printer(kernel.arrays).lines(kernel.program, 1)]) + "\n"


def _size(array: Array) -> str:
    return "dynamic" if array.bytes is None else f"{array.bytes} bytes"


class _Printer:
    def __init__(self, arrays: tuple[Array, ...]) -> None:
        self.arrays = {array.base >> ARRAY_SHIFT: array for array in arrays}

    def lines(self, node: Node, depth: int) -> Iterator[str]:
        pad = _INDENT * depth
        if isinstance(node, Seq):
            for inner in node.nodes:
                yield from self.lines(inner, depth)
        elif isinstance(node, Op):
            yield pad + self.op(node)
        elif isinstance(node, Assign):
            pairs = zip(node.targets, node.values, strict=True)
            yield pad + ", ".join(f"v{target} = {self.expr(value)}" for target, value in pairs)
        elif isinstance(node, Branch):
            yield f"{pad}if {self.expr(node.condition)}:"
            yield from self.lines(node.then, depth + 1)
            if node.orelse.nodes:
                yield f"{pad}else:"
                yield from self.lines(node.orelse, depth + 1)
        elif isinstance(node, Loop):
            yield pad + self.loop(node)
            yield from self.lines(node.body, depth + 1)
        elif isinstance(node, Jump):
            yield f"{pad}{'continue' if node.again else 'leave'} L{node.label}"
        elif isinstance(node, Return):
            yield f"{pad}return"
        elif isinstance(node, Unmodelled):
            yield f"{pad}not modelled: {node.why}"

    def loop(self, node: Loop) -> str:
        if node.range is None:
            return f"{'block' if node.once else 'loop'} L{node.label}:"
        span = node.range
        step = "" if span.step == 1 else f", {span.step}"
        return f"loop L{node.label} v{span.index} in {self.expr(span.start)} ..< {self.expr(span.stop)}{step}:"

    def op(self, op: Op) -> str:
        parts = [f"elected {op.kind.value}" if op.elected else op.kind.value]
        if op.barrier is not None:
            parts.append(self.address(op.barrier.address))
        for name in ("parity", "count", "bytes", "id", "mask"):
            value = getattr(op, name)
            if value is not None:
                parts.append(f"{name}={self.expr(value)}")
        for name, places in (("writes", op.writes), ("reads", op.reads)):
            parts.extend(f"{name} {self.place(place)}" for place in places)
        return " ".join(parts)

    def place(self, place: Place) -> str:
        width = "?" if place.width is None else self.expr(place.width) if isinstance(place.width, Expr) else place.width
        return f"{self.address(place.address)}:{width}"

    def address(self, expr: Expr | None) -> str:
        """``[array + …]``."""
        return "[?]" if expr is None else f"[{self.expr(expr)}]"

    def expr(self, expr: Expr, nested: bool = False) -> str:
        op = expr.op
        if op == "const":
            return self.constant(int(expr.value))
        if op in ("uniform", "cta"):
            return str(expr.value).partition("#")[0]
        if op == "tid":
            return _AXES[expr.value]
        if op == "var":
            return f"v{expr.value}"
        if op in ("ext.u", "ext.s", "trunc"):
            return self.expr(expr.args[0], nested)
        if op in ("add", "sub"):
            text = self.sum(expr)
        elif op in _SIGNS:
            text = f"{self.expr(expr.args[0], True)} {_SIGNS[op]} {self.expr(expr.args[1], True)}"
        elif op == "not":
            return f"!{self.expr(expr.args[0], True)}"
        else:
            name = op if expr.value is None or op == "unknown" else f"{op} {str(expr.value).partition('#')[0]}"
            return f"{name}({', '.join(self.expr(arg) for arg in expr.args)})" if expr.args else name
        return f"({text})" if nested else text

    def constant(self, value: int) -> str:
        rank = value >> CTA_SHIFT
        if rank > 0:
            return f"{self.constant(value & (1 << CTA_SHIFT) - 1)} of CTA {rank - 1}"
        array = self.arrays.get(value >> ARRAY_SHIFT)
        if array is None or not 0 <= value - array.base <= (array.bytes or 1 << 18):
            return str(value)
        return array.name if value == array.base else f"{array.name}+{value - array.base}"

    def sum(self, expr: Expr) -> str:
        terms, constant = linear(expr)
        parts = [(self.constant(constant), False)] if self.constant(constant) != str(constant) else []
        for term, factor in terms.items():
            text = self.expr(term, True)
            size = abs(factor)
            parts.append((text if size == 1 else f"{size}*{text}", factor < 0))
        if constant and self.constant(constant) == str(constant):
            parts.append((str(abs(constant)), constant < 0))
        text = ""
        for part, negative in parts:
            text += (f" {'-' if negative else '+'} " if text else "-" if negative else "") + part
        return text or "0"
