"""PTX text -> ``Module``: the statements of module scope. Bodies of functions: ``reader_body``.

Source: PTX ISA, "Syntax", "Directives". What has no meaning for execution (debug sections, pragmas, tuning hints) is
passed over.
"""

from __future__ import annotations

import re

from ptxdsl.ptx.module import Function, Module, Variable
from ptxdsl.ptx.reader_body import LOC, TO_SEMICOLON, BodyReader
from ptxdsl.ptx.reader_constants import integer
from ptxdsl.ptx.reader_operands import Scope, split
from ptxdsl.ptx.reader_text import Errors, Refused, blank_comments, decode
from ptxdsl.ptx.reader_variables import declaration, declarators, variable

# Possessive throughout (`*+`): no text makes the time more than linear.
_WORD = re.compile(r"\s*+(?:\.([a-z]\w*+)|(@@DWARF[^\n]*+)|(;))", re.ASCII)
_FILE = re.compile(r'\.file\s++(\d++)\s++"([^"\n]*+)"(?:\s*+,\s*+\d++\s*+,\s*+\d++)?', re.ASCII)
_ESCAPE = re.compile(rb"\\(?:([0-3][0-7]{2})|(\\))")
_SECTION = re.compile(r"\.section\s++[.\w]++\s*+(?:,[^{]*+)?\{[^{}]*+\}", re.ASCII)
_VERSION = re.compile(r"\.version\s++(\d{1,4})\.(\d{1,4})", re.ASCII)
_TARGET = re.compile(r"\.target\s++(\w++(?:\s*+,\s*+\w++)*+)", re.ASCII)
_ADDRESS_SIZE = re.compile(r"\.address_size\s++(\d{1,4})", re.ASCII)
_FUNCTION_NAME = re.compile(r"\s*+([A-Za-z_$%][\w$]*+)\s*+", re.ASCII)
_OPEN = re.compile(r"\s*+\(")
_BODY = re.compile(r"\s*+([;{])")
_PARENTHESIS = re.compile(r"[()]")
_TUNING = re.compile(
    r"\s*+\.(?:(reqntid|maxntid|minnctapersm|maxnctapersm|maxnreg|reqnctapercluster|maxclusterrank|abi_preserve"
    r"|abi_preserve_control)\s++(\d++(?:\s*+,\s*+\d++)*+)|(noreturn|explicitcluster|blocksareclusters)\b"
    r"|(pragma)\s[^;{]*+;|(attribute)\s*+\((?:[^()]|\([^()]*+\))*+\))",
    re.ASCII,
)
_ALIAS = re.compile(r"\.alias\s++([A-Za-z_$%][\w$]*+)\s*+,\s*+([A-Za-z_$%][\w$]*+)\s*+;", re.ASCII)
_NEXT_DIRECTIVE = re.compile(r"\n\s*+\.(?=[a-z])")
_LINKAGE = ("extern", "visible", "weak", "common")
_SPACES = ("global", "const", "shared", "local", "tex")


def read(text: str | bytes, name: str = "<ptx>") -> Module:
    """Raises CompileError with one diagnostic a mistake, each at its place in the PTX text."""
    text = decode(text, name)
    errors = Errors(name, text)
    reader = _ModuleReader(blank_comments(errors), errors)
    reader.read()
    errors.raise_found()
    return reader.module


def _unescaped(name: str) -> str:
    """A file's name as LLVM writes it: bytes that are not ASCII in octal, a backslash twice."""
    if "\\" not in name:
        return name
    data = _ESCAPE.sub(lambda m: bytes([int(m[1], 8)]) if m[1] else m[2], name.encode("utf-8", "surrogateescape"))
    return data.decode("utf-8", "surrogateescape")


class _ModuleReader:
    def __init__(self, code: str, errors: Errors) -> None:
        self.code = code
        self.errors = errors
        self.line = 1
        self.counted = 0
        self.module = Module((0, 0), "", 64, {}, {}, errors.source.text, errors.source.name)
        files = {number: _unescaped(name) for number, name in _FILE.findall(code)} if ".file" in code else {}
        self.body = BodyReader(code, errors, files, {})
        self.unknown: list[tuple[str, int, int]] = []
        self.aliases: list[tuple[str, str, int, int]] = []

    def line_at(self, position: int) -> int:
        """Of positions that only grow."""
        self.line += self.code.count("\n", self.counted, position)
        self.counted = position
        return self.line

    def read(self) -> None:
        code = self.code
        position = 0
        while True:
            match = _WORD.match(code, position)
            if match is None:
                start = len(code) - len(code[position:].lstrip())
                if start == len(code):
                    break
                self.errors.add(Refused("E0810", "expected a directive"), start, self.end_of_line(start))
                position = self.next_directive(start)
                continue
            if match[1] is None:
                position = match.end()
                continue
            start = match.start(1) - 1
            try:
                position = self.directive(match[1], start)
            except Refused as refused:
                self.errors.add(refused, start, self.end_of_line(start))
                position = self.next_directive(start)
        self.finish()

    def end_of_line(self, start: int) -> int:
        end = self.code.find("\n", start)
        return len(self.code) if end < 0 else end

    def next_directive(self, start: int) -> int:
        match = _NEXT_DIRECTIVE.search(self.code, start + 1)
        return len(self.code) if match is None else match.start()

    def directive(self, name: str, start: int) -> int:
        """The directive at ``start`` (its dot); gives the position after it."""
        code = self.code
        if name in _LINKAGE:
            match = _WORD.match(code, start + 1 + len(name))
            if match is None or match[1] is None:
                raise Refused("E0810", f"expected a declaration after .{name}")
            inner = match.start(1) - 1
            if match[1] in ("func", "entry"):
                return self.function(match[1], inner)
            return self.variables(name, inner, match[1])
        if name in ("func", "entry"):
            return self.function(name, start)
        if name in _SPACES:
            return self.variables("", start, name)
        if name in ("version", "target", "address_size"):
            return self.header(name, start)
        if name == "section":
            match = _SECTION.match(code, start)
            if match is None:
                raise Refused("E0810", "a section that does not end: '}' is missing")
            return match.end()
        if name == "alias":
            match = _ALIAS.match(code, start)
            if match is None:
                raise Refused("E0810", "an .alias has two names")
            self.aliases.append((match[1], match[2], start, match.end()))
            return match.end()
        if name in ("file", "loc"):
            match = (_FILE if name == "file" else LOC).match(code, start)
            if match is None:
                raise Refused("E0810", f"a .{name} that is not understood")
            return match.end()
        if name == "pragma":
            return self.semicolon(start)
        raise Refused("E0811", f".{name} is not a directive of module scope", f".{name}")

    def semicolon(self, start: int) -> int:
        match = TO_SEMICOLON.match(self.code, start)
        if match is None:
            self.errors.fatal(Refused("E0810", "a statement that does not end: ';' is missing"), start, len(self.code))
        return match.end()

    def header(self, name: str, start: int) -> int:
        module = self.module
        pattern = {"version": _VERSION, "target": _TARGET, "address_size": _ADDRESS_SIZE}[name]
        match = pattern.match(self.code, start)
        if match is None:
            raise Refused("E0815", f"a .{name} that is not understood")
        if name == "version":
            module.version = (int(match[1]), int(match[2]))
        elif name == "target":
            module.target = module.target or match[1].partition(",")[0].strip()
        else:
            module.address_size = int(match[1])
            if module.address_size != 64:
                raise Refused("E0815", "only 64-bit addresses are supported", match[1])
        return match.end()

    def variables(self, linkage: str, start: int, space: str) -> int:
        if space not in _SPACES:
            raise Refused("E0811", f".{space} is not a state space of a module's variable", f".{space}")
        end = self.semicolon(start)
        line = self.line_at(start)
        try:
            of = declaration(self.code[start : end - 1])
            for one in declarators(of.rest):
                made = variable(of, one, linkage, line)
                known = self.module.variables.get(made.name)
                if known is not None and known.linkage != "extern" and linkage != "extern":
                    raise Refused("E0813", f"{made.name} is declared twice", made.name)
                if known is None or linkage != "extern":
                    self.module.variables[made.name] = made
                for _, _, symbol in made.relocations:
                    self.unknown.append((symbol.name, start, end))
        except Refused as refused:
            self.errors.add(refused, start, end)
        return end

    # functions

    def function(self, word: str, start: int) -> int:
        code = self.code
        line = self.line_at(start)
        position = start + 1 + len(word)
        made = Function("", word == "entry", line=line)
        scope = Scope(None, "")
        position = self.tuning(made, position)  # `.func .attribute(…) (…) name`
        if word == "func" and (opened := _OPEN.match(code, position)) is not None:
            made.returns, position = self.parameters(opened.end(), scope)
        position = self.tuning(made, position)
        match = _FUNCTION_NAME.match(code, position)
        if match is None:
            raise Refused("E0810", "a function has a name")
        made.name = match[1]
        position = match.end()
        if (opened := _OPEN.match(code, position)) is not None:
            made.parameters, position = self.parameters(opened.end(), scope)
        position = self.tuning(made, position)
        opened = _BODY.match(code, position)
        if opened is None:
            raise Refused("E0810", f"expected the body of {made.name} or ';'", made.name)
        position = opened.end()
        known = self.module.functions.get(made.name)
        if opened[1] == ";":
            made.extern = True
            if known is None:
                self.module.functions[made.name] = made
            return position
        if known is not None and not known.extern:
            self.errors.add(Refused("E0813", f"{made.name} is defined twice", made.name), start, position)
        self.module.functions[made.name] = made
        line = self.line_at(position)
        position, self.line = self.body.read(made, scope, position, line)
        self.counted = position
        self.unknown += [(name, *place) for name, place in self.body.operands.unknown.items()]
        for parameter in (*made.parameters, *made.returns):
            if parameter.space == "reg":
                components = "xyzw"[: parameter.shape[0]] if parameter.shape else ""
                names = [f"{parameter.name}.{c}" for c in components] or [parameter.name]
                made.registers |= dict.fromkeys(names, parameter.type)
        return position

    def parameters(self, start: int, scope: Scope) -> tuple[tuple[Variable, ...], int]:
        """start: behind '('. Gives the position behind ')'."""
        depth = 1
        for match in _PARENTHESIS.finditer(self.code, start):
            depth += 1 if match[0] == "(" else -1
            if not depth:
                break
        else:
            self.errors.fatal(Refused("E0810", "a list of parameters that does not end"), start - 1, len(self.code))
        text = self.code[start : match.start()]
        result: list[Variable] = []
        if text.strip():
            try:
                for piece in split(text):
                    of = declaration(piece)
                    (one,) = declarators(of.rest)
                    if of.space not in ("param", "reg"):
                        raise Refused("E0816", "a parameter is of space .param", one.name)
                    made = variable(of, one, "", self.line)
                    if of.space == "reg":
                        scope.declare_register(one.name, of.type, of.elements)
                    elif one.name != "_":
                        scope.declare_variable(one.name)
                    result.append(made)
            except Refused as refused:
                self.errors.add(refused, start, match.start())
        return tuple(result), match.end()

    def tuning(self, made: Function, position: int) -> int:
        """Directives between a function's head and its body."""
        while (match := _TUNING.match(self.code, position)) is not None:
            position = match.end()
            word = match[1]
            if word is not None:
                values = tuple(min(integer(number.strip()), 1 << 32) for number in match[2].split(","))
                if word in ("reqntid", "maxntid", "reqnctapercluster"):
                    setattr(made, word, values[:3])
                elif word in ("minnctapersm", "maxnreg"):
                    setattr(made, word, values[0])
            elif match[3] == "explicitcluster":
                made.explicit_cluster = True
            elif match[3] == "blocksareclusters":
                made.blocks_are_clusters = True
        return position

    # what needs the whole module

    def finish(self) -> None:
        module = self.module
        errors = self.errors
        for name, aliased, start, end in self.aliases:
            function = module.functions.get(aliased)
            if function is None:
                errors.add(Refused("E0812", f"{aliased} is not declared", aliased), start, end)
            else:
                module.functions[name] = function
        for name, start, end in self.unknown:
            if name not in module.variables and name not in module.functions:
                errors.add(Refused("E0812", f"{name} is not declared", name), start, end)
        for found, directive in ((module.version != (0, 0), ".version"), (module.target, ".target")):
            if not found:
                message = f"{directive} is missing"
                errors.add(Refused("E0815", message, help="PTX starts with .version, .target and .address_size"), 0, 1)
