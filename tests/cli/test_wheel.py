"""A wheel, unpacked far from any checkout, compiles, and brings its parse tables and parsed library along."""

from __future__ import annotations

import os
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
    environment = {**os.environ, "PYTHONPATH": str(installed), "PTXDSL_CACHE_DIR": str(folder / "cache")}
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


def test_another_version_of_lark_makes_the_tables_anew(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "k.pdsl").write_text(KERNEL)
    code = (
        "import lark; lark.__version__ = '0'; from ptxdsl.cli import main; main(['compile', 'k.pdsl', '--emit', 'ast'])"
    )
    assert "first" in python(installed, tmp_path, "-c", code)
    assert [p.name.split("-")[0] for p in (tmp_path / "cache").iterdir()] == ["tables"]
