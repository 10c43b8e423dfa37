"""Tables of barriers as sites speak of them: who waits for whom."""

from __future__ import annotations

from ptxdsl.hints import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxdsl.check.context import Context
    from ptxdsl.check.parts import Agent


def gates(context: Context, first: Agent, then: Agent) -> bool:
    """Whether one agent somewhere waits for a barrier at which the other one arrives."""
    return bool(_roots(first, _ARRIVES) & _roots(then, _WAITS))


def arrives_at(agent: Agent, table: int) -> bool:
    """Whether an agent arrives somewhere at a barrier of a table (by the address of its first one)."""
    return table in _roots(agent, _ARRIVES)


_ARRIVES = frozenset({"Arrive", "Commit", "Copy"})
_WAITS = frozenset({"Wait"})


def _roots(agent: Agent, kinds: frozenset[str]) -> set[int]:
    return {step.root for step in agent.steps if type(step).__name__ in kinds and hasattr(step, "root")}
