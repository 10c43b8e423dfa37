"""When the code of kernels leaves the device. The driver is the one in C, which counts, and frees what is unloaded."""

import gc

import numpy as np
import pytest

import ptxdsl
from ptxdsl.cuda.fast import OFTEN
from ptxdsl.cuda.launch import recent

TEXT = "@kernel\ndef fill[value: Int32 = 1](res: Pointer[Int32, MutAnyOrigin]):\n    res[] = value\n"


@pytest.fixture
def module(fake):
    return ptxdsl.loads(TEXT, "fill.pdsl")


@pytest.fixture
def array(fake):
    return ptxdsl.to_device(np.zeros(1, np.int32))


def test_code_leaves_at_once_where_nothing_goes_on_with_it(module, array, fake):
    for loads in (1, 2):
        for _ in range(OFTEN + 2):  # launches of every way: general, quick, in machine code
            module.fill[1, 1](array)
        assert (fake.loads, fake.unloads) == (loads, loads - 1)
        module.fill.unload()
        assert (fake.loads, fake.unloads) == (loads, loads)


@pytest.mark.parametrize("launches", [1, 2, OFTEN + 2])
def test_what_can_launch_it_keeps_it(module, array, fake, launches):
    launcher = module.fill[1, 1]
    for _ in range(launches):
        launcher(array)
    prepared = module.fill.prepare(1, 1, array)
    for _ in range(launches):
        prepared()
    module.unload()
    prepared()
    assert (fake.launches, fake.loads, fake.unloads) == (2 * launches + 1, 1, 0)
    del launcher, prepared
    other = ptxdsl.loads(TEXT, "other.pdsl").fill
    for _ in range(recent.maxlen):  # a fault of the device names so many launches
        other[1, 1](array)
    gc.collect()
    assert (fake.loads, fake.unloads) == (2, 1)


def test_a_launcher_of_before_launches(module, array, fake):
    launcher = module.fill[1, 1]
    launcher(array)
    module.unload()
    launcher(array)
    del launcher
    module.unload()
    assert (fake.launches, fake.unloads) == (2, fake.loads)


def test_a_module_unloads_specialised_kernels_too(module, array, fake):
    for value in range(3):
        module.fill.specialize(value=value)[1, 1](array)
    retained = fake.retained
    module.unload()
    assert (fake.loads, fake.unloads) == (3, 3)
    assert fake.retained == retained, "unloading keeps no hold of the device's context"


def test_reloading_again_and_again(tmp_path, array, fake):
    path = tmp_path / "fill.pdsl"
    path.write_text(TEXT)
    module = ptxdsl.load(path)
    for turn in range(5):
        module.fill[1, 1](array)
        path.write_text(TEXT.replace("= 1]", f"= {turn + 10}]"))
        module.unload()
        assert module.reload()
    assert (fake.loads, fake.unloads) == (5, 5)


def test_code_that_nobody_unloads_stays(module, array, fake):
    """A graph may have captured its launches."""
    module.fill[1, 1](array)
    del module
    assert (fake.loads, fake.unloads) == (1, 0)


def test_code_stays_where_the_device_cannot_be_waited_for(module, array, fake):
    module.fill[1, 1](array)
    fake.fails = 700
    module.unload()
    assert fake.unloads == 0
