package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"davit/peerpb"

	"github.com/golang/protobuf/proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// Leaves messages as the bytes that they are on the wire.
type rawCodec struct{}

func (rawCodec) Marshal(v interface{}) ([]byte, error) {
	return *v.(*[]byte), nil
}

func (rawCodec) Unmarshal(data []byte, v interface{}) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}

func (rawCodec) Name() string {
	return "proto"
}

type outcome struct {
	Code      int    `json:"code"`
	Message   string `json:"message"`
	NMessages int    `json:"n_messages"`
	Bytes     int    `json:"bytes"`
	ElapsedMs int64  `json:"elapsed_ms"`
}

func callOnce(conn *grpc.ClientConn, path string, request []byte, timeout time.Duration,
	isStream bool, options []grpc.CallOption) outcome {
	var got outcome
	ctx, cancel := context.WithCancel(context.Background())
	if timeout > 0 {
		ctx, cancel = context.WithTimeout(context.Background(), timeout)
	}
	defer cancel()
	started := time.Now()
	err := func() error {
		if !isStream {
			var reply []byte
			err := conn.Invoke(ctx, path, &request, &reply, options...)
			if err == nil {
				got.NMessages, got.Bytes = 1, len(reply)
			}
			return err
		}
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, path, options...)
		if err != nil {
			return err
		}
		if err := stream.SendMsg(&request); err != nil && err != io.EOF {
			return err // EOF: RecvMsg has the status
		}
		if err := stream.CloseSend(); err != nil {
			return err
		}
		for {
			var reply []byte
			if err := stream.RecvMsg(&reply); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
			got.NMessages++
			got.Bytes += len(reply)
		}
	}()
	result := status.Convert(err)
	got.Code, got.Message = int(result.Code()), result.Message()
	got.ElapsedMs = time.Since(started).Milliseconds()
	return got
}

func runCall(socket string, args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, usage)
		return 2
	}
	flags := flag.NewFlagSet("call", flag.ExitOnError)
	timeoutMs := flags.Int("timeout-ms", 0, "deadline of each call; 0: none")
	payloadBytes := flags.Int("payload-bytes", 0, "size of the request's payload")
	count := flags.Int("count", 1, "calls to make at once")
	isStream := flags.Bool("stream", false, "the method is server-streaming")
	waitForReady := flags.Bool("wait-for-ready", false, "wait for a connection")
	_ = flags.Parse(args[1:]) // ExitOnError

	conn, err := dial(socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, "go-peer:", err)
		return 1
	}
	defer conn.Close()
	request, err := proto.Marshal(&peerpb.Ask{Payload: makePattern(*payloadBytes)})
	if err != nil {
		fmt.Fprintln(os.Stderr, "go-peer:", err)
		return 1
	}
	options := []grpc.CallOption{grpc.ForceCodec(rawCodec{}), grpc.WaitForReady(*waitForReady)}
	timeout := time.Duration(*timeoutMs) * time.Millisecond
	outcomes := make(chan outcome)
	for i := 0; i < *count; i++ {
		go func() {
			outcomes <- callOnce(conn, args[0], request, timeout, *isStream, options)
		}()
	}
	for i := 0; i < *count; i++ {
		line, err := json.Marshal(<-outcomes)
		if err != nil {
			fmt.Fprintln(os.Stderr, "go-peer:", err)
			return 1
		}
		fmt.Println(string(line))
	}
	return 0
}
