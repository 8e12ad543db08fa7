// Publishes the events of standard input with franz-go, and prints the receipts of all its records.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

func check(err error, saying string) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", saying, err)
		os.Exit(1)
	}
}

// checkKeys refuses an object that has a key twice: another program may read the other value.
func checkKeys(decoder *json.Decoder) error {
	token, err := decoder.Token()
	begin, isNested := token.(json.Delim)
	if err != nil || !isNested {
		return err
	}
	seen := map[json.Token]bool{}
	for decoder.More() {
		if begin == '{' {
			key, err := decoder.Token()
			if err != nil {
				return err
			}
			if seen[key] {
				return errors.New("a key twice")
			}
			seen[key] = true
		}
		if err := checkKeys(decoder); err != nil {
			return err
		}
	}
	_, err = decoder.Token()
	return err
}

// escapes finds the escapes of JSON. The group is one half of a surrogate pair without the other.
var escapes = regexp.MustCompile(`\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F]..)|\\.`)

// hasHalf tells whether a text has half of a surrogate pair: encoding/json would make another character of it.
func hasHalf(line []byte) bool {
	isHalf := func(found [][]byte) bool { return found[1] != nil }
	return slices.ContainsFunc(escapes.FindAllSubmatch(line, -1), isHalf)
}

func main() {
	topic := cmp.Or(os.Getenv("TOPIC"), os.Getenv("KAFKA_EVENTS_TOPIC"), "commission.events")
	admin := cmp.Or(os.Getenv("ADMIN"), "http://127.0.0.1:9465")
	var records []*kgo.Record
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for number := 1; lines.Scan(); number++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var event struct {
			Type string
			Data json.RawMessage
			Seal string
		}
		var named struct {
			Org *string `json:"org_id"`
		}
		err := json.Unmarshal(lines.Bytes(), &event)
		if err == nil {
			err = json.Unmarshal(event.Data, &named)
		}
		if err == nil {
			err = checkKeys(json.NewDecoder(bytes.NewReader(lines.Bytes())))
		}
		isText := utf8.Valid(lines.Bytes()) && !hasHalf(lines.Bytes())
		if err != nil || !isText || event.Type == "" || named.Org == nil {
			fmt.Fprintf(os.Stderr, "line %d is not {\"type\": ..., \"data\": {\"org_id\": ...}} in JSON: nothing was sent\n", number)
			os.Exit(1)
		}
		if event.Seal != "" {
			event.Data, err = sealTexts(event.Type, event.Data, event.Seal)
			check(err, fmt.Sprintf("line %d cannot be sealed with %s: nothing was sent", number, event.Seal))
		}
		// The record key is the organization: all its events are in one partition, in order.
		record := &kgo.Record{Topic: topic, Key: []byte(*named.Org), Value: event.Data}
		for name, value := range map[string]string{
			"ce_specversion": "1.0", "ce_id": rand.Text(), "ce_source": "/example", "ce_type": event.Type,
		} {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
		}
		records = append(records, record)
	}
	check(lines.Err(), "nothing was sent")
	if len(records) == 0 {
		fmt.Fprintln(os.Stderr, "no events on standard input: nothing was sent")
		os.Exit(1)
	}

	// Idempotence, all acknowledgements, the partitioner of Java's client, and no creation of topics are the defaults.
	brokers := os.Getenv("KAFKA_BROKERS")
	unsent := "not all events were sent to " + brokers
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(brokers, ",")...),
		kgo.RecordDeliveryTimeout(30*time.Second),
		// max.message.bytes of the topic. The default is 1 MB, and a value may have 8 MiB.
		kgo.ProducerBatchMaxBytes(9<<20),
	)
	check(err, unsent)
	reachable, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	check(client.Ping(reachable), unsent)
	check(client.ProduceSync(context.Background(), records...).FirstErr(), unsent)

	type run struct{ first, last int64 }
	runs := map[int32]run{}
	for _, record := range records {
		found, ok := runs[record.Partition]
		if !ok {
			found = run{record.Offset, record.Offset}
		}
		runs[record.Partition] = run{min(found.first, record.Offset), max(found.last, record.Offset)}
	}
	unread := "all events were sent, but the receipt could not be read"
	reader := http.Client{Timeout: time.Minute}
	exit := 0
	for partition, run := range runs {
		// A run has at most 10,000 offsets.
		for from := run.first; from <= run.last; from += 10_000 {
			to := min(run.last, from+9_999)
			url := fmt.Sprintf("%s/receipts/%s/%d?from=%d&to=%d&wait=30", admin, topic, partition, from, to)
			answer, err := reader.Get(url)
			check(err, unread)
			text, err := io.ReadAll(answer.Body)
			check(err, unread)
			if answer.StatusCode != http.StatusOK {
				check(fmt.Errorf("%s: %s %s", url, answer.Status, text), unread)
			}
			var receipt struct {
				Published, Parked int64
				NotYet            int64 `json:"not_yet"`
			}
			check(json.Unmarshal(text, &receipt), unread+": "+url)
			fmt.Println(string(text))
			if receipt.Published != to-from+1 {
				exit = 1
				fmt.Fprintf(os.Stderr, "partition %d: %d published, %d parked, %d not yet published\n",
					partition, receipt.Published, receipt.Parked, receipt.NotYet)
			}
		}
	}
	os.Exit(exit)
}
