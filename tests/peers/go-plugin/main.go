// A device plugin on grpc-go, written from the facts of the wire as vendors write theirs:
//
//	go-device-plugin DIR RESOURCE DEVICE...
//
// It serves DIR/go-<last part of RESOURCE>.sock, registers with DIR/kubelet.sock, and begins again when
// its own socket is removed or kubelet.sock is another one: an agent was started. It looks by polling.
//
// Lines on stdout: "registered" after every registration, "allocate ID,ID", "list DEVICE=HEALTH,..." when a
// list was sent. Lines on stdin: "health DEVICE HEALTH". SIGTERM ends it.
package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	"davit/devicepluginpb"

	"google.golang.org/grpc"
)

const (
	apiVersion      = "v1beta1"
	pollEvery       = 20 * time.Millisecond
	registerTimeout = 5 * time.Second
)

type plugin struct {
	dir      string
	resource string
	socket   string

	lock    sync.Mutex
	health  map[string]string
	changed chan struct{} // closed and replaced at every change
}

func newPlugin(dir, resource string, devices []string) *plugin {
	p := &plugin{
		dir:      dir,
		resource: resource,
		socket:   filepath.Join(dir, "go-"+filepath.Base(resource)+".sock"),
		health:   map[string]string{},
		changed:  make(chan struct{}),
	}
	for _, id := range devices {
		p.health[id] = "Healthy"
	}
	return p
}

func (p *plugin) setHealth(id, health string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.health[id] = health
	close(p.changed)
	p.changed = make(chan struct{})
}

// The list as it is now, and what is closed when it is no longer.
func (p *plugin) list() (*devicepluginpb.ListAndWatchResponse, <-chan struct{}) {
	p.lock.Lock()
	defer p.lock.Unlock()
	list := &devicepluginpb.ListAndWatchResponse{}
	for id, health := range p.health {
		list.Devices = append(list.Devices, &devicepluginpb.Device{ID: id, Health: health})
	}
	sort.Slice(list.Devices, func(i, k int) bool { return list.Devices[i].ID < list.Devices[k].ID })
	return list, p.changed
}

// What the agent asks

func (p *plugin) GetDevicePluginOptions(context.Context, *devicepluginpb.Empty) (*devicepluginpb.DevicePluginOptions, error) {
	return &devicepluginpb.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *devicepluginpb.Empty, stream devicepluginpb.DevicePlugin_ListAndWatchServer) error {
	for {
		list, changed := p.list()
		if err := stream.Send(list); err != nil {
			return err
		}
		var words []string
		for _, device := range list.Devices {
			words = append(words, device.ID+"="+device.Health)
		}
		fmt.Println("list", strings.Join(words, ","))
		select {
		case <-changed:
		case <-stream.Context().Done():
			return nil
		}
	}
}

func (p *plugin) Allocate(_ context.Context, request *devicepluginpb.AllocateRequest) (*devicepluginpb.AllocateResponse, error) {
	response := &devicepluginpb.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		ids := append([]string{}, container.DevicesIds...)
		sort.Strings(ids)
		fmt.Println("allocate", strings.Join(ids, ","))
		answer := &devicepluginpb.ContainerAllocateResponse{
			Envs: map[string]string{"GO_DEVICES": strings.Join(ids, ",")},
		}
		for _, id := range ids {
			answer.Devices = append(answer.Devices, &devicepluginpb.DeviceSpec{
				ContainerPath: "/dev/" + id, HostPath: "/dev/" + id, Permissions: "rw"})
		}
		response.ContainerResponses = append(response.ContainerResponses, answer)
	}
	return response, nil
}

func (p *plugin) GetPreferredAllocation(context.Context, *devicepluginpb.PreferredAllocationRequest) (*devicepluginpb.PreferredAllocationResponse, error) {
	return &devicepluginpb.PreferredAllocationResponse{}, nil
}

func (p *plugin) PreStartContainer(context.Context, *devicepluginpb.PreStartContainerRequest) (*devicepluginpb.PreStartContainerResponse, error) {
	return &devicepluginpb.PreStartContainerResponse{}, nil
}

// Its life

func (p *plugin) serve() (*grpc.Server, error) {
	_ = os.Remove(p.socket) // stale from an earlier life; gone is what we want
	listener, err := net.Listen("unix", p.socket)
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer()
	devicepluginpb.RegisterDevicePluginServer(server, p)
	go func() { _ = server.Serve(listener) }() // ends with Stop; a lost listener shows as a lost socket
	return server, nil
}

func (p *plugin) register(agent string) error {
	ctx, cancel := context.WithTimeout(context.Background(), registerTimeout)
	defer cancel()
	conn, err := grpc.DialContext(ctx, agent, grpc.WithInsecure(), grpc.WithBlock(),
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}))
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = devicepluginpb.NewRegistrationClient(conn).Register(ctx, &devicepluginpb.RegisterRequest{
		Version: apiVersion, Endpoint: filepath.Base(p.socket), ResourceName: p.resource})
	return err
}

// Which file is there now: a socket that was made anew is another one, even where the kernel gives it
// the number of the old one.
func identity(path string) string {
	var about syscall.Stat_t
	if syscall.Stat(path, &about) != nil {
		return ""
	}
	return fmt.Sprint(about.Ino, about.Ctim)
}

// One life: from a registration until the agent or our socket is another one.
func (p *plugin) live(agent string) {
	before := identity(agent)
	if before == "" {
		return
	}
	server, err := p.serve()
	if err != nil {
		fmt.Fprintln(os.Stderr, "go-device-plugin:", err)
		return
	}
	defer server.Stop()
	if err := p.register(agent); err != nil {
		fmt.Fprintln(os.Stderr, "go-device-plugin: register:", err)
		return
	}
	fmt.Println("registered")
	for own := identity(p.socket); identity(p.socket) == own && identity(agent) == before; {
		time.Sleep(pollEvery)
	}
}

func (p *plugin) readOrders() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 3 && words[0] == "health" {
			p.setHealth(words[1], words[2])
		}
	}
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: go-device-plugin DIR RESOURCE DEVICE...")
		os.Exit(2)
	}
	p := newPlugin(os.Args[1], os.Args[2], os.Args[3:])
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		<-signals
		os.Exit(0)
	}()
	go p.readOrders()
	for {
		p.live(filepath.Join(p.dir, "kubelet.sock"))
		time.Sleep(pollEvery)
	}
}
