"""`python -m paretocosmos`."""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the current folder, in front of all that is installed

    from paretocosmos.cli import main

    main()
