"""Seals the personal texts of an event: docs/publishing.md has the form."""

import base64
import hmac
import os
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM


def seal_texts(kind, data, key_id):
    """Seals name and email of a rep, and destination.label of a payment. Other events stay as they are."""
    key = read_key(key_id)

    def seal(holder, name, field):
        if holder[name]:
            holder[name] = seal_text(holder[name], key, key_id, data["org_id"], data["id"], field)

    if kind == "commission.rep.recorded.v1":
        seal(data, "name", "name")
        seal(data, "email", "email")
    if kind == "commission.payroll.recorded.v1":
        seal(data["destination"], "label", "destination.label")


def seal_text(text, key, key_id, organization, record, field):
    """The text opens only in this field of this record of this organization."""
    additional = "\n".join(["commission sealed v1", organization, record, field]).encode()
    plain = text.encode()
    # The nonce follows from the text, so that the same text, sealed again, is the same event.
    nonce = hmac.digest(key, b"nonce\n" + additional + b"\n" + plain, "sha256")[:12]
    sealed = nonce + AESGCM(key).encrypt(nonce, plain, additional)
    return f"sealed:v1:{key_id}:{base64.urlsafe_b64encode(sealed).decode().rstrip('=')}"


def read_key(key_id):
    """A file of SEAL_KEYS_DIR: 32 bytes, as they are or in base64."""
    content = Path(os.environ.get("SEAL_KEYS_DIR", ""), f"{key_id}.key").read_bytes()
    key = content if len(content) == 32 else base64.b64decode(content.strip().replace(b"-", b"+").replace(b"_", b"/"))
    if len(key) != 32:
        raise ValueError(f"the seal key {key_id} has not 32 bytes")
    return key
