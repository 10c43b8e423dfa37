"""All lane-wise operations: what ``part`` looks an opcode's first part up in."""

from __future__ import annotations

from collections.abc import Mapping

from ptxdsl.sim.translate.emitter import Emit
from ptxdsl.sim.translate.ops_bits import BITS
from ptxdsl.sim.translate.ops_compare import COMPARE
from ptxdsl.sim.translate.ops_convert import CONVERT
from ptxdsl.sim.translate.ops_float import FLOAT, mixed
from ptxdsl.sim.translate.ops_form import Operation, by_type, emits
from ptxdsl.sim.translate.ops_half import HALF
from ptxdsl.sim.translate.ops_integer import INTEGER
from ptxdsl.sim.translate.ops_special import SPECIAL
from ptxdsl.sim.translate.ops_video import VIDEO


def _mixed_or(half: Operation, name: str) -> Operation:
    """``add.f32.bf16`` beside ``add.bf16``."""
    of_two_types = mixed(name)
    return lambda form: (of_two_types if len(form.types) == 2 else half)(form)


def _halves_with_mixed() -> dict[str, dict[str, Operation]]:
    table = dict(HALF)
    for name in ("add", "sub", "fma"):
        ((types, operation),) = HALF[name].items()
        table[name] = {types: _mixed_or(operation, name)}
    return table


def _merged(*tables: Mapping[str, Mapping[str, Operation]]) -> dict[str, Emit]:
    choices: dict[str, dict[str, Operation]] = {}
    for table in tables:
        for name, by_types in table.items():
            choices.setdefault(name, {}).update(by_types)
    return {name: emits(by_type(by_types)) for name, by_types in choices.items()}


LANE_OPS: dict[str, Emit] = {
    **_merged(INTEGER, BITS, COMPARE, FLOAT, _halves_with_mixed(), SPECIAL, VIDEO),
    **{name: emits(operation) for name, operation in CONVERT.items()},
}
