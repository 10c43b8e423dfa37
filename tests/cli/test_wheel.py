"""A wheel, unpacked far from any checkout, compiles, and brings its parse tables and parsed library along."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNEL = "@kernel\ndef first(a: Pointer[Int32, MutAnyOrigin]):\n    a[unsafe_offset=0] = 1\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def python(installed: Path, folder: Path, *arguments: str) -> str:
    own = {"PYTHONPATH": str(installed), "PTXDSL_CACHE_DIR": str(folder / "cache"), "PTXDSL_NO_CACHE": "1"}
    environment = {**os.environ, **own}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_an_installed_wheel_compiles_and_makes_nothing_again(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "k.pdsl").write_text(KERNEL)
    assert python(installed, tmp_path, "-c", "import ptxdsl; print(ptxdsl.__file__)").startswith(str(installed))
    assert ".visible .entry first(" in python(installed, tmp_path, "-m", "ptxdsl", "compile", "k.pdsl")
    assert not (tmp_path / "cache").exists()


def test_an_installed_wheel_has_the_samples_that_it_launches(installed: Path) -> None:
    texts = [path.read_text(encoding="utf-8") for path in (installed / "ptxdsl").rglob("*.py")]
    launched = {name for text in texts for name in re.findall(r'"(\d\d_\w+\.pdsl)"', text)}
    assert launched == {path.name for path in (installed / "ptxdsl" / "samples").iterdir()} != set()


def test_what_a_wheel_does_not_bring_is_made_once(installed: Path, tmp_path: Path) -> None:
    bare = tmp_path / "site"
    shutil.copytree(installed, bare, ignore=shutil.ignore_patterns("_generated"))
    (tmp_path / "k.pdsl").write_text(KERNEL)
    first = python(bare, tmp_path, "-m", "ptxdsl", "compile", "k.pdsl")
    made = {p: p.stat().st_ino for p in (tmp_path / "cache").iterdir()}
    assert {"tables", "stdlib-prelude"} <= {p.name.rpartition("-cpython")[0] for p in made}
    assert python(bare, tmp_path, "-m", "ptxdsl", "compile", "k.pdsl") == first
    assert {p: p.stat().st_ino for p in (tmp_path / "cache").iterdir()} == made
