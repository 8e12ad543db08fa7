"""The client of the commission API."""

from .client import Change, Client
from .copy import Copy, CopyDiffersError, read_copy
from .refused import RefusedError

__all__ = ["Change", "Client", "Copy", "CopyDiffersError", "RefusedError", "read_copy"]
