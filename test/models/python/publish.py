"""Publishes one event of each type with models that datamodel-code-generator made from contract/events."""

import os
import sys
import uuid

from confluent_kafka import Producer
from models.commission_api_key_created_v1 import CommissionApiKeyCreatedV1, KeyPermission
from models.commission_api_key_revoked_v1 import CommissionApiKeyRevokedV1
from models.commission_payout_calculated_v1 import (
    CommissionPayoutCalculatedV1,
    LineItem,
    LineItemCategory,
    StepInputs,
    TraceStep,
)
from models.commission_payout_recorded_v1 import CommissionPayoutRecordedV1
from models.commission_payout_recorded_v1 import LineItem as RecordedLine
from models.commission_payout_recorded_v1 import LineItemCategory as RecordedCategory
from models.commission_payroll_recorded_v1 import CommissionPayrollRecordedV1, Destination, DestinationType
from models.commission_payroll_voided_v1 import CommissionPayrollVoidedV1
from models.commission_period_recorded_v1 import CommissionPeriodRecordedV1, PeriodRecordedKind
from models.commission_rep_recorded_v1 import CommissionRepRecordedV1, RepRecordedStatus
from pydantic import ValidationError

ORG = os.environ["ORG"]

events = {
    "commission.rep.recorded.v1": CommissionRepRecordedV1(
        org_id=ORG,
        id="rep_1",
        name="Zoë 😀",
        email=None,
        status=RepRecordedStatus.active,
        started_on="2024-02-29",
        departed_on=None,
    ),
    "commission.period.recorded.v1": CommissionPeriodRecordedV1(
        org_id=ORG,
        id="period_1",
        kind=PeriodRecordedKind.month,
        name="January 2026",
        timezone="Europe/Berlin",
        starts_at="2026-01-01T00:00:00+01:00",
        ends_at="2026-02-01T00:00:00+01:00",
    ),
    "commission.payout.calculated.v1": CommissionPayoutCalculatedV1(
        org_id=ORG,
        id="payout_1",
        rep_id="rep_1",
        period_id="period_1",
        supersedes_id=None,
        currency="EUR",
        net_amount="1034.6000",
        earned_amount="1234.6000",
        line_items=[
            LineItem(
                id="line_1",
                category=LineItemCategory.earned,
                description="Renewal",
                amount="1234.6000",
                deal_id="deal_4",
            ),
            LineItem(
                id="line_2",
                category=LineItemCategory.recovered,
                description="Advance",
                amount="-200.00",
                deal_id=None,
            ),
        ],
        calculation_trace=[
            TraceStep(
                step=1,
                name="Rate",
                strategy="tiered_rate",
                strategy_version="2026-01",
                inputs=StepInputs({"booked": "15432.50", "rate": "0.08"}),
                output_amount="1234.60000000000000000001",
                deal_id="deal_4",
            ),
            TraceStep(
                step=2,
                name="Advance",
                strategy="recover",
                strategy_version="3",
                inputs=StepInputs({}),
                output_amount="-200.00",
                deal_id=None,
            ),
        ],
        calculated_at="2026-02-02T07:15:04.250Z",
    ),
    "commission.payout.recorded.v1": CommissionPayoutRecordedV1(
        org_id=ORG,
        id="payout_2",
        rep_id="rep_1",
        period_id="period_1",
        supersedes_id="payout_1",
        currency="EUR",
        net_amount="9007199254740993.10",
        earned_amount="0",
        line_items=[
            RecordedLine(
                id="line_1",
                category=RecordedCategory.adjusted,
                description="",
                amount="9007199254740993.10",
                deal_id=None,
            )
        ],
        recorded_at="2026-02-03T08:00:00Z",
    ),
    "commission.payroll.recorded.v1": CommissionPayrollRecordedV1(
        org_id=ORG,
        id="payroll_1",
        rep_id="rep_1",
        period_id="period_1",
        payout_id="payout_2",
        amount="9007199254740993.10",
        currency="EUR",
        destination=Destination(type=DestinationType.bank_account, label="Account 7"),
        recorded_at="2026-02-05T08:30:00Z",
    ),
    "commission.payroll.voided.v1": CommissionPayrollVoidedV1(
        org_id=ORG,
        id="payroll_2",
        reverses_id="payroll_1",
        amount="-9007199254740993.10",
        currency="EUR",
        recorded_at="2026-02-06T08:30:00Z",
    ),
    "commission.api_key.created.v1": CommissionApiKeyCreatedV1(
        org_id=ORG,
        id="key_1",
        name="Payroll",
        secret_sha256="0f" * 32,
        last4="a_-Z",
        permissions=[KeyPermission.payouts_read, KeyPermission.changes_read],
        created_at="2026-01-01T00:00:00Z",
    ),
    "commission.api_key.revoked.v1": CommissionApiKeyRevokedV1(
        org_id=ORG, id="key_1", revoked_at="2026-03-01T00:00:00Z"
    ),
}

for amount in (1234.6, 1234, "1,234.60"):
    try:
        LineItem(id="line_1", category=LineItemCategory.earned, description="", amount=amount, deal_id=None)
    except ValidationError:
        continue
    sys.exit(f"the model takes {amount!r} for an amount")

failures = []
# The default partitioner of librdkafka chooses other partitions than the projector expects.
producer = Producer({"bootstrap.servers": os.environ["KAFKA_BROKERS"], "partitioner": "murmur2_random"})
for kind, model in events.items():
    producer.produce(
        os.environ["KEYS_TOPIC" if ".api_key." in kind else "TOPIC"],
        key=model.org_id,
        value=model.model_dump_json(),
        headers={"ce_specversion": "1.0", "ce_id": str(uuid.uuid4()), "ce_source": "/models", "ce_type": kind},
        on_delivery=lambda error, _: failures.append(error) if error else None,
    )
producer.flush()
if failures:
    sys.exit(f"not all events were sent: {failures[0]}")
print(len(events))
