"""Scopes: from names to what they stand for."""

from __future__ import annotations

from collections.abc import Iterator

from ptxdsl.elaborate.entities import Entity


class Scope:
    """A block, function, struct or module. Lookup goes outwards; the outermost scope is the prelude."""

    __slots__ = ("loop", "names", "parent")

    def __init__(self, parent: Scope | None = None, loop: bool = False) -> None:
        self.parent = parent
        self.loop = loop  # whether its names are a loop's own
        self.names: dict[str, Entity] = {}

    def declare(self, name: str, entity: Entity) -> None:
        self.names[name] = entity

    def lookup(self, name: str) -> Entity | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None

    def holder(self, name: str) -> Scope | None:
        """The scope that a name is found in."""
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.parent
        return scope

    def visible(self) -> Iterator[str]:
        """Every name that a lookup from here can find, nearest first (for "did you mean")."""
        scope: Scope | None = self
        while scope is not None:
            yield from scope.names
            scope = scope.parent
