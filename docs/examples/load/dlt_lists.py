"""Loads all lists of an organization into DuckDB with dlt, as of one moment, in place of those loaded before."""

import os

import dlt
from dlt.sources.helpers import requests
from dlt.sources.rest_api import rest_api_source

API, KEY = os.environ["API"], os.environ["KEY"]
answer = requests.get(f"{API}/totals", headers={"Authorization": f"Bearer {KEY}"})
# All pages as of this change: a walk without it can return a replaced payout and its replacement.
moment = answer.json()["data"]["last_change_id"]
every = {
    "primary_key": "id",
    "write_disposition": "replace",
    "endpoint": {"data_selector": "data", "params": {"limit": 200, "as_of": moment}},
}
client = {"base_url": API, "auth": {"type": "bearer", "token": KEY}, "paginator": "header_link"}
lists = ["reps", "periods", "payouts", "payroll_files"]
source = rest_api_source({"client": client, "resource_defaults": every, "resources": lists})
# Texts stay texts: dlt would make times of instants, which can be finer than its microseconds.
source.schema.settings["detections"] = []
print(dlt.pipeline("commission", destination="duckdb", dataset_name="pay").run(source))
