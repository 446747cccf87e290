// A client of the secured day, in one role: write, transact or read in a group. It says what it did, a line each, until
// nothing more can be read from stdin. tests/wire/test_secured_day_elsewhere.py is the other end.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var saying sync.Mutex

func say(what, text string) {
	saying.Lock()
	defer saying.Unlock()
	fmt.Println(what, strings.ReplaceAll(text, "\n", " "))
}

func untilHungUp() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx
}

func aDay(role, bootstrap, name string, topics []string) error {
	options := append(loggingIn(), kgo.SeedBrokers(strings.Split(bootstrap, ",")...))
	ctx := untilHungUp()
	switch role {
	case "writes":
		return dayWriter(ctx, name, topics[0], options)
	case "transacts":
		return dayTransactor(ctx, name, topics[0], options)
	}
	return dayReader(ctx, name, topics, options)
}

func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(20 * time.Millisecond):
		return true
	}
}

func dayWriter(ctx context.Context, name, topic string, options []kgo.Opt) error {
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	for number := 1; pause(ctx); number++ {
		value := fmt.Sprintf("%s %d", name, number)
		client.Produce(context.Background(), &kgo.Record{Topic: topic, Value: []byte(value)}, func(_ *kgo.Record, err error) {
			if err != nil {
				say("trouble", err.Error())
			} else {
				say("wrote", value)
			}
		})
	}
	return client.Flush(context.Background())
}

func dayTransactor(ctx context.Context, name, topic string, options []kgo.Opt) error {
	client, err := kgo.NewClient(append(options, kgo.TransactionalID(name))...)
	if err != nil {
		return err
	}
	defer client.Close()
	for number := 1; pause(ctx); number++ {
		commit := kgo.TransactionEndTry(number%3 != 0)
		if err := client.BeginTransaction(); err != nil {
			return err
		}
		values := []string{fmt.Sprintf("%s %d a", name, number), fmt.Sprintf("%s %d b", name, number)}
		for _, value := range values {
			if !commit {
				say("aborted", value)
			}
			client.Produce(context.Background(), &kgo.Record{Topic: topic, Value: []byte(value)}, func(_ *kgo.Record, err error) {
				if err != nil {
					say("trouble", err.Error())
				}
			})
		}
		if err := client.Flush(context.Background()); err != nil {
			return err
		}
		if err := client.EndTransaction(context.Background(), commit); err != nil {
			return err
		}
		for _, value := range values {
			if commit {
				say("wrote", value)
			}
		}
	}
	return nil
}

func dayReader(ctx context.Context, name string, topics []string, options []kgo.Opt) error {
	client, err := kgo.NewClient(append(options,
		kgo.ConsumerGroup(name),
		kgo.ConsumeTopics(topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)...)
	if err != nil {
		return err
	}
	defer client.Close()
	for ctx.Err() == nil {
		for _, r := range client.PollFetches(ctx).Records() { // errors are the client's to repeat
			say("read", string(r.Value))
		}
	}
	return client.CommitUncommittedOffsets(context.Background())
}
