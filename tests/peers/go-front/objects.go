package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

const (
	core        = "/api/v1/namespaces/"
	floorClient = 64
	nFloor      = 5000
)

func mapsPath(namespace string) string {
	return core + namespace + "/configmaps"
}

func configMap(name string) []byte {
	return []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"},` +
		`"data":{"key":"a value of some length, as config maps have"}}`)
}

func newNamespace(c *client, name string) error {
	return c.create("/api/v1/namespaces",
		[]byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+name+`"}}`))
}

func creates(access *access, args []int) (figures, error) {
	nClients, count := args[0], args[1]
	c := access.client(nClients)
	namespace := fmt.Sprintf("creates-%d", nClients)
	if err := newNamespace(c, namespace); err != nil {
		return nil, err
	}
	times := make([]time.Duration, count)
	began := time.Now()
	err := inParallel(nClients, count, func(i int) error {
		sent := time.Now()
		err := c.create(mapsPath(namespace), configMap(fmt.Sprintf("map-%05d", i)))
		times[i] = time.Since(sent)
		return err
	})
	took := time.Since(began)
	return figures{
		"per_s":  float64(count) / took.Seconds(),
		"p50_ms": quantile(times, 500),
		"p99_ms": quantile(times, 990),
	}, err
}

// Lists once, while another client makes GETs.
func listOnce(access *access, c *client, accept string, into figures) error {
	probe := startProbe(access, mapsPath("list")+"/map-00000")
	time.Sleep(100 * time.Millisecond) // the probe's first GET makes its connection
	began := time.Now()
	response, err := c.startAccepting(http.MethodGet, mapsPath("list"), accept)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var first [1]byte
	if _, err = io.ReadFull(response.Body, first[:]); err != nil {
		return err
	}
	firstByte := time.Since(began)
	n, err := io.Copy(io.Discard, response.Body)
	if err != nil {
		return err
	}
	total := time.Since(began)
	gets, err := probe.finish()
	into[accept] = figures{
		"first_byte_ms": ms(firstByte),
		"total_ms":      ms(total),
		"mb":            float64(n) / 1e6,
		"get_max_ms":    quantile(gets[1:], 1000),
	}
	return err
}

func list(access *access, args []int) (figures, error) {
	count := args[0]
	c := access.client(workers)
	if err := newNamespace(c, "list"); err != nil {
		return nil, err
	}
	err := inParallel(workers, count, func(i int) error {
		return c.create(mapsPath("list"), configMap(fmt.Sprintf("map-%05d", i)))
	})
	if err != nil {
		return nil, err
	}
	seen := figures{}
	for _, accept := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		if err = listOnce(access, c, accept, seen); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// Every watcher is a client of its own, as a hundred nodes are.
func fanOut(access *access, args []int) (figures, error) {
	nWatchers, count := args[0], args[1]
	c := access.client(workers)
	if err := newNamespace(c, "fanout"); err != nil {
		return nil, err
	}
	var lock sync.Mutex
	sent := make(map[string]time.Time, count)
	times := make([]time.Duration, 0, nWatchers*count)
	ends := make([]<-chan error, nWatchers)
	for w := range ends {
		n := 0
		ended, err := access.client(1).watch(mapsPath("fanout"), func(line []byte) bool {
			now := time.Now()
			name := nameIn(line)
			lock.Lock()
			defer lock.Unlock()
			if when, ok := sent[name]; ok {
				times = append(times, now.Sub(when))
				n++
			}
			return n < count
		})
		if err != nil {
			return nil, err
		}
		ends[w] = ended
	}
	began := time.Now()
	err := inParallel(workers, count, func(i int) error {
		name := fmt.Sprintf("map-%05d", i)
		lock.Lock()
		sent[name] = time.Now()
		lock.Unlock()
		return c.create(mapsPath("fanout"), configMap(name))
	})
	if err != nil {
		return nil, err
	}
	for _, ended := range ends {
		if err = await(ended, "all watchers have seen all"); err != nil {
			return nil, err
		}
	}
	took := time.Since(began)
	return figures{
		"events_per_s": float64(nWatchers*count) / took.Seconds(),
		"p50_ms":       quantile(times, 500),
		"p99_ms":       quantile(times, 990),
	}, nil
}

// What the client's own stack takes: Go's server in this process, which answers at once.
func floor(*access, []int) (figures, error) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = w.Write([]byte("{}"))
		}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	transport := server.Client().Transport.(*http.Transport)
	transport.MaxIdleConnsPerHost = floorClient
	c := &client{&access{server: server.URL}, &http.Client{Transport: transport}}
	found := figures{}
	for _, n := range []int{1, floorClient} {
		began := time.Now()
		err := inParallel(n, nFloor, func(int) error {
			return c.create("/", configMap("map"))
		})
		if err != nil {
			return nil, err
		}
		found[fmt.Sprintf("per_s_%d", n)] = nFloor / time.Since(began).Seconds()
	}
	return found, nil
}
