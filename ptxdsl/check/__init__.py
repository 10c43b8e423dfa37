"""The checker: proofs of a kernel's protocol (``proof.py``), and what is found told to the user (``report.py``)."""
