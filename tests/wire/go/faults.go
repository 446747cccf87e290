// The writer and the reader of the fault tests: lines in, lines out. tests/faults/clients.py is the other end.
// write: "send <partition> <value> <padding>" is answered, whenever it is decided, by "ok <value> <offset>" or
// "failed <value> <why>". read: "assign begin" or "assign <n>" (n before the end) begins anew and is answered by
// "assigned"; "poll <ms>" by "polled" and "<partition>:<offset>:<value>" for each record.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// As a careful user has it, with short backoffs: what is measured is the cluster and not the client's patience.
func careful(bootstrap string, more ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(append(loggingIn(), []kgo.Opt{
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...),
		kgo.DialTimeout(time.Second),
		kgo.RequestTimeoutOverhead(5 * time.Second),
		kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.RetryBackoffFn(func(tries int) time.Duration {
			return min(time.Duration(20*tries)*time.Millisecond, 200*time.Millisecond)
		}),
	}...), more...)...)
}

func write(bootstrap, topic, acks string) error {
	options := []kgo.Opt{
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(2 * time.Millisecond),
		kgo.RecordDeliveryTimeout(120 * time.Second),
		kgo.ProduceRequestTimeout(5 * time.Second), // and 5 for the way: a node that says nothing is given up after 10
		kgo.StopProducerOnDataLossDetected(),       // or it would go on under another id, and might write twice
	}
	if acks != "all" {
		options = append(options, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	}
	client, err := careful(bootstrap, options...)
	if err != nil {
		return err
	}
	defer client.Close()
	var printing sync.Mutex
	say := func(r *kgo.Record, err error) {
		value, _, _ := strings.Cut(string(r.Value), " ")
		printing.Lock()
		defer printing.Unlock()
		if err == nil {
			fmt.Println("ok", value, r.Offset)
		} else {
			fmt.Println("failed", value, strings.ReplaceAll(err.Error(), "\n", " "))
		}
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.SplitN(lines.Text(), " ", 3)
		partition, err := strconv.Atoi(words[1])
		if err != nil {
			return err
		}
		client.Produce(context.Background(), &kgo.Record{Topic: topic, Partition: int32(partition), Value: []byte(words[2])}, say)
	}
	return client.Flush(context.Background())
}

func assigned(bootstrap, topic string, partitions int, start string) (*kgo.Client, error) {
	offset := kgo.NewOffset().AtStart()
	if start != "begin" {
		before, err := strconv.ParseInt(start, 10, 64)
		if err != nil {
			return nil, err
		}
		offset = kgo.NewOffset().AtEnd().Relative(-before)
	}
	places := map[int32]kgo.Offset{}
	for p := range partitions {
		places[int32(p)] = offset
	}
	return careful(bootstrap,
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: places}),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(100*time.Millisecond),
	)
}

func read(bootstrap, topic string, partitions int) error {
	var client *kgo.Client
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if words[0] == "assign" {
			if client != nil {
				client.Close()
			}
			var err error
			if client, err = assigned(bootstrap, topic, partitions, words[1]); err != nil {
				return err
			}
			fmt.Println("assigned")
			continue
		}
		patience, err := strconv.Atoi(words[1])
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(patience)*time.Millisecond)
		answer := []string{"polled"}
		for _, r := range client.PollRecords(ctx, 500).Records() { // errors are the client's to repeat
			value, _, _ := strings.Cut(string(r.Value), " ")
			answer = append(answer, fmt.Sprintf("%d:%d:%s", r.Partition, r.Offset, value))
		}
		cancel()
		fmt.Println(strings.Join(answer, " "))
	}
	if client != nil {
		client.Close()
	}
	return nil
}
