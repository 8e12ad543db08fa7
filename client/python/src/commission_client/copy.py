"""A copy of an organization that proves itself: its records add up to the totals of the API as of the same change.

    copy = read_copy(client)
    copy.update()  # applies the changes since; `follow` continues for ever
    copy.prove()   # raises if an amount or a count differs
    copy.prove(public_key)  # the same for every change that it was served, against what the service has signed
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, Literal, overload

from .checkpoint import Checkpoint, read_checkpoint
from .client import Change, Client
from .generated.models import Payout, PayoutChange, PayrollChange, PayrollRecord, Period, PeriodChange, Rep
from .refused import RefusedError
from .served_changes import CopyDiffersError, ServedChanges, read_served, require_next

#: Adds exactly: an amount has at most 40 digits before the point and 40 after it.
EXACT = Context(prec=200)
KINDS = {"reps": Rep, "periods": Period, "payouts": Payout, "payroll_records": PayrollRecord}


APPLIED_MEANWHILE = "another update or follow has applied changes to this copy"


@dataclass(frozen=True)
class Proof:
    """A copy that was proved with a key: it is complete and unaltered up to the sequence of the checkpoint.

    Keep `note`: it proves later what the service has said. `continues` is the last checkpoint of the line before, if
    the copy was proved under other rules, or was read anew since. `totals_compared` is False if the copy has later changes:
    then the digest alone covers all amounts.
    """

    checkpoint: Checkpoint
    note: str
    totals_compared: bool
    continues: Checkpoint | None = None


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
        self._running = 0
        # The last change that `update` or `follow` handed over.
        self._handed_over = (state or {}).get("handed_over", self.last_change_id)
        # States of older versions have none.
        self._last_sequence = (state or {}).get("last_sequence", 0 if self.last_change_id is None else None)
        served = state.get("changes") if state else None
        self._served = None if served is None else ServedChanges(self._held, served)
        proved, continues = ((state or {}).get(name) for name in ("proved", "continues"))
        self._proved = None if proved is None else Checkpoint(**proved)
        self._continues = None if continues is None else Checkpoint(**continues)

    def state(self) -> dict[str, Any]:
        """Returns the copy as values of JSON. Store them, and continue with `Copy(client, state)`."""
        records = {kind: [record.to_dict() for record in getattr(self, kind).values()] for kind in KINDS}
        state = {"last_change_id": self.last_change_id, **records}
        if self._last_sequence is not None:
            state["last_sequence"] = self._last_sequence
        if self._handed_over != self.last_change_id:
            state["handed_over"] = self._handed_over
        if self._served is not None:
            state["changes"] = list(self._served.changes)
        if self._proved is not None:
            state["proved"] = self._proved.to_dict()
        if self._continues is not None:
            state["continues"] = self._continues.to_dict()
        return state

    def update(self) -> list[Change]:
        """Applies the changes since: all of them, or none if a read fails. Returns them.

        The first ones are those that `prove` has applied, and those before the copy was read anew.
        """
        before = self.last_change_id
        applied = list(self._left())
        changes = list(self._client.changes(starting_after=before))
        self._require_last(before)
        for change in changes:
            self._apply(change)
        self._handed_over = self.last_change_id
        return applied + changes

    def follow(self) -> Iterator[Change]:
        """Applies every change as it comes, for ever, and yields it: first those with which `update` begins."""
        before = self.last_change_id
        self._running += 1
        try:
            for change in self._left():
                self._handed_over = change.id
                yield change
            for change in self._client.follow(starting_after=before):
                self._require_last(before)
                self._apply(change)
                before = self._handed_over = change.id
                yield change
        finally:
            self._running -= 1

    def totals(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Returns amounts and counts, owed, paid and open, by period and currency, as the copy adds them up."""
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
        for total in sums.values():
            total["open"] = EXACT.subtract(total["owed"], total["paid"])
        return dict(sums)

    @overload
    def prove(self) -> None: ...
    @overload
    def prove(self, public_key: str | Sequence[str]) -> Proof: ...
    def prove(self, public_key: str | Sequence[str] | None = None) -> Proof | None:
        """Raises CopyDiffersError unless the totals are those of the API as of the last change.

        With a key, `NAME+ID+KEY` as the operator of the service gives it, or several while the service changes its key,
        proves the copy with a checkpoint of the service: the changes that the copy was served, its records and its
        totals are those that were signed, it still has what it proved last, and the service has not signed fewer
        changes since. It applies the changes up to the checkpoint first, and may be behind it only while no `follow`
        runs. The next `update` or `follow` begins with these changes. The first call reads all changes once. Raises
        CheckpointInvalidError, too.
        """
        if public_key is not None:
            return self._prove_served(public_key)
        self._prove_totals()
        return None

    def _prove_totals(self) -> None:
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
                "open": Decimal(total.open_amount),
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
            raise RuntimeError(APPLIED_MEANWHILE)

    def _prove_served(self, public_key: str | Sequence[str]) -> Proof:
        note = self._client.checkpoint()
        checkpoint = read_checkpoint(note, public_key)
        before, known = self._proved, self._proved or self._continues
        if known is not None and known.organization != checkpoint.organization:
            raise CopyDiffersError(f"the checkpoint is of {checkpoint.organization}, the copy of {known.organization}")
        # Under the same rules, a copy that is read anew has the same changes.
        earlier = self._continues if self._continues and self._continues.line == checkpoint.line else None
        for one in (before, earlier):
            if one is not None and one.has_gone_back(checkpoint):
                said = f"the service has signed {one.sequence} changes at {one.time}, and {checkpoint.sequence} at {checkpoint.time}"
                why = "its history went back" if one.line == checkpoint.line else _other_rules(one, checkpoint)
                raise CopyDiffersError(f"{said}: {why}")
        if self._served is None:
            self._served = self._read_served()
        served = self._served
        if checkpoint.sequence > len(served.changes):
            self._catch_up(served, checkpoint.sequence)
        is_at_checkpoint = checkpoint.sequence == len(served.changes)
        count, expected = sum(len(getattr(self, kind)) for kind in KINDS), served.held_count()
        if count != expected:
            raise CopyDiffersError(f"the copy has {count} records, after its changes it must have {expected}")
        if earlier is not None and earlier.sequence > len(served.changes):
            raise CopyDiffersError(
                f"the service has signed {earlier.sequence} changes, and serves {len(served.changes)}"
            )
        digests = served.digests({checkpoint.sequence, *[one.sequence for one in (before, earlier) if one]})
        if before is not None and digests[before.sequence] != before.digest:
            raise CopyDiffersError(
                f"up to change {before.sequence}, the copy is not as it was proved: it was altered since"
            )
        if digests[checkpoint.sequence] != checkpoint.digest:
            differs = f"at sequence {checkpoint.sequence}, the copy differs from what the service has signed"
            if before is not None and before.line != checkpoint.line:
                differs += f": {_other_rules(before, checkpoint)}"
            raise CopyDiffersError(differs)
        if earlier is not None and digests[earlier.sequence] != earlier.digest:
            raise CopyDiffersError(f"up to change {earlier.sequence}, the service has signed another history before")
        if is_at_checkpoint:
            self._compare_signed(checkpoint)
        if before is not None and before.line != checkpoint.line:
            self._continues = before
        if before is None or checkpoint.sequence >= before.sequence:
            self._proved = checkpoint
        return Proof(checkpoint, note, is_at_checkpoint, self._continues)

    def _compare_signed(self, checkpoint: Checkpoint) -> None:
        names = ("owed", "paid", "open")
        ours: dict[str, dict[str, Decimal]] = defaultdict(lambda: dict.fromkeys(names, Decimal(0)))
        for (_, currency), total in self.totals().items():
            for name in names:
                ours[currency][name] = EXACT.add(ours[currency][name], total[name])
        theirs = {
            currency: {name: Decimal(amount) for name, amount in sums.items()}
            for currency, sums in checkpoint.totals.items()
        }
        for currency in sorted(theirs.keys() | ours.keys()):
            if theirs.get(currency) != ours.get(currency):
                raise CopyDiffersError(
                    f"at sequence {checkpoint.sequence}, {currency}: signed is {theirs.get(currency)}, "
                    f"in the copy {ours.get(currency)}"
                )

    def _left(self) -> Iterator[Change]:
        """Yields the changes that the copy includes, and that were not handed over.

        Raises CopyDiffersError at their end if the last change of the copy does not come.
        """
        to = self.last_change_id
        if self._handed_over != to:
            for change in self._client.changes(starting_after=self._handed_over):
                yield change
                if change.id == to:
                    return
            # The changes after `to` are read next: they would come twice.
            raise CopyDiffersError(f"the API has not served change {to}, the last one of the copy: read the copy anew")

    def _read_served(self) -> ServedChanges:
        """Reads all changes up to the last one of the copy."""
        to = self.last_change_id
        served = [] if to is None else read_served(self._client.changes(), to)
        if served is None:
            raise CopyDiffersError(f"the API has no change {to}, which the copy has")
        self._require_last(to)
        return ServedChanges(self._held, served)

    def _catch_up(self, served: ServedChanges, sequence: int) -> None:
        missing = sequence - len(served.changes)
        if self._running > 0:
            raise RuntimeError(f"the copy lacks {missing} changes of the checkpoint, and a follow runs: prove it later")
        before = self.last_change_id
        for change in self._client.changes(starting_after=before):
            self._require_last(before)
            self._apply(change)
            before = change.id
            if change.sequence >= sequence:
                return
        raise CopyDiffersError(f"the checkpoint has {sequence} changes, the API has served {len(served.changes)}")

    def _held(self, kind: str, record_id: str) -> dict[str, Any] | None:
        records = self.payroll_records if kind == "payroll_files" else getattr(self, kind)
        record = records.get(record_id)
        return None if record is None else record.to_dict()

    def _apply(self, change: Change) -> None:
        if self._served is not None:
            self._served.add(change)
        elif self._last_sequence is not None:
            require_next(change, self._last_sequence)
        # A record of its own: those who get the change may alter theirs.
        record = type(change.record).from_dict(change.record.to_dict())
        if isinstance(change, PayoutChange):
            if change.supersedes_id is not None:
                self.payouts.pop(change.supersedes_id, None)
            self.payouts[record.id] = record
        elif isinstance(change, PayrollChange):
            self.payroll_records[record.id] = record
        elif isinstance(change, PeriodChange):
            self.periods[record.id] = record
        else:
            self.reps[record.id] = record
        self.last_change_id, self._last_sequence = change.id, change.sequence


def _other_rules(before: Checkpoint, now: Checkpoint) -> str:
    return f"its rules changed from {before.line} to {now.line}, so read the copy anew"


def read_copy(
    client: Client, before: dict[str, Any] | None = None, *, hand_over: Literal["all", "none"] | None = None
) -> Copy:
    """Reads an organization as of its last change, and proves the copy.

    `before` is the state of an earlier copy, if it is read anew: the new one continues the checkpoint that was proved,
    and its `update` or `follow` begins after the last change that the earlier one handed over. With `hand_over` "all"
    they begin with the first change instead, and with "none" they leave out all changes until now. Raises
    CopyDiffersError if the API no longer has the last change that was handed over, and `hand_over` is not given.
    """
    copy = Copy(client)
    proved = before and (before.get("proved") or before.get("continues"))
    copy._continues = Checkpoint(**proved) if proved else None
    totals = client.totals()
    copy._handed_over = _handed_over_before(client, before, totals.last_change_id, hand_over)
    if totals.last_change_id is not None:
        then = client.as_of(totals.last_change_id)
        for kind in KINDS:
            getattr(copy, kind).update({record.id: record for record in getattr(then, kind)()})
        copy.last_change_id, copy._last_sequence = totals.last_change_id, totals.last_sequence
        copy.prove()
    return copy


def _handed_over_before(
    client: Client, before: dict[str, Any] | None, last: str | None, hand_over: str | None
) -> str | None:
    """Returns the change after which a copy that is read anew hands over; None for the beginning."""
    if hand_over == "all":
        return None
    if hand_over == "none" or before is None:
        return last
    handed_over: str | None = before.get("handed_over", before["last_change_id"])
    if handed_over is not None and handed_over != last:
        try:
            next(client.changes(starting_after=handed_over, limit=1), None)
        except RefusedError as refused:
            if refused.code != "invalid_cursor":
                raise
            raise CopyDiffersError(
                f"the API has no change {handed_over}, the last one handed over: "
                "choose hand_over 'all' (from the beginning) or 'none' (leave out all until now)"
            ) from refused
    return handed_over
