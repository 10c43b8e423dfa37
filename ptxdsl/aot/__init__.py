"""Ahead of time: files that launch a kernel without Python (``ptxdsl build``, ``ptxdsl.build``)."""
