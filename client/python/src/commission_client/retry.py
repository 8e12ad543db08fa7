"""Sends a request again while the API refuses it only for now: 429 and 503, and 502 and 504 of a proxy before the API.

It waits for the seconds in `Retry-After`. Without them, after a connection that fails, or after an answer that ends too
early, it tries again with growing pauses: all requests only read. Each attempt, its whole answer included, and all
attempts together have a time limit, also if a server sends nothing, or a byte now and then.
"""

import json
import random
import time

import httpx

from .connection import DeadlineTransport, until

#: Longest attempt, its whole answer included: a connection can be gone without an error.
ATTEMPT_MAX = 60.0
PAUSE_MIN = 0.5
PAUSE_MAX = 10.0
RETRIED_STATUSES = (429, 502, 503, 504)


class RetryingTransport(httpx.BaseTransport):
    """Retries for up to `timeout` seconds. Then it returns the last refusal, or raises the last error."""

    def __init__(self, timeout: float, transport: httpx.BaseTransport | None = None) -> None:
        self._timeout = timeout
        self._transport = transport or DeadlineTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        end = time.monotonic() + self._timeout
        pause = PAUSE_MIN
        answer = None
        while True:
            response = error = None
            try:
                with until(min(end, time.monotonic() + ATTEMPT_MAX)):
                    response = self._transport.handle_request(request)
                    # A connection can end within an answer, and a proxy can hide that. The error belongs to this attempt.
                    response.read()
                _parse(response)
            except httpx.TransportError as caught:
                error = caught
            except httpx.DecodingError as caught:
                # The compressed bytes are damaged. For callers this is an error of the connection, as others are.
                error = httpx.RemoteProtocolError(f"the answer cannot be decompressed: {caught}")
            answer = answer if error else response
            is_final = error is None and response.status_code not in RETRIED_STATUSES
            retry_after = None if error else _retry_after_of(response)
            seconds = pause * random.uniform(0.5, 1) if retry_after is None else retry_after
            if is_final or time.monotonic() + seconds > end:
                if answer is None:
                    raise error
                return answer
            time.sleep(seconds)
            pause = min(2 * pause, PAUSE_MAX)

    def close(self) -> None:
        self._transport.close()


def _parse(response: httpx.Response) -> None:
    """Parses a 200 once for all its readers. Raises RemoteProtocolError if it is no whole JSON."""
    if response.status_code != 200:
        return
    try:
        body = json.loads(response.content)
    except ValueError:
        kind = response.headers.get("Content-Type", "without a content type")
        raise httpx.RemoteProtocolError(f"the answer is no whole JSON ({kind})") from None
    response.json = lambda: body


def _retry_after_of(response: httpx.Response) -> float | None:
    """Returns the seconds of `Retry-After`; None if it has none."""
    seconds = response.headers.get("Retry-After", "")
    return max(PAUSE_MIN, float(seconds)) if seconds.isascii() and seconds.isdigit() else None
