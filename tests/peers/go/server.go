package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"davit/peerpb"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// How long calls may run on after SIGTERM.
const stopGrace = time.Second

type peerServer struct {
	calls, cancelled, open uint64

	patternLock sync.Mutex
	pattern     []byte // the longest asked for so far; shorter ones are its beginning
}

func (s *peerServer) begin() {
	atomic.AddUint64(&s.calls, 1)
	atomic.AddUint64(&s.open, 1)
}

func (s *peerServer) end(ctx context.Context) {
	if ctx.Err() != nil {
		atomic.AddUint64(&s.cancelled, 1)
	}
	atomic.AddUint64(&s.open, ^uint64(0))
}

func (s *peerServer) payload(ask *peerpb.Ask) []byte {
	n := int(ask.ReplyBytes)
	if n == 0 {
		return ask.Payload
	}
	s.patternLock.Lock()
	defer s.patternLock.Unlock()
	if len(s.pattern) < n {
		s.pattern = makePattern(n)
	}
	return s.pattern[:n]
}

func pause(ctx context.Context, ms uint32) error {
	if ms > 0 {
		timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	return nil
}

func finish(ask *peerpb.Ask) error {
	if ask.Code == 0 {
		return nil
	}
	return status.Error(codes.Code(ask.Code), ask.Message)
}

func (s *peerServer) Unary(ctx context.Context, ask *peerpb.Ask) (*peerpb.Answer, error) {
	s.begin()
	defer s.end(ctx)

	if err := pause(ctx, ask.DelayMs); err != nil {
		return nil, err
	}
	if err := finish(ask); err != nil {
		return nil, err
	}
	_, hadDeadline := ctx.Deadline()
	return &peerpb.Answer{Payload: s.payload(ask), HadDeadline: hadDeadline}, nil
}

func (s *peerServer) Watch(ask *peerpb.Ask, stream peerpb.Peer_WatchServer) error {
	ctx := stream.Context()
	s.begin()
	defer s.end(ctx)

	_, hadDeadline := ctx.Deadline()
	for i := uint32(0); ask.Count == 0 || i < ask.Count; i++ {
		if err := pause(ctx, ask.DelayMs); err != nil {
			return err
		}
		answer := &peerpb.Answer{Payload: s.payload(ask), Index: i, HadDeadline: hadDeadline}
		if err := stream.Send(answer); err != nil {
			return err
		}
		if ask.Count == 0 && ask.DelayMs == 0 {
			<-ctx.Done()
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	return finish(ask)
}

func (s *peerServer) Seen(context.Context, *peerpb.Empty) (*peerpb.Counts, error) {
	return &peerpb.Counts{
		Calls:     atomic.LoadUint64(&s.calls),
		Cancelled: atomic.LoadUint64(&s.cancelled),
		Open:      atomic.LoadUint64(&s.open),
		CpuUs:     cpuMicros(),
		RssBytes:  rssBytes(),
	}, nil
}

func runServer(socket string, _ []string) int {
	_ = os.Remove(socket) // stale from an earlier run; gone is what we want
	listener, err := net.Listen("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, "go-peer:", err)
		return 1
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(messageBytesMax))
	peerpb.RegisterPeerServer(server, &peerServer{})

	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		<-signals
		kill := time.AfterFunc(stopGrace, server.Stop)
		server.GracefulStop()
		kill.Stop()
	}()

	fmt.Println("ready")
	if err := server.Serve(listener); err != nil {
		fmt.Fprintln(os.Stderr, "go-peer:", err)
		return 1
	}
	return 0
}
