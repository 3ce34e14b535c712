/* table_columns.c - the columns of each kind. Names and descriptions are part of what a client
 * sees, so they are the API's own words. */
#include "resource/table.h"

#include "base/str.h"
#include "resource/custom.h"
#include "resource/resource.h"

#define NAME_TEXT                                                                                  \
    "Name must be unique within a namespace. Is required when creating resources, although some "  \
    "resources may allow a client to request the generation of an appropriate name "               \
    "automatically. "                                                                              \
    "Name is primarily intended for creation idempotence and configuration definition. Cannot be " \
    "updated. More info: "                                                                         \
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
#define AGE_TEXT                                                                                   \
    "CreationTimestamp is a timestamp representing the server time when this object was created. " \
    "It is not guaranteed to be set in happens-before order across separate operations. Clients "  \
    "may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by "    \
    "the "                                                                                         \
    "system. Read-only. Null for lists. More info: "                                               \
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
#define ADDRESS_TEXT                                                                               \
    "List of addresses reachable to the node. Queried from cloud provider, if available. More "    \
    "info: https://kubernetes.io/docs/reference/node/node-status/#addresses Note: This field is "  \
    "declared as mergeable, but the merge key is not sufficiently unique, which can cause data "   \
    "corruption when it is merged. Callers should instead use a full-replacement patch. See "      \
    "https://pr.k8s.io/79391 for an example. Consumers should assume that addresses can change "   \
    "during the lifetime of a Node. However, there are some exceptions where this may not be "     \
    "possible, such as Pods that inherit a Node's address in its own status or consumers of the "  \
    "downward API (status.hostIP)."

#define NAME(priority)                                                                             \
    {                                                                                              \
        DV_STR_INIT("Name"), DV_STR_INIT("string"), DV_STR_INIT("name"), DV_STR_INIT(NAME_TEXT),   \
            priority                                                                               \
    }
#define COLUMN(name, priority, text)                                                               \
    {                                                                                              \
        DV_STR_INIT(name), DV_STR_INIT("string"), DV_STR_INIT(""), DV_STR_INIT(text), priority     \
    }
#define AGE COLUMN("Age", 0, AGE_TEXT)

static const struct dv_column plain_columns[] = {
    NAME(0),
    AGE,
};
static const struct dv_column pod_columns[] = {
    NAME(0),
    COLUMN("Ready", 0, "The aggregate readiness state of this pod for accepting traffic."),
    COLUMN("Status", 0, "The aggregate status of the containers in this pod."),
    COLUMN("Restarts", 0,
           "The number of times the containers in this pod have been restarted and when the last "
           "container in this pod has restarted."),
    AGE,
    COLUMN("IP", 1,
           "podIP address allocated to the pod. Routable at least within the cluster. Empty if "
           "not yet allocated."),
    COLUMN("Node", 1,
           "NodeName indicates in which node this pod is scheduled. If empty, this pod is a "
           "candidate for scheduling by the scheduler defined in schedulerName. Once this field "
           "is set, the kubelet for this node becomes responsible for the lifecycle of this pod. "
           "This field should not be used to express a desire for the pod to be scheduled on a "
           "specific node. "
           "https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#nodename"),
    COLUMN("Nominated Node", 1,
           "nominatedNodeName is set only when this pod preempts other pods on the node, but it "
           "cannot be scheduled right away as preemption victims receive their graceful "
           "termination periods. This field does not guarantee that the pod will be scheduled on "
           "this node. Scheduler may decide to place the pod elsewhere if other nodes become "
           "available sooner. Scheduler may also decide to give the resources on this node to a "
           "higher priority pod that is created after preemption. As a result, this field may be "
           "different than PodSpec.nodeName when the pod is scheduled."),
    COLUMN("Readiness Gates", 1,
           "If specified, all readiness gates will be evaluated for pod readiness. A pod is ready "
           "when all its containers are ready AND all conditions specified in the readiness gates "
           "have status equal to \"True\" More info: "
           "https://git.k8s.io/enhancements/keps/sig-network/580-pod-readiness-gates"),
};
static const struct dv_column node_columns[] = {
    NAME(0),
    COLUMN("Status", 0, "The status of the node"),
    COLUMN("Roles", 0, "The roles of the node"),
    AGE,
    COLUMN("Version", 0, "Kubelet Version reported by the node."),
    COLUMN("Internal-IP", 1, ADDRESS_TEXT),
    COLUMN("External-IP", 1, ADDRESS_TEXT),
    COLUMN("OS-Image", 1,
           "OS Image reported by the node from /etc/os-release (e.g. Debian GNU/Linux 7 "
           "(wheezy))."),
    COLUMN("Kernel-Version", 1,
           "Kernel Version reported by the node from 'uname -r' (e.g. 3.16.0-0.bpo.4-amd64)."),
    COLUMN("Container-Runtime", 1,
           "ContainerRuntime Version reported by the node through runtime remote API (e.g. "
           "containerd://1.4.2)."),
};
static const struct dv_column namespace_columns[] = {
    NAME(0),
    COLUMN("Status", 0, "The status of the namespace"),
    AGE,
};
static const struct dv_column event_columns[] = {
    COLUMN("Last Seen", 0,
           "The time at which the most recent occurrence of this event was recorded."),
    COLUMN("Type", 0,
           "Type of this event (Normal, Warning), new types could be added in the future"),
    COLUMN("Reason", 0,
           "This should be a short, machine understandable string that gives the reason for the "
           "transition into the object's current status."),
    COLUMN("Object", 0, "The object that this event is about."),
    COLUMN("Subobject", 1,
           "If referring to a piece of an object instead of an entire object, this string should "
           "contain a valid JSON/Go field access statement, such as "
           "desiredState.manifest.containers[2]. For example, if the object reference is to a "
           "container within a pod, this would take on a value like: \"spec.containers{name}\" "
           "(where \"name\" refers to the name of the container that triggered the event) or if "
           "no container name is specified \"spec.containers[2]\" (container with index 2 in this "
           "pod). This syntax is chosen only to have some well-defined way of referencing a part "
           "of an object."),
    COLUMN("Source", 1,
           "The component reporting this event. Should be a short machine understandable string."),
    COLUMN("Message", 0, "A human-readable description of the status of this operation."),
    COLUMN("First Seen", 1,
           "The time at which the event was first recorded. (Time of server receipt is in "
           "TypeMeta.)"),
    COLUMN("Count", 1, "The number of times this event has occurred."),
    NAME(1),
};
static const struct dv_column account_columns[] = {
    NAME(0),
    COLUMN("Secrets", 0,
           "Secrets is a list of the secrets in the same namespace that pods running using this "
           "ServiceAccount are allowed to use. Pods are only limited to this list if this service "
           "account has a \"kubernetes.io/enforce-mountable-secrets\" annotation set to \"true\". "
           "The \"kubernetes.io/enforce-mountable-secrets\" annotation is deprecated since v1.32. "
           "Prefer separate namespaces to isolate access to mounted secrets. This field should "
           "not be used to find auto-generated service account token secrets for use outside of "
           "pods. Instead, tokens can be requested directly using the TokenRequest API, or "
           "service account token secrets can be manually created. More info: "
           "https://kubernetes.io/docs/concepts/configuration/secret"),
    AGE,
};
static const struct dv_column secret_columns[] = {
    NAME(0),
    COLUMN("Type", 0,
           "Used to facilitate programmatic handling of secret data. More info: "
           "https://kubernetes.io/docs/concepts/configuration/secret/#secret-types"),
    COLUMN("Data", 0,
           "Data contains the secret data. Each key must consist of alphanumeric characters, '-', "
           "'_' or '.'. The serialized form of the secret data is a base64 encoded string, "
           "representing the arbitrary (possibly non-string) data value here. Described in "
           "https://tools.ietf.org/html/rfc4648#section-4"),
    AGE,
};
static const struct dv_column config_map_columns[] = {
    NAME(0),
    COLUMN("Data", 0,
           "Data contains the configuration data. Each key must consist of alphanumeric "
           "characters, '-', '_' or '.'. Values with non-UTF-8 byte sequences must use the "
           "BinaryData field. The keys stored in Data must not overlap with the keys in the "
           "BinaryData field, this is enforced during validation process."),
    AGE,
};
static const struct dv_column lease_columns[] = {
    NAME(0),
    COLUMN("Holder", 0,
           "holderIdentity contains the identity of the holder of a current lease. If Coordinated "
           "Leader Election is used, the holder identity must be equal to the elected "
           "LeaseCandidate.metadata.name field."),
    AGE,
};
static const struct dv_column claim_columns[] = {
    NAME(0),
    COLUMN("State", 0, "A summary of the current state (allocated, pending, reserved, etc.)."),
    AGE,
};
static const struct dv_column slice_columns[] = {
    NAME(0),
    COLUMN("Node", 0,
           "NodeName identifies the node which provides the resources in this pool. A field "
           "selector can be used to list only ResourceSlice objects belonging to a certain "
           "node.\n\nThis field can be used to limit access from nodes to ResourceSlices with the "
           "same node name. It also indicates to autoscalers that adding new nodes of the same "
           "type as some old node might also make new resources available.\n\nExactly one of "
           "NodeName, NodeSelector, AllNodes, and PerDeviceNodeSelection must be set. This field "
           "is immutable."),
    COLUMN("Driver", 0,
           "Driver identifies the DRA driver providing the capacity information. A field selector "
           "can be used to list only ResourceSlice objects with a certain driver name.\n\nMust be "
           "a DNS subdomain and should end with a DNS domain owned by the vendor of the driver. "
           "It should use only lower case characters. This field is immutable."),
    COLUMN("Pool", 0,
           "Name is used to identify the pool. For node-local devices, this is often the node "
           "name, but this is not required.\n\nIt must not be longer than 253 characters and must "
           "consist of one or more DNS sub-domains separated by slashes. This field is immutable."),
    AGE,
};
static const struct dv_column taint_rule_columns[] = {
    NAME(0),
    COLUMN("Key", 0, "The taint key to be applied to a device. Must be a label name."),
    COLUMN("Value", 0, "The taint value corresponding to the taint key. Must be a label value."),
    COLUMN("Effect", 0,
           "The effect of the taint on claims that do not tolerate the taint and through such "
           "claims on the pods using them.\n\nValid effects are None, NoSchedule and NoExecute. "
           "PreferNoSchedule as used for nodes is not valid here. More effects may get added in "
           "the future. Consumers must treat unknown effects like None."),
    COLUMN("TimeAdded", 0,
           "TimeAdded represents the time at which the taint was added or (only in a "
           "DeviceTaintRule) the effect was modified. Added automatically during create or update "
           "if not set.\n\nIn addition, in a DeviceTaintRule a value provided during an update "
           "gets replaced with the current time if the provided value is the same as the old one "
           "and the new effect is different. Changing the key and/or value while keeping the "
           "effect unchanged is possible and does not update the time stamp because the eviction "
           "which uses it is either already started (NoExecute) or not started yet (NoEffect, "
           "NoSchedule)."),
    AGE,
};
static const struct dv_column runtime_class_columns[] = {
    NAME(0),
    COLUMN("Handler", 0,
           "handler specifies the underlying runtime and configuration that the CRI "
           "implementation will use to handle pods of this class. The possible values are "
           "specific to the node & CRI configuration.  It is assumed that all handlers are "
           "available on every node, and handlers of the same name are equivalent on every "
           "node. For example, a handler called \"runc\" might specify that the runc OCI runtime "
           "(using native Linux containers) will be used to run the containers in a pod. The "
           "Handler must be lowercase, conform to the DNS Label (RFC 1123) requirements, and is "
           "immutable."),
    AGE,
};
static const struct dv_column priority_class_columns[] = {
    NAME(0),
    {DV_STR_INIT("Value"),          DV_STR_INIT("integer"), DV_STR_INIT(""),
         DV_STR_INIT("value represents the integer value of this priority class. This is the actual "
                 "priority that pods receive when they have the name of this class in their pod "
                 "spec."),
         0},
    {DV_STR_INIT("Global-Default"), DV_STR_INIT("boolean"), DV_STR_INIT(""),
         DV_STR_INIT("globalDefault specifies whether this PriorityClass should be considered as the "
                 "default priority for pods that do not have any priority class. Only one "
                 "PriorityClass can be marked as `globalDefault`. However, if more than one "
                 "PriorityClasses exists with their `globalDefault` field set to true, the "
                 "smallest value of such global default PriorityClasses will be used as the "
                 "default priority."),
         0},
    AGE,
    COLUMN("PreemptionPolicy", 0,
           "preemptionPolicy is the Policy for preempting pods with lower priority. One of Never, "
           "PreemptLowerPriority. Defaults to PreemptLowerPriority if unset."),
};
static const struct dv_column quota_columns[] = {
    NAME(0),
    COLUMN("Request", 0,
           "Request represents a minimum amount of cpu/memory that a container may consume."),
    COLUMN("Limit", 0,
           "Limits control the maximum amount of cpu/memory that a container may use independent "
           "of contention on the node."),
    AGE,
};
#define NUMBER(name, text)                                                                         \
    {                                                                                              \
        DV_STR_INIT(name), DV_STR_INIT("integer"), DV_STR_INIT(""), DV_STR_INIT(text), 0           \
    }
#define OF_TEMPLATE                                                                                \
    COLUMN("Containers", 1, "Names of each container in the template."),                           \
        COLUMN("Images", 1, "Images referenced by each container in the template."),               \
        COLUMN("Selector", 1, SELECTOR_TEXT)
#define SELECTOR_TEXT "Label selector for pods. It must match the pod template's labels."

static const struct dv_column daemon_set_columns[] = {
    NAME(0),
    NUMBER("Desired", "The total number of nodes that should be running the daemon pod (including "
                      "nodes correctly running the daemon pod). More info: "
                      "https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/"),
    NUMBER("Current", "The number of nodes that are running at least 1 daemon pod and are supposed "
                      "to run the daemon pod. More info: "
                      "https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/"),
    NUMBER("Ready", "numberReady is the number of nodes that should be running the daemon pod and "
                    "have one or more of the daemon pod running with a Ready Condition."),
    NUMBER("Up-to-date", "The total number of nodes that are running updated daemon pod"),
    NUMBER("Available", "The number of nodes that should be running the daemon pod and have one or "
                        "more of the daemon pod running and available (ready for at least "
                        "spec.minReadySeconds)"),
    COLUMN("Node Selector", 0,
           "NodeSelector is a selector which must be true for the pod to fit on a node. Selector "
           "which must match a node's labels for the pod to be scheduled on that node. More info: "
           "https://kubernetes.io/docs/concepts/configuration/assign-pod-node/"),
    AGE,
    OF_TEMPLATE,
};
static const struct dv_column deployment_columns[] = {
    NAME(0),
    COLUMN("Ready", 0, "Number of the pod with ready state"),
    COLUMN("Up-to-date", 0,
           "Total number of non-terminating pods targeted by this deployment that have the desired "
           "template spec."),
    COLUMN("Available", 0,
           "Total number of available non-terminating pods (ready for at least minReadySeconds) "
           "targeted by this deployment."),
    AGE,
    OF_TEMPLATE,
};
static const struct dv_column replica_set_columns[] = {
    NAME(0),
    NUMBER("Desired", "Replicas is the number of desired pods."),
    NUMBER("Current", "Replicas is the most recently observed number of non-terminating pods."),
    NUMBER("Ready", "The number of non-terminating pods targeted by this ReplicaSet with a Ready "
                    "Condition."),
    AGE,
    OF_TEMPLATE,
};
static const struct dv_column job_columns[] = {
    NAME(0),
    COLUMN("Status", 0, "Status of the job."),
    COLUMN("Completions", 0,
           "The number of pods which reached phase Succeeded. The value increases monotonically "
           "for a given spec. However, it may decrease in reaction to scale down of elastic "
           "indexed jobs."),
    COLUMN("Duration", 0, "Time required to complete the job."),
    AGE,
    COLUMN("Containers", 1, "Names of each container in the template."),
    COLUMN("Images", 1, "Images referenced by each container in the template."),
    COLUMN("Selector", 1,
           "A label query over pods that should match the pod count. Normally, the system sets "
           "this field for you. More info: "
           "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/"
           "#label-selectors"),
};
static const struct dv_column controller_revision_columns[] = {
    NAME(0),
    COLUMN("Controller", 0, "Controller of the object"),
    NUMBER("Revision", "Revision indicates the revision of the state represented by Data."),
    AGE,
};
static const struct dv_column policy_columns[] = {
    NAME(0),
    {DV_STR_INIT("Validations"), DV_STR_INIT("integer"), DV_STR_INIT(""),
         DV_STR_INIT("Validations indicates the number of validation rules defined in this "
                 "configuration"),
         0},
    COLUMN("ParamKind", 0,
           "ParamKind specifies the kind of resources used to parameterize this policy"),
    AGE,
};
static const struct dv_column policy_binding_columns[] = {
    NAME(0),
    COLUMN("PolicyName", 0,
           "PolicyName indicates the policy definition which the policy binding binded to"),
    COLUMN("ParamRef", 0,
           "ParamRef indicates the param resource which sets the configration param"),
    AGE,
};
static const struct dv_column webhooks_columns[] = {
    NAME(0),
    NUMBER("Webhooks",
           "Webhooks indicates the number of webhooks configured in this configuration"),
    AGE,
};
/* Roles have the columns of kinds for which the reference has none. */
static const struct dv_column role_columns[] = {
    NAME(0),
    {DV_STR_INIT("Created At"), DV_STR_INIT("date"), DV_STR_INIT(""), DV_STR_INIT(AGE_TEXT), 0},
};
static const struct dv_column role_binding_columns[] = {
    NAME(0),
    COLUMN("Role", 0,
           "RoleRef can reference a Role in the current namespace or a ClusterRole in the global "
           "namespace. If the RoleRef cannot be resolved, the Authorizer must return an error. "
           "This field is immutable."),
    AGE,
    COLUMN("Users", 1, "Users in the roleBinding"),
    COLUMN("Groups", 1, "Groups in the roleBinding"),
    COLUMN("ServiceAccounts", 1, "ServiceAccounts in the roleBinding"),
};
static const struct dv_column cluster_role_binding_columns[] = {
    NAME(0),
    COLUMN("Role", 0,
           "RoleRef can only reference a ClusterRole in the global namespace. If the RoleRef "
           "cannot be resolved, the Authorizer must return an error. This field is immutable."),
    AGE,
    COLUMN("Users", 1, "Users in the clusterRoleBinding"),
    COLUMN("Groups", 1, "Groups in the clusterRoleBinding"),
    COLUMN("ServiceAccounts", 1, "ServiceAccounts in the clusterRoleBinding"),
};
static const struct dv_column service_columns[] = {
    NAME(0),
    COLUMN("Type", 0, "type determines how the Service is exposed."),
    COLUMN("Cluster-IP", 0, "clusterIP is the IP address of the service."),
    COLUMN("External-IP", 0, "externalIPs is a list of IP addresses outside of the cluster."),
    COLUMN("Port(s)", 0, "The list of ports that are exposed by this service."),
    AGE,
    COLUMN("Selector", 1,
           "Route service traffic to pods with label keys and values matching this."),
};
static const struct dv_column endpoints_columns[] = {
    NAME(0),
    COLUMN("Endpoints", 0, "The addresses that are ready, with their ports."),
    AGE,
};
static const struct dv_column endpoint_slice_columns[] = {
    NAME(0),
    COLUMN("AddressType", 0, "addressType specifies the type of address carried by the slice."),
    COLUMN("Ports", 0, "ports specifies the list of network ports exposed by each endpoint."),
    COLUMN("Endpoints", 0, "endpoints is a list of unique endpoints in this slice."),
    AGE,
};

static const struct dv_column definition_columns[] = {
    NAME(0),
    {DV_STR_INIT("Created At"), DV_STR_INIT("date"), DV_STR_INIT(""),
         DV_STR_INIT("CreationTimestamp is a timestamp representing the server time when this object "
                 "was created."),
         0},
};

static const struct dv_column budget_columns[] = {
    NAME(0),
    COLUMN("Min Available", 0, "The minimum number of pods that must be available."),
    COLUMN("Max Unavailable", 0, "The maximum number of pods that may be unavailable."),
    {DV_STR_INIT("Allowed Disruptions"), DV_STR_INIT("integer"), DV_STR_INIT(""),
                                                                                   DV_STR_INIT("Calculated number of pods that may be disrupted at this time."), 0},
    AGE,
};

#define COLUMNS(columns)                                                                           \
    {                                                                                              \
        columns, DV_COUNT(columns)                                                                 \
    }

static const struct {
    const struct dv_column *v;
    size_t n;
} of_kinds[DV_N_KINDS] = {
    [DV_KIND_POD] = COLUMNS(pod_columns),
    [DV_KIND_NODE] = COLUMNS(node_columns),
    [DV_KIND_NAMESPACE] = COLUMNS(namespace_columns),
    [DV_KIND_EVENT] = COLUMNS(event_columns),
    [DV_KIND_SERVICE_ACCOUNT] = COLUMNS(account_columns),
    [DV_KIND_SECRET] = COLUMNS(secret_columns),
    [DV_KIND_CONFIG_MAP] = COLUMNS(config_map_columns),
    [DV_KIND_LEASE] = COLUMNS(lease_columns),
    [DV_KIND_CLAIM] = COLUMNS(claim_columns),
    [DV_KIND_TEMPLATE] = COLUMNS(plain_columns),
    [DV_KIND_SLICE] = COLUMNS(slice_columns),
    [DV_KIND_CLASS] = COLUMNS(plain_columns),
    [DV_KIND_TAINT_RULE] = COLUMNS(taint_rule_columns),
    [DV_KIND_RUNTIME_CLASS] = COLUMNS(runtime_class_columns),
    [DV_KIND_PRIORITY_CLASS] = COLUMNS(priority_class_columns),
    [DV_KIND_RESOURCE_QUOTA] = COLUMNS(quota_columns),
    [DV_KIND_DAEMON_SET] = COLUMNS(daemon_set_columns),
    [DV_KIND_CONTROLLER_REVISION] = COLUMNS(controller_revision_columns),
    [DV_KIND_SERVICE] = COLUMNS(service_columns),
    [DV_KIND_ENDPOINTS] = COLUMNS(endpoints_columns),
    [DV_KIND_ENDPOINT_SLICE] = COLUMNS(endpoint_slice_columns),
    [DV_KIND_VALIDATING_POLICY] = COLUMNS(policy_columns),
    [DV_KIND_VALIDATING_POLICY_BINDING] = COLUMNS(policy_binding_columns),
    [DV_KIND_VALIDATING_WEBHOOKS] = COLUMNS(webhooks_columns),
    [DV_KIND_MUTATING_WEBHOOKS] = COLUMNS(webhooks_columns),
    [DV_KIND_DEPLOYMENT] = COLUMNS(deployment_columns),
    [DV_KIND_REPLICA_SET] = COLUMNS(replica_set_columns),
    [DV_KIND_JOB] = COLUMNS(job_columns),
    [DV_KIND_ROLE] = COLUMNS(role_columns),
    [DV_KIND_CLUSTER_ROLE] = COLUMNS(role_columns),
    [DV_KIND_ROLE_BINDING] = COLUMNS(role_binding_columns),
    [DV_KIND_CLUSTER_ROLE_BINDING] = COLUMNS(cluster_role_binding_columns),
    [DV_KIND_DISRUPTION_BUDGET] = COLUMNS(budget_columns),
    [DV_KIND_CUSTOM_DEFINITION] = COLUMNS(definition_columns),
};

const struct dv_column *dv_table_columns(const struct dv_kind *kind,
                                         const struct dv_api_version *version, size_t *n)
{
    if (dv_kind_is_custom(kind)) {
        *n = dv_custom_version_of(version)->n_columns;
        return dv_custom_version_of(version)->columns;
    }
    (void)version;                /* all versions of a kind have the same columns */
    if (kind->id >= DV_N_KINDS) { /* one that is never stored */
        *n = DV_COUNT(plain_columns);
        return plain_columns;
    }
    *n = of_kinds[kind->id].n;
    return of_kinds[kind->id].v;
}
