"""Debug locations as LLVM metadata: how a PTX line, a note of ptxas or an error finds back to the user's text."""

from __future__ import annotations

import functools

from ptxdsl.lower.llvm_types import quoted
from ptxdsl.source import Source, Span

# LLVM's column field has 16 bits; 0 means "no column".
_MAX_COLUMN = 0xFFFF


@functools.cache
def file_key(name: str) -> str:
    """A file's name in metadata: letters that come out of LLVM as they went in, whatever the file is called."""
    if name.isascii() and name.isprintable() and not any(c in name for c in '"\\%'):
        return name
    from urllib.parse import quote

    return quote(name, errors="surrogateescape")


class DebugInfo:
    """The metadata of one module. Nodes are numbered in the order in which they are asked for."""

    def __init__(self) -> None:
        self.nodes: list[str] = []
        self._files: dict[str, int] = {}
        self._scopes: dict[tuple[int, str], int] = {}
        self._locations: dict[tuple[int, int, int], int] = {}
        self._unit: int | None = None
        self._type: int | None = None

    def _node(self, text: str) -> int:
        self.nodes.append(text)
        return len(self.nodes) - 1

    def _file(self, source: Source) -> int:
        if source.name not in self._files:
            name = quoted(file_key(source.name))
            self._files[source.name] = self._node(f'!DIFile(filename: "{name}", directory: "")')
        return self._files[source.name]

    def subprogram(self, name: str, span: Span) -> int:
        """The scope of one kernel."""
        file = self._file(span.source)
        if self._unit is None or self._type is None:
            # Line directives alone: no debug sections, and no ``.target debug``, which would change the code.
            self._unit = self._node(
                f'distinct !DICompileUnit(language: DW_LANG_C, file: !{file}, producer: "ptxdsl", isOptimized: true, '
                "runtimeVersion: 0, emissionKind: DebugDirectivesOnly)"
            )
            self._type = self._node(f"!DISubroutineType(types: !{self._node('!{}')})")
        scope = self._node(
            f'distinct !DISubprogram(name: "{quoted(name)}", scope: !{file}, file: !{file}, line: {span.line}, '
            f"type: !{self._type}, unit: !{self._unit}, spFlags: DISPFlagDefinition)"
        )
        self._scopes[scope, span.source.name] = scope
        return scope

    def location(self, span: Span, subprogram: int) -> int:
        """A location in a kernel; text of another file than the kernel's is a block of that file."""
        name = span.source.name
        scope = self._scopes.get((subprogram, name))
        if scope is None:
            file = self._file(span.source)
            scope = self._node(f"!DILexicalBlockFile(scope: !{subprogram}, file: !{file}, discriminator: 0)")
            self._scopes[subprogram, name] = scope
        line, column = span.source.position(span.start)
        if column > _MAX_COLUMN:
            column = 0
        key = (line, column, scope)
        if key not in self._locations:
            self._locations[key] = self._node(f"!DILocation(line: {line}, column: {column}, scope: !{scope})")
        return self._locations[key]

    def whole_loop(self) -> int:
        """The mark of a loop that LLVM must neither unroll nor peel."""
        flag = self._node('!{!"llvm.loop.unroll.disable"}')
        return self._node(f"distinct !{{!{len(self.nodes)}, !{flag}}}")

    def text(self) -> str:
        if self._unit is None:
            return ""
        flags = self._node('!{i32 2, !"Debug Info Version", i32 3}')
        named = f"!llvm.dbg.cu = !{{!{self._unit}}}\n!llvm.module.flags = !{{!{flags}}}\n"
        return named + "".join(f"!{number} = {node}\n" for number, node in enumerate(self.nodes))
