"""TIR as text, for ``--emit=tir``, ``--emit=rings`` and golden tests. The same module always gives the same text.

An ``if`` whose condition is a contiguous range of ``thread_idx.x`` is printed as a role. Memory and pipeline operations
carry the user's position in a comment. A loop or scope that some ``repeat`` or ``leave`` reaches past an inner one has
a label, and they name it.
"""

from __future__ import annotations

from math import prod
from typing import Any

from ptxdsl.effects import Kind
from ptxdsl.intrinsics import ROWS
from ptxdsl.tir import Block, Const, Kernel, Module, Op, Value, walk
from ptxdsl.tir.roles import MAX_THREADS, ThreadSet, contiguous, thread_set

COMMENT_COLUMN = 72
_MEMORY = frozenset({"load", "store", "alloca", "shared.alloc", "shared.dynamic", "asm", "print", "assert", "trap"})
_PIPE_ATTRS = frozenset({"pipeline", "method", "producer", "stages", "side", "subs", "sub"})
_TARGETS = ("loop", "for", "scope")


def tir_text(module: Module) -> str:
    """The module as text, kernel by kernel."""
    return "\n".join(_Printer(kernel).text() for kernel in module.kernels)


class _Printer:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.lines: list[str] = []
        self.names: dict[Value, str] = {}
        self.taken: dict[str, int] = {}
        self.numbers = 0
        self.labels: dict[Op, str] = {}
        self.definitions = {result: op for op in walk(kernel.body) for result in op.results}
        self.label_targets(kernel.body, [])

    def text(self) -> str:
        params = ", ".join(f"{self.name(p)}: {p.ty}" for p in self.kernel.params)
        self.line(0, f"kernel @{self.kernel.name}({params}) {{")
        shape = self.kernel.signature.threads or self.kernel.signature.max_threads
        size = MAX_THREADS if shape is None else shape[0] if self.kernel.signature.threads else prod(shape)
        self.block(self.kernel.body, 1, (1 << min(size, MAX_THREADS)) - 1)
        self.line(0, "}")
        return "\n".join(self.lines) + "\n"

    def label_targets(self, block: Block, enclosing: list[Op]) -> None:
        """Gives a label to each target that some terminator reaches past an inner loop or scope."""
        for op in block.ops:
            target = op.attrs.get("target")
            if isinstance(target, Op) and target is not enclosing[-1]:
                self.labels.setdefault(target, "")
            inner = [*enclosing, op] if op.name in _TARGETS else enclosing
            for nested in op.blocks:
                self.label_targets(nested, inner)

    # names and numbers

    def name(self, value: Value) -> str:
        if isinstance(value, Const):
            return self.constant(value.value)
        found = self.names.get(value)
        if found is None:
            if value.name:
                count = self.taken.get(value.name, 0)
                self.taken[value.name] = count + 1
                found = f"%{value.name}" if count == 0 else f"%{value.name}.{count}"
            else:
                found = f"%{self.numbers}"
                self.numbers += 1
            self.names[value] = found
        return found

    def constant(self, value: Any) -> str:
        return f"<{', '.join(map(self.constant, value))}>" if isinstance(value, tuple) else repr(value)

    def names_of(self, values: list[Value]) -> str:
        return ", ".join(map(self.name, values))

    def typed(self, values: list[Value]) -> str:
        return ", ".join(f"{self.name(v)}: {v.ty}" for v in values)

    # lines

    def line(self, depth: int, text: str, comment: str = "") -> None:
        text = "  " * depth + text
        self.lines.append(f"{text:<{COMMENT_COLUMN}}  // {comment}" if comment else text)

    def block(self, block: Block, depth: int, threads: ThreadSet) -> None:
        for op in block.ops:
            if op.blocks:
                self.control(op, depth, threads)
            elif op.name != "yield" or op.operands:
                self.line(depth, self.plain(op), self.comment(op))

    def comment(self, op: Op) -> str:
        where = str(op.span)
        if op.name.startswith("pipe."):
            method = op.attrs.get("method", "")
            call = method if not method or method.endswith(")") else method + "()"
            return f"{op.attrs['pipeline']}.{call}  {where}" if call else where
        row = ROWS.get(op.name)
        return where if op.name in _MEMORY or (row is not None and row.effect.kind is not Kind.PURE) else ""

    def plain(self, op: Op) -> str:
        if op.name in ("repeat", "leave", "yield"):
            target = op.attrs.get("target")
            label = f" {self.labels[target]}" if isinstance(target, Op) and target in self.labels else ""
            return f"{op.name}{label}" + (f" ({self.names_of(op.operands)})" if op.operands else "")
        head = f"{self.names_of(op.results)} = " if op.results else ""
        if op.name.startswith("pipe."):
            return head + self.pipeline(op)
        words = [op.name]
        if len(op.results) == 1:
            words.append(str(op.results[0].ty))
        if op.name in ("load", "store"):
            words.append(op.operands[0].ty.space)
        if op.operands:
            words.append(self.names_of(op.operands))
        words += self.attributes(op.attrs)
        return head + " ".join(words)

    def attributes(self, attrs: dict[str, Any]) -> list[str]:
        out = []
        for key, value in attrs.items():
            if value is True:
                out.append(key)
            elif isinstance(value, str):
                out.append(f'{key}="{value}"' if not value.isidentifier() else f"{key}={value}")
            elif value is not False and value is not None and (key, value) != ("offset", 0):
                out.append(f"{key}={value}".replace(" ", ""))
        return out

    def pipeline(self, op: Op) -> str:
        attrs = op.attrs
        role = "producer" if attrs["producer"] else "consumer"
        if op.name == "pipe.new":
            full, empty = map(self.name, op.operands)
            return f"pipe.new {attrs['pipeline']} {role} stages={attrs['stages']} full={full} empty={empty}"
        if op.name == "pipe.step":
            return f"pipe.step {attrs['pipeline']} ({self.names_of(op.operands)}) stages={attrs['stages']}"
        base, index, *rest = map(self.name, op.operands)
        if attrs["subs"] != 1:
            index = f"{index}*{attrs['subs']}+{attrs['sub']}"
        text = f"{op.name} {attrs['pipeline']}.{attrs['side']} {base}[{index}]"
        if rest:
            text += f" {'parity' if op.name == 'pipe.wait' else 'elect'}={rest[0]}"
        return " ".join([text, *self.attributes({k: v for k, v in attrs.items() if k not in _PIPE_ATTRS})])

    def control(self, op: Op, depth: int, threads: ThreadSet) -> None:
        head = f"{self.typed(op.results)} = " if op.results else ""
        if op in self.labels:
            self.labels[op] = f"@{sum(1 for label in self.labels.values() if label)}"
            head = f"{self.labels[op]}: {head}"
        if op.name == "if":
            self.branch(op, depth, threads, head)
            return
        if op.name == "scope":
            self.line(depth, f"{head}scope {{")
        else:
            params, inits = op.blocks[0].params, op.operands
            text = "loop"
            if op.name == "for":
                start, stop = map(self.name, op.operands[:2])
                up = op.attrs["step"] > 0
                text = f"loop {self.name(params[0])} in {start} ..{'<' if up else '>'} {stop}"
                if op.attrs["step"] != 1:
                    text += f" step {op.attrs['step']}"
                if not op.attrs["signed"]:
                    text += " unsigned"
                params, inits = params[1:], inits[2:]
            if params:
                pairs = [f"{self.name(p)}: {p.ty} = {self.name(v)}" for p, v in zip(params, inits, strict=True)]
                text += f" carried ({', '.join(pairs)})"
            self.line(depth, f"{head}{text} {{")
        self.block(op.blocks[0], depth + 1, threads)
        self.line(depth, "}")

    def branch(self, op: Op, depth: int, threads: ThreadSet, head: str) -> None:
        test = op.operands[0]
        taken = None if isinstance(test, Const) else thread_set(test, self.definitions)
        then, other = (threads, threads) if taken is None else (threads & taken, threads & ~taken)
        span = contiguous(then) if taken is not None else None
        condition = self.name(test)
        if empty(op.blocks[0]) and not span:
            self.line(depth, f"{head}if not {condition} {{")
            self.block(op.blocks[1], depth + 1, other)
            self.line(depth, "}")
            return
        self.line(depth, f"{head}role {bounds(span)} {{" if span else f"{head}if {condition} {{")
        self.block(op.blocks[0], depth + 1, then)
        if not empty(op.blocks[1]):
            rest = contiguous(other) if span else None
            self.line(depth, "} else {", bounds(rest) if rest else "")
            self.block(op.blocks[1], depth + 1, other)
        self.line(depth, "}")


def empty(block: Block) -> bool:
    return len(block.ops) == 1 and block.ops[0].name == "yield" and not block.ops[0].operands


def bounds(span: tuple[int, int]) -> str:
    first, end = span
    return f"threads [{first}, {end})" if end < MAX_THREADS else f"threads [{first}, ...)"
