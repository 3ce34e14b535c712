// go-front: a client of the API on Go's own net/http, TLS and JSON, for ./dev bench front.
//
//	go-front KUBECONFIG setup NODES DEVICES      nodes with a slice each, a class, a template
//	go-front KUBECONFIG place PODS               pods, until a watch has shown each of them bound
//	go-front KUBECONFIG creates CLIENTS COUNT    config maps, each answered when it is durable
//	go-front KUBECONFIG list COUNT               a list of so many config maps, made before
//	go-front KUBECONFIG fanout WATCHERS COUNT    config maps, until every watcher has seen each
//	go-front - floor                             a bare TLS request, Go's own server at the other end
//
// Each prints one line of JSON.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"sync"
	"time"
)

type figures map[string]interface{}

var commands = []struct {
	name  string
	nArgs int
	run   func(access *access, args []int) (figures, error)
}{
	{"setup", 2, setUp},
	{"place", 1, place},
	{"creates", 2, creates},
	{"list", 1, list},
	{"fanout", 2, fanOut},
	{"floor", 0, floor},
}

// Calls `do` with 0 to n-1, from so many workers at a time, and returns the first error.
func inParallel(workers, n int, do func(i int) error) error {
	next := make(chan int)
	failed := make(chan error, workers)
	var all sync.WaitGroup
	for w := 0; w < workers; w++ {
		all.Add(1)
		go func() {
			defer all.Done()
			var first error
			for i := range next {
				if first == nil {
					first = do(i)
				}
			}
			failed <- first
		}()
	}
	for i := 0; i < n; i++ {
		next <- i
	}
	close(next)
	all.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// The time that so many of 1,000 stay under, in ms.
func quantile(times []time.Duration, perMille int) float64 {
	sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
	if len(times) == 0 {
		return 0
	}
	return ms(times[(len(times)-1)*perMille/1000])
}

func ms(d time.Duration) float64 {
	return float64(d) / float64(time.Millisecond)
}

func run(words []string) error {
	if len(words) < 2 {
		return fmt.Errorf("usage: go-front KUBECONFIG COMMAND [NUMBER...]")
	}
	for _, command := range commands {
		if command.name != words[1] || command.nArgs != len(words)-2 {
			continue
		}
		var args []int
		for _, word := range words[2:] {
			n, err := strconv.Atoi(word)
			if err != nil {
				return err
			}
			args = append(args, n)
		}
		var who *access
		if words[0] != "-" {
			var err error
			if who, err = readAccess(words[0]); err != nil {
				return err
			}
		}
		found, err := command.run(who, args)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(found)
	}
	return fmt.Errorf("no command %s with %d numbers", words[1], len(words)-2)
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "go-front:", err)
		os.Exit(1)
	}
}
