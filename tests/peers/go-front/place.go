package main

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	podsPath   = "/api/v1/namespaces/default/pods"
	nodesPath  = "/api/v1/nodes"
	workers    = 32 // as many requests at a time as a busy controller makes
	probePause = 2 * time.Millisecond
)

const class = `{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"gpu"},` +
	`"spec":{"selectors":[{"cel":{"expression":"device.driver == 'gpu.example.com'"}}]}}`

const template = `{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimTemplate",` +
	`"metadata":{"name":"one-gpu"},"spec":{"spec":{"devices":{"requests":[{"name":"gpu",` +
	`"exactly":{"deviceClassName":"gpu"}}]}}}}`

// A node keeps no lease here and may be thought silent in a long run: pods tolerate that.
const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s","labels":{"app":"bench"}},` +
	`"spec":{"containers":[{"name":"main","image":"registry.example.com/work:1",` +
	`"resources":{"requests":{"cpu":"10m","memory":"16Mi"},"claims":[{"name":"gpu"}]}}],` +
	`"tolerations":[{"key":"node.kubernetes.io/unreachable","operator":"Exists"}],` +
	`"resourceClaims":[{"name":"gpu","resourceClaimTemplateName":"one-gpu"}]}}`

func podName(i int) string {
	return fmt.Sprintf("pod-%05d", i)
}

func slice(node string, nDevices int) []byte {
	text := fmt.Sprintf(`{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice",`+
		`"metadata":{"name":"%s-gpus"},"spec":{"driver":"gpu.example.com","nodeName":"%s",`+
		`"pool":{"name":"%s","generation":1,"resourceSliceCount":1},"devices":[`, node, node, node)
	for i := 0; i < nDevices; i++ {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(`{"name":"gpu-%d","attributes":{"model":{"string":"m1"},"index":`+
			`{"int":%d}},"capacity":{"memory":{"value":"80Gi"}}}`, i, i)
	}
	return []byte(text + "]}}")
}

func setUp(access *access, args []int) (figures, error) {
	nNodes, nDevices := args[0], args[1]
	c := access.client(workers)
	if err := c.create(resourceGroup+"/deviceclasses", []byte(class)); err != nil {
		return nil, err
	}
	templates := resourceGroup + "/namespaces/default/resourceclaimtemplates"
	if err := c.create(templates, []byte(template)); err != nil {
		return nil, err
	}
	err := inParallel(workers, nNodes, func(i int) error {
		name := fmt.Sprintf("node-%04d", i)
		node := `{"apiVersion":"v1","kind":"Node","metadata":{"name":"` + name + `"}}`
		status := `{"status":{"allocatable":{"cpu":"32","memory":"128Gi","pods":"110"}}}`
		if err := c.create(nodesPath, []byte(node)); err != nil {
			return err
		}
		_, err := c.ask(http.MethodPatch, nodesPath+"/"+name+"/status",
			"application/merge-patch+json", []byte(status))
		if err != nil {
			return err
		}
		return c.create(resourceGroup+"/resourceslices", slice(name, nDevices))
	})
	return figures{"nodes": nNodes}, err
}

// A GET again and again, from a client with a connection of its own: how long it takes while the
// server has other work.
type probe struct {
	client *client
	path   string
	stop   chan bool
	ended  chan error
	times  []time.Duration
}

func startProbe(access *access, path string) *probe {
	p := &probe{client: access.client(1), path: path, stop: make(chan bool),
		ended: make(chan error, 1)}
	go func() {
		for {
			select {
			case <-p.stop:
				p.ended <- nil
				return
			case <-time.After(probePause):
			}
			began := time.Now()
			if _, err := p.client.ask(http.MethodGet, p.path, "", nil); err != nil {
				p.ended <- err
				return
			}
			p.times = append(p.times, time.Since(began))
		}
	}()
	return p
}

func (p *probe) finish() ([]time.Duration, error) {
	close(p.stop)
	err := <-p.ended
	return p.times, err
}

// When each pod was sent, and how long it took until the watch showed its node.
type sightings struct {
	lock  sync.Mutex
	sent  map[string]time.Time
	times []time.Duration
	last  time.Time
}

func (s *sightings) see(line []byte) (all bool) {
	if len(textAfter(line, `"nodeName":"`)) == 0 {
		return false
	}
	name := nameIn(line)
	s.lock.Lock()
	defer s.lock.Unlock()
	if sent, ok := s.sent[name]; ok && !sent.IsZero() {
		s.last = time.Now()
		s.times = append(s.times, s.last.Sub(sent))
		s.sent[name] = time.Time{} // a pod is counted once
	}
	return len(s.times) == cap(s.times)
}

func place(access *access, args []int) (figures, error) {
	nPods := args[0]
	seen := &sightings{sent: make(map[string]time.Time, nPods), times: make([]time.Duration, 0, nPods)}
	c := access.client(workers)
	ended, err := c.watch(podsPath, func(line []byte) bool { return !seen.see(line) })
	if err != nil {
		return nil, err
	}
	probe := startProbe(access, nodesPath+"/node-0000")
	began := time.Now()
	err = inParallel(workers, nPods, func(i int) error {
		name := podName(i)
		seen.lock.Lock()
		seen.sent[name] = time.Now()
		seen.lock.Unlock()
		return c.create(podsPath, []byte(fmt.Sprintf(pod, name)))
	})
	created := time.Since(began)
	if err != nil {
		return nil, err
	}
	if err = await(ended, "all pods are bound"); err != nil {
		return nil, err
	}
	took := seen.last.Sub(began)
	gets, err := probe.finish()
	return figures{
		"pods_per_s":    float64(nPods) / took.Seconds(),
		"creates_per_s": float64(nPods) / created.Seconds(),
		"p50_ms":        quantile(seen.times, 500),
		"p99_ms":        quantile(seen.times, 990),
		"get_p99_ms":    quantile(gets, 990),
		"get_max_ms":    quantile(gets, 1000),
	}, err
}
