"""``python -m ptxdsl``: the command."""

from ptxdsl.cli import command

command()
