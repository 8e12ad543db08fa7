"""A copy of an organization over plain HTTP, proven whole: nothing but Python's own library is needed."""

import json
import os
import sys
from collections import defaultdict
from decimal import Context, Decimal
from urllib.parse import urlencode
from urllib.request import Request, urlopen

API, KEY = os.environ["API"], os.environ["KEY"]
# Python's default rounds a sum to 28 digits. An amount has at most 40 digits before the point and 40 after it.
EXACT = Context(prec=200)


def get(path, **query):
    request = Request(f"{API}{path}?{urlencode(query)}")
    # After a redirect, urlopen sends other headers to the other host, too.
    request.add_unredirected_header("Authorization", f"Bearer {KEY}")
    with urlopen(request, timeout=60) as answer:
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
if moment is None:
    sys.exit("the organization has no change yet")
copy = {name: list(walk(f"/{name}", as_of=moment)) for name in ("reps", "periods", "payouts", "payroll_files")}

nothing = {"owed_amount": Decimal(0), "owed_count": 0, "paid_amount": Decimal(0), "paid_count": 0}
sums = defaultdict(nothing.copy)
for records, field, kind in ((copy["payouts"], "net_amount", "owed"), (copy["payroll_files"], "amount", "paid")):
    for record in records:
        total = sums[record["period_id"], record["currency"]]
        total[f"{kind}_amount"] = EXACT.add(total[f"{kind}_amount"], Decimal(record[field]))
        total[f"{kind}_count"] += 1

# The counts find lost records that add up to zero.
expected = {
    (row["period_id"], row["currency"]): {name: Decimal(row[name]) for name in nothing} for row in totals["totals"]
}
for place in expected.keys() | sums.keys():
    if expected.get(place) != sums.get(place):
        sys.exit(f"the copy differs in {place}: expected {expected.get(place)}, got {sums.get(place)}")

print(f"as of {moment}: " + ", ".join(f"{len(records)} {name}" for name, records in copy.items()))
print(f"the copy adds up to the totals of {len(totals['totals'])} periods and currencies")

latest = list(walk("/changes", starting_after=moment))
print(f"{len(latest)} changes since")
