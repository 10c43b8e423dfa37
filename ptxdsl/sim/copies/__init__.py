"""Asynchronous copies: bulk, tensor (TMA), cp.async, st.async; tensor maps; fences between proxies."""
