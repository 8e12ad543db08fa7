"""Every list and every record of the API, for one API key."""

import random
import time
from collections.abc import Iterable, Iterator
from typing import Any

import httpx

from .connection import OfProcess
from .generated import AuthenticatedClient
from .generated.api.changes import list_changes
from .generated.api.checkpoint import get_checkpoint
from .generated.api.payouts import get_payout, list_payout_history, list_payouts
from .generated.api.payroll_files import get_payroll_record, list_payroll_records
from .generated.api.periods import get_period, list_periods
from .generated.api.reps import get_rep, list_reps
from .generated.api.statements import get_statement
from .generated.api.totals import get_totals
from .generated.models import (
    Payout,
    PayoutChange,
    PayoutStep,
    PayrollChange,
    PayrollRecord,
    Period,
    PeriodChange,
    Rep,
    RepChange,
    Statement,
    Totals,
)
from .generated.types import UNSET, Unset
from .refused import RefusedError
from .retry import RetryingTransport

#: Ids in one request.
IDS_MAX = 100

#: Longest wait for the next change, in seconds: proxies often end a silent connection after a minute.
WAIT_SECONDS_MAX = 30

#: An applied event, by its `kind`.
Change = RepChange | PeriodChange | PayoutChange | PayrollChange


class Client:
    """Reads an organization: as it is now, or as of a moment. Amounts, instants and dates are texts.

    All reads raise RefusedError, or httpx.TransportError if the connection fails, or answers are not whole or do not
    come, for longer than `timeout` seconds. One attempt takes 60 s at most. A fork has connections of its own.
    A filter that is None raises ValueError: without it, all records of the organization would come.
    """

    def __init__(self, base_url: str, key: str, *, timeout: float = 120.0) -> None:
        """`base_url` is the address of the API with its path: `https://example.com/api/v1`."""
        self._connected = OfProcess(
            lambda: AuthenticatedClient(
                base_url=base_url,
                token=key,
                httpx_args={"transport": RetryingTransport(timeout), "event_hooks": {"response": [_require_data]}},
            )
        )
        self._as_of: str | Unset = UNSET
        # At most half the time of a request, so that the answer comes in time. With 0, `follow` asks again after a pause.
        self._wait_seconds = min(WAIT_SECONDS_MAX, int(timeout / 2))

    def as_of(self, moment: str | Change) -> "Client":
        """Returns the same client as of a moment: just after a change, or an instant (RFC 3339) that is over."""
        client = object.__new__(Client)
        client._connected = self._connected
        client._wait_seconds = self._wait_seconds
        client._as_of = moment if isinstance(moment, str) else moment.id
        return client

    def reps(
        self, *, ids: Iterable[str] | Unset = UNSET, starting_after: str | None = None, limit: int = 200
    ) -> Iterator[Rep]:
        """All reps. With `ids` only these, in this order, without unknown ones."""
        return self._walk(list_reps, starting_after, limit, ids=ids)

    def periods(
        self, *, ids: Iterable[str] | Unset = UNSET, starting_after: str | None = None, limit: int = 200
    ) -> Iterator[Period]:
        """All periods. With `ids` only these, in this order, without unknown ones."""
        return self._walk(list_periods, starting_after, limit, ids=ids)

    def payouts(
        self,
        *,
        ids: Iterable[str] | Unset = UNSET,
        rep_id: str | Unset = UNSET,
        period_id: str | Unset = UNSET,
        deal_id: str | Unset = UNSET,
        starting_after: str | None = None,
        limit: int = 200,
    ) -> Iterator[Payout]:
        """Current payouts only: with `deal_id` those with a line of this deal.

        A replacement without the deal does not come: ask `totals`, or follow by rep and period.
        If a payout is replaced during a walk of now, the walk can return it and its replacement: for sums, walk
        `as_of` one moment. With `ids` these, in this order, also replaced ones.
        """
        filters = _given(rep_id=rep_id, period_id=period_id, deal_id=deal_id)
        return self._walk(list_payouts, starting_after, limit, ids=ids, **filters)

    def payroll_records(
        self,
        *,
        ids: Iterable[str] | Unset = UNSET,
        rep_id: str | Unset = UNSET,
        period_id: str | Unset = UNSET,
        starting_after: str | None = None,
        limit: int = 200,
    ) -> Iterator[PayrollRecord]:
        return self._walk(list_payroll_records, starting_after, limit, ids=ids, rep_id=rep_id, period_id=period_id)

    def changes(
        self,
        *,
        rep_id: str | Unset = UNSET,
        period_id: str | Unset = UNSET,
        deal_id: str | Unset = UNSET,
        starting_after: str | None = None,
        after: int | Unset = UNSET,
        limit: int = 200,
    ) -> Iterator[Change]:
        """One entry for each applied event, in order. With `deal_id` only payouts that have a line of this deal.

        A replacement without the deal does not come: ask `totals`, or follow by rep and period.
        `after` in place of `starting_after` begins after the change with this `sequence`; 0 is the beginning.
        """
        filters = _given(rep_id=rep_id, period_id=period_id, deal_id=deal_id)
        return self._walk(list_changes, starting_after, limit, after=after, **filters)

    def changes_since(
        self,
        instant: str,
        *,
        rep_id: str | Unset = UNSET,
        period_id: str | Unset = UNSET,
        deal_id: str | Unset = UNSET,
        limit: int = 200,
    ) -> Iterator[Change]:
        """The changes that were published after an instant (RFC 3339) that is over."""
        given = _given(rep_id=rep_id, period_id=period_id, deal_id=deal_id)
        last = self.as_of(instant).totals().last_change_id
        return self.changes(**given, starting_after=last, limit=limit)

    def follow(
        self,
        *,
        rep_id: str | Unset = UNSET,
        period_id: str | Unset = UNSET,
        deal_id: str | Unset = UNSET,
        starting_after: str | None = None,
        limit: int = 200,
    ) -> Iterator[Change]:
        """As `changes`, for ever: waits for the next change."""
        given = _given(rep_id=rep_id, period_id=period_id, deal_id=deal_id)
        return self._following(starting_after, limit, {"wait": self._wait_seconds, **given})

    def _following(self, starting_after: str | None, limit: int, given: dict[str, Any]) -> Iterator[Change]:
        while True:
            asked = time.monotonic()
            page = self._page(list_changes, starting_after, limit, (), given)
            yield from page.data
            # A process that stops, or a proxy, answers at once.
            if not page.data and time.monotonic() - asked < 1:
                time.sleep(random.uniform(1, 3))
            starting_after = page.next_cursor or starting_after

    def history(self, payout_id: str, *, starting_after: str | None = None, limit: int = 200) -> Iterator[PayoutStep]:
        """All payouts of the same rep and period, oldest first, each with its difference to the one before."""
        return self._walk(list_payout_history, starting_after, limit, path=(payout_id,))

    def rep(self, id: str) -> Rep:
        return self._one(get_rep, id)

    def period(self, id: str) -> Period:
        return self._one(get_period, id)

    def payout(self, id: str) -> Payout:
        return self._one(get_payout, id)

    def statement(self, id: str) -> Statement:
        """The payout with every step of its calculation."""
        return self._one(get_statement, id)

    def payroll_record(self, id: str) -> PayrollRecord:
        return self._one(get_payroll_record, id)

    def totals(
        self, *, rep_id: str | Unset = UNSET, period_id: str | Unset = UNSET, deal_id: str | Unset = UNSET
    ) -> Totals:
        """Amounts owed, paid and open, by period and currency: of all reps and periods, or of one.

        With a deal: no such rows, and in `line_totals` the sums of its lines in current payouts, by category too.
        """
        return self._one(get_totals, **_given(rep_id=rep_id, period_id=period_id, deal_id=deal_id))

    def checkpoint(self) -> str:
        """A signed digest of all changes, of now: `prove` of a copy reads it, and `read_checkpoint`."""
        return get_checkpoint.sync_detailed(client=self._connected.get()).parsed.data.note

    def _walk(
        self,
        operation: Any,
        starting_after: str | None,
        limit: int,
        path: tuple[str, ...] = (),
        ids: Iterable[str] | Unset = UNSET,
        **filters: str | int | Unset,
    ) -> Iterator[Any]:
        given = _given(ids=ids, **filters)
        if "ids" not in given:
            return self._pages(operation, starting_after, limit, path, given)
        # With another parameter than `as_of`, the API refuses the request.
        if starting_after is not None or len(given) > 1:
            raise ValueError("ids are read without starting_after and filters")
        return self._several(operation, given["ids"])

    def _pages(
        self, operation: Any, starting_after: str | None, limit: int, path: tuple[str, ...], given: dict[str, Any]
    ) -> Iterator[Any]:
        while True:
            page = self._page(operation, starting_after, limit, path, given)
            # Further pages begin after the cursor of the page before.
            given.pop("after", None)
            yield from page.data
            if not page.has_more:
                return
            # Otherwise the walk would start again, for ever.
            if page.next_cursor in ("", starting_after):
                raise RuntimeError("has_more without a new next_cursor")
            starting_after = page.next_cursor

    def _several(self, operation: Any, ids: Iterable[str]) -> Iterator[Any]:
        left = list(dict.fromkeys(ids))
        while left:
            asked = left[:IDS_MAX]
            # The generated code would send its default of `limit`.
            page = self._answer(operation, ids=",".join(asked), limit=UNSET)
            yield from page.data
            # Large records: the answer ends after the last one that it had room for.
            answered = asked.index(page.data[-1].id) + 1 if page.has_more else len(asked)
            left = left[answered:]

    def _page(
        self, operation: Any, starting_after: str | None, limit: int, path: tuple[str, ...], given: dict[str, Any]
    ) -> Any:
        cursor = UNSET if starting_after is None else starting_after
        return self._answer(operation, *path, starting_after=cursor, limit=limit, **given)

    def _one(self, operation: Any, *path: str, **given: Any) -> Any:
        return self._answer(operation, *path, **given).data

    def _answer(self, operation: Any, *path: str, **given: Any) -> Any:
        return operation.sync_detailed(*path, client=self._connected.get(), as_of=self._as_of, **given).parsed


def _given(**parameters: str | int | Iterable[str] | Unset) -> dict[str, Any]:
    """Raises ValueError for None, such as the deal of a line without one."""
    for name, value in parameters.items():
        if value is None:
            raise ValueError(f"{name} is None, which would select everything: leave it out for that, or give UNSET")
    return {name: value for name, value in parameters.items() if not isinstance(value, Unset)}


def _require_data(response: httpx.Response) -> None:
    """Raises RefusedError for an answer without data. The generated code knows only answers of the API."""
    try:
        body = response.json()
        if response.status_code == 200 and isinstance(body["data"], dict | list):
            return
        code, message = body["error"]["code"], body["error"]["message"]
    except (KeyError, TypeError, ValueError):
        # A proxy before the API may answer, too.
        code, message = "unknown", "not an answer of the API"
    raise RefusedError(response.status_code, code, message, response.headers.get("X-Request-Id"))
