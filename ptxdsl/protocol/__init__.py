"""What a kernel does to barriers and to the memory that they guard, and nothing else (``model.py``)."""
