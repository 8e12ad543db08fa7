"""The changes that a copy was served, for a digest over all of them.

The part of a record that the copy holds is computed from this record, whatever was served. Of a record that the copy
no longer holds, the SHA-256 is kept.
"""

import json
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any

from .checkpoint import FORM
from .client import Change

KINDS = {"rep": "reps", "period": "periods", "payout": "payouts", "payroll": "payroll_files"}

#: The fields of each kind, in order, as docs/evidence.md of the service lists them: no text about a person.
FIELDS = {
    "reps": ["id", "status", "started_on", "departed_on"],
    "periods": ["id", "kind", "timezone", "starts_at", "ends_at"],
    "payouts": [
        *["id", "rep_id", "period_id", "net_amount", "earned_amount", "currency", "supersedes_id"],
        *["calculated_at", "recorded_at"],
    ],
    "payroll_files": [
        *["id", "rep_id", "period_id", "payout_id", "reverses_id", "amount", "currency", "destination.type"],
        "recorded_at",
    ],
}
LINE_FIELDS = ["id", "category", "amount", "deal_id"]


class CopyDiffersError(Exception):
    """A copy differs from the API."""


class ServedChanges:
    """Keeps for each change, by its sequence: its id and `published_at`, with a space between, if the copy holds its
    record; else the SHA-256 of its text. `held` returns a record that the copy holds, as values of JSON."""

    def __init__(self, held: Callable[[str, str], dict[str, Any] | None], changes: list[str] | None = None) -> None:
        self._held = held
        self.changes = list(changes or [])
        self._index_of = {
            _record_id(served): index for index, served in enumerate(self.changes) if not _is_digest(served)
        }

    def held_count(self) -> int:
        """Returns how many of them have a record that the copy should hold."""
        return len(self._index_of)

    def add(self, change: Change) -> None:
        """Call it before the copy applies the change. Raises RuntimeError unless it is the next one."""
        require_next(change, len(self.changes))
        index = self._index_of.pop(_replaced_by(change), None)
        if index is not None:
            self.changes[index] = self._hash_of(index).hex()
        self._index_of[change.record.id] = len(self.changes)
        self.changes.append(f"{change.id} {change.published_at}")

    def digests(self, sequences: set[int]) -> dict[int, str]:
        """Returns the digests after these sequences. Raises CopyDiffersError if the copy lacks a record."""
        digest = sha256(f"{FORM}\n".encode()).digest()
        found = {0: digest.hex()}
        for index in range(max(sequences)):
            digest = sha256(digest + self._hash_of(index)).digest()
            if index + 1 in sequences:
                found[index + 1] = digest.hex()
        return found

    def _hash_of(self, index: int) -> bytes:
        served = self.changes[index]
        if _is_digest(served):
            return bytes.fromhex(served)
        change_id, published_at = served.split(" ")
        kind = KINDS[change_id.partition("_")[0]]
        record = self._held(kind, _record_id(served))
        if record is None:
            raise CopyDiffersError(f"the copy has no {_record_id(served)}, which change {change_id} has made")
        return hash_of_change(kind, change_id, index + 1, published_at, record)


def read_served(changes: Iterable[Change], last: str) -> list[str] | None:
    """Reads changes from the first one up to `last`; None if it is not among them.

    Keeps none of their records: a copy holds those that are current. Raises RuntimeError if a change is left out.
    """
    served: list[str] = []
    # Of each current record, the index of its change and the digest that stays if it is replaced.
    current: dict[str, tuple[int, bytes]] = {}
    for change in changes:
        require_next(change, len(served))
        before = current.pop(_replaced_by(change), None)
        if before is not None:
            served[before[0]] = before[1].hex()
        record = change.record.to_dict()
        digest = hash_of_change(change.kind, change.id, change.sequence, change.published_at, record)
        current[change.record.id] = (len(served), digest)
        served.append(f"{change.id} {change.published_at}")
        if change.id == last:
            return served
    return None


def require_next(change: Change, count: int) -> None:
    if change.sequence != count + 1:
        raise RuntimeError(
            f"expected the change with sequence {count + 1}, got {change.sequence}: read the copy anew"
        )


def _replaced_by(change: Change) -> str:
    """Returns the id of the record that a copy no longer holds after the change; empty if there is none."""
    replaced = change.supersedes_id if change.kind == "payouts" else change.record.id
    return replaced if isinstance(replaced, str) else ""


def hash_of_change(kind: str, change_id: str, sequence: int, published_at: str, record: dict[str, Any]) -> bytes:
    """Returns the SHA-256 of the text of a change: a list in JSON, without spaces."""
    values = [kind, change_id, sequence, published_at, *[_value_at(record, field) for field in FIELDS[kind]]]
    if kind == "payouts":
        values.append([[line.get(field) for field in LINE_FIELDS] for line in record["line_items"]])
    return sha256(json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode()).digest()


def _value_at(record: dict[str, Any], field: str) -> Any:
    return record["destination"]["type"] if field == "destination.type" else record.get(field)


def _is_digest(served: str) -> bool:
    return "_" not in served


def _record_id(served: str) -> str:
    return served.partition(" ")[0].partition(".")[0]
