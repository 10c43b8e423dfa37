"""Compiling through executors, and what goes to other processes: kernels, artifacts, errors."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import ptxdsl
from ptxdsl.processes import command_of
from ptxdsl.tuning.compiling import compile_one
from ptxdsl.tuning.local import LocalProcesses, WorkerEndedError

ROOT = Path(__file__).parents[2]
TEXT = """
@kernel(threads=32)
def add[k: Int](res: Pointer[Float32, MutAnyOrigin]):
    comptime assert k != 3, "three"
    res[unsafe_offset=thread_idx.x] += Float32(k)
"""


@pytest.fixture
def kernel(request):
    """Another one in each test, which no cache knows."""
    return ptxdsl.loads(TEXT, f"{request.node.name}-{os.getpid()}.pdsl").add


def tune(kernel, **more):
    return ptxdsl.autotune(kernel, {"k": [1, 2, 3]}, lambda _: (np.zeros(32, np.float32),), target="sim", **more)


def codes(tuned):
    return [trial.code for trial in tuned.trials]


@pytest.mark.parametrize("make", [
    lambda: None,
    lambda: ThreadPoolExecutor(2),
    lambda: ProcessPoolExecutor(1, multiprocessing.get_context("spawn")),
], ids=["local", "threads", "processes"])  # fmt: skip
def test_executors(kernel, make):
    executor = make()
    try:
        assert codes(tune(kernel, executor=executor)) == [None, None, "E0407"]
    finally:
        if executor is not None:
            executor.shutdown()


def test_a_dask_cluster_is_an_executor(kernel, ptxas):
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        executor = client.get_executor()
        assert codes(tune(kernel, executor=executor)) == [None, None, "E0407"]
        (made,) = executor.map(compile_one, [kernel.specialize(k=7)], ["sm_90a"])
        assert made.ptx == kernel.specialize(k=7).compile().ptx
        assert made.cubin() == kernel.specialize(k=7).compile().cubin()


class Failing(Executor):
    """Some calls are lost, as with machines that go away."""

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        if "k=1" in repr(args[0]):
            future.set_exception(ConnectionError("the machine is gone"))
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_what_an_executor_loses_is_a_row_that_is_tried_again(kernel, tmp_path):
    tuned = tune(kernel, executor=Failing(), results=tmp_path / "r")
    assert codes(tuned) == ["E0943", None, "E0407"]
    assert tuned.trials[0].message == ("the executor did not compile the kernel: ConnectionError: the machine is gone")
    assert codes(tune(kernel, executor=ThreadPoolExecutor(1), results=tmp_path / "r")) == [None, None, "E0407"]


def test_compiled_kernels_come_with_their_machine_code(kernel, ptxas, monkeypatch):
    """What came from elsewhere needs neither the compiler nor ptxas here."""
    with LocalProcesses(1) as local:
        made = local.submit(compile_one, kernel.specialize(k=5), "sm_90a").result()
    monkeypatch.setattr("ptxdsl.backend.cubin_cache.assembled", None)
    assert made.cubin().startswith(b"\x7fELF")
    kernel.specialize(k=5).adopt(made)
    assert kernel.specialize(k=5).compile() is made


def test_errors_of_calls_come_back():
    with LocalProcesses(1) as local:
        with pytest.raises(RuntimeError, match="ZeroDivisionError: "):
            local.submit(divmod, 1, 0).result()
        assert local.submit(divmod, 7, 2).result() == (3, 1)


def test_a_process_that_ends_takes_no_other_with_it():
    with LocalProcesses(1) as local:
        for call, words in (
            ((os._exit, 3), "ended with exit status 3"), ((signal.raise_signal, 9), "was ended by signal 9"),
        ):  # fmt: skip
            with pytest.raises(WorkerEndedError, match=words):
                local.submit(*call).result()
        assert local.submit(print, "not an answer").result() is None
        assert local.submit(os.getpid).result() != os.getpid()


def test_processes_end_with_the_executor():
    with LocalProcesses(1) as local:
        process = local.submit(os.getpid).result()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_what_stands_beside_the_package_hides_no_module_of_python(tmp_path):
    """As in site-packages, where ``pip install`` may put a module of any name."""
    (tmp_path / "ptxdsl").symlink_to(Path(ptxdsl.__file__).parent)
    (tmp_path / "queue.py").write_text("raise ImportError('not the one')\n")
    code = f"""
import os, sys
sys.path = [p for p in sys.path if p not in ("", {str(ROOT)!r})] + [{str(tmp_path)!r}]
from ptxdsl.tuning import local
with local.LocalProcesses(1) as processes:
    print(local.__file__, processes.submit(os.getpid).result() != os.getpid())
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout == f"{tmp_path}/ptxdsl/tuning/local.py True\n", done.stderr


@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_what_is_pickled(kernel, ptxas, protocol):
    """Kernels, modules and artifacts, with what was made of them, and errors with their diagnostics."""
    one = kernel.specialize(k=4)
    compiled = one.compile()
    cubin, resources = compiled.cubin(), compiled.resources
    again, module, bare = pickle.loads(pickle.dumps((one, one.module, compiled), protocol))
    assert again.module is module and again is module.add.specialize(k=4)
    assert (bare.ptx, bare.signatures, bare.options) == (compiled.ptx, compiled.signatures, compiled.options)
    assert list(map(str, bare.line_map)) == list(map(str, compiled.line_map))
    assert (bare.cubin(), bare.resources, bare.tir, bare.inputs_digest) == (
        cubin, resources, compiled.tir, compiled.inputs_digest,
    )  # fmt: skip
    for broken in (lambda: kernel.specialize(k=3).compile(), lambda: kernel[0, 1](), lambda: kernel.specialize(k=[])):
        with pytest.raises((ptxdsl.CompileError, ptxdsl.LaunchError)) as caught:
            broken()
        problem = pickle.loads(pickle.dumps(caught.value, protocol))
        assert type(problem) is type(caught.value) and str(problem) == str(caught.value)


def test_a_spawned_process_launches_what_it_is_given(kernel):
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(_simulated, kernel.specialize(k=6)).result() == 32 * [6.0]
        made = kernel.specialize(k=6).compile()
        assert pool.submit(_ptx, made).result() == made.ptx


def _simulated(kernel):
    res = np.zeros(32, np.float32)
    kernel[1, 32](res, target="sim")
    return res.tolist()


def _ptx(compiled):
    return compiled.ptx


def test_a_process_whose_caller_has_gone_ends_without_a_word():
    process = subprocess.Popen(
        command_of("ptxdsl.tuning.local"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    assert process.communicate(pickle.dumps((int, ("3",), {})), timeout=30)[1] == b""
    assert process.returncode == 1
