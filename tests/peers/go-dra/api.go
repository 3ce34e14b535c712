package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"time"

	"davit/drapb"
)

const (
	group      = "/apis/resource.k8s.io/v1"
	apiTimeout = 10 * time.Second
)

// What the driver needs of the API: plain requests.
type api struct {
	server string
	token  string
	client *http.Client
}

type result struct {
	Request string `json:"request"`
	Driver  string `json:"driver"`
	Pool    string `json:"pool"`
	Device  string `json:"device"`
}

// The few settings of a kubeconfig with one cluster and one user.
func newAPI(kubeconfig string) (*api, error) {
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
	return &api{
		server: setting("server"),
		token:  setting("token"),
		client: &http.Client{Timeout: apiTimeout,
			Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}},
	}, nil
}

func (a *api) ask(method, path string, body, answer interface{}) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(method, a.server+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := a.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, read)
	}
	return json.Unmarshal(read, answer)
}

func (a *api) results(claim *drapb.Claim) ([]result, error) {
	var found struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
		Status struct {
			Allocation *struct {
				Devices struct {
					Results []result `json:"results"`
				} `json:"devices"`
			} `json:"allocation"`
		} `json:"status"`
	}
	path := fmt.Sprintf("%s/namespaces/%s/resourceclaims/%s", group, claim.Namespace, claim.Name)
	if err := a.ask(http.MethodGet, path, nil, &found); err != nil {
		return nil, err
	}
	if found.Metadata.UID != claim.Uid {
		return nil, fmt.Errorf("claim %s/%s got replaced", claim.Namespace, claim.Name)
	}
	if found.Status.Allocation == nil {
		return nil, fmt.Errorf("claim %s/%s not allocated", claim.Namespace, claim.Name)
	}
	return found.Status.Allocation.Devices.Results, nil
}

// One slice, in the place of what the driver had.
func (a *api) publish(d *driver) error {
	selector := url.QueryEscape(fmt.Sprintf("spec.driver=%s,spec.nodeName=%s", d.name, d.node))
	var ignored interface{}
	if err := a.ask(http.MethodDelete, group+"/resourceslices?fieldSelector="+selector, nil, &ignored); err != nil {
		return err
	}
	var devices []map[string]string
	for i := 0; i < nDevices; i++ {
		devices = append(devices, map[string]string{"name": fmt.Sprintf("device-%d", i)})
	}
	return a.ask(http.MethodPost, group+"/resourceslices", map[string]interface{}{
		"apiVersion": "resource.k8s.io/v1",
		"kind":       "ResourceSlice",
		"metadata":   map[string]string{"generateName": d.node + "-"},
		"spec": map[string]interface{}{
			"driver":   d.name,
			"nodeName": d.node,
			"pool":     map[string]interface{}{"name": d.node, "generation": 1, "resourceSliceCount": 1},
			"devices":  devices,
		},
	}, &ignored)
}
