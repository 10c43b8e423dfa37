"""The fuzzer, for as long as the suite has time for; ``python tests/fuzz.py --count 20000`` is the long form."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    # a process of its own: its workers may die, and they are forked
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=600, check=False)


def test_programs_that_nobody_would_write() -> None:
    done = _run(
        str(FOLDER / "fuzz.py"), "--count", "100", "--seed", "suite", "--jobs", str(min(2, os.cpu_count() or 1))
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "100 programs" in done.stdout and "; 0 kinds of failure" in done.stdout


def test_functions_evaluated_three_ways() -> None:
    done = _run(str(FOLDER / "fuzzing" / "differential.py"), "suite", "60")
    assert done.returncode == 0 and done.stdout.endswith("all the same\n"), done.stdout + done.stderr
    assert "60 programs" in done.stdout


def test_a_case_is_a_function_of_seed_and_number() -> None:
    code = f"import sys; sys.path.insert(0, {str(FOLDER)!r}); import fuzz; m = fuzz.makers(fuzz.Corpus.read()); "
    code += "print([m('s', i) for i in range(20)])"
    first, second = _run("-c", code), _run("-c", code)
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
