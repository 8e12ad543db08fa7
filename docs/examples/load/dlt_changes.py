"""Loads an organization into DuckDB with dlt: all changes at the first run, and only new ones at every later run."""

import os

import dlt
from dlt.sources.rest_api import rest_api_source

changes = {
    "name": "changes",
    "primary_key": "sequence",
    "endpoint": {
        "path": "changes",
        "params": {"limit": 200},
        "data_selector": "data",
        # dlt keeps the largest sequence, and begins after it.
        "incremental": {"cursor_path": "sequence", "start_param": "after", "initial_value": 0},
    },
    # dlt makes no column of a field that is always null.
    "columns": {"supersedes_id": {"data_type": "text"}},
}
client = {
    "base_url": os.environ["API"],
    "auth": {"type": "bearer", "token": os.environ["KEY"]},
    "paginator": "header_link",
}
source = rest_api_source({"client": client, "resources": [changes]})
# Texts stay texts: dlt would make times of instants, which can be finer than its microseconds.
source.schema.settings["detections"] = []
print(dlt.pipeline("commission", destination="duckdb", dataset_name="pay").run(source))
