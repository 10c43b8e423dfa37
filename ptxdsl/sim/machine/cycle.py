"""A cycle in the graph of who waits for whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ptxdsl.sim.machine.who import Entity

Edges = Mapping[Entity, Sequence[tuple[Entity, str]]]


def find_cycle(edges: Edges) -> list[tuple[Entity, str, Entity]] | None:
    """(one, why, the other that it waits for) …; the last one's other is the first. edges: of each one, the others
    that it waits for, and why."""
    done: set[Entity] = set()
    for start in sorted(edges, key=lambda entity: (entity.cta.linear, entity.name)):
        found = _search(start, edges, done)
        if found is not None:
            return found
    return None


def _search(start: Entity, edges: Edges, done: set[Entity]) -> list[tuple[Entity, str, Entity]] | None:
    """Depth first without recursion: a grid may have ten thousand CTAs in a chain."""
    path: list[tuple[Entity, str, Entity]] = []
    on_path = {start}
    stack = [(start, iter(edges.get(start, ())))]
    while stack:
        entity, following = stack[-1]
        step = next(following, None)
        if step is None:
            stack.pop()
            on_path.discard(entity)
            done.add(entity)
            if path:
                path.pop()
            continue
        target, what = step
        if target in on_path:
            path.append((entity, what, target))
            return path[next(i for i, (one, _, _) in enumerate(path) if one is target) :]
        if target in done or target not in edges:
            continue
        path.append((entity, what, target))
        on_path.add(target)
        stack.append((target, iter(edges.get(target, ()))))
    return None
