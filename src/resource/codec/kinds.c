/* kinds.c - the table of kinds: names, versions and scopes. */
#include "resource/resource.h"

#include <string.h>

#include "base/buf.h"
#include "base/str.h"

#define RESOURCE DV_STR_INIT("resource.k8s.io")
#define RBAC DV_STR_INIT(DV_RBAC_GROUP)
#define APPS DV_STR_INIT("apps")
#define BATCH DV_STR_INIT(DV_BATCH_GROUP)
#define V1 DV_STR_INIT("v1")

#define VERSIONS(name) static const struct dv_api_version name##_versions[]
#define NAMES(name, ...) static const dv_str name##_names[] = {__VA_ARGS__}

VERSIONS(pod) = {
    {{0}, V1, &dv_message_pod}
};
VERSIONS(node) = {
    {{0}, V1, &dv_message_node}
};
VERSIONS(namespace) = {
    {{0}, V1, &dv_message_namespace}
};
VERSIONS(event) = {
    {{0},                          V1, &dv_message_event       },
    {DV_STR_INIT("events.k8s.io"), V1, &dv_message_events_event},
};
VERSIONS(account) = {
    {{0}, V1, &dv_message_service_account}
};
VERSIONS(secret) = {
    {{0}, V1, &dv_message_secret}
};
VERSIONS(config_map) = {
    {{0}, V1, &dv_message_config_map}
};
VERSIONS(lease) = {
    {DV_STR_INIT("coordination.k8s.io"), V1, &dv_message_lease}
};
VERSIONS(claim) = {
    {RESOURCE, V1,                     &dv_message_resource_claim        },
    {RESOURCE, DV_STR_INIT("v1beta2"), &dv_message_resource_claim        },
    {RESOURCE, DV_STR_INIT("v1beta1"), &dv_message_v1beta1_resource_claim},
};
VERSIONS(template) = {
    {RESOURCE, V1,                     &dv_message_resource_claim_template        },
    {RESOURCE, DV_STR_INIT("v1beta2"), &dv_message_resource_claim_template        },
    {RESOURCE, DV_STR_INIT("v1beta1"), &dv_message_v1beta1_resource_claim_template},
};
VERSIONS(slice) = {
    {RESOURCE, V1,                     &dv_message_resource_slice        },
    {RESOURCE, DV_STR_INIT("v1beta2"), &dv_message_resource_slice        },
    {RESOURCE, DV_STR_INIT("v1beta1"), &dv_message_v1beta1_resource_slice},
};
VERSIONS(class) = {
    {RESOURCE, V1,                     &dv_message_device_class},
    {RESOURCE, DV_STR_INIT("v1beta2"), &dv_message_device_class},
    {RESOURCE, DV_STR_INIT("v1beta1"), &dv_message_device_class},
};
VERSIONS(taint_rule) = {
    {RESOURCE, DV_STR_INIT("v1beta2"),  &dv_message_device_taint_rule},
    {RESOURCE, DV_STR_INIT("v1alpha3"), &dv_message_device_taint_rule},
};
VERSIONS(runtime_class) = {
    {DV_STR_INIT("node.k8s.io"), V1, &dv_message_runtime_class}
};
VERSIONS(priority_class) = {
    {DV_STR_INIT("scheduling.k8s.io"), V1, &dv_message_priority_class}
};
VERSIONS(quota) = {
    {{0}, V1, &dv_message_resource_quota}
};
VERSIONS(service) = {
    {{0}, V1, &dv_message_service}
};
VERSIONS(endpoints) = {
    {{0}, V1, &dv_message_endpoints}
};
VERSIONS(endpoint_slice) = {
    {DV_STR_INIT("discovery.k8s.io"), V1, &dv_message_endpoint_slice}
};
VERSIONS(validating_policy) = {
    {DV_STR_INIT(DV_ADMISSION_GROUP), V1, &dv_message_validating_admission_policy}
};
VERSIONS(validating_policy_binding) = {
    {DV_STR_INIT(DV_ADMISSION_GROUP), V1, &dv_message_validating_admission_policy_binding}
};
VERSIONS(validating_webhooks) = {
    {DV_STR_INIT(DV_ADMISSION_GROUP), V1, &dv_message_validating_webhook_configuration}
};
VERSIONS(mutating_webhooks) = {
    {DV_STR_INIT(DV_ADMISSION_GROUP), V1, &dv_message_mutating_webhook_configuration}
};
VERSIONS(role) = {
    {RBAC, V1, &dv_message_role}
};
VERSIONS(cluster_role) = {
    {RBAC, V1, &dv_message_cluster_role}
};
VERSIONS(role_binding) = {
    {RBAC, V1, &dv_message_role_binding}
};
VERSIONS(cluster_role_binding) = {
    {RBAC, V1, &dv_message_cluster_role_binding}
};
VERSIONS(daemon_set) = {
    {APPS, V1, &dv_message_daemon_set}
};
VERSIONS(controller_revision) = {
    {APPS, V1, &dv_message_controller_revision}
};
VERSIONS(deployment) = {
    {APPS, V1, &dv_message_deployment}
};
VERSIONS(replica_set) = {
    {APPS, V1, &dv_message_replica_set}
};
VERSIONS(job) = {
    {BATCH, V1, &dv_message_job}
};
VERSIONS(disruption_budget) = {
    {DV_STR_INIT("policy"), V1, &dv_message_pod_disruption_budget}
};
VERSIONS(custom_definition) = {
    {DV_STR_INIT("apiextensions.k8s.io"), V1, &dv_message_custom_resource_definition}
};

NAMES(pod, DV_STR_INIT("po"));
NAMES(node, DV_STR_INIT("no"));
NAMES(namespace, DV_STR_INIT("ns"));
NAMES(event, DV_STR_INIT("ev"));
NAMES(account, DV_STR_INIT("sa"));
NAMES(config_map, DV_STR_INIT("cm"));
NAMES(priority_class, DV_STR_INIT("pc"));
NAMES(quota, DV_STR_INIT("quota"));
NAMES(daemon_set, DV_STR_INIT("ds"));
NAMES(service, DV_STR_INIT("svc"));
NAMES(endpoints, DV_STR_INIT("ep"));
NAMES(deployment, DV_STR_INIT("deploy"));
NAMES(replica_set, DV_STR_INIT("rs"));
NAMES(disruption_budget, DV_STR_INIT("pdb"));
NAMES(custom_definition, DV_STR_INIT("crd"), DV_STR_INIT("crds"));

#define KIND(k, kind_name, kind_plural, kind_singular, table)                                      \
    .id = (k), .name = DV_STR_INIT(kind_name), .plural = DV_STR_INIT(kind_plural),                 \
    .singular = DV_STR_INIT(kind_singular), .versions = table##_versions,                          \
    .n_versions = sizeof(table##_versions) / sizeof(table##_versions[0])
#define SHORT(table)                                                                               \
    .short_names = table##_names, .n_short_names = sizeof(table##_names) / sizeof(table##_names[0])

static const struct dv_kind pod_kind = {KIND(DV_KIND_POD, "Pod", "pods", "pod", pod),
                                        SHORT(pod),
                                        .is_namespaced = true,
                                        .has_status = true,
                                        .has_generation = true,
                                        .is_in_all = true};
static const struct dv_kind node_kind = {KIND(DV_KIND_NODE, "Node", "nodes", "node", node),
                                         SHORT(node), .has_status = true};
static const struct dv_kind namespace_kind = {
    KIND(DV_KIND_NAMESPACE, "Namespace", "namespaces", "namespace", namespace), SHORT(namespace),
    .has_status = true};
static const struct dv_kind event_kind = {KIND(DV_KIND_EVENT, "Event", "events", "event", event),
                                          SHORT(event), .is_namespaced = true};
static const struct dv_kind service_account_kind = {
    KIND(DV_KIND_SERVICE_ACCOUNT, "ServiceAccount", "serviceaccounts", "serviceaccount", account),
    SHORT(account), .is_namespaced = true};
static const struct dv_kind secret_kind = {
    KIND(DV_KIND_SECRET, "Secret", "secrets", "secret", secret), .is_namespaced = true};
static const struct dv_kind config_map_kind = {
    KIND(DV_KIND_CONFIG_MAP, "ConfigMap", "configmaps", "configmap", config_map), SHORT(config_map),
    .is_namespaced = true};
static const struct dv_kind lease_kind = {KIND(DV_KIND_LEASE, "Lease", "leases", "lease", lease),
                                          .is_namespaced = true};
static const struct dv_kind claim_kind = {
    KIND(DV_KIND_CLAIM, "ResourceClaim", "resourceclaims", "resourceclaim", claim),
    .is_namespaced = true, .has_status = true};
static const struct dv_kind template_kind = {KIND(DV_KIND_TEMPLATE, "ResourceClaimTemplate",
                                                  "resourceclaimtemplates", "resourceclaimtemplate",
                                                  template),
                                             .is_namespaced = true};
static const struct dv_kind slice_kind = {
    KIND(DV_KIND_SLICE, "ResourceSlice", "resourceslices", "resourceslice", slice),
    .has_generation = true};
static const struct dv_kind class_kind = {
    KIND(DV_KIND_CLASS, "DeviceClass", "deviceclasses", "deviceclass", class),
    .has_generation = true};
static const struct dv_kind taint_rule_kind = {
    KIND(DV_KIND_TAINT_RULE, "DeviceTaintRule", "devicetaintrules", "devicetaintrule", taint_rule),
    .has_status = true, .has_generation = true};
static const struct dv_kind runtime_class_kind = {
    KIND(DV_KIND_RUNTIME_CLASS, "RuntimeClass", "runtimeclasses", "runtimeclass", runtime_class)};
static const struct dv_kind priority_class_kind = {KIND(DV_KIND_PRIORITY_CLASS, "PriorityClass",
                                                        "priorityclasses", "priorityclass",
                                                        priority_class),
                                                   SHORT(priority_class)};
static const struct dv_kind quota_kind = {
    KIND(DV_KIND_RESOURCE_QUOTA, "ResourceQuota", "resourcequotas", "resourcequota", quota),
    SHORT(quota), .is_namespaced = true, .has_status = true};
static const struct dv_kind service_kind = {
    KIND(DV_KIND_SERVICE, "Service", "services", "service", service), SHORT(service),
    .is_namespaced = true, .has_status = true};
static const struct dv_kind endpoints_kind = {
    KIND(DV_KIND_ENDPOINTS, "Endpoints", "endpoints", "endpoints", endpoints), SHORT(endpoints),
    .is_namespaced = true};
static const struct dv_kind endpoint_slice_kind = {KIND(DV_KIND_ENDPOINT_SLICE, "EndpointSlice",
                                                        "endpointslices", "endpointslice",
                                                        endpoint_slice),
                                                   .is_namespaced = true};
static const struct dv_kind validating_policy_kind = {
    KIND(DV_KIND_VALIDATING_POLICY, "ValidatingAdmissionPolicy", "validatingadmissionpolicies",
         "validatingadmissionpolicy", validating_policy),
    .has_status = true, .has_generation = true};
static const struct dv_kind validating_policy_binding_kind = {
    KIND(DV_KIND_VALIDATING_POLICY_BINDING, "ValidatingAdmissionPolicyBinding",
         "validatingadmissionpolicybindings", "validatingadmissionpolicybinding",
         validating_policy_binding),
    .has_generation = true};
static const struct dv_kind validating_webhooks_kind = {
    KIND(DV_KIND_VALIDATING_WEBHOOKS, "ValidatingWebhookConfiguration",
         "validatingwebhookconfigurations", "validatingwebhookconfiguration", validating_webhooks),
    .has_generation = true};
static const struct dv_kind mutating_webhooks_kind = {
    KIND(DV_KIND_MUTATING_WEBHOOKS, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations",
         "mutatingwebhookconfiguration", mutating_webhooks),
    .has_generation = true};
static const struct dv_kind role_kind = {KIND(DV_KIND_ROLE, "Role", "roles", "role", role),
                                         .is_namespaced = true};
static const struct dv_kind cluster_role_kind = {
    KIND(DV_KIND_CLUSTER_ROLE, "ClusterRole", "clusterroles", "clusterrole", cluster_role)};
static const struct dv_kind role_binding_kind = {
    KIND(DV_KIND_ROLE_BINDING, "RoleBinding", "rolebindings", "rolebinding", role_binding),
    .is_namespaced = true};
static const struct dv_kind cluster_role_binding_kind = {
    KIND(DV_KIND_CLUSTER_ROLE_BINDING, "ClusterRoleBinding", "clusterrolebindings",
         "clusterrolebinding", cluster_role_binding)};
static const struct dv_kind daemon_set_kind = {
    KIND(DV_KIND_DAEMON_SET, "DaemonSet", "daemonsets", "daemonset", daemon_set),
    SHORT(daemon_set),
    .is_namespaced = true,
    .has_status = true,
    .has_generation = true,
    .is_in_all = true};
static const struct dv_kind controller_revision_kind = {
    KIND(DV_KIND_CONTROLLER_REVISION, "ControllerRevision", "controllerrevisions",
         "controllerrevision", controller_revision),
    .is_namespaced = true};
static const struct dv_kind deployment_kind = {
    KIND(DV_KIND_DEPLOYMENT, "Deployment", "deployments", "deployment", deployment),
    SHORT(deployment),
    .is_namespaced = true,
    .has_status = true,
    .has_generation = true,
    .is_in_all = true,
    .has_scale = true};
static const struct dv_kind replica_set_kind = {
    KIND(DV_KIND_REPLICA_SET, "ReplicaSet", "replicasets", "replicaset", replica_set),
    SHORT(replica_set),
    .is_namespaced = true,
    .has_status = true,
    .has_generation = true,
    .is_in_all = true,
    .has_scale = true};
static const struct dv_kind job_kind = {KIND(DV_KIND_JOB, "Job", "jobs", "job", job),
                                        .is_namespaced = true, .has_status = true,
                                        .has_generation = true, .is_in_all = true};
static const struct dv_kind disruption_budget_kind = {
    KIND(DV_KIND_DISRUPTION_BUDGET, "PodDisruptionBudget", "poddisruptionbudgets",
         "poddisruptionbudget", disruption_budget),
    SHORT(disruption_budget), .is_namespaced = true, .has_status = true, .has_generation = true};

static const struct dv_kind custom_definition_kind = {
    KIND(DV_KIND_CUSTOM_DEFINITION, "CustomResourceDefinition", "customresourcedefinitions",
         "customresourcedefinition", custom_definition),
    SHORT(custom_definition), .has_status = true, .has_generation = true};

static const struct dv_kind *const kinds[DV_N_KINDS] = {
    [DV_KIND_POD] = &pod_kind,
    [DV_KIND_NODE] = &node_kind,
    [DV_KIND_NAMESPACE] = &namespace_kind,
    [DV_KIND_EVENT] = &event_kind,
    [DV_KIND_SERVICE_ACCOUNT] = &service_account_kind,
    [DV_KIND_SECRET] = &secret_kind,
    [DV_KIND_CONFIG_MAP] = &config_map_kind,
    [DV_KIND_LEASE] = &lease_kind,
    [DV_KIND_CLAIM] = &claim_kind,
    [DV_KIND_TEMPLATE] = &template_kind,
    [DV_KIND_SLICE] = &slice_kind,
    [DV_KIND_CLASS] = &class_kind,
    [DV_KIND_TAINT_RULE] = &taint_rule_kind,
    [DV_KIND_RUNTIME_CLASS] = &runtime_class_kind,
    [DV_KIND_PRIORITY_CLASS] = &priority_class_kind,
    [DV_KIND_RESOURCE_QUOTA] = &quota_kind,
    [DV_KIND_SERVICE] = &service_kind,
    [DV_KIND_ENDPOINTS] = &endpoints_kind,
    [DV_KIND_ENDPOINT_SLICE] = &endpoint_slice_kind,
    [DV_KIND_VALIDATING_POLICY] = &validating_policy_kind,
    [DV_KIND_VALIDATING_POLICY_BINDING] = &validating_policy_binding_kind,
    [DV_KIND_VALIDATING_WEBHOOKS] = &validating_webhooks_kind,
    [DV_KIND_MUTATING_WEBHOOKS] = &mutating_webhooks_kind,
    [DV_KIND_ROLE] = &role_kind,
    [DV_KIND_CLUSTER_ROLE] = &cluster_role_kind,
    [DV_KIND_ROLE_BINDING] = &role_binding_kind,
    [DV_KIND_CLUSTER_ROLE_BINDING] = &cluster_role_binding_kind,
    [DV_KIND_DAEMON_SET] = &daemon_set_kind,
    [DV_KIND_CONTROLLER_REVISION] = &controller_revision_kind,
    [DV_KIND_DEPLOYMENT] = &deployment_kind,
    [DV_KIND_REPLICA_SET] = &replica_set_kind,
    [DV_KIND_JOB] = &job_kind,
    [DV_KIND_DISRUPTION_BUDGET] = &disruption_budget_kind,
    [DV_KIND_CUSTOM_DEFINITION] = &custom_definition_kind,
};

static const struct dv_api_version *version_of(const struct dv_kind *kind, dv_str group,
                                               dv_str version)
{
    for (size_t i = 0; i < kind->n_versions; i++)
        if (dv_str_eq(kind->versions[i].group, group) &&
            dv_str_eq(kind->versions[i].version, version))
            return &kind->versions[i];
    return NULL;
}

static const struct dv_kind *find(dv_str group, dv_str version, dv_str name, bool is_plural,
                                  const struct dv_api_version **found)
{
    for (size_t i = 0; i < DV_N_KINDS; i++) {
        const struct dv_kind *kind = kinds[i];
        const struct dv_api_version *at;

        if (!dv_str_eq(is_plural ? kind->plural : kind->name, name))
            continue;
        at = version_of(kind, group, version);
        if (!at)
            continue;
        if (found)
            *found = at;
        return kind;
    }
    return NULL;
}

const struct dv_kind *dv_kind(enum dv_kind_id id)
{
    return kinds[id];
}

const struct dv_kind *dv_kind_by_name(dv_str group, dv_str version, dv_str name,
                                      const struct dv_api_version **found)
{
    return find(group, version, name, false, found);
}

const struct dv_kind *dv_kind_by_plural(dv_str group, dv_str version, dv_str plural,
                                        const struct dv_api_version **found)
{
    return find(group, version, plural, true, found);
}

void dv_api_version_print(const struct dv_api_version *version, struct dv_buf *buf)
{
    if (version->group.n) {
        dv_buf_add(buf, version->group);
        dv_buf_add_char(buf, '/');
    }
    dv_buf_add(buf, version->version);
}

void dv_api_version_split(dv_str api_version, dv_str *group, dv_str *version)
{
    const char *slash = api_version.n ? memchr(api_version.p, '/', api_version.n) : NULL;

    if (!slash) {
        *group = DV_STR_NONE;
        *version = api_version;
        return;
    }
    *group = (dv_str){api_version.p, (size_t)(slash - api_version.p)};
    *version = (dv_str){slash + 1, api_version.n - group->n - 1};
}
