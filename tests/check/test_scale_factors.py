"""Products that wait for another warp's copies of scale factors, and a stage that two give back."""

import pytest
from proofs import SAMPLES, verdict

GEMM = (SAMPLES / "10_gemm_blackwell.pdsl").read_text(encoding="utf-8")
SCALED = GEMM.replace(
    "E: AnyType = Identity, CTAS: Int = 1, BN: Int = 256, STAGES: Int = 3",
    "E: AnyType = Identity, CTAS: Int = 1, BN: Int = 128, STAGES: Int = 2",
    1,
)


@pytest.mark.parametrize(("ctas", "clc"), [(1, False), (2, False), (2, True)])
def test_the_products_are_proved(ctas, clc):
    text = SCALED.replace("CTAS: Int = 1, BN: Int = 128", f"CTAS: Int = {ctas}, BN: Int = 128", 1)
    text = text.replace("ORDER: Int = 16, CLC: Bool = False", f"ORDER: Int = 16, CLC: Bool = {clc}")
    found = verdict(text, arch="sm_100a", kernel="gemm_scaled")
    assert (found.verdict, found.diagnostics) == ("proved", ())


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("(factor_bars, empty_bars)", "(full_bars, empty_bars)", "E1207"),
        (".init(Int32(READERS))", ".init(1)", "E1203"),
        ("comptime at = stage * (AScales", "comptime at = 0 * (AScales", "E1208"),
    ],
    ids=["products do not wait for factors", "a stage is given back by one", "factors have one place"],
)
def test_what_is_wrong(before, after, kind):
    assert before in SCALED
    found = verdict(SCALED.replace(before, after), arch="sm_100a", kernel="gemm_scaled")
    assert found.verdict == "fault"
    assert [said.code for said in found.diagnostics] == [kind]
