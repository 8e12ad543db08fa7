"""Sends a request again while the API refuses it only for now: 429 and 503, after the seconds in `Retry-After`.

After a connection that fails, or an answer that ends too early, it tries again with growing pauses: all requests only
read.
"""

import json
import random
import time

import httpx

PAUSE_MIN = 0.5
PAUSE_MAX = 10.0


class RetryingTransport(httpx.BaseTransport):
    """Retries for up to `timeout` seconds. Then it returns the last refusal, or raises the last error."""

    def __init__(self, timeout: float, transport: httpx.BaseTransport | None = None) -> None:
        self._timeout = timeout
        self._transport = transport or httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        end = time.monotonic() + self._timeout
        pause = PAUSE_MIN
        answer = None
        while True:
            response = error = None
            try:
                response = self._transport.handle_request(request)
                # A connection can end within an answer, and a proxy can hide that. The error belongs to this attempt.
                response.read()
                _require_json(response)
            except httpx.TransportError as caught:
                error = caught
            seconds = pause * random.uniform(0.5, 1) if error else _wait_of(response)
            answer = answer if error else response
            if seconds is None or time.monotonic() + seconds > end:
                if answer is None:
                    raise error
                return answer
            time.sleep(seconds)
            pause = min(2 * pause, PAUSE_MAX)

    def close(self) -> None:
        self._transport.close()


def _require_json(response: httpx.Response) -> None:
    """Raises RemoteProtocolError for a 200 that is no whole JSON."""
    if response.status_code != 200:
        return
    try:
        json.loads(response.content)
    except ValueError:
        kind = response.headers.get("Content-Type", "without a content type")
        raise httpx.RemoteProtocolError(f"the answer is no whole JSON ({kind})") from None


def _wait_of(response: httpx.Response) -> float | None:
    """Returns the seconds before the next attempt; None if the answer is final."""
    if response.status_code not in (429, 503):
        return None
    seconds = response.headers.get("Retry-After", "1")
    return max(PAUSE_MIN, float(seconds) if seconds.isascii() and seconds.isdigit() else 1.0)
