"""Reads every resource with the client of openapi-python-client."""

import os

from client import AuthenticatedClient
from client.api.changes import list_changes
from client.api.checkpoint import get_checkpoint
from client.api.payouts import list_payout_history, list_payouts
from client.api.payroll_files import list_payroll_records
from client.api.periods import list_periods
from client.api.reps import list_reps
from client.api.statements import get_statement
from client.api.totals import get_totals
from client.models import PayoutChange, PayrollChange, Refusal
from client.types import UNSET

api = AuthenticatedClient(base_url=os.environ["API_URL"], token=os.environ["API_KEY"])


def show(*fields):
    """Prints the fields of a record. A missing value is null, as in JSON."""
    print(*["null" if field is None else field for field in fields])


def checked(answer):
    if answer is None or isinstance(answer, Refusal):
        raise RuntimeError(f"refused: {answer}")
    return answer


def walk(read, *path):
    """Follows the cursor to the end of a list."""
    after = UNSET
    while True:
        page = checked(read.sync(*path, client=api, limit=2, starting_after=after))
        yield from page.data
        if not page.has_more:
            return
        after = page.next_cursor


for rep in walk(list_reps):
    show("reps", rep.id, rep.started_on)
for period in walk(list_periods):
    show("periods", period.id, period.starts_at)
for payout in walk(list_payouts):
    show("payouts", payout.id, payout.net_amount, payout.calculated_at, *[line.amount for line in payout.line_items])
    statement = checked(get_statement.sync(payout.id, client=api)).data
    show("statements", statement.id, len(statement.calculation_trace))
    for step in walk(list_payout_history, payout.id):
        show("history", step.id, step.difference.net_amount if step.difference else "none")
for record in walk(list_payroll_records):
    show("payroll_files", record.id, record.amount, record.destination.type_.value)
for change in walk(list_changes):
    record = change.record
    amount = (
        record.net_amount if isinstance(change, PayoutChange) else record.amount if isinstance(change, PayrollChange) else ""
    )
    show("changes", change.id, change.kind, change.published_at, record.id, amount)
for total in checked(get_totals.sync(client=api)).data.totals:
    show("totals", total.period_id, total.owed_amount, total.paid_count)
lines = checked(get_checkpoint.sync(client=api)).data.note.split("\n")
show("checkpoint", lines[3], lines[5])
