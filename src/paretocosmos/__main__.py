"""The command line: `paretocosmos`, or `python -m paretocosmos`."""

import sys

__all__ = ["main"]


def main() -> None:
    """Import what takes seconds, then run; Ctrl-C ends either without a traceback."""
    try:
        from paretocosmos.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the current folder, in front of all that is installed
    main()
