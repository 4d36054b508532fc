"""The command line: `paretocosmos`, or `python -m paretocosmos`."""

import gc
import os
import sys

from paretocosmos.io.progress import close_display, open_terminal_display, status


def main() -> None:
    """Show that something moves, unless the answer comes at once, then run.

    Ctrl-C ends any of it without a traceback.
    """
    try:
        at_once = not sys.argv[1:] or {"--help", "--version", "--json"} & {*sys.argv}
        if not at_once and os.environ.get("RANK", "0") == "0":
            open_terminal_display()
        with status("starting"):
            from paretocosmos.cli import main as run
    except KeyboardInterrupt:
        close_display()
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    try:
        run()
    finally:
        close_display()
        gc.freeze()  # else the interpreter looks through all modules for seconds before it ends


if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the current folder, in front of all that is installed
    main()
