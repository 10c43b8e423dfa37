"""The best of many configurations of a kernel: ``ptxdsl.autotune``."""
