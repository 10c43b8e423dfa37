"""Where the tests of this folder run their kernels: on a card, and in the simulator. Both take NumPy arrays."""

import os
import sys
import time

import numpy as np
from device_rows import SPECIAL

from ptxdsl.api.program import device_arch
from ptxdsl.cuda.driver import current_driver

HANG_SECONDS = float(os.environ.get("PTXDSL_HANG_SECONDS", "30"))  # tools that slow kernels down want more
# what no right kernel would write: outputs hold it before every launch
POISON = {1: 0xA5, 2: 0xDEAD, 4: 0xDEADBEEF, 8: 0xDEADBEEFDEADBEEF}
GUARD = 256  # elements after an output that must keep the poison


class Output:
    """A poisoned array of a place with a guard behind it."""

    def __init__(self, place, size, dtype):
        self.place, self.dtype, self.size = place, np.dtype(dtype), size
        raw = np.full(size + GUARD, POISON[self.dtype.itemsize], f"u{self.dtype.itemsize}")
        self._all = place.array(raw.view(self.dtype if self.dtype.kind in "fiub" else raw.dtype))
        self.array = self._all[:size]

    def before(self):
        return self.place.host(self.array)

    def read(self):
        """The values after the launch; checks the guard."""
        raw = self.place.host(self._all)
        guard = raw[self.size :].view(f"u{self.dtype.itemsize}")
        assert (guard == POISON[self.dtype.itemsize]).all(), "written behind the end of an output"
        return raw[: self.size].view(self.dtype)


class Card:
    name = "card"

    def __init__(self, torch):
        self.torch = torch

    def arch(self, targets):
        """The card's own target."""
        return device_arch(current_driver().context(None)[1])

    def array(self, values):
        return self.torch.from_numpy(np.ascontiguousarray(values)).cuda()

    def host(self, array):
        return array.cpu().numpy()

    def typed(self, array, kind):
        """An array of raw bits as the type that NumPy does not have."""
        return array.view(getattr(self.torch, SPECIAL[kind][1])) if kind in SPECIAL else array

    def launch(self, kernel, grid, block, *arguments, smem=None, arch=None, config=None):
        """Runs to the end; a hang ends the process with exit code 3, since nothing else can be done with the card."""
        kernel[grid, block](*arguments, smem=smem)
        done = self.torch.cuda.Event()
        done.record()
        deadline = time.monotonic() + HANG_SECONDS
        while not done.query():
            if time.monotonic() > deadline:
                config.pluginmanager.getplugin("capturemanager").suspend_global_capture(in_=True)
                print(f"\n{kernel!r} hangs", file=sys.stderr, flush=True)
                os._exit(3)
            time.sleep(0)
        self.torch.cuda.synchronize()


class Simulated:
    name = "sim"

    def arch(self, targets):
        """The first of a sample's targets that has all features."""
        return next((target for target in targets if target.endswith("a")), targets[0])

    def array(self, values):
        return np.array(values)

    def host(self, array):
        return array.copy()

    def typed(self, array, kind):
        return array.view(np.bool_) if kind == "Bool" else array

    def launch(self, kernel, grid, block, *arguments, smem=None, arch=None, config=None):
        report = kernel.simulate(*arguments, grid=grid, block=block, smem=smem, arch=arch or "sm_90a")
        assert report.finished, report.render()
