"""The client of the commission API."""

from .checkpoint import Checkpoint, CheckpointInvalidError, read_checkpoint
from .client import Change, Client
from .copy import Copy, Proof, read_copy
from .generated.types import UNSET
from .refused import RefusedError
from .served_changes import CopyDiffersError

__all__ = [
    "UNSET",
    "Change",
    "Checkpoint",
    "CheckpointInvalidError",
    "Client",
    "Copy",
    "CopyDiffersError",
    "Proof",
    "RefusedError",
    "read_checkpoint",
    "read_copy",
]
