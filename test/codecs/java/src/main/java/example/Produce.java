package example;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Map;
import java.util.Scanner;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Sends the records of standard input with a producer for each line of settings. A line is "settings", a tab and
 * properties with commas; or the type of an event, a tab, the organization, a tab and the data.
 */
public class Produce {
  public static void main(String[] arguments) throws Exception {
    KafkaProducer<String, String> producer = null;
    var sent = new ArrayList<Future<RecordMetadata>>();
    try (var lines = new Scanner(System.in, StandardCharsets.UTF_8)) {
      lines.useDelimiter("\n");
      while (lines.hasNext()) {
        String[] parts = lines.next().split("\t", 3);
        if (parts[0].equals("settings")) {
          if (producer != null) producer.close();
          producer = producerOf(parts[1]);
          continue;
        }
        var record = new ProducerRecord<>(System.getenv("TOPIC"), parts[1], parts[2]);
        Map.of("ce_specversion", "1.0", "ce_id", "event-" + sent.size(), "ce_source", "/codecs", "ce_type", parts[0])
            .forEach((name, value) -> record.headers().add(name, value.getBytes(StandardCharsets.UTF_8)));
        sent.add(producer.send(record));
      }
    }
    if (producer != null) producer.close();
    for (var future : sent) future.get();
    System.out.println(sent.size());
  }

  static KafkaProducer<String, String> producerOf(String properties) {
    var settings = new java.util.HashMap<String, Object>();
    settings.put("bootstrap.servers", System.getenv("KAFKA_BROKERS"));
    settings.put("max.request.size", 9 * 1024 * 1024);
    // All records that wait come in one batch.
    settings.put("linger.ms", 500);
    for (String property : properties.split(",")) settings.put(property.split("=")[0], property.split("=")[1]);
    return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
  }
}
