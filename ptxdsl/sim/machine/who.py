"""Warps and asynchronous work in words, for reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptxdsl.sim.machine.cta import AgentEntity, Cta
from ptxdsl.sim.machine.faults import cta_text
from ptxdsl.sim.machine.waits import lanes_text
from ptxdsl.sim.machine.warp import Warp

Entity = Warp | AgentEntity


def entities_text(entities: Iterable[Entity], alone: bool) -> str:
    """``warps 0, 4-7``, ``warp 1 of CTA (1, 0, 0)``, ``… (and the same in 3 more CTAs)``, ``tma work``.

    alone: there is only one CTA, which needs no name.
    """
    of_cta: dict[Cta, list[Entity]] = {}
    for entity in dict.fromkeys(entities):
        of_cta.setdefault(entity.cta, []).append(entity)
    texts = [(_of_one_cta(those), cta) for cta, those in of_cta.items()]
    if alone or not texts:
        return "".join(text for text, _ in texts)
    (first, cta), *others = texts
    if others and all(text == first for text, _ in others):
        many = f"{len(others)} more CTA{'' if len(others) == 1 else 's'}"
        return f"{first} of {cta_text(cta)} (and the same in {many})"
    if len(texts) > 2:
        return f"{first} of {cta_text(cta)} (and others in {len(others)} more CTAs)"
    return " and ".join(f"{text} of {cta_text(cta)}" for text, cta in texts)


def _of_one_cta(entities: Sequence[Entity]) -> str:
    warps = sorted(entity.index for entity in entities if isinstance(entity, Warp))
    units = dict.fromkeys(entity.unit for entity in entities if isinstance(entity, AgentEntity))
    parts = [numbers_text("warp", warps)] if warps else []
    return " and ".join(parts + [f"{unit} work" for unit in units])


def numbers_text(noun: str, numbers: Sequence[int]) -> str:
    """``warp 3``, ``warps 0-3, 7``; of up to 32 numbers below 32."""
    if len(numbers) == 32:
        return f"{noun}s 0-31"
    ranges = lanes_text(sum(1 << number for number in numbers)).partition(" ")[2]
    return f"{noun}{'s' if len(numbers) > 1 else ''} {ranges}"


def plural(entities: Sequence[Entity]) -> bool:
    return len(set(entities)) > 1
