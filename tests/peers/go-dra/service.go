package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"davit/drapb"
	"davit/healthpb"
	"davit/registrationpb"
)

// Registration

func (d *driver) GetInfo(context.Context, *registrationpb.InfoRequest) (*registrationpb.PluginInfo, error) {
	return &registrationpb.PluginInfo{
		Type: "DRAPlugin", Name: d.name, Endpoint: d.endpoint,
		SupportedVersions: []string{"v1.DRAPlugin", "v1.DRAResourceHealth"},
	}, nil
}

func (d *driver) NotifyRegistrationStatus(_ context.Context, status *registrationpb.RegistrationStatus) (*registrationpb.RegistrationStatusResponse, error) {
	if !status.PluginRegistered {
		fmt.Println("refused", status.Error)
		return nil, fmt.Errorf("not registered: %s", status.Error)
	}
	fmt.Println("registered")
	return &registrationpb.RegistrationStatusResponse{}, nil
}

// Claims

func (d *driver) specPath(uid string) string {
	return filepath.Join(d.cdiDir, d.name+"-"+uid+".json")
}

func (d *driver) writeSpec(uid string, devices []*drapb.Device) error {
	type edits struct {
		Env []string `json:"env"`
	}
	type cdiDevice struct {
		Name  string `json:"name"`
		Edits edits  `json:"containerEdits"`
	}
	var list []cdiDevice
	for i, device := range devices {
		env := fmt.Sprintf("DEVICE_%d=%s/%s", i, device.PoolName, device.DeviceName)
		list = append(list, cdiDevice{fmt.Sprintf("%s-%d", uid, i), edits{[]string{env}}})
	}
	text, err := json.Marshal(map[string]interface{}{
		"cdiVersion": "0.6.0", "kind": d.name + "/claim", "devices": list})
	if err != nil {
		return err
	}
	if err := os.WriteFile(d.specPath(uid)+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(d.specPath(uid)+".new", d.specPath(uid))
}

func (d *driver) prepare(claim *drapb.Claim) ([]*drapb.Device, error) {
	results, err := d.api.results(claim)
	if err != nil {
		return nil, err
	}
	var devices []*drapb.Device
	for _, result := range results {
		if result.Driver != d.name {
			continue
		}
		devices = append(devices, &drapb.Device{
			RequestNames: []string{strings.SplitN(result.Request, "/", 2)[0]},
			PoolName:     result.Pool,
			DeviceName:   result.Device,
			CdiDeviceIds: []string{fmt.Sprintf("%s/claim=%s-%d", d.name, claim.Uid, len(devices))},
		})
	}
	return devices, d.writeSpec(claim.Uid, devices)
}

func (d *driver) NodePrepareResources(_ context.Context, request *drapb.NodePrepareResourcesRequest) (*drapb.NodePrepareResourcesResponse, error) {
	if err := d.begin("prepare", request.Claims); err != nil {
		return nil, err
	}
	response := &drapb.NodePrepareResourcesResponse{Claims: map[string]*drapb.NodePrepareResourceResponse{}}
	for _, claim := range request.Claims {
		answer := &drapb.NodePrepareResourceResponse{}
		devices, err := d.prepare(claim)
		if err != nil {
			answer.Error = err.Error()
		} else {
			answer.Devices = devices
		}
		response.Claims[claim.Uid] = answer
	}
	d.end("prepare")
	return response, nil
}

func (d *driver) NodeUnprepareResources(_ context.Context, request *drapb.NodeUnprepareResourcesRequest) (*drapb.NodeUnprepareResourcesResponse, error) {
	if err := d.begin("unprepare", request.Claims); err != nil {
		return nil, err
	}
	response := &drapb.NodeUnprepareResourcesResponse{Claims: map[string]*drapb.NodeUnprepareResourceResponse{}}
	for _, claim := range request.Claims {
		answer := &drapb.NodeUnprepareResourceResponse{}
		if err := os.Remove(d.specPath(claim.Uid)); err != nil && !os.IsNotExist(err) {
			answer.Error = err.Error()
		}
		response.Claims[claim.Uid] = answer
	}
	d.end("unprepare")
	return response, nil
}

// Health

func (d *driver) setHealth(device, health string) {
	d.lock.Lock()
	defer d.lock.Unlock()
	d.health[device] = health
	close(d.changed)
	d.changed = make(chan struct{})
}

// The list as it is now, and what is closed when it is no longer.
func (d *driver) healthList() (*healthpb.NodeWatchResourcesResponse, <-chan struct{}) {
	d.lock.Lock()
	defer d.lock.Unlock()
	list := &healthpb.NodeWatchResourcesResponse{}
	for device, health := range d.health {
		list.Devices = append(list.Devices, &healthpb.DeviceHealth{
			Device:          &healthpb.DeviceIdentifier{PoolName: d.node, DeviceName: device},
			Health:          healthpb.HealthStatus(healthpb.HealthStatus_value[strings.ToUpper(health)]),
			LastUpdatedTime: time.Now().Unix(),
		})
	}
	sort.Slice(list.Devices, func(i, k int) bool {
		return list.Devices[i].Device.DeviceName < list.Devices[k].Device.DeviceName
	})
	return list, d.changed
}

func (d *driver) NodeWatchResources(_ *healthpb.NodeWatchResourcesRequest, stream healthpb.DRAResourceHealth_NodeWatchResourcesServer) error {
	for {
		list, changed := d.healthList()
		if err := stream.Send(list); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return nil
		}
	}
}
