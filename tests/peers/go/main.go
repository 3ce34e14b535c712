// The test peer on grpc-go. Its commands are the contract in ../README.md.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"

	"google.golang.org/grpc"
)

// Large enough for the 32 MiB scenarios, with room to see a limit being kept.
const messageBytesMax = 64 << 20

const usage = `usage: go-peer server SOCKET
       go-peer client SOCKET SCENARIO [--arg N]
       go-peer bench SOCKET --mode MODE --calls N [--size-request BYTES] [--size-reply BYTES] [--connections N]
       go-peer call SOCKET METHOD_PATH [--timeout-ms N] [--payload-bytes N] [--count N] [--stream] [--wait-for-ready]`

// Dials the bare path with a dialer of our own, as device plugins do: grpc-go of this age then
// sends the path as :authority, which is worth meeting in a test.
func dial(socket string) (*grpc.ClientConn, error) {
	return grpc.Dial(socket,
		grpc.WithInsecure(),
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(messageBytesMax)))
}

// The repeating pattern byte(i % 251), of n bytes.
func makePattern(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i % 251)
	}
	return p
}

func cpuMicros() uint64 {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		panic(err) // cannot happen: the arguments are constant
	}
	return uint64(ru.Utime.Sec+ru.Stime.Sec)*1000000 + uint64(ru.Utime.Usec+ru.Stime.Usec)
}

func rssBytes() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident uint64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return 0
	}
	return resident * uint64(os.Getpagesize())
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	commands := map[string]func(socket string, args []string) int{
		"server": runServer,
		"client": runClient,
		"bench":  runBench,
		"call":   runCall,
	}
	command, found := commands[os.Args[1]]
	if !found {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	os.Exit(command(os.Args[2], os.Args[3:]))
}
