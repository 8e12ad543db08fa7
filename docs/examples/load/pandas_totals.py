"""Owed and paid amounts by period and currency with pandas, from the CSV tables of an export: equal to /totals."""

import sys
from decimal import Decimal, localcontext

import pandas


def totals(table, amount, **columns):
    # As texts: pandas would make binary numbers of amounts, and nothing of a name such as NA.
    rows = pandas.read_csv(f"{sys.argv[1]}/{table}.csv", dtype=str, keep_default_na=False)
    return rows[amount].map(Decimal).groupby([rows["period_id"], rows["currency"]]).agg(**columns)


# Python's default rounds a sum to 28 digits.
with localcontext(prec=200):
    owed = totals("payouts", "net_amount", owed="sum", payouts="count")
    paid = totals("payroll_files", "amount", paid="sum", records="count")
both = owed.join(paid, how="outer").fillna(0).astype({"payouts": int, "records": int})
both.to_csv(sys.stdout)
