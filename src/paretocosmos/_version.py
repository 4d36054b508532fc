"""The version, read by the build and by what records where a result comes from."""

__all__ = ["__version__"]

__version__ = "0.3.0"
