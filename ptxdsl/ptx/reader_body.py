"""The body of a function: one regular expression a statement, scopes made flat.

Source: PTX ISA, "Syntax": statements, labels, guard predicates, ``{ }`` scopes; ``.loc``, ``.branchtargets``.
"""

from __future__ import annotations

import re

from ptxdsl.ptx.module import (
    TYPE_BYTES,
    Function,
    Instruction,
    Label,
    Location,
    Operand,
    Register,
    Symbol,
    Variable,
)
from ptxdsl.ptx.reader_operands import Operands, Scope, split
from ptxdsl.ptx.reader_text import Errors, Refused
from ptxdsl.ptx.reader_variables import declaration, declarators, variable

# Possessive throughout (`*+`): no text makes the time more than linear.
_STATEMENT = re.compile(
    r"""\s*+(?:
      ([A-Za-z_$%][\w$]*+)\s*+:(?!:)                      # 1 label
    | \.([a-z]\w*+)                                       # 2 directive
    | (\{)                                                # 3
    | (\})                                                # 4
    | (?:@\s*+((?:!\s*+)?[A-Za-z_$%][\w$.]*+)\s++)?       # 5 guard
      ([a-z]\w*+(?:(?:\.|::)\w++)*+)\s*+([^;]*+);         # 6 opcode, 7 operands
    )""",
    re.VERBOSE | re.ASCII,
)
LOC = re.compile(
    r"\.loc\s++(\d++)\s++(\d++)(?:[ \t]++(\d++))?"
    r"(?:\s*+,\s*+function_name\s++[\w$]++(?:\s*+\+\s*+\d++)?)?(?:\s*+,\s*+inlined_at\s++\d++\s++\d++\s++\d++)?",
    re.ASCII,
)
TO_SEMICOLON = re.compile(r"[^;]*+;")
_REGISTERS = re.compile(r"\.reg\s++\.(\w++)\s++(%?[A-Za-z_$]*+)<(\d++)>\s*+;", re.ASCII)
# Branches, and what their last operand names.
_TARGETS = {"bra": "label", "bra.uni": "label", "brx.idx": ".branchtargets", "brx.idx.uni": ".branchtargets"}
_CALLS = frozenset(("call", "call.uni"))
_VARIABLE_SPACES = frozenset(("global", "const", "shared", "local", "param", "tex"))
_TABLES = {"branchtargets": ".branchtargets", "callprototype": ".callprototype", "calltargets": ".callprototype"}
_OUTSIDE = frozenset(("visible", "extern", "weak", "common", "entry", "func", "version", "section", "file"))
_STATEMENT_END = re.compile(r"[;{}]|\Z")
MAX_SCOPES = 1000  # open at once


class BodyReader:
    """Reads one function's body into ``function``; ``read`` gives the position behind its closing brace."""

    def __init__(self, code: str, errors: Errors, files: dict[str, str], opcodes: dict[str, str]) -> None:
        self.code = code
        self.errors = errors
        self.files = files
        self.opcodes = opcodes  # one string an opcode in the whole module
        self.locations: dict[str, Location | None] = {}

    def begin(self, function: Function, scope: Scope) -> None:
        self.function = function
        self.operands = Operands()
        self.root = self.scope = scope
        self.scopes = 0
        self.depth = 1
        self.pending: list[tuple[Instruction, Scope, int, int]] = []
        self.tables: list[tuple[str, list[str], Scope, int, int]] = []
        self.variables: list[Variable] = []
        self.prototypes: set[str] = set()
        self.guards: dict[str, tuple[Register, bool]] = {}  # of the function's own scope

    def read(self, function: Function, scope: Scope, position: int, line: int) -> tuple[int, int]:
        """position: behind the opening brace; line: there. Gives the same of the closing one. Errors are recorded."""
        self.begin(function, scope)
        end = self.statements(position, line)
        self.resolve_labels()
        function.registers = self.operands.registers
        function.variables = tuple(self.variables)
        function.prototypes = frozenset(self.prototypes)
        return end

    def statements(self, position: int, line: int) -> tuple[int, int]:
        """Up to the closing brace. Most of the time goes here: hence the local names."""
        operands, body = self.operands, self.function.body
        code = self.code
        match_statement = _STATEMENT.match
        one = operands.one
        opcodes = self.opcodes
        location: Location | None = None
        counted = position  # `line` is that of this position
        while True:
            match = match_statement(code, position)
            if match is None:
                position = self.not_understood(position)
                continue
            kind = match.lastindex
            position = match.end()
            if kind == 7:
                guard_text, opcode, text = match.group(5, 6, 7)
                at = match.start(6)
                line += code.count("\n", counted, at)
                counted = at
                operands.statement = (at, position)
                cache = self.scope.cache
                try:
                    if opcode in _TARGETS or opcode in _CALLS:
                        instruction = Instruction(opcode, (), None, line, location)
                        self.jump(instruction, text, at, position)
                    else:
                        if "{" in text or "(" in text:
                            values = operands.all(text, self.scope)
                        elif text:
                            found = []
                            for piece in text.split(","):
                                piece = piece.strip()
                                value = cache.get(piece)
                                found.append(one(piece, self.scope) if value is None else value)
                            values = tuple(found)
                        else:
                            values = ()
                        instruction = Instruction(opcodes.setdefault(opcode, opcode), values, None, line, location)
                    if guard_text is not None:
                        instruction.guard = self.guard(guard_text)
                    body.append(instruction)
                except Refused as refused:
                    position = self.refused(refused, text, match.start(5) if guard_text else at, position)
            elif kind == 1:
                at = match.start(1)
                line += code.count("\n", counted, at)
                counted = at
                self.declare_label(match[1], at, position)
                body.append(Label(match[1] + self.scope.suffix, line))
            elif kind == 2:
                at = match.start(2) - 1
                if match[2] == "loc":
                    position, location = self.loc(at)
                else:
                    line += code.count("\n", counted, at)
                    counted = at
                    position = self.directive(match[2], at, line)
            elif kind == 3:
                self.open_scope(match.start(3), position)
            else:
                self.depth -= 1
                if not self.depth:
                    return position, line + code.count("\n", counted, position)
                assert self.scope.parent is not None
                self.scope = self.scope.parent

    def declare_label(self, name: str, at: int, position: int) -> None:
        """Declares it; ``at`` and ``position``: where its statement is."""
        if name in self.scope.labels:
            self.errors.add(Refused("E0813", f"label {name} is defined a second time", name), at, position)
        self.scope.labels[name] = "label"

    def open_scope(self, at: int, position: int) -> None:
        self.scopes += 1
        self.depth += 1
        if self.depth > MAX_SCOPES:
            self.errors.fatal(Refused("E0810", "braces nested too deeply"), at, position)
        self.scope = Scope(self.scope, f"#{self.scopes}")

    def not_understood(self, position: int) -> int:
        """Records the error and gives the position after the statement; ends the run at the end of the text."""
        code = self.code
        rest = len(code) - len(code[position:].lstrip())
        if rest == len(code):
            message = f"the text ends inside {self.function.name}: '}}' is missing"
            self.errors.fatal(Refused("E0810", message), max(len(code.rstrip()) - 1, 0), len(code.rstrip()))
        end = _STATEMENT_END.search(code, rest)
        assert end is not None
        stop = end.end()
        if code.find(";", rest) < 0:
            self.errors.fatal(Refused("E0810", "a statement that does not end: ';' is missing"), rest, len(code))
        self.errors.add(Refused("E0810", "a statement that is not understood"), rest, max(stop, rest + 1))
        return max(stop, rest + 1)

    def refused(self, refused: Refused, text: str, start: int, end: int) -> int:
        """Records the error of an instruction and gives the place to go on: behind it, or where it runs on too far."""
        first, newline, _ = text.partition("\n")
        runs_on = refused.code == "E0810" or "\n" in refused.fragment
        if newline and first.strip() and not first.rstrip().endswith(",") and runs_on:
            stop = end - 1 - len(text) + len(first)
            problem = Refused("E0810", "a statement that is not understood; is ';' missing at the end of the line?")
            self.errors.add(problem, start, stop)
            return stop
        self.errors.add(refused, start, end)
        return end

    def guard(self, text: str) -> tuple[Register, bool]:
        """The register, and whether it is negated."""
        if self.scope is not self.root:
            return self.new_guard(text)
        known = self.guards.get(text)
        if known is None:
            known = self.guards[text] = self.new_guard(text)
        return known

    def new_guard(self, text: str) -> tuple[Register, bool]:
        negated = text[0] == "!"
        name = text[1:].strip() if negated else text
        register = self.operands.one(name, self.scope)
        if not isinstance(register, Register):
            raise Refused("E0810", "a guard is a predicate register", name)
        if self.operands.registers.get(register.name, "pred") != "pred":
            type = self.operands.registers[register.name]
            raise Refused("E0810", f"a guard is a predicate register, and {name} is .{type}", name)
        return register, negated

    # branches and calls: their labels may stand further down

    def jump(self, instruction: Instruction, text: str, start: int, end: int) -> None:
        if instruction.opcode in _CALLS:
            instruction.operands = self.call(split(text))
            instruction.opcode = self.opcodes.setdefault(instruction.opcode, instruction.opcode)
            last = instruction.operands[-1]
            if len(instruction.operands) < 3 or not isinstance(last, Symbol) or last is instruction.operands[0]:
                return
            self.pending.append((instruction, self.scope, start, end))
            return
        pieces = [piece.strip() for piece in text.split(",")]
        if len(pieces) != (2 if instruction.opcode.startswith("brx") else 1) or not pieces[-1]:
            raise Refused("E0810", f"{instruction.opcode} has other operands")
        index = [self.operands.one(pieces[0], self.scope)] if len(pieces) == 2 else []
        instruction.operands = (*index, Symbol(pieces[-1]))
        self.pending.append((instruction, self.scope, start, end))

    def call(self, pieces: list[str]) -> tuple[Operand, ...]:
        """``(results), function, (arguments), prototype``: all but the function may be absent."""
        result: list[Operand] = []
        seen_function = False
        for piece in (piece.strip() for piece in pieces):
            if piece.startswith("("):
                result.append(self.operands.arguments(piece, self.scope))
            elif not seen_function:
                seen_function = True
                result.append(self.operands.one(piece, self.scope))
            else:
                result.append(Symbol(piece))
        if not seen_function:
            raise Refused("E0810", "a call names a function")
        return tuple(result)

    def resolve_labels(self) -> None:
        tables = {}
        for name, labels, scope, start, end in self.tables:
            found = [self.label(label, "label", scope) for label in labels]
            for label, unique in zip(labels, found, strict=True):
                if unique is None:
                    self.errors.add(Refused("E0812", f"label {label} is not in this function", label), start, end)
            tables[name] = tuple(unique for unique in found if unique is not None)
        self.function.branch_targets = tables
        for instruction, scope, start, end in self.pending:
            target = instruction.operands[-1]
            assert isinstance(target, Symbol)
            what = _TARGETS.get(instruction.opcode, ".callprototype")
            unique = self.label(target.name, what, scope)
            if unique is None:
                message = f"{what} {target.name} is not in this function"
                self.errors.add(Refused("E0812", message, target.name), start, end)
            elif unique is not target.name:
                instruction.operands = (*instruction.operands[:-1], Symbol(unique))

    def label(self, name: str, what: str, scope: Scope | None) -> str | None:
        """The unique name of the label that a scope sees. what: a label, or the name of a table (``Scope.labels``)."""
        while scope is not None:
            if name in scope.labels:
                return name + scope.suffix if scope.labels[name] == what else None
            scope = scope.parent
        return None

    # directives

    def loc(self, start: int) -> tuple[int, Location | None]:
        match = LOC.match(self.code, start)
        if match is None:
            end = self.code.find("\n", start)
            end = len(self.code) if end < 0 else end
            self.errors.add(Refused("E0810", "a .loc has a file number, a line and a column"), start, end)
            return end, None
        key = match[0]
        if key not in self.locations:
            file, line, column = match.group(1, 2, 3)
            name = self.files.get(file)
            known = name is not None and len(line) < 10 and len(column or "0") < 10
            self.locations[key] = Location(name or "", int(line), int(column or 0)) if known and int(line) else None
        return match.end(), self.locations[key]

    def directive(self, name: str, start: int, line: int) -> int:
        """A directive at ``start`` (its dot); gives the position after it."""
        match = TO_SEMICOLON.match(self.code, start)
        if match is None:
            self.errors.fatal(Refused("E0810", f"a .{name} that does not end: ';' is missing"), start, len(self.code))
        end = match.end()
        text = self.code[start : end - 1]
        try:
            if name in _OUTSIDE:
                message = f"{self.function.name} does not end: '}}' is missing before .{name}"
                self.errors.fatal(Refused("E0810", message, f".{name}"), start, end)
            if name == "reg":
                self.registers(text, start, end)
            elif name in _VARIABLE_SPACES:
                self.declared(text, line)
            elif name in _TABLES:
                self.table(name, text, start, end)
            elif name != "pragma":
                raise Refused("E0811", f".{name} is not a directive of a function's body", f".{name}")
        except Refused as refused:
            self.errors.add(refused, start, end)
        return end

    def registers(self, text: str, start: int, end: int) -> None:
        quick = _REGISTERS.match(self.code, start)
        if quick is not None and quick[1] in TYPE_BYTES and quick.end() == end and len(quick[3]) < 12:
            self.scope.declare_range(quick[2], int(quick[3]), quick[1])
            return
        of = declaration(text)
        for one in declarators(of.rest):
            if one.dimensions or one.initial is not None:
                raise Refused("E0816", "a register is not an array and has no initial value", one.name)
            if one.count is not None:
                self.scope.declare_range(one.name, one.count, of.type, of.elements)
            else:
                self.scope.declare_register(one.name, of.type, of.elements)

    def declared(self, text: str, line: int) -> None:
        of = declaration(text)
        for one in declarators(of.rest):
            made = variable(of, one, "", line)
            made.name = self.scope.declare_variable(one.name)
            self.variables.append(made)

    def table(self, name: str, text: str, start: int, end: int) -> None:
        """``.branchtargets`` and the like: the label before it is the table's name, and no place in the code."""
        body = self.function.body
        label = body[-1] if body else None
        if not isinstance(label, Label):
            raise Refused("E0810", f".{name} follows a label")
        body.pop()
        self.scope.labels[label.name.removesuffix(self.scope.suffix)] = _TABLES[name]
        if name == "branchtargets":
            labels = [piece.strip() for piece in text.partition(name)[2].split(",")]
            self.tables.append((label.name, labels, self.scope, start, end))
        else:
            self.prototypes.add(label.name)
