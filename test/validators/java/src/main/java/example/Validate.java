package example;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.networknt.schema.JsonSchema;
import com.networknt.schema.JsonSchemaFactory;
import com.networknt.schema.SpecVersion;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Checks every record of the contract with networknt's json-schema-validator. */
public class Validate {
  public static void main(String[] args) throws IOException {
    Path contract = Path.of(System.getenv("CONTRACT"));
    ObjectMapper json = new ObjectMapper();
    JsonSchemaFactory factory = JsonSchemaFactory.getInstance(SpecVersion.VersionFlag.V202012);
    Map<String, JsonSchema> schemas = new HashMap<>();
    try (DirectoryStream<Path> files = Files.newDirectoryStream(contract.resolve("events"), "*.json")) {
      for (Path file : files) {
        String type = file.getFileName().toString().replaceFirst("\\.json$", "");
        schemas.put(type, factory.getSchema(json.readTree(file.toFile())));
      }
    }
    List<String> lines = Files.readAllLines(contract.resolve("records.ndjson"));
    for (int number = 1; number <= lines.size(); number++) {
      JsonNode record = json.readTree(lines.get(number - 1));
      if (record.get("type").isNull()) continue;
      JsonNode data = json.readTree(record.get("value").asText());
      boolean valid = schemas.get(record.get("type").asText()).validate(data).isEmpty();
      System.out.println(number + (valid ? " accepts" : " refuses"));
    }
  }
}
