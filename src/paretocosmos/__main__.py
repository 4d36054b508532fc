"""`python -m paretocosmos`."""

import sys
from pathlib import Path

if __name__ == "__main__":
    if sys.path[0] in ("", str(Path.cwd())):
        del sys.path[
            0
        ]  # `python -m` puts the current folder there, where it hides what is installed

    from paretocosmos.cli import main

    main()
