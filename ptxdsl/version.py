"""The version: one place for the package, the command and the PTX header."""

__version__ = "0.1.0"
