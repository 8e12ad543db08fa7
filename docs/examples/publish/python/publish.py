"""Publishes the events of standard input with confluent-kafka, and prints the receipts of all its records."""

import json
import os
import sys
import uuid
from http.client import HTTPException
from urllib.request import urlopen

from confluent_kafka import KafkaException, Producer
from seal import seal_texts

TOPIC = os.environ.get("TOPIC") or os.environ.get("KAFKA_EVENTS_TOPIC") or "commission.events"
ADMIN = os.environ.get("ADMIN", "http://127.0.0.1:9465")


def fields_of(pairs):
    # Otherwise only the last one of two values with the same key would be sent.
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


events = []
for number, line in enumerate(sys.stdin.buffer, 1):
    if not line.strip():
        continue
    try:
        event = json.loads(line, object_pairs_hook=fields_of)
        headers = {"ce_specversion": "1.0", "ce_source": "/example", "ce_type": event["type"].encode()}
        if isinstance(event.get("seal"), str):
            try:
                seal_texts(event["type"], event["data"], event["seal"])
            except (OSError, ValueError) as error:
                sys.exit(f"line {number} cannot be sealed with {event['seal']}: {error}: nothing was sent")
        # The record key is the organization: all its events are in one partition, in order.
        # No spaces and no \\u escapes: a value must not become larger than 8 MiB on its way.
        value = json.dumps(event["data"], ensure_ascii=False, separators=(",", ":")).encode()
        events.append((headers, event["data"]["org_id"].encode(), value))
    except (ValueError, KeyError, TypeError, AttributeError):
        sys.exit(f'line {number} is not {{"type": ..., "data": {{"org_id": ...}}}} in JSON: nothing was sent')
if not events:
    sys.exit("no events on standard input: nothing was sent")

runs, failures = {}, []


def delivered(error, message):
    # Without its offset, the receipts would not have the record.
    if error or message.offset() < 0:
        failures.append(error.str() if error else "Kafka did not return the offset of a record")
        return
    first, _ = runs.get(message.partition(), (message.offset(), None))
    runs[message.partition()] = (first, message.offset())


settings = {
    "bootstrap.servers": os.environ.get("KAFKA_BROKERS", ""),
    "enable.idempotence": True,
    # The default of librdkafka chooses other partitions than Java's client.
    "partitioner": "murmur2_random",
    # A mistyped topic must fail: a topic that the broker creates for it deletes records after a week.
    "allow.auto.create.topics": False,
    "message.timeout.ms": 30_000,
    # `max.message.bytes` of the topic. The default is 1 MB, and a value may have 8 MiB.
    "message.max.bytes": 9 * 1024 * 1024,
    # Otherwise it logs each failed connection. The program prints the first error itself.
    "log_level": 2,
}
try:
    producer = Producer(settings)
    missing = producer.list_topics(TOPIC, timeout=30).topics[TOPIC].error
    if missing:
        raise KafkaException(missing)
    for headers, key, value in events:
        headers["ce_id"] = str(uuid.uuid4())
        while True:
            try:
                producer.produce(TOPIC, key=key, value=value, headers=headers, on_delivery=delivered)
                break
            except BufferError:
                # The queue is full: wait until some records are stored.
                producer.poll(1)
        producer.poll(0)
    producer.flush()
except KafkaException as error:
    failures.append(error.args[0].str())
if failures:
    sys.exit(f"not all events were sent to {settings['bootstrap.servers']}: {failures[0]}")

complete = True
for partition, (first, last) in runs.items():
    # A run has at most 10,000 offsets.
    for start in range(first, last + 1, 10_000):
        end = min(last, start + 9_999)
        url = f"{ADMIN}/receipts/{TOPIC}/{partition}?from={start}&to={end}&wait=30"
        try:
            text = urlopen(url, timeout=60).read().decode()
            receipt = json.loads(text)
            published, parked, not_yet = (receipt[name] for name in ("published", "parked", "not_yet"))
        except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
            sys.exit(f"all events were sent, but the receipt could not be read: {url}: {error}")
        print(text, flush=True)
        if published != end - start + 1:
            complete = False
            counts = f"{published} published, {parked} parked, {not_yet} not yet published"
            print(f"partition {partition}: {counts}", file=sys.stderr)
sys.exit(0 if complete else 1)
