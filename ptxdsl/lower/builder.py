"""LLVM IR text of one module and of one function under construction: names, values, blocks, globals, declarations."""

from __future__ import annotations

from collections.abc import Sequence

from ptxdsl.lower.debug_info import DebugInfo
from ptxdsl.lower.llvm_types import DATA_LAYOUT, TRIPLE, constant, llvm_type, quoted, scalar_type
from ptxdsl.options import Options
from ptxdsl.record import dataclass, field
from ptxdsl.source import Span
from ptxdsl.tir import Const, Kernel, Op, Ty, Value
from ptxdsl.tir.multiples import Multiples, lowest_bit

# Of one pointer: addresses a constant number of bytes after it, and such that an index is added for.
ADDRESSES_OF_A_ROOT = 512
MOVES_OF_A_ROOT = 128


def symbol(text: str) -> str:
    """A legal PTX identifier made of a hint."""
    text = "".join(c if c.isascii() and (c.isalnum() or c in "_$") else "_" for c in text)
    return text if text[:1].isalpha() or (text[:1] in "_$" and len(text) > 1) else f"_{text}"


@dataclass(frozen=True)
class Address:
    """A pointer taken apart: what is known only at run time (``root``), and a constant number of bytes after it.

    ``constant``: the root is a symbol, so that the whole address is known when the kernel is assembled. ``root_align``:
    what is known of the root's alignment, in bytes.
    """

    root: str
    offset: int
    constant: bool
    root_align: int = 1

    @property
    def align(self) -> int:
        return min(self.root_align, lowest_bit(self.offset))

    def plus(self, offset: int) -> Address:
        return Address(self.root, self.offset + offset, self.constant, self.root_align)


@dataclass
class ModuleText:
    """What the functions of a module share."""

    options: Options
    debug: DebugInfo = field(default_factory=DebugInfo)
    globals: list[str] = field(default_factory=list)
    declarations: dict[str, str] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)
    dynamic: dict[str, tuple[str, int]] = field(default_factory=dict)  # kernel -> symbol, alignment in bytes
    _symbols: set[str] = field(default_factory=set)
    _strings: dict[str, str] = field(default_factory=dict)

    def unique_symbol(self, hint: str) -> str:
        """A name that nothing else in the module has."""
        base = symbol(hint)
        name, number = base, 1
        while name in self._symbols:
            number += 1
            name = f"{base}_{number}"
        self._symbols.add(name)
        return name

    def declare(self, name: str, signature: str) -> None:
        """``signature``: the whole declaration after ``declare``."""
        known = self.declarations.setdefault(name, signature)
        if known != signature:
            raise AssertionError(f"{name} is declared as '{known}' and as '{signature}'")

    def string(self, text: str) -> str:
        """The generic address of a constant, NUL-terminated string."""
        if text not in self._strings:
            name = self.unique_symbol("text")
            data = text.encode("utf-8", "replace") + b"\0"
            self.globals.append(
                f'@{name} = internal unnamed_addr addrspace(1) constant [{len(data)} x i8] c"{quoted(data)}", align 1'
            )
            self._strings[text] = f"addrspacecast (ptr addrspace(1) @{name} to ptr)"
        return self._strings[text]

    def dynamic_shared(self, kernel: str, align: int) -> str:
        """The symbol of a kernel's dynamic shared memory: one, with the largest alignment that is asked for."""
        name, known = self.dynamic.get(kernel) or (self.unique_symbol(f"{kernel}_dynamic"), 1)
        self.dynamic[kernel] = (name, max(known, align))
        return f"@{name}"

    def text(self) -> str:
        parts = [f'target datalayout = "{DATA_LAYOUT}"\ntarget triple = "{TRIPLE}"\n']
        parts += [line + "\n" for line in self.globals]
        parts += [
            f"@{name} = external addrspace(3) global [0 x i8], align {align}\n" for name, align in self.dynamic.values()
        ]
        parts += [f"declare {signature}\n" for signature in self.declarations.values()]
        parts += self.functions
        parts.append(self.debug.text())
        return "\n".join(part for part in parts if part)


class Builder:
    """One function: emits instructions into the current block and remembers what every value became."""

    def __init__(self, module: ModuleText, kernel: Kernel) -> None:
        self.module = module
        self.kernel = kernel
        self.options = module.options
        self.lines: list[str] = []
        self.entry_lines: list[str] = []  # allocas, which belong to the head of the entry block
        self.label: str | None = "entry"  # None: what follows is unreachable
        self.values: dict[Value, str] = {}
        self.addresses: dict[Value, Address] = {}
        self.definitions: dict[Value, Op] = {}
        self.multiples = Multiples(self.definitions)
        self.offsets: dict[str, int] = {}  # pointer -> addresses that are a constant number of bytes after it
        self.moves: dict[str, int] = {}  # pointer -> addresses that an index known at run time is added for
        self.sums: dict[str, int] = {}  # value -> the integer sums and products of it and another unknown value
        self.chains: dict[str, int] = {}  # integer sum or product -> those that it is made of, one after the other
        self.regions: list[dict[str, str]] = []  # for each region around this place: instruction -> its result
        self.loop_depth = 0
        self._next = 0
        self._labels = 0
        self._debug = ""
        self._locations: dict[int, str] = {}  # by the identity of spans, which the kernel's operations keep alive
        self._scope = module.debug.subprogram(kernel.name, kernel.span)
        self.at(kernel.span)

    # positions

    def at(self, span: Span) -> None:
        """Instructions from here on belong to this text."""
        known = self._locations.get(id(span))
        if known is None:
            known = self._locations[id(span)] = f", !dbg !{self.module.debug.location(span, self._scope)}"
        self._debug = known

    # values

    def ref(self, value: Value) -> str:
        """The operand of a value, without its type."""
        if isinstance(value, Const):
            return constant(value.ty, value.value)
        return self.values[value]

    def typed(self, value: Value) -> str:
        return f"{llvm_type(value.ty)} {self.ref(value)}"

    def set(self, value: Value, text: str) -> None:
        self.values[value] = text

    def address(self, pointer: Value) -> Address:
        return self.addresses.get(pointer) or Address(self.ref(pointer), 0, False)

    def set_address(self, pointer: Value, address: Address) -> None:
        """Binds a pointer to an address, which is computed here if it is no constant."""
        ty = scalar_type(pointer.ty)
        self.addresses[pointer] = address
        if address.offset == 0:
            self.values[pointer] = address.root
        elif address.constant:
            self.values[pointer] = f"getelementptr (i8, {ty} {address.root}, i32 {address.offset})"
        else:
            width = pointer.ty.bits if pointer.ty.space != "local" else 64
            root = self._one_of_many(address.root, ty, width, self.offsets, ADDRESSES_OF_A_ROOT)
            self.values[pointer] = self.shared(f"getelementptr i8, {ty} {root}, i{width} {address.offset}")

    def moved(self, root: str, ty: str, scale: int, width: int, index: str) -> str:
        """A pointer moved by an index that is known at run time, of ``width`` bits, times ``scale`` bytes."""
        root = self._one_of_many(root, ty, width, self.moves, MOVES_OF_A_ROOT)
        return self.shared(f"getelementptr [{scale} x i8], {ty} {root}, i{width} {index}")

    def _one_of_many(self, root: str, ty: str, width: int, counts: dict[str, int], most: int) -> str:
        """A pointer under another name for every so many addresses made of it.

        LLVM compares the accesses to one object pair by pair to make vectors of them, and the indices that one pointer
        is moved by to compute one from the other: thousands took seconds.
        """
        counts[root] = counts.get(root, 0) + 1
        part = counts[root] // most
        if part == 0:
            return root
        constraint = "l" if width == 64 else "r"
        return self.shared(f'call {ty} asm "// {part}", "={constraint},0"({ty} {root})')

    # instructions

    def emit(self, text: str) -> str:
        """An instruction with a result; gives the result's name."""
        name = f"%v{self._next}"
        self._next += 1
        self.lines.append(f"  {name} = {text}{self._debug}")
        return name

    def shared(self, text: str) -> str:
        """As ``emit``, for an instruction that depends on its operands alone: one of before is taken for its like.

        All that was emitted in the regions around this place was executed before it. LLVM finds the same, but takes
        longer for it than all of lowering: the copies of an unrolled loop are the same sums again and again.
        """
        for region in self.regions:
            if text in region:
                return region[text]
        name = self.emit(text)
        self.regions[-1][text] = name
        return name

    def do(self, text: str) -> None:
        """An instruction without a result."""
        self.lines.append(f"  {text}{self._debug}")

    def entry(self, text: str) -> str:
        """An instruction at the head of the entry block."""
        name = f"%v{self._next}"
        self._next += 1
        self.entry_lines.append(f"  {name} = {text}")
        return name

    def call(self, result: str, name: str, arguments: Sequence[str], attributes: str = "") -> str:
        """Calls an LLVM intrinsic or external function: ``arguments`` are types with operands."""
        types = ", ".join(_type_of(argument) for argument in arguments)
        self.module.declare(name, f"{result} @{name}({types})")
        text = f"call {result} @{name}({', '.join(arguments)}){attributes}"
        if result == "void":
            self.do(text)
            return ""
        return self.emit(text)

    # blocks

    def fresh(self, *hints: str) -> list[str]:
        """New labels with a common number."""
        self._labels += 1
        return [f"{hint}{self._labels}" for hint in hints]

    def branch(self, label: str) -> None:
        if self.label is not None:
            self.do(f"br label %{label}")
            self.label = None

    def branch_if(self, condition: str, then: str, otherwise: str, mark: str = "") -> None:
        self.do(f"br i1 {condition}, label %{then}, label %{otherwise}{mark}")
        self.label = None

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.label = label

    def join(self, label: str, edges: Sequence[tuple[str, list[str]]], results: Sequence[Value]) -> None:
        """Starts the block in which edges meet: from where, with which operands for the results.

        Where only one comes, it goes on in the block that this one comes from. LLVM would join the two itself; every
        line costs it some microseconds.
        """
        if not edges:
            self.label = None
            return
        if len(edges) == 1:
            ((source, operands),) = edges
            for result, operand in zip(results, operands, strict=False):
                self.set(result, operand)
            if self.lines[-1].startswith(f"  br label %{label},"):
                self.lines.pop()
                self.label = source
            else:
                self.start(label)
            return
        self.start(label)
        for position, result in enumerate(results):
            arms = ", ".join(f"[ {operands[position]}, %{source} ]" for source, operands in edges)
            self.set(result, self.emit(f"phi {llvm_type(result.ty)} {arms}"))
            self.chains[self.values[result]] = max(self.chains.get(operands[position], 0) for _, operands in edges)

    def finish(self, header: str) -> str:
        body = "\n".join(["entry:", *self.entry_lines, *self.lines])
        return f"{header} !dbg !{self._scope} {{\n{body}\n}}\n"


def _type_of(argument: str) -> str:
    """The type of ``type operand``: operands have no spaces unless they are constant expressions or vectors."""
    for opening, closing in (("ptr addrspace(", ")"), ("<", ">"), ("{", "}")):
        if argument.startswith(opening):
            inside, closed, _ = argument.partition(closing)
            return inside + closed
    return argument.partition(" ")[0]


def lanes_of(builder: Builder, value: Value) -> list[str]:
    """The lanes of a vector one by one; a scalar is its own only lane."""
    if value.ty.lanes == 1:
        return [builder.ref(value)]
    if isinstance(value, Const):
        values = value.value if isinstance(value.value, tuple | list) else (value.value,) * value.ty.lanes
        return [constant(value.ty.scalar, lane) for lane in values]
    return [builder.emit(f"extractelement {builder.typed(value)}, i32 {lane}") for lane in range(value.ty.lanes)]


def from_lanes(builder: Builder, ty: Ty, lanes: Sequence[str]) -> str:
    """A vector (or the scalar) of the lanes."""
    if ty.lanes == 1:
        return lanes[0]
    text = "poison"
    for position, lane in enumerate(lanes):
        text = builder.emit(f"insertelement {llvm_type(ty)} {text}, {scalar_type(ty.scalar)} {lane}, i32 {position}")
    return text
