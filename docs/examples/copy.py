"""A copy of an organization over plain HTTP, proven whole: nothing but Python's own library is needed."""

import json
import os
from collections import defaultdict
from decimal import Decimal
from urllib.parse import urlencode
from urllib.request import Request, urlopen

API, KEY = os.environ["API"], os.environ["KEY"]


def get(path, **query):
    url = f"{API}{path}?{urlencode(query)}"
    with urlopen(Request(url, headers={"Authorization": f"Bearer {KEY}"})) as answer:
        # An amount is a text, and never becomes a float.
        return json.load(answer)


def walk(path, **query):
    while True:
        page = get(path, limit=200, **query)
        yield from page["data"]
        if not page["has_more"]:
            return
        query["starting_after"] = page["next_cursor"]


totals = get("/totals")["data"]
moment = totals["last_change_id"]
copy = {name: list(walk(f"/{name}", as_of=moment)) for name in ("reps", "periods", "payouts", "payroll_files")}

owed, paid = defaultdict(Decimal), defaultdict(Decimal)
for payout in copy["payouts"]:
    owed[payout["period_id"], payout["currency"]] += Decimal(payout["net_amount"])
for record in copy["payroll_files"]:
    paid[record["period_id"], record["currency"]] += Decimal(record["amount"])

for row in totals["totals"]:
    place = row["period_id"], row["currency"]
    assert owed[place] == Decimal(row["owed_amount"]), place
    assert paid[place] == Decimal(row["paid_amount"]), place

print(f"as of {moment}: " + ", ".join(f"{len(records)} {name}" for name, records in copy.items()))
print(f"the copy adds up to the totals of {len(totals['totals'])} periods and currencies")

latest = list(walk("/changes", starting_after=moment))
print(f"{len(latest)} changes since")
