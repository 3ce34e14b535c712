"""Kubernetes' protobuf encoding, on Google's library: the messages that tests send, by the field
numbers of the published definitions. Descriptors are made at run time; all is proto2."""

import re

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

MAGIC = b"k8s\x00"
MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

# MESSAGE: FIELD NUMBER TYPE, ...; "TYPE*" is repeated, "<TYPE>" a map from strings.
MESSAGES = """
TypeMeta: apiVersion 1 string, kind 2 string
Unknown: typeMeta 1 TypeMeta, raw 2 bytes, contentEncoding 3 string, contentType 4 string
Time: seconds 1 int64, nanos 2 int32
OwnerReference: kind 1 string, name 3 string, uid 4 string, apiVersion 5 string,
  controller 6 bool, blockOwnerDeletion 7 bool
ObjectMeta: name 1 string, generateName 2 string, namespace 3 string, uid 5 string,
  resourceVersion 6 string, generation 7 int64, creationTimestamp 8 Time, labels 11 <string>,
  annotations 12 <string>, ownerReferences 13 OwnerReference*, finalizers 14 string*
ListMeta: selfLink 1 string, resourceVersion 2 string, continue 3 string, remainingItemCount 4 int64
Preconditions: uid 1 string, resourceVersion 2 string
DeleteOptions: gracePeriodSeconds 1 int64, preconditions 2 Preconditions, orphanDependents 3 bool,
  propagationPolicy 4 string, dryRun 5 string*
Condition: type 1 string, status 2 string, observedGeneration 3 int64, lastTransitionTime 4 Time,
  reason 5 string, message 6 string
Status: metadata 1 ListMeta, status 2 string, message 3 string, reason 4 string, code 6 int32
WatchEvent: type 1 string, object 2 RawExtension
Quantity: string 1 string
RawExtension: raw 1 bytes
ObjectReference: kind 1 string, namespace 2 string, name 3 string, uid 4 string,
  apiVersion 5 string, resourceVersion 6 string, fieldPath 7 string
Binding: metadata 1 ObjectMeta, target 2 ObjectReference
EventSource: component 1 string, host 2 string
EventSeries: count 1 int32, lastObservedTime 2 Time
CoreEvent: metadata 1 ObjectMeta, involvedObject 2 ObjectReference, reason 3 string,
  message 4 string, source 5 EventSource, firstTimestamp 6 Time, lastTimestamp 7 Time,
  count 8 int32, type 9 string, eventTime 10 Time, series 11 EventSeries, action 12 string,
  related 13 ObjectReference, reportingComponent 14 string, reportingInstance 15 string
Event: metadata 1 ObjectMeta, eventTime 2 Time, series 3 EventSeries, reportingController 4 string,
  reportingInstance 5 string, action 6 string, reason 7 string, regarding 8 ObjectReference,
  related 9 ObjectReference, note 10 string, type 11 string
LeaseSpec: holderIdentity 1 string, leaseDurationSeconds 2 int32, acquireTime 3 Time,
  renewTime 4 Time, leaseTransitions 5 int32
Lease: metadata 1 ObjectMeta, spec 2 LeaseSpec
ResourceClaimRef: name 1 string, request 2 string
ResourceRequirements: limits 1 <Quantity>, requests 2 <Quantity>, claims 3 ResourceClaimRef*
EnvVar: name 1 string, value 2 string
Container: name 1 string, image 2 string, command 3 string*, args 4 string*, env 7 EnvVar*,
  resources 8 ResourceRequirements
PodResourceClaim: name 1 string, resourceClaimName 3 string, resourceClaimTemplateName 4 string
PodSpec: containers 2 Container*, restartPolicy 3 string, terminationGracePeriodSeconds 4 int64,
  nodeSelector 7 <string>, nodeName 10 string, schedulerName 19 string,
  resourceClaims 39 PodResourceClaim*
PodCondition: type 1 string, status 2 string, reason 5 string, message 6 string
PodStatus: phase 1 string, conditions 2 PodCondition*
Pod: metadata 1 ObjectMeta, spec 2 PodSpec, status 3 PodStatus
Taint: key 1 string, value 2 string, effect 3 string
NodeSpec: podCIDR 1 string, providerID 3 string, unschedulable 4 bool, taints 5 Taint*
NodeAddress: type 1 string, address 2 string
NodeStatus: capacity 1 <Quantity>, allocatable 2 <Quantity>, addresses 5 NodeAddress*
Node: metadata 1 ObjectMeta, spec 2 NodeSpec, status 3 NodeStatus
ConfigMap: metadata 1 ObjectMeta, data 2 <string>, binaryData 3 <bytes>, immutable 4 bool
ConfigMapList: metadata 1 ListMeta, items 2 ConfigMap*
Secret: metadata 1 ObjectMeta, data 2 <bytes>, type 3 string
SecretList: metadata 1 ListMeta, items 2 Secret*
LabelSelector: matchLabels 1 <string>
PodTemplateSpec: metadata 1 ObjectMeta, spec 2 PodSpec
JobSpec: parallelism 1 int32, completions 2 int32, activeDeadlineSeconds 3 int64,
  selector 4 LabelSelector, template 6 PodTemplateSpec, backoffLimit 7 int32,
  ttlSecondsAfterFinished 8 int32, completionMode 9 string, suspend 10 bool,
  podReplacementPolicy 14 string, managedBy 15 string
JobStatus: active 4 int32, succeeded 5 int32, failed 6 int32, completedIndexes 7 string
Job: metadata 1 ObjectMeta, spec 2 JobSpec, status 3 JobStatus
Requirement: key 1 string, operator 2 string, values 3 string*
NodeSelectorTerm: matchExpressions 1 Requirement*, matchFields 2 Requirement*
NodeSelector: nodeSelectorTerms 1 NodeSelectorTerm*
ResourcePool: name 1 string, generation 2 int64, resourceSliceCount 3 int64
DeviceAttribute: int 2 int64, bool 3 bool, string 4 string, version 5 string
DeviceCapacity: value 1 Quantity
Counter: value 1 Quantity
CounterSet: name 1 string, counters 2 <Counter>
DeviceCounterConsumption: counterSet 1 string, counters 2 <Counter>
DeviceTaint: key 1 string, value 2 string, effect 3 string, timeAdded 4 Time
Device: name 1 string, attributes 2 <DeviceAttribute>, capacity 3 <DeviceCapacity>,
  consumesCounters 4 DeviceCounterConsumption*, nodeName 5 string, allNodes 7 bool,
  taints 8 DeviceTaint*
ResourceSliceSpec: driver 1 string, pool 2 ResourcePool, nodeName 3 string,
  nodeSelector 4 NodeSelector, allNodes 5 bool, devices 6 Device*, perDeviceNodeSelection 7 bool,
  sharedCounters 8 CounterSet*
ResourceSlice: metadata 1 ObjectMeta, spec 2 ResourceSliceSpec
ResourceSliceList: metadata 1 ListMeta, items 2 ResourceSlice*
BasicDevice: attributes 1 <DeviceAttribute>, capacity 2 <DeviceCapacity>
DeviceV1beta1: name 1 string, basic 2 BasicDevice
ResourceSliceSpecV1beta1: driver 1 string, pool 2 ResourcePool, nodeName 3 string,
  devices 6 DeviceV1beta1*
ResourceSliceV1beta1: metadata 1 ObjectMeta, spec 2 ResourceSliceSpecV1beta1
CELDeviceSelector: expression 1 string
DeviceSelector: cel 1 CELDeviceSelector
DeviceToleration: key 1 string, operator 2 string, value 3 string, effect 4 string,
  tolerationSeconds 5 int64
ExactDeviceRequest: deviceClassName 1 string, selectors 2 DeviceSelector*,
  allocationMode 3 string, count 4 int64, adminAccess 5 bool, tolerations 6 DeviceToleration*
DeviceSubRequest: name 1 string, deviceClassName 2 string, selectors 3 DeviceSelector*,
  allocationMode 4 string, count 5 int64
DeviceRequest: name 1 string, exactly 2 ExactDeviceRequest, firstAvailable 3 DeviceSubRequest*
OpaqueDeviceConfiguration: driver 1 string, parameters 2 RawExtension
DeviceConfiguration: opaque 1 OpaqueDeviceConfiguration
DeviceClaimConfiguration: requests 1 string*, deviceConfiguration 2 DeviceConfiguration
DeviceConstraint: requests 1 string*, matchAttribute 2 string
DeviceClaim: requests 1 DeviceRequest*, constraints 2 DeviceConstraint*,
  config 3 DeviceClaimConfiguration*
ResourceClaimSpec: devices 1 DeviceClaim
DeviceRequestAllocationResult: request 1 string, driver 2 string, pool 3 string, device 4 string
DeviceAllocationResult: results 1 DeviceRequestAllocationResult*
AllocationResult: devices 1 DeviceAllocationResult, nodeSelector 3 NodeSelector
ResourceClaimConsumerReference: apiGroup 1 string, resource 3 string, name 4 string, uid 5 string
NetworkDeviceData: interfaceName 1 string, ips 2 string*, hardwareAddress 3 string
AllocatedDeviceStatus: driver 1 string, pool 2 string, device 3 string, conditions 4 Condition*,
  data 5 RawExtension, networkData 6 NetworkDeviceData
ResourceClaimStatus: allocation 1 AllocationResult,
  reservedFor 2 ResourceClaimConsumerReference*, devices 4 AllocatedDeviceStatus*
ResourceClaim: metadata 1 ObjectMeta, spec 2 ResourceClaimSpec, status 3 ResourceClaimStatus
DeviceClassSpec: selectors 1 DeviceSelector*, extendedResourceName 4 string
DeviceClass: metadata 1 ObjectMeta, spec 2 DeviceClassSpec
ResourceClaimTemplateSpec: metadata 1 ObjectMeta, spec 2 ResourceClaimSpec
ResourceClaimTemplate: metadata 1 ObjectMeta, spec 2 ResourceClaimTemplateSpec
DeviceTaintSelector: driver 2 string, pool 3 string, device 4 string
DeviceTaintRuleSpec: deviceSelector 1 DeviceTaintSelector, taint 2 DeviceTaint
DeviceTaintRule: metadata 1 ObjectMeta, spec 2 DeviceTaintRuleSpec
"""

PACKAGE = "kube"
FIELD = descriptor_pb2.FieldDescriptorProto


def set_type(field, text):
    scalar = getattr(FIELD, f"TYPE_{text.upper()}", None)
    if scalar:
        field.type = scalar
    else:
        field.type = FIELD.TYPE_MESSAGE
        field.type_name = f".{PACKAGE}.{text}"


def add_map(message, field, text):
    """A map is a list of messages with a key and a value."""
    entry = message.nested_type.add(name=field.name[0].upper() + field.name[1:] + "Entry")
    entry.options.map_entry = True
    set_type(entry.field.add(name="key", number=1, label=FIELD.LABEL_OPTIONAL), "string")
    set_type(entry.field.add(name="value", number=2, label=FIELD.LABEL_OPTIONAL), text)
    field.label = FIELD.LABEL_REPEATED
    field.type = FIELD.TYPE_MESSAGE
    field.type_name = f".{PACKAGE}.{message.name}.{entry.name}"


def load():
    file = descriptor_pb2.FileDescriptorProto(name="kube.proto", package=PACKAGE, syntax="proto2")
    for name, fields in re.findall(r"^(\w+): (.*(?:\n  .*)*)", MESSAGES, re.M):
        message = file.message_type.add(name=name)
        for text in re.split(r",\s+", fields):
            field_name, number, kind = text.split()
            field = message.field.add(name=field_name, number=int(number),
                                      label=FIELD.LABEL_OPTIONAL)
            if kind.startswith("<"):
                add_map(message, field, kind.strip("<>"))
                continue
            if kind.endswith("*"):
                field.label = FIELD.LABEL_REPEATED
            set_type(field, kind.rstrip("*"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    return {message.name: factory.GetPrototype(pool.FindMessageTypeByName(
        f"{PACKAGE}.{message.name}")) for message in file.message_type}


TYPES = load()


def fill(message, value):
    """Sets the fields of a message from a document in the manner of JSON."""
    for name, part in value.items():
        field = message.DESCRIPTOR.fields_by_name[name]
        target = getattr(message, name)
        if field.message_type and field.message_type.GetOptions().map_entry:
            for key, item in part.items():
                if field.message_type.fields_by_name["value"].message_type:
                    fill(target[key], item)
                else:
                    target[key] = item
        elif field.label == FIELD.LABEL_REPEATED:
            for item in part:
                if field.message_type:
                    fill(target.add(), item)
                else:
                    target.append(item)
        elif field.message_type:
            target.SetInParent()
            fill(target, {"string": part} if field.message_type.name == "Quantity" and
                 isinstance(part, str) else part)
        else:
            setattr(message, name, part)
    return message


def make(name, **value):
    return fill(TYPES[name](), value)


def wrap(api_version, kind, message):
    """The envelope that every body is in."""
    unknown = TYPES["Unknown"](raw=message.SerializeToString())
    unknown.typeMeta.apiVersion = api_version
    unknown.typeMeta.kind = kind
    return MAGIC + unknown.SerializeToString()


def unwrap(body):
    """(apiVersion, kind, bytes)"""
    assert body[:4] == MAGIC, body[:40]
    unknown = TYPES["Unknown"].FromString(body[4:])
    return unknown.typeMeta.apiVersion, unknown.typeMeta.kind, unknown.raw
