"""Checkpoints: what the service has signed about all changes of an organization.

Nothing of a checkpoint is used before its signature is checked. Needs `pip install commission-client[prove]`.
"""

from base64 import b64decode
from binascii import Error as BinasciiError
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

#: The first line of a checkpoint. Another form has another number.
FORM = "commission checkpoint 1"

#: How much later a checkpoint with fewer changes may seem than one with more. A process of the API counts the changes up
#: to 18 s before it signs them (a request for a checkpoint takes no longer), and the clocks of two processes may
#: differ by 5 s. The rest is for a process that stood still.
ORDER = timedelta(minutes=1)

#: The type of a signature of Ed25519 in signed notes (C2SP).
ED25519 = 1


class CheckpointInvalidError(Exception):
    """A checkpoint is not signed by the key, or cannot be read."""


@dataclass(frozen=True)
class Checkpoint:
    """What is signed. Amounts and the time are texts.

    `line`: the version of the rules; another version begins another line of checkpoints. `sequence`: how many changes it
    covers. `totals`: owed, paid and open of all periods, by currency.
    """

    organization: str
    line: str
    sequence: int
    change_id: str | None
    digest: str
    totals: dict[str, dict[str, str]]
    time: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def has_gone_back(self, to: "Checkpoint") -> bool:
        """Whether the service has signed fewer changes later.

        An older checkpoint has fewer, too: a cache may have kept it.
        """
        return to.sequence < self.sequence and _instant(to.time) - _instant(self.time) > ORDER


def read_checkpoint(note: str, public_keys: str | Sequence[str]) -> Checkpoint:
    """Reads a signed note.

    `public_keys` is `NAME+ID+KEY`, as the operator of the service gives it: one, or several of which one has signed.
    Raises CheckpointInvalidError.
    """
    # Imported only here: other reads need no cryptography.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    keys = [_key_in(key) for key in ([public_keys] if isinstance(public_keys, str) else public_keys)]
    text, separator, signed = note.rpartition("\n\n")
    if not separator:
        raise CheckpointInvalidError("the checkpoint is no signed note")
    text += "\n"
    found = []
    for name, key_id, key in keys:
        start = f"\u2014 {name} "
        decoded = [_decoded(line[len(start) :]) for line in signed.split("\n") if line.startswith(start)]
        found += [(key, signature[4:]) for signature in decoded if signature[:4] == key_id]
    names = " or ".join(f"{name} ({key_id.hex()})" for name, key_id, _ in keys)
    if not found:
        raise CheckpointInvalidError(f"the checkpoint has no signature of the key {names}")
    for key, signature in found:
        try:
            Ed25519PublicKey.from_public_bytes(key).verify(signature, text.encode())
        except InvalidSignature:
            continue
        return _content_of(text)
    raise CheckpointInvalidError(f"the checkpoint was changed: the signature of {names} is of another text")


def _key_in(text: str) -> tuple[str, bytes, bytes]:
    name, _, rest = text.strip().partition("+")
    key_id, _, encoded = rest.partition("+")
    key = _decoded(encoded)
    try:
        known_id = bytes.fromhex(key_id)
    except ValueError:
        known_id = b""
    if len(known_id) != 4 or len(key) != 33 or key[0] != ED25519:
        raise CheckpointInvalidError("the public key has another form: expected NAME+ID+KEY, with a key of Ed25519")
    return name, known_id, key[1:]


def _decoded(encoded: str) -> bytes:
    try:
        return b64decode(encoded, validate=True)
    except (BinasciiError, ValueError):
        return b""


def _instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None:
        raise CheckpointInvalidError("the time of the checkpoint is no instant")
    return instant


def _content_of(text: str) -> Checkpoint:
    # A further kind of line is of a later version, and changes nothing of the others.
    form, *lines = text.rstrip("\n").split("\n")
    if form != FORM:
        raise CheckpointInvalidError(f'the checkpoint has another form: expected "{FORM}", got "{form}"')

    def value(name: str) -> str:
        values = [line[len(name) + 1 :] for line in lines if line.startswith(f"{name} ")]
        if len(values) != 1:
            raise CheckpointInvalidError(f"the checkpoint has no {name}, or several")
        return values[0]

    totals = {}
    for line in lines:
        if line.startswith("total "):
            _, currency, _, owed, _, paid, _, left = line.split(" ")
            totals[currency] = {"owed": owed, "paid": paid, "open": left}
    change, time = value("change"), value("time")
    _instant(time)
    return Checkpoint(
        organization=value("organization"),
        line=value("line"),
        sequence=int(value("sequence")),
        change_id=None if change == "none" else change,
        digest=value("digest"),
        totals=totals,
        time=time,
    )
