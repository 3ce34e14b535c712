/* auth_write.c - decides what a driver may change in an object, and chooses the check for each kind
 * of user. */
#include <stdarg.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/str.h"
#include "resource/resource.h"
#include "resource/select.h"
#include "serve/auth.h"
#include "serve/auth/auth_rules.h"

/* A reason quotes names of the client, which may be long. */
#define REASON_BYTES_MAX 4096u

bool dv_auth_deny(const struct dv_auth_write *write, const char *fmt, ...)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    va_list args;

    dv_buf_init(&buf, REASON_BYTES_MAX);
    va_start(args, fmt);
    dv_buf_vprintf(&buf, fmt, args);
    va_end(args);
    write->denial->reason = dv_str_copy(dv_buf_str(&buf), write->arena);
    return false;
}

/* ---- slices ---- */

static bool names_a_node(const struct dv_api_resource_slice *slice)
{
    const struct dv_api_node_selector *selector = slice->spec.node_selector;

    for (size_t i = 0; selector && i < selector->n_node_selector_terms; i++)
        if (selector->node_selector_terms[i].n_match_fields > 0)
            return true;
    for (size_t i = 0; i < slice->spec.n_devices; i++)
        if (slice->spec.devices[i].node_name.n > 0)
            return true;
    return slice->spec.node_name.n > 0;
}

static bool is_own_slice(const struct dv_auth_write *write,
                         const struct dv_api_resource_slice *slice)
{
    if (!dv_str_eq(slice->spec.driver, write->driver))
        return dv_auth_deny(write, "the slice belongs to driver \"%.*s\", not to \"%.*s\"",
                            DV_FMT(slice->spec.driver), DV_FMT(write->driver));
    if (!write->node.n)
        return !names_a_node(slice) ||
               dv_auth_deny(write,
                            "the slice names a node, and the token is for devices without one: "
                            "leave out nodeName and matchFields, say allNodes or nodeSelector");
    return dv_str_eq(slice->spec.node_name, write->node) ||
           dv_auth_deny(write, "the slice belongs to node \"%.*s\", not to \"%.*s\"",
                        DV_FMT(slice->spec.node_name), DV_FMT(write->node));
}

static bool check_slice(const struct dv_auth_write *write)
{
    const struct dv_object *old = write->change->old;
    const struct dv_api_resource_slice *slice = write->change->value;

    if (old && !is_own_slice(write, old->value))
        return false;
    if (!slice)
        return true;
    return is_own_slice(write, slice) && dv_auth_check_pool(write);
}

/* ---- the status of claims ---- */

bool dv_auth_is_claim_of(const struct dv_api_resource_claim *claim, dv_str driver, dv_str node_name,
                         const struct dv_object *node)
{
    const struct dv_api_allocation_result *allocation = claim->status.allocation;
    const struct dv_api_object_meta *meta = node ? node->meta : NULL;
    bool has_driver = false;

    for (size_t i = 0; allocation && i < allocation->devices.n_results; i++)
        if (dv_str_eq(allocation->devices.results[i].driver, driver))
            has_driver = true;
    if (!has_driver)
        return false;
    /* The claim is for all nodes, or the driver has no node. */
    if (!allocation->node_selector || !node_name.n)
        return true;
    return dv_node_selector_matches(allocation->node_selector, node_name,
                                    meta ? meta->labels : NULL, meta ? meta->n_labels : 0);
}

const struct dv_api_allocated_device_status *
dv_auth_find_device(const struct dv_api_resource_claim_status *status,
                    const struct dv_api_allocated_device_status *like)
{
    for (size_t i = 0; i < status->n_devices; i++) {
        const struct dv_api_allocated_device_status *device = &status->devices[i];

        if (dv_str_eq(device->driver, like->driver) && dv_str_eq(device->pool, like->pool) &&
            dv_str_eq(device->device, like->device) && dv_str_eq(device->share_id, like->share_id))
            return device;
    }
    return NULL;
}

/* Whether each device of another driver in `a` is the same in `b`. */
static bool has_others_of(const struct dv_auth_write *write,
                          const struct dv_api_resource_claim_status *a,
                          const struct dv_api_resource_claim_status *b)
{
    for (size_t i = 0; i < a->n_devices; i++) {
        const struct dv_api_allocated_device_status *device = &a->devices[i];
        const struct dv_api_allocated_device_status *other;

        if (dv_str_eq(device->driver, write->driver))
            continue;
        other = dv_auth_find_device(b, device);
        if (!other || !dv_message_eq(&dv_message_allocated_device_status, device, other))
            return dv_auth_deny(write,
                                "changes of status.devices of driver \"%.*s\" are not allowed",
                                DV_FMT(device->driver));
    }
    return true;
}

static bool check_claim_status(const struct dv_auth_write *write)
{
    const struct dv_object *object = write->change->old;
    const struct dv_api_resource_claim *old = object ? object->value : NULL;
    const struct dv_api_resource_claim *claim = write->change->value;
    struct dv_api_resource_claim_status was, is;

    if (!old || !claim || !dv_str_eq(write->request->subresource, DV_STR("status")))
        return dv_auth_deny(write, "only the status of a claim may be changed");
    if (!dv_auth_is_claim_of(old, write->driver, write->node, write->change->node))
        return dv_auth_deny(write, "the claim is not allocated to driver \"%.*s\"%s%.*s%s",
                            DV_FMT(write->driver), write->node.n ? " on node \"" : "",
                            DV_FMT(write->node), write->node.n ? "\"" : "");
    if (claim->status.n_devices > DV_STATUS_DEVICES_MAX)
        return dv_auth_deny(write, "status.devices has %zu entries; %u are allowed",
                            claim->status.n_devices, DV_STATUS_DEVICES_MAX);
    was = old->status;
    is = claim->status;
    was.n_devices = is.n_devices = 0;
    was.devices = is.devices = NULL;
    if (!dv_message_eq(&dv_message_resource_claim_status, &was, &is))
        return dv_auth_deny(write, "status.allocation and status.reservedFor are not the driver's");
    return has_others_of(write, &old->status, &claim->status) &&
           has_others_of(write, &claim->status, &old->status);
}

/* ---- events ---- */

dv_str dv_auth_author(const struct dv_api_user_info *user, struct dv_arena *arena)
{
    dv_str node, driver;
    enum dv_auth_scope scope = dv_auth_scope(user, &node, &driver);

    if (scope == DV_SCOPE_NODE)
        return user->username;
    if (scope != DV_SCOPE_DRIVER)
        return DV_STR_NONE;
    return node.n ? dv_str_printf(arena, "%.*s@%.*s", DV_FMT(user->username), DV_FMT(node))
                  : user->username;
}

static bool is_author(const struct dv_auth_write *write, const struct dv_api_object_meta *meta)
{
    const struct dv_str_entry *author =
        dv_entry_find(meta->annotations, meta->n_annotations, DV_STR(DV_ANNOTATION_AUTHOR));

    return author && dv_str_eq(author->value, dv_auth_author(write->user, write->arena));
}

/* Checks that the author of an event is named when it is created, and never changed. */
static bool check_event(const struct dv_auth_write *write)
{
    const struct dv_object *old = write->change->old;
    const struct dv_api_object_meta *meta = write->change->value;

    if (old && !is_author(write, old->meta))
        return dv_auth_deny(write, "the event was written by somebody else");
    if (meta && !is_author(write, meta))
        return dv_auth_deny(write, "the annotation " DV_ANNOTATION_AUTHOR " of an event stays as "
                                   "it is, and a new one is made by POST");
    return true;
}

/* ---- all ---- */

static bool check_driver_write(const struct dv_auth_write *write)
{
    if (dv_str_eq(write->request->resource, DV_STR("resourceslices")))
        return check_slice(write);
    if (dv_str_eq(write->request->resource, DV_STR("resourceclaims")))
        return check_claim_status(write);
    if (dv_str_eq(write->request->resource, DV_STR("events")))
        return check_event(write);
    return dv_auth_deny(write, "a driver does not write %.*s", DV_FMT(write->request->resource));
}

bool dv_auth_check_write(const struct dv_api_user_info *user, const struct dv_auth_request *request,
                         const struct dv_auth_change *change, struct dv_arena *arena,
                         struct dv_auth_denial *denial)
{
    struct dv_auth_write write = {
        .request = request, .change = change, .user = user, .arena = arena, .denial = denial};
    enum dv_auth_scope scope = dv_auth_scope(user, &write.node, &write.driver);

    *denial = (struct dv_auth_denial){0};
    if (scope == DV_SCOPE_NODE)
        return dv_auth_check_node_write(&write);
    if (scope != DV_SCOPE_DRIVER || check_driver_write(&write))
        return true;
    return dv_auth_deny(&write, "User \"%.*s\" cannot %.*s this object: %.*s",
                        DV_FMT(user->username), DV_FMT(request->verb), DV_FMT(denial->reason));
}
