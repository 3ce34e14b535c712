/* openapi_text.c - what `kubectl explain` says about the fields that people write. */
#include "base/defs.h"
#include "serve/openapi/openapi_schema.h"

static const struct {
    dv_str message;
    dv_str field; /* empty: the text describes the message itself */
    const char *text;
} texts[] = {
#define TEXT(message, field, text)                                                                 \
    {                                                                                              \
        DV_STR_INIT(message), DV_STR_INIT(field), text                                             \
    }
    TEXT("ResourceClaim", "", "A request for devices, and the devices that were given for it."),
    TEXT("ResourceClaim", "spec", "What is wanted. It cannot be changed."),
    TEXT("ResourceClaim", "status", "What was given, and who may use it."),
    TEXT("ResourceClaimSpec", "devices", "The devices that are wanted."),
    TEXT("ResourceClaimStatus", "allocation", "The devices that were given; absent until then."),
    TEXT("ResourceClaimStatus", "reservedFor", "The pods that may use the claim now."),
    TEXT("ResourceClaimStatus", "devices", "What drivers report about the given devices."),
    TEXT("ResourceClaimTemplate", "", "What claims are made of, one for each pod that asks."),
    TEXT("ResourceClaimTemplate", "spec", "The claim that is made. It cannot be changed."),
    TEXT("ResourceClaimTemplateSpec", "metadata", "Labels and annotations of claims made of it."),
    TEXT("ResourceClaimTemplateSpec", "spec", "The spec of claims made of it."),
    TEXT("ResourceSlice", "", "Devices of a pool that a driver offers."),
    TEXT("ResourceSlice", "spec", "The devices, and where they are."),
    TEXT("ResourceSliceSpec", "driver", "The driver that publishes it. It cannot be changed."),
    TEXT("ResourceSliceSpec", "pool", "The pool that the devices belong to."),
    TEXT("ResourceSliceSpec", "nodeName", "The one node that has the devices."),
    TEXT("ResourceSliceSpec", "nodeSelector", "The nodes that can use the devices."),
    TEXT("ResourceSliceSpec", "allNodes", "All nodes can use the devices."),
    TEXT("ResourceSliceSpec", "perDeviceNodeSelection", "Each device says where it is."),
    TEXT("ResourceSliceSpec", "devices", "The devices: at most 128."),
    TEXT("ResourceSliceSpec", "sharedCounters", "Amounts that devices of the slice share."),
    TEXT("ResourcePool", "name", "The pool's name, unique for its driver."),
    TEXT("ResourcePool", "generation", "Grows with each change of the pool as a whole."),
    TEXT("ResourcePool", "resourceSliceCount", "How many slices the pool has."),
    TEXT("Device", "", "One device of a pool."),
    TEXT("Device", "name", "The device's name, unique in its pool."),
    TEXT("Device", "attributes", "What selectors ask about: texts, numbers, versions."),
    TEXT("Device", "capacity", "What the device has, as amounts."),
    TEXT("Device", "taints", "What keeps claims away that do not tolerate it."),
    TEXT("Device", "consumesCounters", "What it takes of the shared counters."),
    TEXT("Device", "allowMultipleAllocations", "Several claims may share the device."),
    TEXT("DeviceClass", "", "A kind of devices that claims can ask for by name."),
    TEXT("DeviceClass", "spec", "Which devices are of the class, and how they are set up."),
    TEXT("DeviceClassSpec", "selectors", "All of these must hold for a device of the class."),
    TEXT("DeviceClassSpec", "config", "Parameters that drivers get for each device."),
    TEXT("DeviceClassSpec", "extendedResourceName", "Containers get devices by this resource."),
    TEXT("DeviceClaim", "requests", "What is wanted: each request is met, or the claim waits."),
    TEXT("DeviceClaim", "constraints", "What the devices of requests must have in common."),
    TEXT("DeviceClaim", "config", "Parameters that drivers get."),
    TEXT("DeviceRequest", "name", "The request's name, for containers and constraints."),
    TEXT("DeviceRequest", "exactly", "What must be had."),
    TEXT("DeviceRequest", "firstAvailable", "Alternatives, the best one first."),
    TEXT("ExactDeviceRequest", "deviceClassName", "The class of the devices."),
    TEXT("ExactDeviceRequest", "selectors", "All of these must hold for a device."),
    TEXT("ExactDeviceRequest", "allocationMode", "ExactCount (the default) or All."),
    TEXT("ExactDeviceRequest", "count", "How many devices; 1 when nothing is said."),
    TEXT("ExactDeviceRequest", "adminAccess", "Access for monitoring, beside those who use it."),
    TEXT("ExactDeviceRequest", "tolerations", "Taints that do not matter."),
    TEXT("CELDeviceSelector", "expression", "A CEL expression on `device` that is true or false."),
    TEXT("DeviceTaintRule", "", "Taints devices from outside of their driver."),
    TEXT("DeviceTaintRuleSpec", "deviceSelector", "Which devices."),
    TEXT("DeviceTaintRuleSpec", "taint", "The taint."),
    TEXT("DeviceTaint", "effect", "NoSchedule: no new claims. NoExecute: pods have to go."),
    TEXT("Pod", "", "Containers that run together on a node."),
    TEXT("PodSpec", "containers", "The containers: at least one."),
    TEXT("PodSpec", "initContainers", "Containers that run to their end before the others."),
    TEXT("PodSpec", "nodeName", "The node that it runs on, once it is known."),
    TEXT("PodSpec", "resourceClaims", "The claims that its containers use."),
    TEXT("PodSpec", "schedulerName", "Who chooses the node."),
    TEXT("PodSpec", "tolerations", "Taints of nodes that do not matter."),
    TEXT("PodSpec", "restartPolicy", "Always, OnFailure or Never."),
    TEXT("PodResourceClaim", "resourceClaimName", "A claim that exists."),
    TEXT("PodResourceClaim", "resourceClaimTemplateName", "A claim is made of this template."),
    TEXT("Container", "image", "The image that it runs."),
    TEXT("Container", "resources", "What it may use, and the claims it uses."),
    TEXT("ResourceRequirements", "claims", "The pod's claims that the container uses."),
    TEXT("ResourceRequirements", "limits", "The most that it may use."),
    TEXT("ResourceRequirements", "requests", "What is set aside for it."),
    TEXT("Node", "", "A machine that runs pods."),
    TEXT("NodeSpec", "unschedulable", "No new pods are placed there."),
    TEXT("NodeSpec", "taints", "What keeps pods away that do not tolerate it."),
    TEXT("Namespace", "", "A space for names of objects."),
    TEXT("Lease", "", "Who holds something, and until when."),
    TEXT("ConfigMap", "", "Texts for programs."),
    TEXT("Secret", "", "Texts for programs that not everybody may read."),
    TEXT("ServiceAccount", "", "Whom the programs of a pod act as."),
    TEXT("Event", "", "Something that happened to an object."),
    TEXT("ObjectMeta", "", "What all objects have."),
    TEXT("ObjectMeta", "name", "The object's name, unique for its kind and namespace."),
    TEXT("ObjectMeta", "namespace", "The namespace that it is in."),
    TEXT("ObjectMeta", "labels", "What selectors ask about."),
    TEXT("ObjectMeta", "annotations", "What programs note."),
    TEXT("ObjectMeta", "finalizers", "Who must agree before the object goes."),
    TEXT("ObjectMeta", "ownerReferences", "The objects it goes with."),
    TEXT("ObjectMeta", "generateName", "What a name is made of when there is none."),
#undef TEXT
};

const char *dv_openapi_text(dv_str message, dv_str field)
{
    for (size_t i = 0; i < DV_COUNT(texts); i++)
        if (dv_str_eq(texts[i].message, message) && dv_str_eq(texts[i].field, field))
            return texts[i].text;
    return NULL;
}
