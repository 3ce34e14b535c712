// A DRA driver on grpc-go, written from the facts of the wire as vendors write theirs:
//
//	go-dra-driver --driver NAME --node NODE --kubeconfig FILE --kubelet-dir DIR --cdi-dir DIR [--instance UID]
//
// It serves v1 and the health of its devices on one socket, its registration on another, and publishes a
// slice of four devices. What it has prepared is what it has CDI specs for, so that another process of it, or
// another instance, goes on where one ended.
//
// Lines on stdout: "ready", "registered", "prepare NAMESPACE/NAME,...", "unprepare ...". Lines on stdin: "die
// prepare|unprepare before|done|after" (the work, the answer), "fail prepare|unprepare|never", "health DEVICE
// Healthy|Unhealthy". SIGTERM ends it.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"davit/drapb"
	"davit/healthpb"
	"davit/registrationpb"

	"google.golang.org/grpc"
)

const (
	nDevices   = 4
	afterwards = 100 * time.Millisecond // an answer is out by then
)

type driver struct {
	name     string
	node     string
	cdiDir   string
	endpoint string
	api      *api

	lock    sync.Mutex
	deaths  map[string]bool // "prepare done"
	failing string
	health  map[string]string
	changed chan struct{} // closed and replaced at every change
}

// The process is gone in the middle of what it does.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // it does not return
	select {}
}

func (d *driver) dies(kind, when string) bool {
	d.lock.Lock()
	defer d.lock.Unlock()
	return d.deaths[kind+" "+when]
}

func (d *driver) fails(kind string) bool {
	d.lock.Lock()
	defer d.lock.Unlock()
	return d.failing == kind
}

// Around the work for claims.
func (d *driver) begin(kind string, claims []*drapb.Claim) error {
	var names []string
	for _, claim := range claims {
		names = append(names, claim.Namespace+"/"+claim.Name)
	}
	fmt.Println(kind, strings.Join(names, ","))
	if d.dies(kind, "before") {
		die()
	}
	if d.fails(kind) {
		return fmt.Errorf("told to fail %s", kind)
	}
	return nil
}

func (d *driver) end(kind string) {
	if d.dies(kind, "done") {
		die()
	}
	if d.dies(kind, "after") {
		time.AfterFunc(afterwards, die)
	}
}

// Its life

func listen(path string, register func(*grpc.Server)) (*grpc.Server, error) {
	_ = os.Remove(path) // stale from an earlier life; gone is what we want
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer()
	register(server)
	go func() { _ = server.Serve(listener) }() // ends with Stop
	return server, nil
}

func (d *driver) readOrders() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 3 && words[0] == "die":
			d.lock.Lock()
			d.deaths[words[1]+" "+words[2]] = true
			d.lock.Unlock()
		case len(words) == 2 && words[0] == "fail":
			d.lock.Lock()
			d.failing = words[1]
			d.lock.Unlock()
		case len(words) == 3 && words[0] == "health":
			d.setHealth(words[1], words[2])
		}
		fmt.Println("ok", lines.Text())
	}
}

func run() error {
	name := flag.String("driver", "", "")
	node := flag.String("node", "", "")
	kubeconfig := flag.String("kubeconfig", "", "")
	kubeletDir := flag.String("kubelet-dir", "", "")
	cdiDir := flag.String("cdi-dir", "", "")
	instance := flag.String("instance", "", "")
	flag.Parse()

	suffix := ""
	if *instance != "" {
		suffix = "-" + *instance
	}
	folder := filepath.Join(*kubeletDir, "plugins", *name)
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	api, err := newAPI(*kubeconfig)
	if err != nil {
		return err
	}
	d := &driver{
		name:     *name,
		node:     *node,
		cdiDir:   *cdiDir,
		endpoint: filepath.Join(folder, "dra"+suffix+".sock"),
		api:      api,
		deaths:   map[string]bool{},
		health:   map[string]string{},
		changed:  make(chan struct{}),
	}
	service, err := listen(d.endpoint, func(server *grpc.Server) {
		drapb.RegisterDRAPluginServer(server, d)
		healthpb.RegisterDRAResourceHealthServer(server, d)
	})
	if err != nil {
		return err
	}
	path := filepath.Join(*kubeletDir, "plugins_registry", *name+suffix+"-reg.sock")
	registration, err := listen(path, func(server *grpc.Server) {
		registrationpb.RegisterRegistrationServer(server, d)
	})
	if err != nil {
		return err
	}
	if err := api.publish(d); err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go d.readOrders()
	fmt.Println("ready")
	<-signals
	registration.Stop() // which removes its socket: it is deregistered before it stops serving
	service.Stop()
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "go-dra-driver:", err)
		os.Exit(1)
	}
}
