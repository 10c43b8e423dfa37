"""CTAs, warps and agents under a schedule: memory, turns, what waits, deadlocks, faults."""
