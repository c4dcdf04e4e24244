"""The version of the package: that of the kiln it holds."""

__version__ = "0.1.0"
