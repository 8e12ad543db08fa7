// Seals the personal texts of an event: docs/publishing.md has the form.
package main

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sealTexts seals name and email of a rep, and destination.label of a payment. Other events stay as they are.
func sealTexts(kind string, value []byte, keyID string) ([]byte, error) {
	key, err := readKey(keyID)
	if err != nil {
		return nil, err
	}
	// Numbers keep their characters.
	var data map[string]any
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	if err := decoder.Decode(&data); err != nil {
		return nil, err
	}
	org, _ := data["org_id"].(string)
	record, _ := data["id"].(string)
	seal := func(holder map[string]any, name, field string) {
		if text, ok := holder[name].(string); ok && text != "" {
			holder[name] = sealText(text, key, keyID, org, record, field)
		}
	}
	switch kind {
	case "commission.rep.recorded.v1":
		seal(data, "name", "name")
		seal(data, "email", "email")
	case "commission.payroll.recorded.v1":
		if destination, ok := data["destination"].(map[string]any); ok {
			seal(destination, "label", "destination.label")
		}
	}
	return json.Marshal(data)
}

// sealText seals a text that opens only in this field of this record of this organization.
func sealText(text string, key []byte, keyID string, location ...string) string {
	additional := strings.Join(append([]string{"commission sealed v1"}, location...), "\n")
	// The nonce follows from the text, so that the same text, sealed again, is the same event.
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("nonce\n" + additional + "\n" + text))
	nonce := mac.Sum(nil)[:12]
	block, _ := aes.NewCipher(key)
	gcm, _ := cipher.NewGCM(block)
	sealed := gcm.Seal(nonce, nonce, []byte(text), []byte(additional))
	return "sealed:v1:" + keyID + ":" + base64.RawURLEncoding.EncodeToString(sealed)
}

// readKey reads a file of SEAL_KEYS_DIR: 32 bytes, as they are or in base64.
func readKey(keyID string) ([]byte, error) {
	key, err := os.ReadFile(filepath.Join(os.Getenv("SEAL_KEYS_DIR"), keyID+".key"))
	if err == nil && len(key) != 32 {
		text := strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(strings.TrimSpace(string(key)))
		key, err = base64.RawStdEncoding.DecodeString(text)
	}
	if err == nil && len(key) != 32 {
		err = fmt.Errorf("the seal key %s has not 32 bytes", keyID)
	}
	return key, err
}
