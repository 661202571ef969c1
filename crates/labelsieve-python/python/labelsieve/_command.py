"""The ``labelsieve`` command of the wheel."""

from __future__ import annotations

import signal
import sys

from . import _labelsieve


def main() -> int:
    """Runs the command line; the exit code is its result."""
    # Python handles Ctrl-C between its own instructions, of which there are none while the command runs.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _labelsieve.run_command(["labelsieve", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
