// franz-go behind one JSON object per line: {"op": ...} on stdin, {"ok": ...} or {"error": code, "detail": ...} on stdout.
// tests/support/clients/foreign.py is the other end.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const deadline = 20 * time.Second

type header struct {
	Key   string `json:"key"`
	Value []byte `json:"value"`
}

// record carries bytes as base64 and null as null: encoding/json does both for []byte.
type record struct {
	Offset    int64    `json:"offset"`
	Timestamp int64    `json:"timestamp"`
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []header `json:"headers"`
}

type command struct {
	Op                string            `json:"op"`
	Topic             string            `json:"topic"`
	Partition         int32             `json:"partition"`
	Partitions        int32             `json:"partitions"`
	ReplicationFactor int16             `json:"replication_factor"`
	Configs           map[string]string `json:"configs"`
	Total             int               `json:"total"`
	Records           []record          `json:"records"`
	Codec             string            `json:"codec"`
	Idempotent        bool              `json:"idempotent"`
	MaxRequestBytes   int32             `json:"max_request_bytes"`
	Count             int               `json:"count"`
	Offset            int64             `json:"offset"`
	Before            int64             `json:"before"`
	Timestamp         int64             `json:"timestamp"`
}

type driver struct {
	bootstrap string
	client    *kgo.Client
	admin     *kadm.Client
}

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

func (d *driver) createTopic(ctx context.Context, c command) (any, error) {
	configs := map[string]*string{}
	for name, value := range c.Configs {
		configs[name] = kadm.StringPtr(value)
	}
	_, err := d.admin.CreateTopic(ctx, c.Partitions, c.ReplicationFactor, configs, c.Topic)
	return nil, err
}

func (d *driver) deleteTopic(ctx context.Context, c command) (any, error) {
	_, err := d.admin.DeleteTopic(ctx, c.Topic)
	return nil, err
}

func (d *driver) listTopics(ctx context.Context, _ command) (any, error) {
	details, err := d.admin.ListTopics(ctx)
	return details.Names(), err
}

func (d *driver) createPartitions(ctx context.Context, c command) (any, error) {
	answers, err := d.admin.UpdatePartitions(ctx, c.Total, c.Topic)
	if err == nil {
		err = answers[c.Topic].Err
	}
	return nil, err
}

func (d *driver) partitionCount(ctx context.Context, c command) (any, error) {
	details, err := d.admin.ListTopics(ctx, c.Topic)
	return len(details[c.Topic].Partitions), err
}

func (d *driver) describeTopicConfigs(ctx context.Context, c command) (any, error) {
	answers, err := d.admin.DescribeTopicConfigs(ctx, c.Topic)
	if err != nil {
		return nil, err
	}
	answer, err := answers.On(c.Topic, nil)
	configs := map[string]*string{}
	for _, config := range answer.Configs {
		configs[config.Key] = config.Value
	}
	return configs, errors.Join(err, answer.Err)
}

func (d *driver) alterTopicConfigs(ctx context.Context, c command) (any, error) {
	var changes []kadm.AlterConfig
	for name, value := range c.Configs {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: kadm.StringPtr(value)})
	}
	answers, err := d.admin.AlterTopicConfigs(ctx, changes, c.Topic)
	if err == nil {
		err = answers[0].Err
	}
	return nil, err
}

func (d *driver) produce(ctx context.Context, c command) (any, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(d.bootstrap),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codecs[c.Codec]),
		kgo.ProducerBatchMaxBytes(c.MaxRequestBytes),
		kgo.ProducerLinger(5 * time.Millisecond),
		kgo.MetadataMinAge(50 * time.Millisecond), // what was created a moment ago is seen at the next look
	}
	if !c.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var records []*kgo.Record
	for _, given := range c.Records {
		r := &kgo.Record{Topic: c.Topic, Partition: c.Partition, Key: given.Key, Value: given.Value}
		if given.Timestamp > 0 {
			r.Timestamp = time.UnixMilli(given.Timestamp)
		}
		for _, h := range given.Headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		records = append(records, r)
	}
	results := client.ProduceSync(ctx, records...)
	offsets := []int64{}
	for _, r := range records {
		offsets = append(offsets, r.Offset)
	}
	return offsets, results.FirstErr()
}

func (d *driver) consume(ctx context.Context, c command) (any, error) {
	start := map[string]map[int32]kgo.Offset{c.Topic: {c.Partition: kgo.NewOffset().At(c.Offset)}}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(d.bootstrap),
		kgo.ConsumePartitions(start),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxBytes(50_000_000),
		kgo.FetchMaxPartitionBytes(20_000_000),
		kgo.FetchMaxWait(500*time.Millisecond),
		kgo.MetadataMinAge(50*time.Millisecond),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	seen := []record{}
	for len(seen) < c.Count {
		fetches := client.PollRecords(ctx, c.Count-len(seen))
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		for _, r := range fetches.Records() {
			s := record{Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value, Headers: []header{}}
			for _, h := range r.Headers {
				s.Headers = append(s.Headers, header{h.Key, h.Value})
			}
			seen = append(seen, s)
		}
	}
	return seen, nil
}

func listed(offsets kadm.ListedOffsets, err error, c command) (any, error) {
	if err != nil {
		return nil, err
	}
	found, _ := offsets.Lookup(c.Topic, c.Partition)
	return found.Offset, found.Err
}

func (d *driver) earliestOffset(ctx context.Context, c command) (any, error) {
	offsets, err := d.admin.ListStartOffsets(ctx, c.Topic)
	return listed(offsets, err, c)
}

func (d *driver) latestOffset(ctx context.Context, c command) (any, error) {
	offsets, err := d.admin.ListEndOffsets(ctx, c.Topic)
	return listed(offsets, err, c)
}

// kadm turns "no such record" into the end of the log and leaves the timestamp at -1.
func (d *driver) offsetForTime(ctx context.Context, c command) (any, error) {
	offsets, err := d.admin.ListOffsetsAfterMilli(ctx, c.Timestamp, c.Topic)
	if err != nil {
		return nil, err
	}
	found, _ := offsets.Lookup(c.Topic, c.Partition)
	if found.Timestamp < 0 {
		return nil, found.Err
	}
	return found.Offset, found.Err
}

func (d *driver) deleteRecords(ctx context.Context, c command) (any, error) {
	wanted := kadm.Offsets{}
	wanted.AddOffset(c.Topic, c.Partition, c.Before, -1)
	answers, err := d.admin.DeleteRecords(ctx, wanted)
	if err != nil {
		return nil, err
	}
	answer, _ := answers.Lookup(c.Topic, c.Partition)
	return answer.LowWatermark, answer.Err
}

func (d *driver) run(c command) (any, error) {
	verbs := map[string]func(context.Context, command) (any, error){
		"create_topic":           d.createTopic,
		"delete_topic":           d.deleteTopic,
		"list_topics":            d.listTopics,
		"create_partitions":      d.createPartitions,
		"partition_count":        d.partitionCount,
		"describe_topic_configs": d.describeTopicConfigs,
		"alter_topic_configs":    d.alterTopicConfigs,
		"produce":                d.produce,
		"consume":                d.consume,
		"earliest_offset":        d.earliestOffset,
		"latest_offset":          d.latestOffset,
		"offset_for_time":        d.offsetForTime,
		"delete_records":         d.deleteRecords,
	}
	verb, known := verbs[c.Op]
	if !known {
		return nil, fmt.Errorf("no verb %q", c.Op)
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	return verb(ctx, c)
}

func answer(result any, err error) map[string]any {
	if err == nil {
		return map[string]any{"ok": result}
	}
	code := int16(-1)
	var known *kerr.Error
	if errors.As(err, &known) {
		code = known.Code
	}
	return map[string]any{"error": code, "detail": err.Error()}
}

// The driver of the conformance tests (answer), or a client of the fault tests (write, read).
func main() {
	if err := play(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func play(role string, words []string) error {
	switch role {
	case "answer":
		return answers(words[0])
	case "writes", "transacts", "reads":
		return aDay(role, words[0], words[1], words[2:])
	case "write":
		return write(words[0], words[1], words[2])
	case "read":
		partitions, err := strconv.Atoi(words[2])
		if err != nil {
			return err
		}
		return read(words[0], words[1], partitions)
	}
	return fmt.Errorf("no role %q", role)
}

func answers(bootstrap string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.MetadataMinAge(10*time.Millisecond))
	if err != nil {
		return err
	}
	defer client.Close()
	d := &driver{bootstrap: bootstrap, client: client, admin: kadm.NewClient(client)}
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	in := json.NewDecoder(lines)
	for {
		c := command{}
		if in.Decode(&c) != nil {
			return nil
		}
		if err := out.Encode(answer(d.run(c))); err != nil {
			return nil
		}
	}
}
