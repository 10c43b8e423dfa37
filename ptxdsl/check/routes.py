"""Ways on which knowledge goes from agent to agent: whose arrivals others wait for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Agents = int  # as bits, by ``Context.seat``


class Routes:
    """edges: of each agent those whom it tells."""

    def __init__(self, edges: Sequence[Agents]) -> None:
        self.edges = edges
        self._told_by = [0] * len(edges)
        for number, out in enumerate(edges):
            for other in numbers(out):
                self._told_by[other] |= 1 << number
        self._passing = [n for n, out in enumerate(edges) if out & ~(1 << n) and self._told_by[n] & ~(1 << n)]
        self._without: dict[int, tuple[list[Agents], list[Agents]]] = {}
        self._between: dict[tuple[int, int], Agents] = {}
        self._known: dict[tuple[Agents, Agents], Agents] = {}

    def who(self, origins: Agents, needers: Agents) -> Agents:
        """The agents that pass knowledge on from one of the origins to one of the needers, and these."""
        found = self._known.get((origins, needers))
        if found is None:
            found = origins | needers
            for origin in numbers(origins):
                for needer in numbers(needers):
                    if needer != origin:
                        found |= self.between(origin, needer)
            self._known[origins, needers] = found
        return found

    def between(self, origin: int, needer: int) -> Agents:
        """The agents that hear from one and tell another one, with no agent that stands in both ways."""
        found = self._between.get((origin, needer))
        if found is None:
            found = (1 << len(self.edges)) - 1
            for other in {origin, needer, *self._passing}:  # nobody else stands in a way
                reached, heard = self._avoiding(other)
                hear = 0 if other == origin else reached[origin]
                tell = 0 if other == needer else heard[needer]
                found &= hear | tell | 1 << other
            self._between[origin, needer] = found
        return found

    def _avoiding(self, other: int) -> tuple[list[Agents], list[Agents]]:
        """Of each agent those whom it reaches, and those who reach it, if one of them passes nothing on."""
        found = self._without.get(other)
        if found is None:
            found = _reached(self.edges, other), _reached(self._told_by, other)
            self._without[other] = found
        return found


def numbers(agents: Agents) -> Iterator[int]:
    while agents:
        lowest = agents & -agents
        yield lowest.bit_length() - 1
        agents ^= lowest


def _reached(edges: Sequence[Agents], without: int) -> list[Agents]:
    """Of each agent those that its knowledge may come to, if one of them passes nothing on."""
    keep = ~(1 << without)
    reached = [out & keep for out in edges]
    reached[without] = 0
    for between, out in enumerate(reached):
        if out:
            bit = 1 << between
            reached = [known | reached[between] if known & bit else known for known in reached]
    return reached
