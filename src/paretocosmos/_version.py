"""The version, read by the build and by what records where a result comes from."""

__version__ = "0.3.0"
