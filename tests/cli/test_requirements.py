"""The files of versions: what is pinned is all that is installed, and within the bounds of pyproject.toml."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NEEDED = [Requirement(text) for text in PROJECT["dependencies"]]
EXTRAS = [Requirement(text) for extra in PROJECT["optional-dependencies"].values() for text in extra]


def pins(name: str) -> dict[str, str]:
    """Package → its only version, of those that this Python takes."""
    lines = (line for line in (ROOT / name).read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    found = [requirement for requirement in map(Requirement, lines) if _applies(requirement)]
    return {canonicalize_name(r.name): str(r.specifier).removeprefix("==") for r in found}


def _applies(requirement: Requirement, extra: str = "") -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


LOCK = pins("requirements.lock")


@pytest.mark.parametrize("needed", [*NEEDED, *EXTRAS], ids=str)
def test_the_lock_is_within_the_bounds(needed: Requirement) -> None:
    if needed.name != PROJECT["name"] and _applies(needed):
        assert needed.specifier.contains(LOCK[canonicalize_name(needed.name)])


def test_the_lock_has_all_that_is_installed_with_what_it_pins() -> None:
    pending = [(canonicalize_name(r.name), extra) for r in (*NEEDED, *EXTRAS) for extra in ("", *r.extras)]
    seen: set[tuple[str, str]] = set()
    while pending:
        name, extra = pending.pop()
        if (name, extra) in seen or name == PROJECT["name"]:
            continue
        seen.add((name, extra))
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        if found.version == LOCK.get(name):
            further = [r for r in map(Requirement, found.requires or ()) if _applies(r, extra)]
            pending += [(canonicalize_name(r.name), e) for r in further for e in ("", *r.extras)]
    assert {name for name, _ in seen} - LOCK.keys() == set()
    assert seen and LOCK


def test_the_lowest_versions_are_the_bounds() -> None:
    bounds = {canonicalize_name(r.name): re.search(r">=([\d.]+)", str(r.specifier)) for r in NEEDED if _applies(r)}
    lowest = pins("requirements.lowest")
    assert {name: bound[1] for name, bound in bounds.items() if bound and name in lowest} == lowest
    assert bounds.keys() - lowest.keys() <= {"numpy"}
