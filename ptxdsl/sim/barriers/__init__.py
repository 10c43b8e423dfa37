"""Barriers of CTAs and clusters, mbarriers, and the instructions that only take time."""
