"""The timeline's page in a browser: its script runs and draws a ring that fills and drains."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ptxdsl.cli import main

ROOT = Path(__file__).parents[2]
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OPTIONS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--window-size=1400,500",
    "--virtual-time-budget=3000",
]  # fmt: skip


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "ring.html"
    command = (
        f"run {ROOT}/samples/07_bulk_copy_ring.pdsl --target sim --arg src=randint:u8:60000 --arg res=zeros:u8:60000 "
        f"--arg n=60000 -D RUN=30 --timeline {path}"
    )
    assert main(command.split()) == 0
    return path


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on PATH")
def test_the_page_draws(page, tmp_path):
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    shot = tmp_path / "shot.png"
    done = subprocess.run(
        [BROWSER, *OPTIONS, profile, f"--screenshot={shot}", page.as_uri()], capture_output=True, text=True, timeout=90
    )
    assert shot.exists(), done.stderr
    found = subprocess.run(
        [BROWSER, *OPTIONS, profile, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=90
    )
    legend = re.search(r'id="legend">(.*?)</div>', found.stdout, re.DOTALL)[1]
    words = re.findall(r"</i>([^<]+)</span>", legend)
    assert {"runs", "waits", "asynchronous work", "filling", "in use"} <= set(words)
    assert "15 lanes" in found.stdout


def test_the_page_stands_alone(page):
    text = page.read_text()
    assert not re.search(r"(?:src|href)\s*=|https?:|@import|fetch\(", text)
