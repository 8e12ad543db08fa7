"""Owed and paid by period and currency with pandas, from the CSV of an export or a whole copy: equal to /totals."""

import json
import sys
from decimal import Decimal, localcontext
from pathlib import Path

import pandas

folder = Path(sys.argv[1])
parts = sorted(folder.glob("part-*")) or [folder]
manifests = [json.loads((part / "manifest.json").read_text()) for part in parts]
digests = [manifest["digest"] for manifest in manifests]
last = manifests[0] if parts == [folder] else json.loads((folder / "last-part.json").read_text())
if last["digest"] not in digests or [m.get("after", {}).get("digest") for m in manifests] != [None, *digests[:-1]]:
    sys.exit("expected an export, or a copy with all its parts: this is one part, or a part is lost")
# As texts: pandas would make binary numbers of amounts, and nothing of a name such as NA.
read = lambda file: pandas.concat(pandas.read_csv(part / file, dtype=str, keep_default_na=False) for part in parts)
payouts, payments = read("payouts.csv"), read("payroll_files.csv")
# Each part has the payouts since the one before, and later ones replace them.
payouts = payouts[~payouts["id"].isin(payouts["supersedes_id"])]
payouts["owed"] = payouts["net_amount"].map(Decimal).astype(object)
payments["paid"] = payments["amount"].map(Decimal).astype(object)
# Python's default rounds a sum to 28 digits.
with localcontext(prec=200):
    owed = payouts.groupby(["period_id", "currency"])["owed"].agg(owed="sum", payouts="count")
    paid = payments.groupby(["period_id", "currency"])["paid"].agg(paid="sum", records="count")
both = owed.join(paid, how="outer").fillna(0).astype({"payouts": int, "records": int})
both[["owed", "paid"]] = both[["owed", "paid"]].map(lambda amount: format(Decimal(amount), "f"))
both.to_csv(sys.stdout)
