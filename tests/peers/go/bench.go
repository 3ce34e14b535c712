package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"davit/peerpb"
)

const inFlight = 64

type bench struct {
	socket      string
	calls       int
	connections int
	ask         *peerpb.Ask
}

type result map[string]interface{}

// The p-th per mille of sorted durations, in microseconds.
func percentile(sorted []time.Duration, p int) float64 {
	return float64(sorted[(len(sorted)-1)*p/1000].Nanoseconds()) / 1000
}

// Runs `work`, which makes n calls or takes n messages, and adds what it cost on both sides.
func (b *bench) measured(peer peerpb.PeerClient, n int, per string,
	work func() error) (result, time.Duration, error) {
	ctx := context.Background()
	before, err := peer.Seen(ctx, &peerpb.Empty{})
	if err != nil {
		return nil, 0, err
	}
	cpu, started := cpuMicros(), time.Now()
	if err := work(); err != nil {
		return nil, 0, err
	}
	took := time.Since(started)
	cpu = cpuMicros() - cpu
	after, err := peer.Seen(ctx, &peerpb.Empty{})
	if err != nil {
		return nil, 0, err
	}
	return result{
		"client_cpu_us_per_" + per: float64(cpu) / float64(n),
		"server_cpu_us_per_" + per: float64(after.CpuUs-before.CpuUs) / float64(n),
	}, took, nil
}

// Sequential calls, or many at once: `workers` goroutines share the calls.
func (b *bench) unary(workers int) (result, error) {
	conn, err := dial(b.socket)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	peer := peerpb.NewPeerClient(conn)

	run := func(n int) ([]time.Duration, error) {
		times := make([]time.Duration, n)
		failures := make([]error, workers)
		var next int64
		work := func(worker int) {
			for i := atomic.AddInt64(&next, 1) - 1; i < int64(n); i = atomic.AddInt64(&next, 1) - 1 {
				started := time.Now()
				if _, err := peer.Unary(context.Background(), b.ask); err != nil {
					failures[worker] = err
					return
				}
				times[i] = time.Since(started)
			}
		}
		var wait sync.WaitGroup
		for worker := 1; worker < workers; worker++ {
			wait.Add(1)
			go func(worker int) {
				defer wait.Done()
				work(worker)
			}(worker)
		}
		work(0)
		wait.Wait()
		for _, err := range failures {
			if err != nil {
				return nil, err
			}
		}
		return times, nil
	}

	if _, err := run(b.calls/10 + 200); err != nil { // warm up
		return nil, err
	}
	var times []time.Duration
	got, took, err := b.measured(peer, b.calls, "call", func() (err error) {
		times, err = run(b.calls)
		return err
	})
	if err != nil {
		return nil, err
	}
	sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
	got["p50_us"] = percentile(times, 500)
	got["p99_us"] = percentile(times, 990)
	got["calls_per_s"] = float64(b.calls) / took.Seconds()
	return got, nil
}

func (b *bench) stream() (result, error) {
	conn, err := dial(b.socket)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	peer := peerpb.NewPeerClient(conn)

	run := func(n int) error {
		ask := &peerpb.Ask{Count: uint32(n), ReplyBytes: b.ask.ReplyBytes}
		stream, err := peer.Watch(context.Background(), ask)
		if err != nil {
			return err
		}
		for i := 0; ; i++ {
			if _, err := stream.Recv(); err == io.EOF && i == n {
				return nil
			} else if err != nil {
				return fmt.Errorf("after %d of %d messages: %v", i, n, err)
			}
		}
	}

	if err := run(b.calls/10 + 5); err != nil { // warm up
		return nil, err
	}
	got, took, err := b.measured(peer, b.calls, "message", func() error { return run(b.calls) })
	if err != nil {
		return nil, err
	}
	got["ms_per_message"] = took.Seconds() * 1000 / float64(b.calls)
	return got, nil
}

// A fresh connection and its first call.
func (b *bench) connect() (result, error) {
	once := func() error {
		conn, err := dial(b.socket)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = peerpb.NewPeerClient(conn).Unary(context.Background(), b.ask)
		return err
	}
	for i := 0; i < b.calls/10+20; i++ { // warm up
		if err := once(); err != nil {
			return nil, err
		}
	}
	times := make([]time.Duration, b.calls)
	for i := range times {
		started := time.Now()
		if err := once(); err != nil {
			return nil, err
		}
		times[i] = time.Since(started)
	}
	sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
	return result{"p50_us": percentile(times, 500), "p99_us": percentile(times, 990)}, nil
}

// Connections that have made one call each and now do nothing.
func (b *bench) idle() (result, error) {
	var first peerpb.PeerClient
	for i := 0; i < b.connections; i++ {
		conn, err := dial(b.socket)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		peer := peerpb.NewPeerClient(conn)
		if _, err := peer.Unary(context.Background(), b.ask); err != nil {
			return nil, err
		}
		if i == 0 {
			first = peer
		}
	}
	counts, err := first.Seen(context.Background(), &peerpb.Empty{})
	if err != nil {
		return nil, err
	}
	return result{"client_rss_bytes": rssBytes(), "server_rss_bytes": counts.RssBytes}, nil
}

func runBench(socket string, args []string) int {
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	mode := flags.String("mode", "seq", "seq, inflight, stream500k, connect or idle")
	calls := flags.Int("calls", 1000, "calls, or messages of a stream")
	sizeRequest := flags.Int("size-request", 339, "bytes of payload in a request")
	sizeReply := flags.Int("size-reply", 0, "bytes of payload in a reply; 1603, or 500000 in a stream")
	connections := flags.Int("connections", 1, "connections in mode idle")
	_ = flags.Parse(args) // ExitOnError

	if *sizeReply == 0 {
		*sizeReply = 1603
		if *mode == "stream500k" {
			*sizeReply = 500000
		}
	}
	b := &bench{socket: socket, calls: *calls, connections: *connections,
		ask: &peerpb.Ask{Payload: makePattern(*sizeRequest), ReplyBytes: uint32(*sizeReply)}}
	if b.calls < 1 || b.connections < 1 {
		fmt.Fprintln(os.Stderr, usage)
		return 2
	}
	modes := map[string]func() (result, error){
		"seq":        func() (result, error) { return b.unary(1) },
		"inflight":   func() (result, error) { return b.unary(inFlight) },
		"stream500k": b.stream,
		"connect":    b.connect,
		"idle":       b.idle,
	}
	run, found := modes[*mode]
	if !found {
		fmt.Fprintln(os.Stderr, usage)
		return 2
	}
	got, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "go-peer: bench:", err)
		return 1
	}
	line, err := json.Marshal(got)
	if err != nil {
		fmt.Fprintln(os.Stderr, "go-peer: bench:", err)
		return 1
	}
	fmt.Println(string(line))
	return 0
}
