"""Calls made flat: a kernel's body with the bodies of the functions that it calls in their places.

Parameters of device functions become registers where every access names a fixed offset and they do not overlap, else
local memory. A call of a function without a body stays, as a host instruction ``call.<name>`` with two operands, the
results and the arguments. Source: PTX ISA, "Function Declarations and Definitions", "Control Flow Instructions: call".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ptxdsl.diagnostics import CompileError, Diagnostic
from ptxdsl.ptx.module import (
    Address,
    Arguments,
    Function,
    Instruction,
    Label,
    Module,
    Not,
    Operand,
    Pair,
    Register,
    Symbol,
    TensorAddress,
    Variable,
    Vector,
    named,
)
from ptxdsl.record import dataclass, field, replace
from ptxdsl.source import Source

MAX_INSTRUCTIONS = 100_000  # after inlining
MAX_CALL_DEPTH = 100


@dataclass(slots=True, eq=False)
class Flat:
    """A kernel without calls. variables: all that the body names but the kernel's parameters, by their unique names."""

    source: Source
    kernel: Function
    body: list[Instruction | Label] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    parameters: dict[str, Variable] = field(default_factory=dict)  # of device functions, .param space

    def problem(self, code: str, message: str, line: int, help: str | None = None) -> Diagnostic:
        """A diagnostic at a line of the PTX text."""
        return Diagnostic(code, message, self.source.line_span(line), help=help)


def rename(operand: Operand, registers: Mapping[str, str], symbols: Mapping[str, str]) -> Operand:
    """The operand with other names for its registers and symbols."""
    if isinstance(operand, Register):
        new = registers.get(operand.name)
        return operand if new is None else Register(new)
    if isinstance(operand, Symbol):
        new = symbols.get(operand.name)
        return operand if new is None else Symbol(new, operand.offset)
    if isinstance(operand, Address):
        if operand.base is None:
            return operand
        base = rename(operand.base, registers, symbols)
        assert isinstance(base, Register | Symbol)
        return operand if base is operand.base else Address(base, operand.offset)
    if isinstance(operand, Vector):
        return Vector(tuple(rename(item, registers, symbols) for item in operand.items))
    if isinstance(operand, Arguments):
        return Arguments(tuple(rename(item, registers, symbols) for item in operand.items))
    if isinstance(operand, Pair):
        return Pair(rename(operand.first, registers, symbols), rename(operand.second, registers, symbols))
    if isinstance(operand, Not):
        new = registers.get(operand.operand.name)
        return operand if new is None else Not(Register(new))
    if isinstance(operand, TensorAddress):
        map = rename(operand.map, registers, symbols)
        assert isinstance(map, Address)
        return TensorAddress(map, tuple(rename(item, registers, symbols) for item in operand.coordinates))
    return operand


class Inliner:
    def __init__(self, module: Module, kernel: Function) -> None:
        self.module = module
        self.flat = Flat(Source(module.text_name, module.text), kernel)
        self.stack: list[str] = []
        self.copies = 0
        self.problems: list[Diagnostic] = []

    def run(self) -> Flat:
        kernel = self.flat.kernel
        taken = {variable.name for variable in kernel.variables} | {p.name for p in kernel.parameters}
        self.module_names = {  # a function's own variable hides a module's variable of that name
            name: f"{name}@module" if name in taken else name for name in self.module.variables
        }
        self.function(kernel, {}, {}, "")
        if self.problems:
            raise CompileError(self.problems)
        return self.flat

    def function(self, function: Function, registers: dict[str, str], symbols: dict[str, str], suffix: str) -> None:
        """Appends a function's body. registers, symbols: what its formal parameters are called by the caller."""
        flat = self.flat
        self.stack.append(function.name)
        prefix = "" if not suffix else f"{function.name}::"
        registers = {
            **({} if not suffix else {name: name + suffix for name in function.registers}),
            **registers,
        }
        for name, type in function.registers.items():
            flat.registers.setdefault(registers.get(name, name), type)
        own: dict[str, str] = {}
        for variable in function.variables:
            # One copy a call of what every call has of its own, one copy of all else.
            private = variable.space in ("param", "local")
            unique = prefix + variable.name + (suffix if private else "")
            own[variable.name] = unique
            named = replace(variable, name=unique)
            (flat.parameters if variable.space == "param" else flat.variables).setdefault(unique, named)
        symbols = {**self.module_names, **own, **symbols}
        labels = {item.name: item.name + suffix for item in function.body if isinstance(item, Label)}
        for name, targets in function.branch_targets.items():
            flat.branch_targets[name + suffix] = tuple(labels[target] for target in targets)
        end = f"return{suffix}"
        for item in function.body:
            if isinstance(item, Label):
                flat.body.append(Label(labels[item.name], item.line))
                continue
            first = item.opcode.partition(".")[0]
            guard = item.guard
            if guard is not None and guard[0].name in registers:
                guard = (Register(registers[guard[0].name]), guard[1])
            if first in ("bra", "brx"):
                target = item.operands[-1]
                assert isinstance(target, Symbol)
                operands = tuple(rename(operand, registers, {}) for operand in item.operands[:-1])
                flat.body.append(replace(item, operands=(*operands, Symbol(target.name + suffix)), guard=guard))
            elif first == "ret" and suffix:
                flat.body.append(Instruction("bra", (Symbol(end),), guard, item.line, item.location))
            elif first == "call":
                operands = tuple(rename(operand, registers, symbols) for operand in item.operands)
                self.call(replace(item, operands=operands, guard=guard))
            elif registers or symbols:
                self.use(symbols, own, item)
                operands = tuple(rename(operand, registers, symbols) for operand in item.operands)
                flat.body.append(replace(item, operands=operands, guard=guard))
            else:
                flat.body.append(item)
            if len(flat.body) > MAX_INSTRUCTIONS:
                raise CompileError(
                    flat.problem(
                        "E1113",
                        f"kernel {flat.kernel.name} has more than {MAX_INSTRUCTIONS} instructions, all calls inlined",
                        item.line,
                    )
                )
        if suffix:
            flat.body.append(Label(end, function.line))
        self.stack.pop()

    def use(self, symbols: Mapping[str, str], own: Mapping[str, str], instruction: Instruction) -> None:
        """Module variables are laid out when the kernel names them."""
        for operand in instruction.operands:
            for name in symbol_names(operand):
                self.use_module_variable(symbols, own, name)

    def use_module_variable(self, symbols: Mapping[str, str], own: Mapping[str, str], name: str) -> None:
        variable = self.module.variables.get(name)
        if variable is None or name in own or symbols.get(name) != self.module_names[name]:
            return
        unique = self.module_names[name]
        if unique in self.flat.variables:
            return
        self.flat.variables[unique] = variable if unique == name else replace(variable, name=unique)
        for _, _, symbol in variable.relocations:
            self.use_module_variable(self.module_names, {}, symbol.name)

    def call(self, call: Instruction) -> None:
        """Puts the callee's body in the call's place; the call of a function without a body stays."""
        flat = self.flat
        target, results, arguments = _parts_of_call(call)
        callee = self.module.functions.get(target.name) if isinstance(target, Symbol) else None
        if callee is None or callee.is_kernel:
            name = getattr(target, "name", "")
            self.problems.append(
                flat.problem(
                    "E1112", f"a call through a register or of a kernel ({name}): the simulator has none", call.line
                )
            )
            return
        if callee.extern:
            operands = (Arguments(tuple(results)), Arguments(tuple(arguments)))
            flat.body.append(replace(call, opcode=f"call.{callee.name}", operands=operands))
            return
        if callee.name in self.stack or len(self.stack) > MAX_CALL_DEPTH:
            path = " -> ".join((*self.stack[-8:], callee.name))
            what = "a recursive call" if callee.name in self.stack else "calls nested too deeply"
            raise CompileError(flat.problem("E1111", f"{what}: {path}", call.line))
        if (len(results), len(arguments)) != (len(callee.returns), len(callee.parameters)):
            self.problems.append(
                flat.problem(
                    "E1112",
                    f"{callee.name} has {len(callee.returns)} results and {len(callee.parameters)} parameters, "
                    f"and this call {len(results)} and {len(arguments)}",
                    call.line,
                )
            )
            return
        self.expand(call, callee, results, arguments)

    def expand(
        self, call: Instruction, callee: Function, results: Sequence[Operand], arguments: Sequence[Operand]
    ) -> None:
        """Appends copies of the arguments, the callee's body and copies of the results, all behind the call's guard."""
        flat = self.flat
        formals = (*callee.returns, *callee.parameters)
        actuals = (*results, *arguments)
        self.copies += 1
        suffix = f"@{self.copies}"
        registers: dict[str, str] = {}
        symbols: dict[str, str] = {}
        skip = f"skip{suffix}"
        if call.guard is not None:
            guard = (call.guard[0], not call.guard[1])
            flat.body.append(Instruction("bra", (Symbol(skip),), guard, call.line, call.location))
        for formal, actual in zip(formals, actuals, strict=True):
            if isinstance(actual, Symbol):
                symbols[formal.name] = actual.name
            elif formal.space == "reg":
                registers[formal.name] = formal.name + suffix
                flat.registers[formal.name + suffix] = formal.type
            else:
                symbols[formal.name] = formal.name + suffix
                flat.parameters[formal.name + suffix] = replace(formal, name=formal.name + suffix, space="param")
        is_result = [True] * len(results) + [False] * len(arguments)
        copies_in, copies_out = [], []
        for formal, actual, result in zip(formals, actuals, is_result, strict=True):
            if isinstance(actual, Symbol):
                continue
            inner: Operand
            if formal.name in registers:
                opcode_in = opcode_out = f"mov.{formal.type}"
                inner = Register(registers[formal.name])
            else:
                opcode_in, opcode_out = f"st.param.{formal.type}", f"ld.param.{formal.type}"
                inner = Address(Symbol(symbols[formal.name]))
            if result:
                copies_out.append(Instruction(opcode_out, (actual, inner), None, call.line, call.location))
            else:
                copies_in.append(Instruction(opcode_in, (inner, actual), None, call.line, call.location))
        flat.body.extend(copies_in)
        self.function(callee, registers, symbols, suffix)
        flat.body.extend(copies_out)
        if call.guard is not None:
            flat.body.append(Label(skip, call.line))


def _parts_of_call(call: Instruction) -> tuple[Operand | None, list[Operand], list[Operand]]:
    """What a call names as its function, its results and its arguments."""
    at = next((i for i, o in enumerate(call.operands) if not isinstance(o, Arguments)), len(call.operands))
    target = call.operands[at] if at < len(call.operands) else None
    results = [item for o in call.operands[:at] if isinstance(o, Arguments) for item in o.items]
    arguments = [item for o in call.operands[at:] if isinstance(o, Arguments) for item in o.items]
    return target, results, arguments


def symbol_names(operand: Operand) -> Iterable[str]:
    """The symbols that an operand names."""
    return (leaf.name for leaf in named(operand) if isinstance(leaf, Symbol))
