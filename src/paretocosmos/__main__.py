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
    main()
