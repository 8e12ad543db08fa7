"""Publishes the events of standard input with confluent-kafka, and prints the receipt of the last one."""

import json
import os
import sys
import uuid
from urllib.request import urlopen

from confluent_kafka import Producer

TOPIC, ADMIN = os.environ["TOPIC"], os.environ["ADMIN"]
producer = Producer(
    {
        "bootstrap.servers": os.environ["KAFKA_BROKERS"],
        "enable.idempotence": True,
        # The default of librdkafka chooses other partitions than Java's client.
        "partitioner": "murmur2_random",
    }
)
last = None


def delivered(error, message):
    global last
    if error:
        sys.exit(f"not published: {error}")
    last = f"{message.partition()}/{message.offset()}"


for line in sys.stdin:
    event = json.loads(line)
    headers = {"ce_specversion": "1.0", "ce_id": str(uuid.uuid4()), "ce_source": "/example", "ce_type": event["type"]}
    # The record key is the organization: all its events are in one partition, in order.
    key, value = event["data"]["org_id"], json.dumps(event["data"])
    producer.produce(TOPIC, key=key, value=value, headers=headers, on_delivery=delivered)
    producer.poll(0)
producer.flush()
print(urlopen(f"{ADMIN}/receipts/{TOPIC}/{last}?wait=30").read().decode())
