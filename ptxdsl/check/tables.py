"""Tables of barriers as sites speak of them: who waits for whom."""

from __future__ import annotations

from ptxdsl.hints import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxdsl.check.context import Context
    from ptxdsl.check.parts import Agent


def gates(context: Context, first: Agent, then: Agent) -> bool:
    """Whether one agent somewhere waits for a barrier at which the other one arrives."""
    return not _arrives(first).isdisjoint(step.root for step in then.steps if step.waits)


def arrives_at(agent: Agent, table: int) -> bool:
    """Whether an agent arrives somewhere at a barrier of a table (by the address of its first one)."""
    return table in _arrives(agent)


def _arrives(agent: Agent) -> set[int]:
    return {step.root for step in agent.steps if step.arrives}
