"""The simulator: runs PTX text on the CPU, deterministically. ``launch.simulate`` is its entry point.

The way of the data: ptx.reader -> program (blocks of one kernel, calls inlined) -> translate (host machine code
through LLVM, warp-wide) -> machine (CTAs, warps and asynchronous agents under a scheduler; instructions that wait or
communicate are executed in Python, one module a family) -> launch.Report.
"""
