"""Kernels that gather rows, send between the blocks of a cluster and use tensor memory without products."""

import pytest
from proofs import ROOT, verdict

TEXT = (ROOT / "tests" / "sim" / "library_moves.pdsl").read_text(encoding="utf-8")
ARCHS = {
    "rows": "sm_100a", "exchanged": "sm_90a", "spread": "sm_90a", "matrices": "sm_90a", "chained": "sm_90a",
    "rescaled": "sm_100a", "paired": "sm_100a", "greatest": "sm_103a",
}  # fmt: skip


@pytest.mark.parametrize("kernel", ARCHS)
def test_it_is_proved(kernel):
    found = verdict(TEXT, arch=ARCHS[kernel], kernel=kernel)
    assert (found.verdict, found.diagnostics) == ("proved", ())


@pytest.mark.parametrize(
    ("kernel", "before", "after", "kind"),
    [
        ("rows", "expect_bytes(Int32(Tile.bytes))", "expect_bytes(Int32(Tile.bytes - 256))", "E1204"),
        ("rows", "range(0, 8, 4):\n            tma_gather4", "range(0, 4, 4):\n            tma_gather4", "E1204"),
        ("spread", "bars[unsafe_offset=1].wait(0)", "pass", "E1207"),
        ("spread", "        bars[].wait(0)\n        cp_async", "        cp_async", "E1207"),
        ("paired", "expect_bytes(Int32(2 * Tile.bytes))", "expect_bytes(Int32(Tile.bytes))", "E1204"),
        ("paired", "    if even:\n        bar[].wait(0)\n", "", "E1207"),
        ("paired", "mapa(bar, 0), [0, 0], 15", "mapa(bar, 0), [0, 0], 7", "E1204"),
        ("greatest", "        tcgen05_store_wait()\n        var all", "        var all", "E1210"),
    ],
    ids=[
        "fewer bytes",
        "fewer rows",
        "nobody waits for the peer",
        "sent before it is there",
        "bytes of one block",
        "nobody waits",
        "three of four blocks",
        "loaded at once",
    ],
)
def test_what_is_wrong(kernel, before, after, kind):
    assert before in TEXT
    found = verdict(TEXT.replace(before, after, 1), arch=ARCHS[kernel], kernel=kernel)
    assert found.verdict == "fault"
    assert [said.code for said in found.diagnostics] == [kind]
