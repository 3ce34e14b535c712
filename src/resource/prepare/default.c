/* default.c - what the API fills in when an object leaves it out. */
#include "resource/prepare/default.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "number/number.h"
#include "resource/custom.h"
#include "resource/resource.h"
#include "resource/webhooks.h"

#define EXACT_COUNT DV_STR("ExactCount")
#define NAME_LABEL DV_STR("kubernetes.io/metadata.name")

void dv_default_quantities(struct dv_quantity_entry *entries, size_t n, struct dv_arena *arena)
{
    for (size_t i = 0; i < n; i++) {
        struct dv_quantity rounded;
        struct dv_err err;
        int64_t milli;
        dv_str text;

        if (dv_quantity_is_integer(&entries[i].value) ||
            !dv_quantity_to_milli_ceil(&entries[i].value, &milli))
            continue;
        text = dv_str_printf(arena, "%lldm", (long long)milli);
        if (dv_quantity_parse(text, arena, &rounded, &err) &&
            dv_quantity_cmp(&rounded, &entries[i].value) != 0)
            entries[i].value = rounded;
    }
}

/* -- Claims --------------------------------------------------------------------------------- */

static void default_tolerations(struct dv_api_device_toleration *tolerations, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dv_default_str(&tolerations[i].operator, DV_STR("Equal"));
}

static void default_count(dv_str *mode, int64_t *count)
{
    dv_default_str(mode, EXACT_COUNT);
    if (dv_str_eq(*mode, EXACT_COUNT) && *count == 0)
        *count = 1;
}

/* v1beta1 cannot tell an empty request from one that is all in its alternatives, so there a request
 * without a class stays as it is. */
static void default_request(struct dv_api_device_request *request, bool is_v1beta1)
{
    struct dv_api_exact_device_request *exactly = request->exactly;

    if (exactly && (!is_v1beta1 || exactly->device_class_name.n > 0))
        default_count(&exactly->allocation_mode, &exactly->count);
    if (exactly)
        default_tolerations(exactly->tolerations, exactly->n_tolerations);
    for (size_t i = 0; i < request->n_first_available; i++) {
        struct dv_api_device_sub_request *sub = &request->first_available[i];

        default_count(&sub->allocation_mode, &sub->count);
        default_tolerations(sub->tolerations, sub->n_tolerations);
    }
}

static void default_claim_spec(struct dv_api_resource_claim_spec *spec, bool is_v1beta1)
{
    for (size_t i = 0; i < spec->devices.n_requests; i++)
        default_request(&spec->devices.requests[i], is_v1beta1);
}

static void default_claim(struct dv_api_resource_claim *claim, bool is_v1beta1)
{
    struct dv_api_allocation_result *allocation = claim->status.allocation;

    default_claim_spec(&claim->spec, is_v1beta1);
    for (size_t i = 0; allocation && i < allocation->devices.n_results; i++)
        default_tolerations(allocation->devices.results[i].tolerations,
                            allocation->devices.results[i].n_tolerations);
}

/* -- Slices and taints ---------------------------------------------------------------------- */

static void default_taint(struct dv_api_device_taint *taint, struct dv_time now)
{
    if (!taint->time_added.is_set)
        taint->time_added = (struct dv_time){.seconds = now.seconds, .is_set = true};
}

static void default_mappings(struct dv_api_device *device, struct dv_arena *arena)
{
    struct dv_quantity *one = NULL;

    for (size_t i = 0; i < device->n_node_allocatable_resource_mappings; i++) {
        struct dv_api_node_allocatable_resource_mapping *mapping =
            &device->node_allocatable_resource_mappings[i].value;

        if (mapping->allocation_multiplier)
            continue;
        if (!one) {
            one = DV_NEW(arena, struct dv_quantity);
            *one = dv_quantity_from_i64(1, DV_QUANTITY_DECIMAL_SI);
        }
        mapping->allocation_multiplier = one;
    }
}

static void default_slice(struct dv_api_resource_slice *slice, struct dv_time now,
                          struct dv_arena *arena)
{
    for (size_t i = 0; i < slice->spec.n_devices; i++) {
        struct dv_api_device *device = &slice->spec.devices[i];

        for (size_t j = 0; j < device->n_taints; j++)
            default_taint(&device->taints[j], now);
        default_mappings(device, arena);
    }
}

/* -- The core group ------------------------------------------------------------------------- */

static void default_namespace(struct dv_api_namespace *namespace, struct dv_arena *arena)
{
    dv_default_str(&namespace->status.phase, DV_STR("Active"));
    if (namespace->metadata.name.n > 0)
        dv_entry_set(&namespace->metadata.labels, &namespace->metadata.n_labels, NAME_LABEL,
                     namespace->metadata.name, arena);
}

static void default_node(struct dv_api_node *node, struct dv_arena *arena)
{
    struct dv_api_node_status *status = &node->status;
    struct dv_api_node_spec *spec = &node->spec;

    /* podCIDR is the first of podCIDRs: where they differ, podCIDR counts. */
    if (spec->pod_cidr.n > 0 &&
        (spec->n_pod_cid_rs == 0 || !dv_str_eq(spec->pod_cid_rs[0], spec->pod_cidr))) {
        spec->pod_cid_rs = DV_NEW(arena, dv_str);
        spec->pod_cid_rs[0] = spec->pod_cidr;
        spec->n_pod_cid_rs = 1;
    }
    if (spec->n_pod_cid_rs > 0)
        spec->pod_cidr = spec->pod_cid_rs[0];
    dv_default_quantities(status->capacity, status->n_capacity, arena);
    dv_default_quantities(status->allocatable, status->n_allocatable, arena);
    if (status->n_allocatable > 0 || !status->capacity)
        return;
    status->allocatable = DV_NEW_ARRAY(arena, struct dv_quantity_entry, status->n_capacity);
    status->n_allocatable = status->n_capacity;
    if (status->n_capacity > 0)
        memcpy(status->allocatable, status->capacity,
               status->n_capacity * sizeof(*status->capacity));
}

/* stringData is only another way to write data, and replaces it where both have a key. Both are
 * sorted. */
static void default_secret(struct dv_api_secret *secret, struct dv_arena *arena)
{
    struct dv_str_entry *all;
    size_t n = 0;
    size_t from = 0;

    dv_default_str(&secret->type, DV_STR("Opaque"));
    if (secret->n_string_data == 0)
        return;
    all = DV_NEW_ARRAY(arena, struct dv_str_entry, secret->n_data + secret->n_string_data);
    for (size_t i = 0; i < secret->n_string_data; i++) {
        dv_str key = secret->string_data[i].key;

        while (from < secret->n_data && dv_str_cmp(secret->data[from].key, key) < 0)
            all[n++] = secret->data[from++];
        from += from < secret->n_data && dv_str_eq(secret->data[from].key, key);
        all[n] = secret->string_data[i];
        if (!all[n].value.p)
            all[n].value = DV_STR("");
        n++;
    }
    while (from < secret->n_data)
        all[n++] = secret->data[from++];
    secret->data = all;
    secret->n_data = n;
    secret->string_data = NULL;
    secret->n_string_data = 0;
}

static void default_runtime_class(struct dv_api_runtime_class *class, struct dv_arena *arena)
{
    if (class->overhead)
        dv_default_quantities(class->overhead->pod_fixed, class->overhead->n_pod_fixed, arena);
}

static void default_quota(struct dv_api_resource_quota *quota, struct dv_arena *arena)
{
    dv_default_quantities(quota->spec.hard, quota->spec.n_hard, arena);
    dv_default_quantities(quota->status.hard, quota->status.n_hard, arena);
    dv_default_quantities(quota->status.used, quota->status.n_used, arena);
}

static void default_webhook(struct dv_api_mutating_webhook *hook, struct dv_arena *arena)
{
    static const int64_t timeout_s = 10;
    static const int64_t port = 443;

    dv_default_str(&hook->failure_policy, DV_STR("Fail"));
    dv_default_str(&hook->match_policy, DV_STR("Equivalent"));
    dv_default_str(&hook->reinvocation_policy, DV_STR("Never"));
    if (!hook->namespace_selector)
        hook->namespace_selector = DV_NEW(arena, struct dv_api_label_selector);
    if (!hook->object_selector)
        hook->object_selector = DV_NEW(arena, struct dv_api_label_selector);
    if (!hook->timeout_seconds)
        hook->timeout_seconds = &timeout_s;
    if (hook->client_config.service && !hook->client_config.service->port)
        hook->client_config.service->port = &port;
    for (size_t i = 0; i < hook->n_rules; i++)
        dv_default_str(&hook->rules[i].rule.scope, DV_STR("*"));
}

static void default_validating_webhooks(struct dv_api_validating_webhook_configuration *config,
                                        struct dv_arena *arena)
{
    for (size_t i = 0; i < config->n_webhooks; i++) {
        struct dv_api_mutating_webhook hook = dv_webhook_of(&config->webhooks[i]);

        default_webhook(&hook, arena);
        dv_webhook_set(&config->webhooks[i], &hook);
    }
}

static void default_mutating_webhooks(struct dv_api_mutating_webhook_configuration *config,
                                      struct dv_arena *arena)
{
    for (size_t i = 0; i < config->n_webhooks; i++)
        default_webhook(&config->webhooks[i], arena);
}

static void default_rules(struct dv_api_named_rule_with_operations *rules, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dv_default_str(&rules[i].rule_with_operations.rule.scope, DV_STR("*"));
}

static void default_match(struct dv_api_match_resources *match, struct dv_arena *arena)
{
    if (!match)
        return;
    dv_default_str(&match->match_policy, DV_STR("Equivalent"));
    if (!match->namespace_selector)
        match->namespace_selector = DV_NEW(arena, struct dv_api_label_selector);
    if (!match->object_selector)
        match->object_selector = DV_NEW(arena, struct dv_api_label_selector);
    default_rules(match->resource_rules, match->n_resource_rules);
    default_rules(match->exclude_resource_rules, match->n_exclude_resource_rules);
}

static void default_policy(struct dv_api_validating_admission_policy *policy,
                           struct dv_arena *arena)
{
    dv_default_str(&policy->spec.failure_policy, DV_STR("Fail"));
    default_match(policy->spec.match_constraints, arena);
}

static void default_binding(struct dv_api_role_binding *binding)
{
    dv_default_str(&binding->role_ref.api_group, DV_STR(DV_RBAC_GROUP));
    for (size_t i = 0; i < binding->n_subjects; i++) {
        struct dv_api_subject *subject = &binding->subjects[i];

        if (dv_str_eq(subject->kind, DV_STR("User")) || dv_str_eq(subject->kind, DV_STR("Group")))
            dv_default_str(&subject->api_group, DV_STR(DV_RBAC_GROUP));
    }
}

void dv_default(const struct dv_kind *kind, const struct dv_api_version *version, void *value,
                struct dv_time now, struct dv_arena *arena)
{
    bool is_v1beta1 = dv_str_eq(version->version, DV_STR("v1beta1"));

    switch (kind->id) {
    case DV_KIND_POD:
        dv_default_pod(value, arena);
        break;
    case DV_KIND_NODE:
        default_node(value, arena);
        break;
    case DV_KIND_NAMESPACE:
        default_namespace(value, arena);
        break;
    case DV_KIND_SECRET:
        default_secret(value, arena);
        break;
    case DV_KIND_CLAIM:
        default_claim(value, is_v1beta1);
        break;
    case DV_KIND_TEMPLATE:
        default_claim_spec(&((struct dv_api_resource_claim_template *)value)->spec.spec,
                           is_v1beta1);
        break;
    case DV_KIND_SLICE:
        default_slice(value, now, arena);
        break;
    case DV_KIND_TAINT_RULE:
        default_taint(&((struct dv_api_device_taint_rule *)value)->spec.taint, now);
        break;
    case DV_KIND_RUNTIME_CLASS:
        default_runtime_class(value, arena);
        break;
    case DV_KIND_PRIORITY_CLASS:
        dv_default_str(&((struct dv_api_priority_class *)value)->preemption_policy,
                       DV_STR(DV_PREEMPT_LOWER_PRIORITY));
        break;
    case DV_KIND_RESOURCE_QUOTA:
        default_quota(value, arena);
        break;
    case DV_KIND_SERVICE:
        dv_default_service(value, arena);
        break;
    case DV_KIND_ENDPOINTS:
        dv_default_endpoints(value);
        break;
    case DV_KIND_ENDPOINT_SLICE:
        dv_default_endpoint_slice(value, arena);
        break;
    case DV_KIND_VALIDATING_POLICY:
        default_policy(value, arena);
        break;
    case DV_KIND_VALIDATING_POLICY_BINDING:
        default_match(
            ((struct dv_api_validating_admission_policy_binding *)value)->spec.match_resources,
            arena);
        break;
    case DV_KIND_VALIDATING_WEBHOOKS:
        default_validating_webhooks(value, arena);
        break;
    case DV_KIND_MUTATING_WEBHOOKS:
        default_mutating_webhooks(value, arena);
        break;
    case DV_KIND_ROLE_BINDING:
    case DV_KIND_CLUSTER_ROLE_BINDING:
        default_binding(value);
        break;
    case DV_KIND_DAEMON_SET:
        dv_default_daemon_set(value, arena);
        break;
    case DV_KIND_DEPLOYMENT:
        dv_default_deployment(value, arena);
        break;
    case DV_KIND_REPLICA_SET:
        dv_default_replica_set(value, arena);
        break;
    case DV_KIND_JOB:
        dv_default_job(value, arena);
        break;
    case DV_KIND_CUSTOM_DEFINITION:
        dv_custom_default_definition(value, arena);
        break;
    case DV_KIND_EVENT:
    case DV_KIND_SERVICE_ACCOUNT:
    case DV_KIND_CONFIG_MAP:
    case DV_KIND_LEASE:
    case DV_KIND_CLASS:
    case DV_KIND_ROLE:
    case DV_KIND_CLUSTER_ROLE:
    case DV_KIND_CONTROLLER_REVISION:
    case DV_KIND_DISRUPTION_BUDGET:
    case DV_KIND_CUSTOM: /* by its schema: see dv_custom_settle */
    case DV_N_KINDS:
        break;
    }
}
