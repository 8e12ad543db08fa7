package example;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.LongSummaryStatistics;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.StringSerializer;

/** Publishes the events of standard input with kafka-clients, and prints the receipts of all its records. */
public class Publish {
  static final Map<String, String> ENV = System.getenv();
  static final String TOPIC = ENV.getOrDefault("TOPIC", ENV.getOrDefault("KAFKA_EVENTS_TOPIC", "commission.events"));
  static final String BROKERS = ENV.getOrDefault("KAFKA_BROKERS", "");
  static final String ADMIN = ENV.getOrDefault("ADMIN", "http://127.0.0.1:9465");
  /** A key twice is an error: otherwise only the last one of the two values would be sent. */
  static final ObjectMapper JSON =
      new ObjectMapper()
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .enable(JsonParser.Feature.STRICT_DUPLICATE_DETECTION);

  public static void main(String[] arguments) throws Exception {
    var records = new ArrayList<ProducerRecord<String, String>>();
    byte[] input = System.in.readAllBytes();
    int number = 0;
    for (int start = 0, end = 0; start < input.length; start = end + 1) {
      for (end = start; end < input.length && input[end] != '\n'; ) end++;
      String line = decode(ByteBuffer.wrap(input, start, end - start), ++number);
      if (!line.isBlank()) records.add(recordOf(line, number));
    }
    if (records.isEmpty()) fail("no events on standard input: nothing was sent");

    // The first and the last offset of each partition.
    var runs = new TreeMap<Integer, LongSummaryStatistics>();
    // Idempotence, all acknowledgements and the expected partitioner are the defaults.
    // The default of max.request.size is 1 MiB. A value may have 8 MiB, and the topic has max.message.bytes = 9 MiB.
    Map<String, Object> settings =
        Map.of("bootstrap.servers", BROKERS, "max.block.ms", 30_000, "max.request.size", 9 * 1024 * 1024);
    try (var admin = Admin.create(Map.of("bootstrap.servers", BROKERS, "default.api.timeout.ms", 30_000));
        var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
      // A mistyped topic must fail: a topic that the broker creates for it deletes records after a week. The producer
      // would create it.
      admin.describeTopics(List.of(TOPIC)).allTopicNames().get();
      var sent = new ArrayList<Future<RecordMetadata>>();
      for (var record : records) sent.add(producer.send(record));
      for (var future : sent) {
        RecordMetadata place = future.get();
        runs.computeIfAbsent(place.partition(), none -> new LongSummaryStatistics()).accept(place.offset());
      }
    } catch (KafkaException | ExecutionException error) {
      fail("not all events were sent to " + BROKERS + ": " + error.getMessage());
    }

    boolean complete = true;
    for (var run : runs.entrySet()) {
      // A run has at most 10,000 offsets.
      for (long from = run.getValue().getMin(); from <= run.getValue().getMax(); from += 10_000) {
        long to = Math.min(run.getValue().getMax(), from + 9_999);
        JsonNode receipt = receiptOf(run.getKey(), from, to);
        System.out.println(receipt);
        if (receipt.path("published").asLong() == to - from + 1) continue;
        complete = false;
        System.err.printf("partition %d: %s published, %s parked, %s not yet published%n",
            run.getKey(), receipt.path("published"), receipt.path("parked"), receipt.path("not_yet"));
      }
    }
    System.exit(complete ? 0 : 1);
  }

  /** Strictly: bytes that are not UTF-8 must not become other characters. */
  static String decode(ByteBuffer line, int number) {
    try {
      return StandardCharsets.UTF_8.newDecoder().decode(line).toString();
    } catch (CharacterCodingException error) {
      // The next condition tells it.
      return "not UTF-8";
    }
  }

  static ProducerRecord<String, String> recordOf(String line, int number) {
    JsonNode event = JSON.missingNode();
    try {
      event = JSON.readTree(line);
    } catch (IOException error) {
      // The next condition tells it, without the content.
    }
    // Half of a surrogate pair, as JSON may have it, would be sent as a question mark.
    boolean isText = StandardCharsets.UTF_8.newEncoder().canEncode(event.toString());
    if (!isText || !event.path("type").isTextual() || !event.at("/data/org_id").isTextual())
      fail("line " + number + " is not {\"type\": ..., \"data\": {\"org_id\": ...}} in JSON: nothing was sent");
    if (event.path("seal").isTextual()) {
      String keyId = event.get("seal").asText();
      try {
        Seal.texts(event.get("type").asText(), event.get("data"), keyId);
      } catch (IOException | GeneralSecurityException | IllegalArgumentException error) {
        fail("line " + number + " cannot be sealed with " + keyId + ": " + error + ": nothing was sent");
      }
    }
    // The record key is the organization: all its events are in one partition, in order.
    var record = new ProducerRecord<>(TOPIC, event.at("/data/org_id").asText(), event.get("data").toString());
    Map.of("ce_specversion", "1.0", "ce_id", UUID.randomUUID().toString(), "ce_source", "/example",
            "ce_type", event.get("type").asText())
        .forEach((name, value) -> record.headers().add(name, value.getBytes(StandardCharsets.UTF_8)));
    return record;
  }

  static JsonNode receiptOf(int partition, long from, long to) throws InterruptedException {
    String url = "%s/receipts/%s/%d?from=%d&to=%d&wait=30".formatted(ADMIN, TOPIC, partition, from, to);
    try {
      var request = HttpRequest.newBuilder(URI.create(url)).timeout(Duration.ofMinutes(1)).build();
      var answer = HttpClient.newHttpClient().send(request, BodyHandlers.ofString());
      if (answer.statusCode() == 200) return JSON.readTree(answer.body());
      throw new IOException(answer.statusCode() + " " + answer.body());
    } catch (IOException | IllegalArgumentException error) {
      fail("all events were sent, but the receipt could not be read: " + url + ": " + error);
      return null;
    }
  }

  static void fail(String reason) {
    System.err.println(reason);
    System.exit(1);
  }
}
