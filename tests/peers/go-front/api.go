package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"time"
)

const (
	resourceGroup = "/apis/resource.k8s.io/v1"
	patience      = 10 * time.Minute
	lineBytesMax  = 4 << 20
)

// What all clients of one run share: where the API is and who asks.
type access struct {
	server string
	token  string
	roots  *x509.CertPool
}

// A client with connections of its own.
type client struct {
	access *access
	http   *http.Client
}

// Reads the few settings of a kubeconfig with one cluster and one user.
func readAccess(kubeconfig string) (*access, error) {
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		return nil, err
	}
	setting := func(name string) string {
		found := regexp.MustCompile(`(?m)\b` + name + `: *"?([^\s"]+)`).FindSubmatch(text)
		if found == nil {
			return ""
		}
		return string(found[1])
	}
	authority, err := base64.StdEncoding.DecodeString(setting("certificate-authority-data"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	return &access{setting("server"), setting("token"), roots}, nil
}

// HTTP/2 is used when the server offers it, as by any Go program.
func newTransport(roots *x509.CertPool, connections int) *http.Transport {
	return &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: connections,
	}
}

func (a *access) client(connections int) *client {
	return &client{a, &http.Client{Transport: newTransport(a.roots, connections)}}
}

func (c *client) start(method, path, mediaType string, body []byte) (*http.Response, error) {
	request, err := http.NewRequest(method, c.access.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if len(body) > 0 {
		request.Header.Set("Content-Type", mediaType)
	}
	return c.send(request)
}

func (c *client) startAccepting(method, path, accept string) (*http.Response, error) {
	request, err := http.NewRequest(method, c.access.server+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	return c.send(request)
}

func (c *client) send(request *http.Request) (*http.Response, error) {
	request.Header.Set("Authorization", "Bearer "+c.access.token)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		return nil, fmt.Errorf("%s %s: %s: %s", request.Method, request.URL.Path, response.Status,
			text)
	}
	return response, nil
}

// Makes a request and reads all of the answer.
func (c *client) ask(method, path, mediaType string, body []byte) ([]byte, error) {
	response, err := c.start(method, path, mediaType, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

func (c *client) create(path string, body []byte) error {
	_, err := c.ask(http.MethodPost, path, "application/json", body)
	return err
}

// Calls `event` with each line of the answer. True: it has returned false.
func readLines(response *http.Response, event func(line []byte) bool) bool {
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(make([]byte, 64<<10), lineBytesMax)
	for lines.Scan() {
		if !event(lines.Bytes()) {
			return true
		}
	}
	return false
}

// Calls `event` with each line of a watch, until it returns false. The watch has begun when this
// returns; the channel tells how it ended. A server may end the watch of a client that is far
// behind: then it is begun anew, and shows what is there.
func (c *client) watch(path string, event func(line []byte) bool) (<-chan error, error) {
	response, err := c.start(http.MethodGet, path+"?watch=true", "", nil)
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() {
		for err == nil && !readLines(response, event) {
			response, err = c.start(http.MethodGet, path+"?watch=true", "", nil)
		}
		ended <- err
	}()
	return ended, nil
}

// Waits for the end of a watch.
func await(ended <-chan error, what string) error {
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		return fmt.Errorf("not within %s: %s", patience, what)
	}
}

// The text behind `mark` in an event of our own objects, up to the next quote.
func textAfter(line []byte, mark string) []byte {
	at := bytes.Index(line, []byte(mark))
	if at < 0 {
		return nil
	}
	rest := line[at+len(mark):]
	return rest[:bytes.IndexByte(rest, '"')]
}

// The name of the object of an event: the first one in its metadata.
func nameIn(line []byte) string {
	at := bytes.Index(line, []byte(`"metadata":{`))
	if at < 0 {
		return ""
	}
	return string(textAfter(line[at:], `"name":"`))
}
