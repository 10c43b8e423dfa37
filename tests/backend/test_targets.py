"""The tables of targets, features and versions: against ptxas, and what a user sees when they say no."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
from backend_kernels import line_span
from feature_snippets import SNIPPETS, module

from ptxdsl.backend.assemble import find_tool
from ptxdsl.diagnostics import CompileError
from ptxdsl.intrinsics import ROWS
from ptxdsl.targets import DRIVERS, FEATURES, TARGETS, ptx_version, require, target

UNSEEN = {"tcgen05.k96"}  # what a descriptor says is not for ptxas to read


def accepted(folder: Path, arch: str, version: tuple[int, int], names: list[str]) -> set[str]:
    """Those of the features' snippets that ptxas takes. Errors of a late phase hide behind those of an earlier one."""
    names = list(names)
    while names:
        path = folder / "features.ptx"
        path.write_text(module(arch, version, names))
        command = [find_tool("ptxas"), f"-arch={arch}", path, "-o", folder / "out"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            break
        bad = {int(line) for line in re.findall(r"line (\d+); (?:error|fatal)", done.stderr)}
        assert bad, done.stderr
        names = [name for position, name in enumerate(names) if position + 5 not in bad]
    return set(names)


def test_every_feature_has_a_snippet_and_every_row_a_known_feature() -> None:
    assert set(SNIPPETS) == set(FEATURES) - UNSEEN
    assert {row.feature for row in ROWS.values()} - {None} <= set(FEATURES)


@pytest.mark.usefixtures("ptxas")
@pytest.mark.parametrize("arch", TARGETS)
def test_features_of_a_target_are_those_that_ptxas_takes(arch: str, tmp_path: Path) -> None:
    claimed = {name for name, feature in FEATURES.items() if arch in feature.targets} - UNSEEN
    assert accepted(tmp_path, arch, max(DRIVERS), list(SNIPPETS)) == claimed


def _lowest_target(name: str) -> str:
    return min(FEATURES[name].targets, key=lambda arch: (TARGETS[arch].ptx, arch))


@pytest.mark.usefixtures("ptxas")
def test_features_start_with_their_ptx_version(tmp_path: Path) -> None:
    versions = list(DRIVERS)
    asked: dict[tuple[str, tuple[int, int]], list[str]] = defaultdict(list)
    for name in SNIPPETS:
        feature, arch = FEATURES[name], _lowest_target(name)
        asked[arch, feature.ptx].append(name)
        before = versions[max(versions.index(feature.ptx) - 1, 0)]
        if before < feature.ptx and before >= TARGETS[arch].ptx:
            asked[arch, before].append(name)
    for (arch, version), names in asked.items():
        expected = {name for name in names if FEATURES[name].ptx <= version}
        assert accepted(tmp_path, arch, version, names) == expected, (arch, version)


@pytest.mark.usefixtures("ptxas")
def test_targets_start_with_their_ptx_version(tmp_path: Path) -> None:
    versions = list(DRIVERS)
    for arch, row in TARGETS.items():
        assert accepted(tmp_path, arch, row.ptx, ["tanh"]) == {"tanh"}
        position = versions.index(row.ptx)
        if position:
            path = tmp_path / "early.ptx"
            path.write_text(module(arch, versions[position - 1], ["tanh"]))
            command = [find_tool("ptxas"), f"-arch={arch}", path, "-o", tmp_path / "out"]
            assert subprocess.run(command, capture_output=True, check=False).returncode != 0, arch


def refusal(call: object, *arguments: object, **keywords: object) -> tuple[str, str, str | None]:
    with pytest.raises(CompileError) as caught:
        call(*arguments, **keywords)  # type: ignore[operator]
    (problem,) = caught.value.diagnostics
    return problem.code, problem.message, problem.help


def test_unknown_target_names_its_neighbours() -> None:
    assert refusal(target, "sm_90b") == ("E0702", "unknown target 'sm_90b'", "did you mean sm_90 or sm_90a?")
    assert refusal(target, "sm_103")[2] == "did you mean sm_103a or sm_103f?"
    assert (refusal(target, "gfx90a")[2] or "").startswith("the targets are sm_80, sm_86")
    assert refusal(target, "sm_75")[2] == refusal(target, "sm_70")[2] == "the oldest target is sm_80"


def test_missing_feature_names_the_targets_that_have_it() -> None:
    code, message, help = refusal(require, "tcgen05", target("sm_100"), line_span(7), "commit_mma()")
    assert code == "E0701"
    assert message == (
        "commit_mma() does not exist on sm_100: fifth-generation tensor cores (tcgen05) need "
        "sm_100a, sm_100f, sm_103a, sm_103f, sm_110a, sm_110f"
    )
    assert help == "compile for one of them: --arch sm_100a"
    message = refusal(require, "mbarrier.try_wait", target("sm_80"), None, "acquire()")[1]
    assert message == (
        "acquire() does not exist on sm_80: waiting on an mbarrier (mbarrier.try_wait) needs sm_90 and later"
    )
    require("mbarrier.try_wait", target("sm_120f"), None, "acquire()")


@pytest.mark.parametrize(
    ("feature", "words"),
    [
        ("mbarrier.cluster", "mbarriers of other CTAs in the cluster need sm_90 and later"),
        ("st.async", "asynchronous stores to the cluster (st.async) need sm_90 and later"),
        ("setmaxnreg", "moving registers between warps (setmaxnreg) needs sm_90a, "),
        ("stmatrix", "stmatrix needs sm_90 and later"),
    ],
)
def test_a_missing_feature_is_said_in_grammar(feature: str, words: str) -> None:
    assert f": {words}" in refusal(require, feature, target("sm_80"), None, "it")[1]


def test_ptx_version_is_the_lowest_that_will_do() -> None:
    assert ptx_version(target("sm_80")) == (7, 0)
    assert ptx_version(target("sm_90"), None, ["mbarrier.try_wait", "tma"]) == (8, 0)
    assert ptx_version(target("sm_90a"), (8, 6)) == (8, 6)


def test_impossible_ptx_versions() -> None:
    assert refusal(ptx_version, target("sm_90a"), (9, 7))[0] == "E0703"
    assert refusal(ptx_version, target("sm_100a"), (8, 0)) == (
        "E0704",
        "PTX ISA 8.0 is too old: sm_100a came with 8.6",
        "ask for --ptx-version 8.6 or leave the option out",
    )
    assert refusal(ptx_version, target("sm_90"), (7, 8), ["elect"])[1] == (
        "PTX ISA 7.8 is too old: elect.sync came with 8.0"
    )
