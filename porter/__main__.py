"""`python -m porter`: the same as the command `porter`."""

import sys

from porter.cli import main

if __name__ == "__main__":
    sys.exit(main())
