"""RolePipeline: from its five parameters to one role's operations. The one home of its semantics.

A pipeline of S stages has two tables of mbarriers in shared memory, one entry a stage (and sub-stage): the producer's
("full") and the consumer's ("empty"). Each role keeps ``(index, phase, count)`` in registers. A producer starts with
phase 1: its first wait, for the parity of a phase before the first, falls through. A consumer starts with phase 0 and
blocks until the first commit. ``step`` moves on: ``index += 1``; where it reaches S it is 0 again and the phase flips.
With S == 1 only the phase flips.

The methods become ``pipe.*`` operations (``tir``) that carry role, stage count and sub-stage, so that later stages
see a protocol and not address arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

Violation = tuple[str, str, str]  # code, message, help

# method → (its role, the table it works on, what the other role calls instead)
METHOD_ROLES = {
    "acquire": (True, "empty", "wait"),
    "commit": (True, "full", "release"),
    "commit_mma": (True, "full", "release"),
    "wait": (False, "full", "acquire"),
    "release": (False, "empty", "commit"),
    "release_no_step": (False, "empty", "commit"),
}


def initial_state(producer: bool) -> tuple[int, int, int]:
    """index, phase and count that a role starts with."""
    return 0, int(producer), 0


def pipeline_rule(params: dict[str, int]) -> Iterator[Violation]:
    """What the parameters of a RolePipeline must satisfy."""
    if params["number_of_stages"] < 1:
        yield "E0501", f"a pipeline needs at least one stage, not {params['number_of_stages']}", "give 1 or more stages"
    for name in ("producer_sub_stages", "consumer_sub_stages"):
        if params[name] < 1:
            yield "E0502", f"`{name}` must be at least 1, not {params[name]}", "a stage has at least one sub-stage"
    if params["cta_group"] not in (1, 2):
        yield "E0503", f"`cta_group` is 1 or 2, not {params['cta_group']}", "1: this CTA; 2: a pair of CTAs"


def state_rule(params: dict[str, int]) -> Iterator[Violation]:
    if params["num_stages"] < 1:
        yield "E0501", f"a pipeline needs at least one stage, not {params['num_stages']}", "give 1 or more stages"


PARAMETER_RULES: dict[str, Callable[[dict[str, int]], Iterator[Violation]]] = {
    "RolePipeline": pipeline_rule,
    "PipelineState": state_rule,
}
