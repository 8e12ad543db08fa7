"""Connections that end an attempt at its deadline, whatever the server does.

The timeouts of httpx count from one byte to the next: a server that sends a byte now and then never reaches them. Here
each wait for bytes takes what is left until the deadline of the attempt. The system's look-up of a name has no timeout, and
a connection to a host takes its timeout for each address: both have a part of what is left, too.
"""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

import httpcore
import httpx

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)
Made = TypeVar("Made")


class OfProcess(Generic[Made]):
    """Holds what was made in this process, and makes it anew in a fork.

    A connection that two processes use can bring one of them the answer to a question of the other. And a thread that
    the fork does not have can hold a lock for ever. So a fork uses nothing of its parent, and does not even close it.
    """

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self._made = (os.getpid(), make())

    def get(self) -> Made:
        process, made = self._made
        if process != os.getpid():
            made = self._make()
            self._made = (os.getpid(), made)
        return made


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """Ends all reads and writes of this context at this moment of `time.monotonic()`."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


class DeadlineTransport(httpx.BaseTransport):
    """Sends requests over kept connections, as the transport of httpx does."""

    def __init__(self) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(),
            max_connections=100,
            max_keepalive_connections=20,
            keepalive_expiry=5.0,
            network_backend=_Backend(),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        left = _left(None, httpcore.PoolTimeout)
        asked = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions={**request.extensions, "timeout": dict.fromkeys(("connect", "read", "write", "pool"), left)},
        )
        with _errors_of_httpx():
            answer = self._pool.handle_request(asked)
        return httpx.Response(
            answer.status, headers=answer.headers, stream=_Body(answer.stream), extensions=answer.extensions
        )

    def close(self) -> None:
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        with _errors_of_httpx():
            yield from self._stream

    def close(self) -> None:
        self._stream.close()


class _Backend(httpcore.NetworkBackend):
    def __init__(self) -> None:
        self._backend = httpcore.SyncBackend()
        self._resolver = _Resolver()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        addresses = self._resolver.resolve(host, port, _left(timeout, httpcore.ConnectTimeout))
        options = list(socket_options or ())
        until = None if timeout is None else time.monotonic() + timeout
        for at, address in enumerate(addresses):
            left = _left(None if until is None else until - time.monotonic(), httpcore.ConnectTimeout)
            # A part for each address that is left: one that does not answer leaves time for the next one.
            part = None if left is None else max(0.001, left / (len(addresses) - at))
            try:
                return _Stream(self._backend.connect_tcp(address, port, part, local_address, options))
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if at == len(addresses) - 1:
                    raise
        raise httpcore.ConnectError(f"{host} has no address")

    def sleep(self, seconds: float) -> None:
        self._backend.sleep(seconds)


class _Resolver:
    """Looks names up in threads, one for each name at a time: a look-up that never ends holds one thread, and no exit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[tuple[str, int], Future[list[str]]] = {}

    def resolve(self, host: str, port: int, timeout: float | None) -> list[str]:
        """Returns the addresses of a host. Raises the errors of httpcore."""
        key = (host, port)
        with self._lock:
            found = self._under_way.get(key)
            if found is None:
                found = self._under_way[key] = Future()
                threading.Thread(target=self._look_up, args=(key, found), daemon=True).start()
        try:
            return found.result(timeout)
        except TimeoutError:
            raise httpcore.ConnectTimeout(f"the name {host} is not resolved in time") from None
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(str(error)) from error

    def _look_up(self, key: tuple[str, int], found: "Future[list[str]]") -> None:
        host, port = key
        try:
            entries = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
            answer = list(dict.fromkeys(_address_of(entry[4]) for entry in entries))
        except BaseException as error:
            self._forget(key)
            found.set_exception(error)
        else:
            self._forget(key)
            found.set_result(answer)

    def _forget(self, key: tuple[str, int]) -> None:
        with self._lock:
            self._under_way.pop(key, None)


def _address_of(address: Any) -> str:
    """Returns the text of an address. A link-local one of IPv6 is one only with its interface."""
    scope = address[3] if len(address) == 4 else 0
    return f"{address[0]}%{scope}" if scope else address[0]


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(timeout, httpcore.WriteTimeout))

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = _left(timeout, httpcore.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, left))

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(timeout: float | None, error: type[Exception]) -> float | None:
    """Returns the seconds until the deadline, at most the timeout. Raises the error if none are left."""
    deadline = _deadline.get()
    if deadline is None:
        return timeout
    left = deadline - time.monotonic()
    if left <= 0:
        raise error("the time of the attempt is up")
    return left if timeout is None else min(left, timeout)


@contextmanager
def _errors_of_httpx() -> Iterator[None]:
    """Raises the error of httpx that has the name of an error of httpcore."""
    try:
        yield
    except Exception as error:
        known = getattr(httpx, type(error).__name__, None) if type(error).__module__.startswith("httpcore") else None
        if known is None:
            raise
        raise known(str(error)) from error
