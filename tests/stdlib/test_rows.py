"""Every instruction row is declared, needs a feature that exists, and is PTX that ptxas takes."""

from __future__ import annotations

import pytest
import rows

from ptxdsl.backend.assemble import assemble
from ptxdsl.backend.emit_ptx import emit
from ptxdsl.intrinsics import ROWS
from ptxdsl.intrinsics.alignment import ALIGNED
from ptxdsl.lower.module import lower
from ptxdsl.options import Options
from ptxdsl.targets import FEATURES, TARGETS
from ptxdsl.tir.verify import verify


def test_every_row_has_one_declaration():
    assert sorted(rows.declarations()) == sorted(ROWS)


def test_every_declaration_has_a_docstring():
    assert [name for name, node in rows.declarations().items() if not node.docstring] == []


def test_every_feature_is_known():
    assert {row.feature for row in ROWS.values() if row.feature} - set(FEATURES) == set()


def test_what_is_to_be_aligned_is_a_pointer():
    """The table of alignments names rows, operands that are addresses, and compile-time parameters."""
    uses = {use.name: use for use in rows.uses()}
    for name, wanted in ALIGNED.items():
        for position, bytes in wanted:
            assert uses[name].operands[position].is_pointer, name
            assert bytes in (4, 8, 16, 128) or bytes in uses[name].attrs, name


ARCHS = {"sm_80": 300, "sm_90a": 300, "sm_100a": 300, "sm_103a": 4}  # how many uses there are at least


@pytest.mark.parametrize("arch", ARCHS)
def test_rows_assemble(arch, ptxas):
    # apart by the PTX ISA version that their feature asks for, so that none profits from another's
    groups: dict[tuple[int, int], list[rows.Use]] = {}
    for use in rows.uses():
        feature = FEATURES.get(ROWS[use.name].feature or "")
        if arch == "sm_103a" and (feature is None or feature.targets & {"sm_80", "sm_90a", "sm_100a"}):
            continue  # seen there
        if feature is None or arch in feature.targets:
            version = max(TARGETS[arch].ptx, feature.ptx if feature else (0, 0))
            groups.setdefault(version, []).append(use)
    assert sum(map(len, groups.values())) >= ARCHS[arch]
    options = Options(arch=arch)
    for chosen in groups.values():
        module = rows.module(chosen)
        verify(module)
        emitted = emit(lower(module, options), module, options)
        assert len(assemble(emitted.ptx, options, emitted.line_map).resources) == len(chosen)


def test_the_table_covers_every_row_on_some_target():
    assert {use.name for use in rows.uses()} == set(ROWS)
    assert [n for n, r in ROWS.items() if r.feature and not FEATURES[r.feature].targets & set(ARCHS)] == []
