package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sort"
	"sync"
	"time"

	"davit/peerpb"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Bytes outside ASCII and a bare percent sign: what percent-encoding must carry.
const oddMessage = "Gerät belegt: „gpu-0“ 100% 试"

// No scenario's ordinary call takes longer, on the slowest of builds.
const callTimeout = 30 * time.Second

type client struct {
	conn *grpc.ClientConn
	peer peerpb.PeerClient
	arg  int // the scenario's number, 0 for its default
}

type scenario func(c *client) error

var scenarios = map[string]scenario{
	"unary":                 testUnary,
	"status":                testStatus,
	"status-after-messages": testStatusAfterMessages,
	"unknown-method":        testUnknownMethod,
	"unknown-service":       testUnknownService,
	"stream":                testStream,
	"deadline":              testDeadline,
	"cancel":                testCancel,
	"large":                 testLarge,
	"many":                  testMany,
	"reuse":                 testReuse,
	"interrupted":           testInterrupted,
	"reconnect":             testReconnect,
}

func (c *client) number(byDefault int) int {
	if c.arg > 0 {
		return c.arg
	}
	return byDefault
}

// Calls Unary with time enough, and checks that the answer carries what was asked for.
func (c *client) call(ask *peerpb.Ask, options ...grpc.CallOption) error {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	answer, err := c.peer.Unary(ctx, ask, options...)
	if err != nil {
		return err
	}
	return checkPayload(ask, answer.Payload)
}

func checkPayload(ask *peerpb.Ask, got []byte) error {
	want := ask.Payload
	if ask.ReplyBytes > 0 {
		want = makePattern(int(ask.ReplyBytes))
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("payload of %d bytes differs from the %d expected", len(got), len(want))
	}
	return nil
}

func checkStatus(err error, code codes.Code, message string) error {
	got := status.Convert(err)
	if got.Code() != code || got.Message() != message {
		return fmt.Errorf("status %d %q, expected %d %q", got.Code(), got.Message(), code, message)
	}
	return nil
}

func checkCode(err error, code codes.Code) error {
	if status.Code(err) != code {
		return fmt.Errorf("%v, expected %v", err, code)
	}
	return nil
}

// Reads a stream to its end; returns the number of answers, which must come in order.
func readAll(stream peerpb.Peer_WatchClient, ask *peerpb.Ask) (int, error) {
	for n := 0; ; n++ {
		answer, err := stream.Recv()
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		if answer.Index != uint32(n) {
			return n, fmt.Errorf("answer %d has index %d", n, answer.Index)
		}
		if err := checkPayload(ask, answer.Payload); err != nil {
			return n, err
		}
	}
}

func (c *client) seen() (*peerpb.Counts, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	return c.peer.Seen(ctx, &peerpb.Empty{})
}

// Asks the server until its counts are as `good` wants them, for up to two seconds.
func (c *client) waitSeen(what string, good func(*peerpb.Counts) bool) error {
	end := time.Now().Add(2 * time.Second)
	for {
		counts, err := c.seen()
		if err != nil {
			return err
		}
		if good(counts) {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("server does not show %s: %v", what, counts)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func testUnary(c *client) error {
	if err := c.call(&peerpb.Ask{Payload: []byte("hello")}); err != nil {
		return err
	}
	if err := c.call(&peerpb.Ask{}); err != nil { // an empty message both ways
		return fmt.Errorf("empty: %v", err)
	}
	return c.call(&peerpb.Ask{Payload: []byte("x"), ReplyBytes: 100000})
}

func testStatus(c *client) error {
	err := c.call(&peerpb.Ask{Code: 9, Message: oddMessage})
	if err := checkStatus(err, codes.FailedPrecondition, oddMessage); err != nil {
		return err
	}
	for code := uint32(1); code <= 16; code++ {
		err := c.call(&peerpb.Ask{Code: code})
		if err := checkStatus(err, codes.Code(code), ""); err != nil {
			return err
		}
	}
	return nil
}

func testStatusAfterMessages(c *client) error {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	ask := &peerpb.Ask{Payload: []byte("one of three"), Count: 3, Code: 9, Message: oddMessage}
	stream, err := c.peer.Watch(ctx, ask)
	if err != nil {
		return err
	}
	n, err := readAll(stream, ask)
	if n != 3 {
		return fmt.Errorf("%d answers, expected 3 (%v)", n, err)
	}
	return checkStatus(err, codes.FailedPrecondition, oddMessage)
}

func invokeUnknown(c *client, path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	err := c.conn.Invoke(ctx, path, &peerpb.Ask{Payload: []byte("x")}, &peerpb.Answer{})
	if err := checkCode(err, codes.Unimplemented); err != nil {
		return err
	}
	return testUnary(c)
}

func testUnknownMethod(c *client) error {
	return invokeUnknown(c, "/davit.test.Peer/Nothing")
}

func testUnknownService(c *client) error {
	return invokeUnknown(c, "/davit.test.Nobody/Unary")
}

func testStream(c *client) error {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	want := c.number(100)
	ask := &peerpb.Ask{Count: uint32(want), ReplyBytes: 10000}
	stream, err := c.peer.Watch(ctx, ask)
	if err != nil {
		return err
	}
	n, err := readAll(stream, ask)
	if err != nil {
		return err
	}
	if n != want {
		return fmt.Errorf("%d answers, expected %d", n, want)
	}
	return nil
}

func testDeadline(c *client) error {
	before, err := c.seen()
	if err != nil {
		return err
	}
	started := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err = c.peer.Unary(ctx, &peerpb.Ask{DelayMs: 5000})
	if err := checkCode(err, codes.DeadlineExceeded); err != nil {
		return err
	}
	if took := time.Since(started); took > 2*time.Second {
		return fmt.Errorf("the deadline of 200 ms took %v", took)
	}
	err = c.waitSeen("the call as cancelled and ended", func(counts *peerpb.Counts) bool {
		return counts.Cancelled > before.Cancelled && counts.Open == 0
	})
	if err != nil {
		return err
	}

	ctx, cancel = context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	answer, err := c.peer.Unary(ctx, &peerpb.Ask{})
	if err != nil {
		return err
	}
	if !answer.HadDeadline {
		return errors.New("the server did not see the deadline of a call")
	}
	answer, err = c.peer.Unary(context.Background(), &peerpb.Ask{})
	if err != nil {
		return err
	}
	if answer.HadDeadline {
		return errors.New("the server saw a deadline where there was none")
	}
	return nil
}

func testCancel(c *client) error {
	before, err := c.seen()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stream, err := c.peer.Watch(ctx, &peerpb.Ask{DelayMs: 10})
	if err != nil {
		return err
	}
	if _, err := stream.Recv(); err != nil {
		return err
	}
	cancel()
	for err == nil {
		_, err = stream.Recv()
	}
	if err := checkCode(err, codes.Canceled); err != nil {
		return err
	}
	return c.waitSeen("the stream as cancelled and ended", func(counts *peerpb.Counts) bool {
		return counts.Cancelled > before.Cancelled && counts.Open == 0
	})
}

func testLarge(c *client) error {
	size := c.number(32) << 20
	if err := c.call(&peerpb.Ask{Payload: makePattern(size)}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	ask := &peerpb.Ask{Count: 1, ReplyBytes: uint32(size)}
	stream, err := c.peer.Watch(ctx, ask)
	if err != nil {
		return err
	}
	n, err := readAll(stream, ask)
	if err == nil && n != 1 {
		err = fmt.Errorf("%d answers, expected 1", n)
	}
	return err
}

func testMany(c *client) error {
	n := c.number(1000)
	failures := make(chan error, n)
	var wait sync.WaitGroup
	for i := 0; i < n; i++ {
		wait.Add(1)
		go func(i int) {
			defer wait.Done()
			ask := &peerpb.Ask{Payload: []byte(fmt.Sprint("call ", i)), DelayMs: 300}
			if err := c.call(ask); err != nil {
				failures <- err
			}
		}(i)
	}
	wait.Wait()
	if len(failures) > 0 {
		return fmt.Errorf("%d of %d calls failed, one with: %v", len(failures), n, <-failures)
	}
	return testUnary(c)
}

func testReuse(c *client) error {
	for i := 0; i < c.number(2000); i++ {
		if err := c.call(&peerpb.Ask{Payload: []byte(fmt.Sprint("call ", i))}); err != nil {
			return fmt.Errorf("call %d: %v", i, err)
		}
	}
	return nil
}

func testInterrupted(c *client) error {
	stream, err := c.peer.Watch(context.Background(), &peerpb.Ask{DelayMs: 50})
	if err != nil {
		return err
	}
	if _, err := stream.Recv(); err != nil {
		return err
	}
	ended := make(chan error, 2)
	go func() {
		_, err := c.peer.Unary(context.Background(), &peerpb.Ask{DelayMs: 60000})
		ended <- err
	}()
	err = c.waitSeen("both calls", func(counts *peerpb.Counts) bool { return counts.Open >= 2 })
	if err != nil {
		return err
	}
	go func() {
		var err error
		for err == nil {
			_, err = stream.Recv()
		}
		ended <- err
	}()

	fmt.Println("started")
	limit := time.After(5 * time.Second)
	for i := 0; i < 2; i++ {
		select {
		case err := <-ended:
			if err := checkCode(err, codes.Unavailable); err != nil {
				return err
			}
		case <-limit:
			return errors.New("a call was still open after 5 s")
		}
	}
	return nil
}

func testReconnect(c *client) error {
	if err := testUnary(c); err != nil {
		return err
	}
	fmt.Println("started")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return fmt.Errorf("stdin: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := c.peer.Unary(ctx, &peerpb.Ask{}, grpc.WaitForReady(true))
	return err
}

func runClient(socket string, args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, usage)
		return 2
	}
	name := args[0]
	flags := flag.NewFlagSet("client", flag.ExitOnError)
	arg := flags.Int("arg", 0, "the scenario's number, where it has one")
	_ = flags.Parse(args[1:]) // ExitOnError

	run, found := scenarios[name]
	if !found {
		names := []string{}
		for known := range scenarios {
			names = append(names, known)
		}
		sort.Strings(names)
		fmt.Printf("FAIL %s: no such scenario, there are %v\n", name, names)
		return 2
	}
	conn, err := dial(socket)
	if err == nil {
		defer conn.Close()
		err = run(&client{conn: conn, peer: peerpb.NewPeerClient(conn), arg: *arg})
	}
	if err != nil {
		fmt.Printf("FAIL %s: %v\n", name, err)
		return 1
	}
	fmt.Printf("ok %s\n", name)
	return 0
}
