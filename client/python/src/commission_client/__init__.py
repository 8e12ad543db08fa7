"""The client of the commission API."""

from .client import Client
from .copy import Copy, CopyDiffersError, read_copy
from .refused import RefusedError

__all__ = ["Client", "Copy", "CopyDiffersError", "RefusedError", "read_copy"]
