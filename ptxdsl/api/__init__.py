"""The Python API: modules of kernels (``module.py``), kernels (``kernel.py``), how they are compiled and kept."""
