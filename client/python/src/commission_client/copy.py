"""A copy of an organization that proves itself: its records add up to the totals of the API as of the same change.

    copy = read_copy(client)
    copy.update()  # applies the changes since; `follow` continues for ever
    copy.prove()   # raises if an amount or a count differs
"""

from collections import defaultdict
from collections.abc import Iterator
from decimal import Context, Decimal
from typing import Any

from .client import Change, Client
from .generated.models import Payout, PayoutChange, PayrollChange, PayrollRecord, Period, PeriodChange, Rep

#: Adds exactly: an amount has at most 40 digits before the point and 40 after it.
EXACT = Context(prec=200)
KINDS = {"reps": Rep, "periods": Period, "payouts": Payout, "payroll_records": PayrollRecord}


class CopyDiffersError(Exception):
    """A copy differs from the API."""


class Copy:
    """Records by id. `payouts` has current payouts only. `last_change_id` is the last change that the copy includes."""

    reps: dict[str, Rep]
    periods: dict[str, Period]
    payouts: dict[str, Payout]
    payroll_records: dict[str, PayrollRecord]
    last_change_id: str | None

    def __init__(self, client: Client, state: dict[str, Any] | None = None) -> None:
        """Continues a copy from the state that `state()` returned; without one it is empty."""
        self._client = client
        self.last_change_id = state["last_change_id"] if state else None
        for kind, model in KINDS.items():
            records = [model.from_dict(fields) for fields in state[kind]] if state else []
            setattr(self, kind, {record.id: record for record in records})

    def state(self) -> dict[str, Any]:
        """Returns the copy as values of JSON. Store them, and continue with `Copy(client, state)`."""
        records = {kind: [record.to_dict() for record in getattr(self, kind).values()] for kind in KINDS}
        return {"last_change_id": self.last_change_id, **records}

    def update(self) -> list[Change]:
        """Applies the changes since: all of them, or none if a read fails. Returns them."""
        before = self.last_change_id
        changes = list(self._client.changes(starting_after=before))
        self._require_last(before)
        for change in changes:
            self._apply(change)
        return changes

    def follow(self) -> Iterator[Change]:
        """Applies every change as it comes, for ever, and yields it."""
        before = self.last_change_id
        for change in self._client.follow(starting_after=before):
            self._require_last(before)
            self._apply(change)
            before = change.id
            yield change

    def totals(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Returns amounts and counts, owed and paid, by period and currency, as the copy adds them up."""
        sums: dict[tuple[str, str], dict[str, Any]] = defaultdict(
            lambda: {"owed": Decimal(0), "owed_count": 0, "paid": Decimal(0), "paid_count": 0}
        )
        for payout in self.payouts.values():
            total = sums[payout.period_id, payout.currency]
            total["owed"] = EXACT.add(total["owed"], Decimal(payout.net_amount))
            total["owed_count"] += 1
        for record in self.payroll_records.values():
            total = sums[record.period_id, record.currency]
            total["paid"] = EXACT.add(total["paid"], Decimal(record.amount))
            total["paid_count"] += 1
        return dict(sums)

    def prove(self) -> None:
        """Raises CopyDiffersError unless the totals are those of the API as of the last change."""
        # Nothing was ever published: there is no moment to compare at.
        if self.last_change_id is None:
            return
        # Changes may be applied while the totals are read.
        at, ours = self.last_change_id, self.totals()
        theirs = {
            (total.period_id, total.currency): {
                "owed": Decimal(total.owed_amount),
                "owed_count": total.owed_count,
                "paid": Decimal(total.paid_amount),
                "paid_count": total.paid_count,
            }
            for total in self._client.as_of(at).totals().totals
        }
        for group in sorted(theirs.keys() | ours.keys()):
            if theirs.get(group) != ours.get(group):
                raise CopyDiffersError(
                    f"as of {at}, {group}: {theirs.get(group)}, in the copy {ours.get(group)}"
                )

    def _require_last(self, change_id: str | None) -> None:
        # A change that is applied after later ones would make replaced records current again.
        if self.last_change_id != change_id:
            raise RuntimeError("another update or follow has applied changes to this copy")

    def _apply(self, change: Change) -> None:
        if isinstance(change, PayoutChange):
            if change.supersedes_id is not None:
                self.payouts.pop(change.supersedes_id, None)
            self.payouts[change.record.id] = change.record
        elif isinstance(change, PayrollChange):
            self.payroll_records[change.record.id] = change.record
        elif isinstance(change, PeriodChange):
            self.periods[change.record.id] = change.record
        else:
            self.reps[change.record.id] = change.record
        self.last_change_id = change.id


def read_copy(client: Client) -> Copy:
    """Reads an organization as of its last change, and proves the copy."""
    copy = Copy(client)
    last_change_id = client.totals().last_change_id
    if last_change_id is None:
        return copy
    then = client.as_of(last_change_id)
    for kind in KINDS:
        getattr(copy, kind).update({record.id: record for record in getattr(then, kind)()})
    copy.last_change_id = last_change_id
    copy.prove()
    return copy
