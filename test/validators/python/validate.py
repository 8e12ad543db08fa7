"""Checks every record of the contract with jsonschema."""

import json
import os
from pathlib import Path

from jsonschema import Draft202012Validator

contract = Path(os.environ["CONTRACT"])
validators = {
    file.stem: Draft202012Validator(json.loads(file.read_text())) for file in (contract / "events").glob("*.json")
}
for number, line in enumerate((contract / "records.ndjson").read_text(encoding="utf-8").split("\n")[:-1], start=1):
    record = json.loads(line)
    if record["type"] is not None:
        valid = validators[record["type"]].is_valid(json.loads(record["value"]))
        print(number, "accepts" if valid else "refuses")
