// Command franz runs franz-go against the broker.
//
//	franz roundtrip [CODEC…]        produce, list, consume in a group, check all, delete
//	franz produce TOPIC COUNT MS    one record every MS milliseconds; prints each acknowledged place
//	franz member TOPIC GROUP        a group member that prints what it read and what it committed
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const partitions = 3

var (
	records = 10000
	codecs  = []string{"none", "gzip", "snappy", "lz4", "zstd"}
	codecOf = map[string]kgo.CompressionCodec{
		"none":   kgo.NoCompression(),
		"gzip":   kgo.GzipCompression(),
		"snappy": kgo.SnappyCompression(),
		"lz4":    kgo.Lz4Compression(),
		"zstd":   kgo.ZstdCompression(),
	}
)

// plan is one topic's worth of records: each is a pure function of its index, the codec and the first timestamp.
type plan struct {
	codec, topic, group string
	firstMs             int64
}

// place is where the broker said a record lies.
type place struct {
	partition int32
	offset    int64
}

func newPlan(codec string) plan {
	firstMs := time.Now().UnixMilli() - int64(records)
	topic := fmt.Sprintf("franz-go-%s-%d", codec, firstMs)
	return plan{codec, topic, topic + "-group", firstMs}
}

func (p plan) record(index int) *kgo.Record {
	return &kgo.Record{
		Topic:     p.topic,
		Key:       fmt.Appendf(nil, "key-%d", index%997),
		Value:     fmt.Appendf(nil, "value-%d-%s", index, strings.Repeat("skerry", index%50)),
		Timestamp: time.UnixMilli(p.firstMs + int64(index)),
		Headers: []kgo.RecordHeader{
			{Key: "index", Value: fmt.Append(nil, index)},
			{Key: "codec", Value: []byte(p.codec)},
			{Key: "index", Value: []byte("again")},
			{Key: "empty", Value: []byte{}},
			{Key: "null", Value: nil},
		},
	}
}

func client(more ...kgo.Opt) (*kgo.Client, error) {
	common := []kgo.Opt{kgo.SeedBrokers(os.Getenv("SKERRY_BOOTSTRAP")), kgo.AllowAutoTopicCreation()}
	config, err := security()
	if err != nil {
		return nil, err
	}
	if config != nil {
		common = append(common, kgo.DialTLSConfig(config))
	}
	return kgo.NewClient(append(common, more...)...)
}

// PEM files: the CA that the broker's certificate is from, which means TLS; and a certificate of our own with its key.
func security() (*tls.Config, error) {
	ca, identity := os.Getenv("SKERRY_CA"), os.Getenv("SKERRY_IDENTITY")
	if ca == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(pem)
	if identity != "" {
		own, err := tls.LoadX509KeyPair(identity, identity)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}

func roundtrip(ctx context.Context, codec string) error {
	p := newPlan(codec)
	cl, err := client()
	if err != nil {
		return err
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	if _, err := admin.CreateTopic(ctx, partitions, 1, nil, p.topic); err != nil {
		return err
	}
	// Apache Kafka answers the creation before its brokers know of it.
	for described := 0; described != partitions; {
		topics, err := admin.ListTopics(ctx, p.topic)
		if err != nil {
			return fmt.Errorf("%d partitions in the description: %w", described, err)
		}
		described = len(topics[p.topic].Partitions)
	}
	described, err := admin.DescribeTopicConfigs(ctx, p.topic)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(described[0].Configs, func(c kadm.Config) bool {
		return c.Key == "max.message.bytes" && c.Source == kmsg.ConfigSourceDefaultConfig
	}) {
		return fmt.Errorf("max.message.bytes is not among the defaults described: %v", described[0].Configs)
	}
	acked, err := produce(ctx, p)
	if err != nil {
		return err
	}
	following, err := consume(ctx, p, acked)
	if err != nil {
		return err
	}
	if err := offsets(ctx, admin, p, acked, following); err != nil {
		return err
	}
	if err := groups(ctx, admin, p); err != nil {
		return err
	}
	if _, err := admin.DeleteTopic(ctx, p.topic); err != nil {
		return err
	}
	for {
		topics, err := admin.ListTopics(ctx)
		if err != nil {
			return err
		}
		if !topics.Has(p.topic) {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func produce(ctx context.Context, p plan) (map[place]int, error) {
	cl, err := client(kgo.ProducerBatchCompression(codecOf[p.codec]), kgo.ProducerLinger(20*time.Millisecond))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	batch := make([]*kgo.Record, records)
	for index := range batch {
		batch[index] = p.record(index)
	}
	acked := make(map[place]int, records)
	for _, result := range cl.ProduceSync(ctx, batch...) {
		if result.Err != nil {
			return nil, result.Err
		}
		index, err := strconv.Atoi(string(result.Record.Headers[0].Value))
		if err != nil {
			return nil, err
		}
		acked[place{result.Record.Partition, result.Record.Offset}] = index
	}
	if len(acked) != records {
		return nil, fmt.Errorf("%d places acknowledged for %d records", len(acked), records)
	}
	return acked, nil
}

// consume reads the topic in a group, checks every record and commits; it answers the next offset of each partition.
func consume(ctx context.Context, p plan, acked map[place]int) (map[int32]int64, error) {
	cl, err := client(
		kgo.ConsumerGroup(p.group), kgo.ConsumeTopics(p.topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	following := map[int32]int64{}
	for read := 0; read < records; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("%d records read: %w", read, err)
		}
		for _, got := range fetches.Records() {
			if err := check(p, acked, following, got); err != nil {
				return nil, err
			}
			read++
		}
	}
	return following, cl.CommitUncommittedOffsets(ctx)
}

func check(p plan, acked map[place]int, following map[int32]int64, got *kgo.Record) error {
	at := place{got.Partition, got.Offset}
	if got.Offset != following[got.Partition] {
		return fmt.Errorf("%v came where offset %d was next", at, following[got.Partition])
	}
	following[got.Partition]++
	index, ok := acked[at]
	if !ok {
		return fmt.Errorf("nothing was acknowledged at %v", at)
	}
	want := p.record(index)
	switch {
	case string(got.Key) != string(want.Key):
		return fmt.Errorf("key of record %d at %v: %q", index, at, got.Key)
	case string(got.Value) != string(want.Value):
		return fmt.Errorf("value of record %d at %v: %q", index, at, got.Value)
	case !got.Timestamp.Equal(want.Timestamp):
		return fmt.Errorf("timestamp of record %d at %v: %v", index, at, got.Timestamp)
	case !reflect.DeepEqual(got.Headers, want.Headers):
		return fmt.Errorf("headers of record %d at %v: %v", index, at, got.Headers)
	}
	return nil
}

func offsets(ctx context.Context, admin *kadm.Client, p plan, acked map[place]int, following map[int32]int64) error {
	committed, err := admin.FetchOffsets(ctx, p.group)
	if err != nil {
		return err
	}
	starts, err := admin.ListStartOffsets(ctx, p.topic)
	if err != nil {
		return err
	}
	ends, err := admin.ListEndOffsets(ctx, p.topic)
	if err != nil {
		return err
	}
	for partition, next := range following {
		at, _ := committed.Lookup(p.topic, partition)
		start, _ := starts.Lookup(p.topic, partition)
		end, _ := ends.Lookup(p.topic, partition)
		if at.At != next || start.Offset != 0 || end.Offset != next {
			return fmt.Errorf("partition %d: committed %d, start %d, end %d; read up to %d", partition, at.At, start.Offset, end.Offset, next)
		}
	}
	middle := records / 2
	found, err := admin.ListOffsetsAfterMilli(ctx, p.firstMs+int64(middle), p.topic)
	if err != nil {
		return err
	}
	for at, index := range acked {
		if index != middle {
			continue
		}
		if by, _ := found.Lookup(p.topic, at.partition); by.Offset != at.offset {
			return fmt.Errorf("record %d is at %v; by its timestamp %d was found", middle, at, by.Offset)
		}
	}
	return nil
}

func groups(ctx context.Context, admin *kadm.Client, p plan) error {
	described, err := admin.DescribeGroups(ctx, p.group)
	if err != nil {
		return err
	}
	if state := described[p.group].State; state != "Empty" {
		return fmt.Errorf("the group's state is %q", state)
	}
	listed, err := admin.ListGroups(ctx)
	if err != nil {
		return err
	}
	if _, ok := listed[p.group]; !ok {
		return errors.New("the group is not listed")
	}
	_, err = admin.DeleteGroup(ctx, p.group)
	return err
}

func produceSlowly(ctx context.Context, topic string, count int, pause time.Duration) error {
	cl, err := client()
	if err != nil {
		return err
	}
	defer cl.Close()
	for index := range count {
		record := &kgo.Record{Topic: topic, Key: fmt.Appendf(nil, "key-%d", index), Value: fmt.Appendf(nil, "value-%d", index)}
		if err := cl.ProduceSync(ctx, record).FirstErr(); err != nil {
			return err
		}
		fmt.Println("acked", record.Partition, record.Offset)
		time.Sleep(pause)
	}
	return nil
}

func member(ctx context.Context, topic, group string) error {
	cl, err := client(
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(6*time.Second), kgo.RebalanceTimeout(6*time.Second), kgo.HeartbeatInterval(500*time.Millisecond),
	)
	if err != nil {
		return err
	}
	for {
		fetches := cl.PollRecords(ctx, 50)
		for _, record := range fetches.Records() {
			fmt.Println("read", record.Partition, record.Offset)
		}
		if !fetches.Empty() {
			if err := cl.CommitRecords(ctx, fetches.Records()...); err != nil {
				fmt.Println("note", err)
			} else {
				fetches.EachPartition(func(p kgo.FetchTopicPartition) {
					if n := len(p.Records); n > 0 {
						fmt.Println("committed", p.Partition, p.Records[n-1].Offset+1)
					}
				})
			}
		}
		cl.AllowRebalance()
	}
}

// roundtrips runs the codecs named, or all, and answers how many failed.
func roundtrips(chosen []string) int {
	if len(chosen) == 0 {
		chosen = codecs
	}
	failed := 0
	for _, codec := range chosen {
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
		if err := roundtrip(ctx, codec); err != nil {
			failed++
			fmt.Printf("FAIL franz-go %s: %v\n", codec, err)
		} else {
			fmt.Printf("ok   franz-go %s: %d records in %.1f s\n", codec, records, time.Since(began).Seconds())
		}
		cancel()
	}
	fmt.Printf("%d passed, %d failed\n", len(chosen)-failed, failed)
	return failed
}

func main() {
	if n, err := strconv.Atoi(os.Getenv("RECORDS")); err == nil {
		records = n
	}
	ctx := context.Background()
	var err error
	switch args := os.Args[1:]; args[0] {
	case "roundtrip":
		if roundtrips(args[1:]) > 0 {
			os.Exit(1)
		}
	case "produce":
		count, _ := strconv.Atoi(args[2])
		pauseMs, _ := strconv.Atoi(args[3])
		err = produceSlowly(ctx, args[1], count, time.Duration(pauseMs)*time.Millisecond)
	case "member":
		err = member(ctx, args[1], args[2])
	default:
		err = fmt.Errorf("unknown mode %q", args[0])
	}
	if err != nil {
		fmt.Println("note", err)
		os.Exit(1)
	}
}
