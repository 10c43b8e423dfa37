"""What the command ``ptxdsl`` (``cli.py``) is made of, beside the stages themselves."""
