package example;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import java.util.Base64;
import javax.crypto.Cipher;
import javax.crypto.Mac;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/** Seals the personal texts of an event: docs/publishing.md has the form. */
class Seal {
  /** Seals name and email of a rep, and destination.label of a payment. Other events stay as they are. */
  static void texts(String type, JsonNode data, String keyId) throws IOException, GeneralSecurityException {
    byte[] key = readKey(keyId);
    if (type.equals("commission.rep.recorded.v1")) {
      seal(data, "name", "name", data, key, keyId);
      seal(data, "email", "email", data, key, keyId);
    }
    if (type.equals("commission.payroll.recorded.v1"))
      seal(data.path("destination"), "label", "destination.label", data, key, keyId);
  }

  private static void seal(JsonNode holder, String name, String field, JsonNode data, byte[] key, String keyId)
      throws GeneralSecurityException {
    String text = holder.path(name).asText("");
    if (!holder.path(name).isTextual() || text.isEmpty()) return;
    String record = data.path("id").asText();
    ((ObjectNode) holder).put(name, text(text, key, keyId, data.path("org_id").asText(), record, field));
  }

  /** Seals a text that opens only in this field of this record of this organization. */
  static String text(String text, byte[] key, String keyId, String organization, String record, String field)
      throws GeneralSecurityException {
    String additional = String.join("\n", "commission sealed v1", organization, record, field);
    // The nonce follows from the text, so that the same text, sealed again, is the same event.
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(key, "HmacSHA256"));
    byte[] nonce = Arrays.copyOf(mac.doFinal(bytes("nonce\n" + additional + "\n" + text)), 12);
    Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
    cipher.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(key, "AES"), new GCMParameterSpec(128, nonce));
    cipher.updateAAD(bytes(additional));
    byte[] sealed = cipher.doFinal(bytes(text));
    byte[] all = ByteBuffer.allocate(nonce.length + sealed.length).put(nonce).put(sealed).array();
    return "sealed:v1:" + keyId + ":" + Base64.getUrlEncoder().withoutPadding().encodeToString(all);
  }

  /** Reads a file of SEAL_KEYS_DIR: 32 bytes, as they are or in base64. */
  private static byte[] readKey(String keyId) throws IOException {
    byte[] content = Files.readAllBytes(Path.of(System.getenv().getOrDefault("SEAL_KEYS_DIR", ""), keyId + ".key"));
    String text = new String(content, StandardCharsets.ISO_8859_1).strip().replace('-', '+').replace('_', '/');
    byte[] key = content.length == 32 ? content : Base64.getDecoder().decode(text);
    if (key.length != 32) throw new IOException("the seal key " + keyId + " has not 32 bytes");
    return key;
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
