"""`python -m paretocosmos`."""

from paretocosmos.cli import main

if __name__ == "__main__":
    main()
