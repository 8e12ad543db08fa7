"""A Singer tap of the changes of an organization: all at the first run, and with the state of a run only later ones."""

import os
from urllib.parse import parse_qsl

from singer_sdk import RESTStream, Tap
from singer_sdk.pagination import HeaderLinkPaginator

TEXTS = dict.fromkeys(("id", "kind", "published_at", "supersedes_id", "reverses_id"), {"type": ["string", "null"]})
RECORD = {"type": "object", "additionalProperties": True}


class Changes(RESTStream):
    name, path, records_jsonpath, url_base = "changes", "/changes", "$.data[*]", os.environ["API"]
    primary_keys, replication_key, is_sorted = ("sequence",), "sequence", True
    schema = {"type": "object", "properties": {"sequence": {"type": "integer"}, **TEXTS, "record": RECORD}}
    http_headers = {"Authorization": f"Bearer {os.environ['KEY']}"}
    get_new_paginator = lambda self: HeaderLinkPaginator()

    def get_url_params(self, context, page):
        first = {"after": self.get_starting_replication_key_value(context) or 0, "limit": 200}
        return dict(parse_qsl(page.query)) if page else first


class CommissionTap(Tap):
    name, config_jsonschema = "tap-commission", {"properties": {}}
    discover_streams = lambda self: [Changes(self)]


CommissionTap.cli()
