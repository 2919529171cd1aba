"""``python -m sparsecc``: the command line."""

import sys

from sparsecc.cli import main

sys.exit(main())
