"""A module printed as PTX again, flat as it is in memory: assembled, it must give the machine code of the text read."""

from __future__ import annotations

from ptxdsl.ptx.module import (
    Address,
    Arguments,
    Function,
    Immediate,
    Instruction,
    Label,
    Module,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    Symbol,
    TensorAddress,
    Variable,
    Vector,
)


def ptx_text(module: Module) -> str:
    major, minor = module.version
    lines = [f".version {major}.{minor}", f".target {module.target}", f".address_size {module.address_size}"]
    functions = [f for name, f in module.functions.items() if name == f.name]
    lines += [_head(f) + ";" for f in functions if not f.is_kernel]  # a module has no order of declarations
    for name, function in module.functions.items():
        if name != function.name:
            lines.append(
                f"{_head(function).replace(f' {function.name}(', f' {name}(')};\n.alias {name}, {function.name};"
            )
    lines += [_variable(v) for v in module.variables.values()]
    for function in functions:
        if not function.extern:
            lines += _function(function)
    return "\n".join(lines) + "\n"


def _name(text: str) -> str:
    """Unique names have a '#', parts of vector registers a dot; PTX takes neither in a name. Special registers stay."""
    return text.replace("#", "$S") if text[0] == "%" else text.replace("#", "$S").replace(".", "$")


def _offset(offset: int) -> str:
    return f"+{offset}" if offset else ""


def operand_text(operand: Operand) -> str:
    match operand:
        case Register(name):
            return _name(name)
        case Immediate(value, kind):
            return {"int": f"{value}", "f32": f"0f{value:08X}", "f64": f"0d{value:016X}"}[kind]
        case Symbol(name, offset):
            return _name(name) + _offset(offset)
        case Address(base, offset):
            return f"[{offset}]" if base is None else f"[{_name(base.name)}{_offset(offset)}]"
        case TensorAddress(map, coordinates):
            return f"[{operand_text(map)[1:-1]}, {{{_list(coordinates)}}}]"
        case Vector(items):
            return f"{{{_list(items)}}}"
        case Pair(first, second):
            return f"{operand_text(first)}|{operand_text(second)}"
        case Not(inner):
            return f"!{operand_text(inner)}"
        case Sink():
            return "_"
        case Arguments(items):
            return f"({_list(items)})"


def _list(items: tuple[Operand, ...]) -> str:
    return ", ".join(operand_text(item) for item in items)


def instruction_text(instruction: Instruction) -> str:
    guard = ""
    if instruction.guard is not None:
        register, negated = instruction.guard
        guard = f"@{'!' * negated}{_name(register.name)} "
    return f"{guard}{instruction.opcode} {_list(instruction.operands)};"


def _declared(variable: Variable) -> str:
    shape = "[]" if variable.shape is None else "".join(f"[{d}]" for d in variable.shape)
    if variable.space == "reg":
        return f".reg .{variable.type} {variable.name}"
    return f".{variable.space} .align {variable.align} .{variable.type} {_name(variable.name)}{shape}"


def _variable(variable: Variable) -> str:
    """As bytes, so that the reader's initial values are those that the assembler sees; addresses as 64-bit words."""
    linkage = f".{variable.linkage} " if variable.linkage else ""
    if variable.initial is None or variable.size is None:
        return f"{linkage}{_declared(variable)};"
    if variable.relocations:
        data = variable.initial + bytes(-len(variable.initial) % 8)
        words = [str(int.from_bytes(data[i : i + 8], "little")) for i in range(0, len(data), 8)]
        for offset, width, symbol in variable.relocations:
            assert width == 8
            assert offset % 8 == 0
            words[offset // 8] = symbol.name + _offset(symbol.offset)
        values, type, count = ", ".join(words), "u64", -(-variable.size // 8)
    else:
        values, type, count = ", ".join(map(str, variable.initial)), "b8", variable.size
    space, align = variable.space, max(variable.align, 8 if type == "u64" else 1)
    return f"{linkage}.{space} .align {align} .{type} {variable.name}[{count}] = {{{values}}};"


def _head(function: Function) -> str:
    returns = f"({', '.join(map(_declared, function.returns))}) " if function.returns else ""
    parameters = ", ".join(map(_declared, function.parameters))
    word = ".visible .entry" if function.is_kernel else ".extern .func" if function.extern else ".func"
    return f"{word} {returns}{function.name}({parameters})"


def _function(function: Function) -> list[str]:
    lines = [_head(function)]
    for directive in ("reqntid", "maxntid", "reqnctapercluster"):
        value = getattr(function, directive)
        if value is not None:
            lines.append(f".{directive} {', '.join(map(str, value))}")
    if function.explicit_cluster:
        lines.append(".explicitcluster")
    if function.minnctapersm is not None:
        lines.append(f".minnctapersm {function.minnctapersm}")
    if function.maxnreg is not None:
        lines.append(f".maxnreg {function.maxnreg}")
    lines.append("{")
    own = {p.name for p in (*function.parameters, *function.returns)}
    lines += [f".reg .{type} {_name(name)};" for name, type in function.registers.items() if name not in own]
    lines += [f"{_declared(variable)};" for variable in function.variables]
    for name, targets in function.branch_targets.items():
        lines.append(f"{_name(name)}: .branchtargets {', '.join(map(_name, targets))};")
    lines += _prototypes(function)
    for statement in function.body:
        lines.append(f"{_name(statement.name)}:" if isinstance(statement, Label) else instruction_text(statement))
    lines.append("}")
    return lines


def _prototypes(function: Function) -> list[str]:
    """A prototype says what the call's own arguments say."""
    variables = {v.name: v for v in function.variables}
    found = {}
    for call in function.body:
        if isinstance(call, Instruction) and call.opcode.startswith("call"):
            name = call.operands[-1]
            if isinstance(name, Symbol) and name.name in function.prototypes:
                lists = [o if isinstance(o, Arguments) else None for o in call.operands[:-1]]
                given = lists[-1] if len(lists) > 1 else None
                returned = lists[0]
                found[name.name] = f"{_passed(returned, variables)} _ {_passed(given, variables)}"
    return [f"{_name(name)}: .callprototype {text};" for name, text in found.items()]


def _passed(arguments: Arguments | None, variables: dict[str, Variable]) -> str:
    if arguments is None:
        return ""
    own = [variables[a.name] for a in arguments.items if isinstance(a, Symbol)]
    return f"({', '.join(_declared(v).replace(_name(v.name), '_') for v in own)})"
