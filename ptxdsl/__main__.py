"""``python -m ptxdsl``: the command."""

import sys

from ptxdsl.cli import main

sys.exit(main())
