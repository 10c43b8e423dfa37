"""Scratch, not to be committed: the handshake with other rules of ring_plan.py. Columns: variant and wait."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import handshake  # noqa: E402

from ptxdsl import ring_plan  # noqa: E402

FORM, TOTAL = ring_plan.Planner.form, ring_plan.total_copies


def one_stage_twice(self, loop, rings):
    form = FORM(self, loop, rings)
    return (2, False) if form == (1, False) and loop.name == "for" and any(r.stages == 1 for r in rings) else form


VARIANTS = {
    "rule": {},
    "one turn": {"MAX_CONSTANT_PHASE": 0},
    "two turns": {"MAX_CONSTANT_PHASE": 768, "MAX_COMMON_STAGES": 16},
    "tested": {"total_copies": lambda copies, trips: 9999},
    "S=1 twice": {"form": one_stage_twice},
}
DEFAULTS = {name: getattr(ring_plan, name) for name in ("MAX_CONSTANT_PHASE", "MAX_COMMON_STAGES", "total_copies")}

if __name__ == "__main__":
    columns = [(v, w) for v in VARIANTS for w in ("try", "probe")]
    rows = []
    for stages in handshake.STAGES:
        row = [str(stages)]
        for variant, wait in columns:
            settings = {**DEFAULTS, "form": FORM, **VARIANTS[variant]}
            ring_plan.Planner.form = settings.pop("form")
            for name, value in settings.items():
                setattr(ring_plan, name, value)
            row.append(f"{handshake.measure(wait, True, stages, 120000, 3):.2f}")
        rows.append(row)
    handshake.print_table(["S", *(f"{v} {w}" for v, w in columns)], rows)
