// Publishes the events of standard input with franz-go, and prints the receipt of the last one.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	topic := os.Getenv("TOPIC")
	// Idempotence, all acknowledgements and the partitioner of Java's client are the defaults.
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(os.Getenv("KAFKA_BROKERS"), ",")...))
	check(err)
	var records []*kgo.Record
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event struct {
			Type string
			Data json.RawMessage
		}
		check(json.Unmarshal(lines.Bytes(), &event))
		var named struct {
			Org string `json:"org_id"`
		}
		check(json.Unmarshal(event.Data, &named))
		// The record key is the organization: all its events are in one partition, in order.
		record := &kgo.Record{Topic: topic, Key: []byte(named.Org), Value: event.Data}
		for name, value := range map[string]string{
			"ce_specversion": "1.0", "ce_id": rand.Text(), "ce_source": "/example", "ce_type": event.Type,
		} {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
		}
		records = append(records, record)
	}
	check(lines.Err())
	check(client.ProduceSync(context.Background(), records...).FirstErr())
	last := records[len(records)-1]
	answer, err := http.Get(fmt.Sprintf("%s/receipts/%s/%d/%d?wait=30", os.Getenv("ADMIN"), topic, last.Partition, last.Offset))
	check(err)
	receipt, err := io.ReadAll(answer.Body)
	check(err)
	fmt.Println(string(receipt))
}
