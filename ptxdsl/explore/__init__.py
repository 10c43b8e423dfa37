"""Other interleavings of a simulated run (``explore.py``), and runs that show what the checker has found."""
