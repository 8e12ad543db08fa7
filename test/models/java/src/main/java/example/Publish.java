package example;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import models.api_key_created_v1.CommissionApiKeyCreatedV1;
import models.api_key_created_v1.KeyPermission;
import models.api_key_revoked_v1.CommissionApiKeyRevokedV1;
import models.payout_calculated_v1.CommissionPayoutCalculatedV1;
import models.payout_calculated_v1.LineItem;
import models.payout_calculated_v1.StepInputs;
import models.payout_calculated_v1.TraceStep;
import models.payout_recorded_v1.CommissionPayoutRecordedV1;
import models.payroll_recorded_v1.CommissionPayrollRecordedV1;
import models.payroll_recorded_v1.Destination;
import models.payroll_voided_v1.CommissionPayrollVoidedV1;
import models.period_recorded_v1.CommissionPeriodRecordedV1;
import models.rep_recorded_v1.CommissionRepRecordedV1;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Publishes one event of each type with classes that jsonschema2pojo made from contract/events. */
public class Publish {
  static final Map<String, String> ENV = System.getenv();
  static final String ORG = ENV.get("ORG");

  public static void main(String[] arguments) throws Exception {
    Map<String, Object> events = new LinkedHashMap<>();
    events.put("commission.rep.recorded.v1", new CommissionRepRecordedV1()
        .withOrgId(ORG).withId("rep_1").withName("Zoë 😀").withEmail(null)
        .withStatus(CommissionRepRecordedV1.RepRecordedStatus.ACTIVE)
        .withStartedOn("2024-02-29").withDepartedOn(null));
    events.put("commission.period.recorded.v1", new CommissionPeriodRecordedV1()
        .withOrgId(ORG).withId("period_1").withKind(CommissionPeriodRecordedV1.PeriodRecordedKind.MONTH)
        .withName("January 2026").withTimezone("Europe/Berlin")
        .withStartsAt("2026-01-01T00:00:00+01:00").withEndsAt("2026-02-01T00:00:00+01:00"));
    StepInputs inputs = new StepInputs();
    inputs.setAdditionalProperty("booked", "15432.50");
    inputs.setAdditionalProperty("rate", "0.08");
    events.put("commission.payout.calculated.v1", new CommissionPayoutCalculatedV1()
        .withOrgId(ORG).withId("payout_1").withRepId("rep_1").withPeriodId("period_1").withSupersedesId(null)
        .withCurrency("EUR").withNetAmount("1034.6000").withEarnedAmount("1234.6000")
        .withLineItems(List.of(
            new LineItem().withId("line_1").withCategory(LineItem.LineItemCategory.EARNED)
                .withDescription("Renewal").withAmount("1234.6000").withDealId("deal_4"),
            new LineItem().withId("line_2").withCategory(LineItem.LineItemCategory.RECOVERED)
                .withDescription("Advance").withAmount("-200.00").withDealId(null)))
        .withCalculationTrace(List.of(
            new TraceStep().withStep(1).withName("Rate").withStrategy("tiered_rate").withStrategyVersion("2026-01")
                .withInputs(inputs).withOutputAmount("1234.60000000000000000001").withDealId("deal_4"),
            new TraceStep().withStep(2).withName("Advance").withStrategy("recover").withStrategyVersion("3")
                .withInputs(new StepInputs()).withOutputAmount("-200.00").withDealId(null)))
        .withCalculatedAt("2026-02-02T07:15:04.250Z"));
    events.put("commission.payout.recorded.v1", new CommissionPayoutRecordedV1()
        .withOrgId(ORG).withId("payout_2").withRepId("rep_1").withPeriodId("period_1").withSupersedesId("payout_1")
        .withCurrency("EUR").withNetAmount("9007199254740993.10").withEarnedAmount("0")
        .withLineItems(List.of(
            new models.payout_recorded_v1.LineItem().withId("line_1")
                .withCategory(models.payout_recorded_v1.LineItem.LineItemCategory.ADJUSTED)
                .withDescription("").withAmount("9007199254740993.10").withDealId(null)))
        .withRecordedAt("2026-02-03T08:00:00Z"));
    events.put("commission.payroll.recorded.v1", new CommissionPayrollRecordedV1()
        .withOrgId(ORG).withId("payroll_1").withRepId("rep_1").withPeriodId("period_1").withPayoutId("payout_2")
        .withAmount("9007199254740993.10").withCurrency("EUR")
        .withDestination(new Destination().withType(Destination.DestinationType.BANK_ACCOUNT).withLabel("Account 7"))
        .withRecordedAt("2026-02-05T08:30:00Z"));
    events.put("commission.payroll.voided.v1", new CommissionPayrollVoidedV1()
        .withOrgId(ORG).withId("payroll_2").withReversesId("payroll_1")
        .withAmount("-9007199254740993.10").withCurrency("EUR").withRecordedAt("2026-02-06T08:30:00Z"));
    events.put("commission.api_key.created.v1", new CommissionApiKeyCreatedV1()
        .withOrgId(ORG).withId("key_1").withName("Payroll").withSecretSha256("0f".repeat(32)).withLast4("a_-Z")
        .withPermissions(List.of(KeyPermission.PAYOUTS_READ, KeyPermission.CHANGES_READ))
        .withCreatedAt("2026-01-01T00:00:00Z"));
    events.put("commission.api_key.revoked.v1", new CommissionApiKeyRevokedV1()
        .withOrgId(ORG).withId("key_1").withRevokedAt("2026-03-01T00:00:00Z"));

    // A field of any type would take a number, or a value that no enumeration has.
    for (Class<?> model : List.of(LineItem.class, TraceStep.class, Destination.class, CommissionPayoutCalculatedV1.class,
        CommissionPayrollRecordedV1.class, CommissionRepRecordedV1.class, CommissionPeriodRecordedV1.class))
      for (var field : model.getDeclaredFields())
        if (field.getType() == Object.class) throw new IllegalStateException(field + " is of any type");

    ObjectMapper json = new ObjectMapper();
    Map<String, Object> settings = Map.of("bootstrap.servers", ENV.get("KAFKA_BROKERS"));
    try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
      for (var event : events.entrySet()) {
        String type = event.getKey();
        String topic = ENV.get(type.contains(".api_key.") ? "KEYS_TOPIC" : "TOPIC");
        var record = new ProducerRecord<>(topic, ORG, json.writeValueAsString(event.getValue()));
        Map.of("ce_specversion", "1.0", "ce_id", UUID.randomUUID().toString(), "ce_source", "/models", "ce_type", type)
            .forEach((name, value) -> record.headers().add(name, value.getBytes(StandardCharsets.UTF_8)));
        producer.send(record).get();
      }
    }
    System.out.println(events.size());
  }
}
