package example;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;

/** Publishes the events of standard input with kafka-clients, and prints the receipt of the last one. */
public class Publish {
  public static void main(String[] arguments) throws Exception {
    String topic = System.getenv("TOPIC");
    // Idempotence, all acknowledgements and the expected partitioner are the defaults.
    Map<String, Object> settings = Map.of("bootstrap.servers", System.getenv("KAFKA_BROKERS"));
    ObjectMapper json = new ObjectMapper();
    Future<RecordMetadata> last = null;
    var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        JsonNode event = json.readTree(line);
        // The record key is the organization: all its events are in one partition, in order.
        var record = new ProducerRecord<>(topic, event.at("/data/org_id").asText(), event.get("data").toString());
        Map.of("ce_specversion", "1.0", "ce_id", UUID.randomUUID().toString(), "ce_source", "/example")
            .forEach((name, value) -> record.headers().add(name, value.getBytes(StandardCharsets.UTF_8)));
        record.headers().add("ce_type", event.get("type").asText().getBytes(StandardCharsets.UTF_8));
        last = producer.send(record);
      }
      producer.flush();
    }
    String place = topic + "/" + last.get().partition() + "/" + last.get().offset();
    var request = HttpRequest.newBuilder(URI.create(System.getenv("ADMIN") + "/receipts/" + place + "?wait=30"));
    System.out.println(HttpClient.newHttpClient().send(request.build(), BodyHandlers.ofString()).body());
  }
}
