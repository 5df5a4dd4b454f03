"""``python -m kemu`` is the command ``kemu``."""

import sys

from kemu.doors.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
