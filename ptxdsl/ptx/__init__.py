"""PTX text, our own and foreign: read into modules, functions and instructions (``reader.read``)."""
