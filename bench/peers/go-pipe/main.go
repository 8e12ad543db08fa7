// A plain pipe for comparison, not to copy: franz-go and esutil. One document for each event, no decisions. Documents
// that Elasticsearch refuses are dropped, and their offsets committed.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/elastic/go-elasticsearch/v9"
	"github.com/elastic/go-elasticsearch/v9/esutil"
	"github.com/twmb/franz-go/pkg/kgo"
)

type document struct {
	Org      string          `json:"org_id"`
	Seq      int64           `json:"seq"`
	At       int64           `json:"at"`
	Rep      string          `json:"rep_id,omitempty"`
	Period   string          `json:"period_id,omitempty"`
	Amount   string          `json:"amount,omitempty"`
	Currency string          `json:"currency,omitempty"`
	Body     json.RawMessage `json:"body"`
}

type data struct {
	Org      string `json:"org_id"`
	ID       string `json:"id"`
	Rep      string `json:"rep_id"`
	Period   string `json:"period_id"`
	Amount   string `json:"net_amount"`
	Currency string `json:"currency"`
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()

	client, err := elasticsearch.NewClient(elasticsearch.Config{Addresses: []string{os.Getenv("ELASTICSEARCH_URL")}})
	must(err)
	indexer, err := esutil.NewBulkIndexer(esutil.BulkIndexerConfig{
		Client:        client,
		Index:         os.Getenv("ELASTICSEARCH_INDEX"),
		NumWorkers:    4,
		FlushBytes:    5 << 20,
		FlushInterval: time.Second,
	})
	must(err)

	var once sync.Once
	consumer, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Getenv("KAFKA_BROKERS"), ",")...),
		kgo.ConsumerGroup(os.Getenv("KAFKA_GROUP_ID")),
		kgo.ConsumeTopics(os.Getenv("KAFKA_EVENTS_TOPIC")),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxPartitionBytes(4<<20),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) {
			once.Do(func() { fmt.Printf("{\"msg\":\"consuming\",\"time\":%d}\n", time.Now().UnixMilli()) })
		}),
	)
	must(err)

	for ctx.Err() == nil {
		consumer.PollFetches(ctx).EachRecord(func(record *kgo.Record) {
			var read data
			must(json.Unmarshal(record.Value, &read))
			body, err := json.Marshal(document{
				read.Org, record.Offset, record.Timestamp.UnixMilli(),
				read.Rep, read.Period, read.Amount, read.Currency, record.Value,
			})
			must(err)
			must(indexer.Add(ctx, esutil.BulkIndexerItem{
				Action:     "index",
				DocumentID: string(record.Key) + ":" + read.ID,
				Body:       bytes.NewReader(body),
			}))
		})
	}
	must(indexer.Close(context.Background()))
	consumer.Close()
}
