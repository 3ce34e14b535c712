/* auth_write_node.c - decides what a node's program may write: the reference's NodeRestriction,
 * with its reasons. Without it a node that was broken into could make a pod that mounts any secret,
 * or label itself so that the pods it wants are scheduled to it. */
#include <stddef.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/str.h"
#include "resource/references.h"
#include "resource/resource.h"
#include "serve/auth.h"
#include "serve/auth/auth_rules.h"

#define LABELS_BYTES_MAX 2048u

static bool miss(const struct dv_auth_write *write, const char *kind, dv_str name)
{
    write->denial->missing = dv_str_from_c(kind);
    write->denial->missing_name = name;
    return dv_auth_deny(write, "%s \"%.*s\" not found", kind, DV_FMT(name));
}

/* ---- pods ---- */

static bool check_owner(const struct dv_auth_write *write, const struct dv_api_object_meta *meta)
{
    const struct dv_api_owner_reference *owner = meta->owner_references;
    const struct dv_object *node = write->change->node;
    dv_str name = write->node;

    if (meta->n_owner_references > 1)
        return dv_auth_deny(write,
                            "node \"%.*s\" can only create pods with a single owner reference set "
                            "to itself",
                            DV_FMT(name));
    if (meta->n_owner_references == 0 || !dv_str_eq(owner->api_version, DV_STR("v1")) ||
        !dv_str_eq(owner->kind, DV_STR("Node")) || !dv_str_eq(owner->name, name))
        return dv_auth_deny(write,
                            "node \"%.*s\" can only create pods with an owner reference set to "
                            "itself",
                            DV_FMT(name));
    if (!owner->controller || !*owner->controller)
        return dv_auth_deny(write,
                            "node \"%.*s\" can only create pods with a controller owner reference "
                            "set to itself",
                            DV_FMT(name));
    if (owner->block_owner_deletion && *owner->block_owner_deletion)
        return dv_auth_deny(write,
                            "node \"%.*s\" must not set blockOwnerDeletion on an owner reference",
                            DV_FMT(name));
    if (!node)
        return miss(write, "node", name);
    return dv_str_eq(owner->uid, node->meta->uid) ||
           dv_auth_deny(write, "node %.*s UID mismatch: expected %.*s got %.*s", DV_FMT(name),
                        DV_FMT(owner->uid), DV_FMT(node->meta->uid));
}

static bool refuse_reference(void *ctx, const struct dv_reference *reference)
{
    const struct dv_auth_write *write = ctx;

    return dv_auth_deny(write, "node \"%.*s\" can not create pods that reference %.*s",
                        DV_FMT(write->node), DV_FMT(reference->what));
}

static bool check_new_pod(struct dv_auth_write *write, const struct dv_api_pod *pod)
{
    if (!dv_pod_is_mirror(pod))
        return dv_auth_deny(write,
                            "pod does not have \"kubernetes.io/config.mirror\" annotation, node "
                            "\"%.*s\" can only create mirror pods",
                            DV_FMT(write->node));
    if (!dv_str_eq(pod->spec.node_name, write->node))
        return dv_auth_deny(write,
                            "node \"%.*s\" can only create pods with spec.nodeName set to itself",
                            DV_FMT(write->node));
    return check_owner(write, &pod->metadata) &&
           dv_pod_visit_references(pod, refuse_reference, write);
}

static bool is_own_pod(const struct dv_auth_write *write)
{
    const struct dv_api_pod *pod = write->change->old->value;

    return dv_str_eq(pod->spec.node_name, write->node);
}

static bool is_same_extended_claim(const struct dv_api_pod_extended_resource_claim_status *a,
                                   const struct dv_api_pod_extended_resource_claim_status *b)
{
    if (!a || !b)
        return a == b;
    return dv_message_eq(&dv_message_pod_extended_resource_claim_status, a, b);
}

static bool is_same_map(const struct dv_str_entry *a, size_t n_a, const struct dv_str_entry *b,
                        size_t n_b)
{
    for (size_t i = 0; i < n_a && i < n_b; i++)
        if (!dv_str_eq(a[i].key, b[i].key) || !dv_str_eq(a[i].value, b[i].value))
            return false;
    return n_a == n_b;
}

static bool is_same_claims(const struct dv_api_pod_status *a, const struct dv_api_pod_status *b)
{
    for (size_t i = 0; i < a->n_resource_claim_statuses && i < b->n_resource_claim_statuses; i++)
        if (!dv_message_eq(&dv_message_pod_resource_claim_status, &a->resource_claim_statuses[i],
                           &b->resource_claim_statuses[i]))
            return false;
    return a->n_resource_claim_statuses == b->n_resource_claim_statuses;
}

static bool check_pod_status(const struct dv_auth_write *write)
{
    const struct dv_api_pod *old = write->change->old->value;
    const struct dv_api_pod *pod = write->change->value;

    if (!is_own_pod(write))
        return dv_auth_deny(write,
                            "node \"%.*s\" can only update pod status for pods with spec.nodeName "
                            "set to itself",
                            DV_FMT(write->node));
    if (!pod)
        return true;
    if (!is_same_map(old->metadata.labels, old->metadata.n_labels, pod->metadata.labels,
                     pod->metadata.n_labels))
        return dv_auth_deny(write, "node \"%.*s\" cannot update labels through pod status",
                            DV_FMT(write->node));
    if (!is_same_claims(&old->status, &pod->status))
        return dv_auth_deny(write, "node \"%.*s\" cannot update resource claim statues",
                            DV_FMT(write->node));
    return is_same_extended_claim(old->status.extended_resource_claim_status,
                                  pod->status.extended_resource_claim_status) ||
           dv_auth_deny(write, "node \"%.*s\" cannot update extended resource claim status",
                        DV_FMT(write->node));
}

static bool check_pod(struct dv_auth_write *write)
{
    const struct dv_auth_change *change = write->change;
    dv_str subresource = write->request->subresource;

    if (dv_str_eq(subresource, DV_STR("eviction"))) {
        if (!change->old)
            return miss(write, "pod", write->request->name);
        return is_own_pod(write) ||
               dv_auth_deny(write, "node %.*s can only evict pods with spec.nodeName set to itself",
                            DV_FMT(write->node));
    }
    if (dv_str_eq(subresource, DV_STR("status")) && change->old)
        return check_pod_status(write);
    if (subresource.n)
        return dv_auth_deny(write,
                            "unexpected pod subresource \"%.*s\", only 'status' and 'eviction' are "
                            "allowed",
                            DV_FMT(subresource));
    if (!change->old)
        return check_new_pod(write, change->value);
    if (!dv_str_eq(write->request->verb, DV_STR("delete")))
        return dv_auth_deny(write,
                            "unexpected operation \"UPDATE\", node \"%.*s\" can only create and "
                            "delete mirror pods",
                            DV_FMT(write->node));
    return is_own_pod(write) ||
           dv_auth_deny(write,
                        "node \"%.*s\" can only delete pods with spec.nodeName set to itself",
                        DV_FMT(write->node));
}

/* ---- the node ---- */

/* Whether a domain is the other or below it: "a.example.com" and "example.com" are under
 * "example.com". */
static bool is_under(dv_str prefix, dv_str domain)
{
    return dv_str_eq(prefix, domain) ||
           (prefix.n > domain.n && prefix.p[prefix.n - domain.n - 1] == '.' &&
            dv_str_ends_with(prefix, domain));
}

/* Whether a node may set the label. Labels under the project's domains steer pods, so only those
 * are allowed that a node tells of itself. */
static bool may_set_label(dv_str key)
{
    static const dv_str allowed[] = {
        DV_STR_INIT("kubernetes.io/hostname"),
        DV_STR_INIT("kubernetes.io/os"),
        DV_STR_INIT("kubernetes.io/arch"),
        DV_STR_INIT("beta.kubernetes.io/os"),
        DV_STR_INIT("beta.kubernetes.io/arch"),
        DV_STR_INIT("beta.kubernetes.io/instance-type"),
        DV_STR_INIT("node.kubernetes.io/instance-type"),
        DV_STR_INIT("topology.kubernetes.io/zone"),
        DV_STR_INIT("topology.kubernetes.io/region"),
        DV_STR_INIT("failure-domain.beta.kubernetes.io/zone"),
        DV_STR_INIT("failure-domain.beta.kubernetes.io/region"),
    };
    size_t slash = dv_str_find_char(key, '/');
    dv_str prefix = slash < key.n ? dv_str_slice(key, 0, slash) : DV_STR_NONE;

    if (is_under(prefix, DV_STR("node-restriction.kubernetes.io")))
        return false;
    if (!is_under(prefix, DV_STR("kubernetes.io")) && !is_under(prefix, DV_STR("k8s.io")))
        return true;
    if (is_under(prefix, DV_STR("kubelet.kubernetes.io")) ||
        is_under(prefix, DV_STR("node.kubernetes.io")))
        return true;
    for (size_t i = 0; i < DV_COUNT(allowed); i++)
        if (dv_str_eq(key, allowed[i]))
            return true;
    return false;
}

/* Collects the keys that differ and that a node may not set, with commas between them. They are
 * sorted because the maps are. */
static void find_forbidden(const struct dv_api_object_meta *old,
                           const struct dv_api_object_meta *meta, struct dv_buf *keys)
{
    size_t n_old = old ? old->n_labels : 0;
    size_t i = 0;
    size_t j = 0;

    while (i < n_old || j < meta->n_labels) {
        int order = i == n_old            ? 1
                    : j == meta->n_labels ? -1
                                          : dv_str_cmp(old->labels[i].key, meta->labels[j].key);
        dv_str key = order <= 0 ? old->labels[i].key : meta->labels[j].key;
        bool is_changed = order != 0 || !dv_str_eq(old->labels[i].value, meta->labels[j].value);

        if (is_changed && !may_set_label(key))
            dv_buf_printf(keys, "%s%.*s", keys->n ? ", " : "", DV_FMT(key));
        i += order <= 0;
        j += order >= 0;
    }
}

static bool check_labels(const struct dv_auth_write *write, const struct dv_api_object_meta *old,
                         const struct dv_api_object_meta *meta)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf keys;

    dv_buf_init(&keys, LABELS_BYTES_MAX);
    find_forbidden(old, meta, &keys);
    if (!keys.n)
        return true;
    if (old)
        return dv_auth_deny(write, "is not allowed to modify labels: %s", dv_buf_c(&keys));
    return dv_auth_deny(write, "node \"%.*s\" is not allowed to set the following labels: %s",
                        DV_FMT(write->node), dv_buf_c(&keys));
}

static bool is_same_taints(const struct dv_api_node_spec *a, const struct dv_api_node_spec *b)
{
    for (size_t i = 0; i < a->n_taints && i < b->n_taints; i++)
        if (!dv_message_eq(&dv_message_taint, &a->taints[i], &b->taints[i]))
            return false;
    return a->n_taints == b->n_taints;
}

static bool is_same_owners(const struct dv_api_object_meta *a, const struct dv_api_object_meta *b)
{
    for (size_t i = 0; i < a->n_owner_references && i < b->n_owner_references; i++)
        if (!dv_message_eq(&dv_message_owner_reference, &a->owner_references[i],
                           &b->owner_references[i]))
            return false;
    return a->n_owner_references == b->n_owner_references;
}

static bool is_new_config(const struct dv_api_node_config_source *old,
                          const struct dv_api_node_config_source *config)
{
    return config && !(old && dv_message_eq(&dv_message_node_config_source, old, config));
}

static bool check_new_node(const struct dv_auth_write *write, const struct dv_api_node *node)
{
    if (node->spec.config_source)
        return dv_auth_deny(write,
                            "node \"%.*s\" is not allowed to create pods with a non-nil "
                            "configSource",
                            DV_FMT(write->node));
    return check_labels(write, NULL, &node->metadata);
}

static bool check_changed_node(const struct dv_auth_write *write, const struct dv_api_node *old,
                               const struct dv_api_node *node)
{
    if (is_new_config(old->spec.config_source, node->spec.config_source))
        return dv_auth_deny(write,
                            "node \"%.*s\" is not allowed to update configSource to a new non-nil "
                            "configSource",
                            DV_FMT(write->node));
    if (!is_same_taints(&old->spec, &node->spec))
        return dv_auth_deny(write, "node \"%.*s\" is not allowed to modify taints",
                            DV_FMT(write->node));
    if (!is_same_owners(&old->metadata, &node->metadata))
        return dv_auth_deny(write, "node \"%.*s\" is not allowed to modify ownerReferences",
                            DV_FMT(write->node));
    return check_labels(write, &old->metadata, &node->metadata);
}

static bool check_node(const struct dv_auth_write *write)
{
    const struct dv_object *old = write->change->old;
    const struct dv_api_node *node = write->change->value;
    dv_str name = old ? old->meta->name : node ? node->metadata.name : DV_STR_NONE;

    if (!old && node && !check_new_node(write, node))
        return false;
    if (!dv_str_eq(name, write->node))
        return dv_auth_deny(write, "node \"%.*s\" is not allowed to modify node \"%.*s\"",
                            DV_FMT(write->node), DV_FMT(name));
    return !old || !node || check_changed_node(write, old->value, node);
}

/* ---- leases and slices ---- */

static bool check_lease(const struct dv_auth_write *write)
{
    const struct dv_api_object_meta *meta =
        write->change->old ? write->change->old->meta : write->change->value;

    return dv_str_eq(meta->name, write->node) ||
           dv_auth_deny(write, "can only access node lease with the same name as the requesting "
                               "node");
}

static bool is_slice_of(const struct dv_auth_write *write,
                        const struct dv_api_resource_slice *slice)
{
    return dv_str_eq(slice->spec.node_name, write->node);
}

/* Checks a slice that a node creates. Changes were allowed by whose slice it is, which cannot
 * change. The check of the pool is not in the reference: without it a node could spoil the pool of
 * another. Pools that an administrator lets several nodes share are as free as in the reference. */
static bool check_slice(const struct dv_auth_write *write)
{
    const struct dv_auth_change *change = write->change;

    if (!change->old && !is_slice_of(write, change->value))
        return dv_auth_deny(write, "can only create ResourceSlice with the same NodeName as the "
                                   "requesting node");
    if (change->old && !is_slice_of(write, change->old->value))
        return dv_auth_deny(write, "can only delete ResourceSlice with the same NodeName as the "
                                   "requesting node");
    if (!change->value || (change->is_pool_shared && !change->is_pool_of_node))
        return true;
    return dv_auth_check_pool(write);
}

bool dv_auth_check_node_write(const struct dv_auth_write *write)
{
    struct dv_auth_write copy = *write;
    dv_str resource = write->request->resource;

    if (dv_str_eq(resource, DV_STR("pods")))
        return check_pod(&copy);
    if (dv_str_eq(resource, DV_STR("nodes")))
        return check_node(write);
    if (dv_str_eq(resource, DV_STR("leases")))
        return check_lease(write);
    if (dv_str_eq(resource, DV_STR("resourceslices")))
        return check_slice(write);
    return dv_str_eq(resource, DV_STR("events")) ||
           dv_auth_deny(write, "a node does not write %.*s", DV_FMT(resource));
}

/* ---- tokens ---- */

static bool has_audience(const struct dv_api_pod *pod, dv_str audience)
{
    for (size_t i = 0; i < pod->spec.n_volumes; i++) {
        const struct dv_api_projected_volume_source *projected =
            pod->spec.volumes[i].volume_source.projected;

        for (size_t k = 0; projected && k < projected->n_sources; k++)
            if (projected->sources[k].service_account_token &&
                dv_str_eq(projected->sources[k].service_account_token->audience, audience))
                return true;
    }
    return false;
}

static bool check_pod_token(const struct dv_auth_write *write,
                            const struct dv_api_token_request_spec *wanted,
                            const struct dv_object *pod)
{
    const struct dv_api_bound_object_reference *bound = wanted->bound_object_ref;
    dv_str audience = wanted->n_audiences ? wanted->audiences[0] : DV_STR_NONE;

    if (!dv_str_eq(bound->uid, pod->meta->uid))
        return dv_auth_deny(
            write,
            "the UID in the bound object reference (%.*s) does not match the UID in "
            "record. The object might have been deleted and then recreated",
            DV_FMT(bound->uid));
    if (!dv_str_eq(((const struct dv_api_pod *)pod->value)->spec.node_name, write->node))
        return dv_auth_deny(write,
                            "node requested token bound to a pod scheduled on a different node");
    if (wanted->n_audiences > 1)
        return dv_auth_deny(write, "node may only request 0 or 1 audiences");
    return has_audience(pod->value, audience) ||
           dv_auth_deny(write,
                        "audience \"%.*s\" not found in pod spec volume, %.*s is not authorized to "
                        "request tokens for this audience",
                        DV_FMT(audience), DV_FMT(write->user->username));
}

bool dv_auth_check_token(const struct dv_api_user_info *user,
                         const struct dv_api_token_request_spec *wanted,
                         const struct dv_object *pod, struct dv_arena *arena,
                         struct dv_auth_denial *denial)
{
    const struct dv_api_bound_object_reference *bound = wanted->bound_object_ref;
    struct dv_auth_write write = {.user = user, .arena = arena, .denial = denial};

    *denial = (struct dv_auth_denial){0};
    if (dv_auth_scope(user, &write.node, &write.driver) != DV_SCOPE_NODE)
        return true;
    if (!bound || !dv_str_eq(bound->api_version, DV_STR("v1")) ||
        !dv_str_eq(bound->kind, DV_STR("Pod")) || !bound->name.n)
        return dv_auth_deny(&write, "node requested token not bound to a pod");
    if (!bound->uid.n)
        return dv_auth_deny(&write, "node requested token with a pod binding without a uid");
    return pod ? check_pod_token(&write, wanted, pod) : miss(&write, "pod", bound->name);
}
