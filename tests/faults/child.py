"""The process that is killed: the real command, with a deadly point in it if the environment names one.

``python -m tests.faults.child serve …`` is ``organism serve …``.
"""

from __future__ import annotations

import os

from organism.cli.app import main
from tests.faults import points

if __name__ == "__main__":
    points.install(os.environ.get(points.KILL_AT, ""))
    main()
