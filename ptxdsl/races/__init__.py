"""Races of a simulated run, by happens-before; ``trace.py`` is its entry point."""
