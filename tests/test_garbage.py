"""Python's collector while something is compiled, and after."""

import gc
import threading

import pytest

from ptxdsl.garbage import rare_collections


@pytest.fixture(autouse=True)
def thresholds():
    found = gc.get_threshold()
    yield found
    gc.set_threshold(*found)


def test_what_was_is_again_when_all_have_left(thresholds):
    with rare_collections:
        rare = gc.get_threshold()
        assert rare[0] > thresholds[0] and rare[1:] == thresholds[1:]
        entered, leave = threading.Event(), threading.Event()

        def other():
            with rare_collections:
                entered.set()
                leave.wait(5)

        thread = threading.Thread(target=other)
        thread.start()
        assert entered.wait(5)
    assert gc.get_threshold() == rare
    leave.set()
    thread.join()
    assert gc.get_threshold() == thresholds


def test_a_failure_restores_it(thresholds):
    with pytest.raises(ValueError), rare_collections:
        raise ValueError
    assert gc.get_threshold() == thresholds


def test_whoever_has_turned_it_off_is_left_alone():
    gc.set_threshold(0, 10, 10)
    with rare_collections:
        assert gc.get_threshold()[0] == 0
    assert gc.get_threshold() == (0, 10, 10)
