/* namespace_quota_admit.c - whether an object that is created fits into the quotas of its
 * namespace, in the reference's words. */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/str.h"
#include "cluster/embedded/change.h"
#include "cluster/embedded/cluster_operation.h"
#include "cluster/embedded/engine.h"
#include "cluster/embedded/namespace_quota.h"
#include "cluster/objects/collection.h"
#include "number/number.h"
#include "resource/quota_use.h"
#include "resource/resource.h"
#include "resource/status.h"

/* The longest message: more than all names of a quota have. */
#define TEXT_BYTES_MAX (1u << 20)

static const struct dv_kind *kind_of(const struct dv_cluster_operation *operation)
{
    return operation->entry->collection->kind;
}

static bool refuse(struct dv_cluster_operation *operation, const char *why)
{
    struct dv_status_about about = dv_change_about(operation);

    return dv_cluster_operation_fail(operation,
                                     dv_status_forbidden(&about, operation->arena, "%s", why));
}

bool dv_quota_is_charged(const struct dv_cluster_operation *operation,
                         const struct dv_namespace_quota *quota)
{
    const struct dv_api_resource_quota *value = quota->object->value;

    return dv_quota_is_for(&value->spec, kind_of(operation), operation->result.value,
                           operation->arena) &&
           !(operation->quota_old &&
             dv_quota_is_for(&value->spec, kind_of(operation), operation->quota_old->value,
                             operation->arena));
}

/* Whether the object may use the resource, and the quota's status has it. */
static bool is_restricted(const struct dv_cluster_operation *operation,
                          const struct dv_quota_part *part)
{
    return part->hard && dv_quota_counts(kind_of(operation), &part->resource);
}

static bool refuse_unknown(struct dv_cluster_operation *operation,
                           const struct dv_namespace_quota *quota)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;

    dv_buf_init(&text, TEXT_BYTES_MAX);
    for (size_t i = 0; i < quota->n_parts; i++)
        if (is_restricted(operation, &quota->parts[i]))
            dv_buf_printf(&text, "%s%.*s", text.n > 0 ? "," : "",
                          DV_FMT(quota->parts[i].resource.name));
    return refuse(operation,
                  dv_str_printf(operation->arena, "status unknown for quota: %.*s, resources: %.*s",
                                DV_FMT(quota->object->meta->name), DV_FMT(dv_buf_str(&text)))
                      .p);
}

/* The three lists of a refusal, "name=amount,...". */
struct excess {
    struct dv_buf requested;
    struct dv_buf used;
    struct dv_buf limited;
};

static void add_amount(struct dv_buf *buf, dv_str name, const struct dv_quantity *amount)
{
    dv_buf_printf(buf, "%s%.*s=", buf->n > 0 ? "," : "", DV_FMT(name));
    dv_quantity_print(amount, buf);
}

/* Adds the resource to what is exceeded, when it is. */
static void look_at(struct dv_cluster_operation *operation, const struct dv_quota_part *part,
                    struct excess *excess)
{
    struct dv_quota_amount wanted =
        dv_quota_use(kind_of(operation), operation->result.value, &part->resource);
    struct dv_quota_amount used = {part->stored + part->coming, part->format};
    struct dv_quantity amount;

    if (wanted.milli == 0 || used.milli + wanted.milli <= dv_quota_from_quantity(part->hard).milli)
        return;
    amount = dv_quota_to_quantity(wanted, operation->arena);
    add_amount(&excess->requested, part->resource.name, &amount);
    amount = dv_quota_to_quantity(used, operation->arena);
    add_amount(&excess->used, part->resource.name, &amount);
    add_amount(&excess->limited, part->resource.name, part->hard);
}

static bool refuse_excess(struct dv_cluster_operation *operation,
                          const struct dv_api_resource_quota *quota, const struct excess *excess)
{
    return refuse(
        operation,
        dv_str_printf(operation->arena,
                      "exceeded quota: %.*s, requested: %.*s, used: %.*s, limited: %.*s",
                      DV_FMT(quota->metadata.name), DV_FMT(dv_buf_str(&excess->requested)),
                      DV_FMT(dv_buf_str(&excess->used)), DV_FMT(dv_buf_str(&excess->limited)))
            .p);
}

static bool check_amounts(struct dv_cluster_operation *operation,
                          const struct dv_namespace_quota *quota)
{
    struct excess excess;
    bool is_ok = true;

    dv_buf_init(&excess.requested, TEXT_BYTES_MAX);
    dv_buf_init(&excess.used, TEXT_BYTES_MAX);
    dv_buf_init(&excess.limited, TEXT_BYTES_MAX);
    for (size_t i = 0; i < quota->n_parts; i++)
        if (is_restricted(operation, &quota->parts[i]))
            look_at(operation, &quota->parts[i], &excess);
    if (excess.requested.n > 0)
        is_ok = refuse_excess(operation, quota->object->value, &excess);
    dv_buf_fini(&excess.requested);
    dv_buf_fini(&excess.used);
    dv_buf_fini(&excess.limited);
    return is_ok;
}

/* Whether the pod says all that it has to say for the quota. */
static bool check_said(struct dv_cluster_operation *operation,
                       const struct dv_namespace_quota *quota)
{
    const struct dv_quota_resource **resources =
        DV_NEW_ARRAY(operation->arena, const struct dv_quota_resource *, quota->n_parts + 1);
    size_t n = 0;
    dv_str missing;

    if (kind_of(operation)->id != DV_KIND_POD)
        return true;
    for (size_t i = 0; i < quota->n_parts; i++)
        if (is_restricted(operation, &quota->parts[i]))
            resources[n++] = &quota->parts[i].resource;
    missing = dv_quota_missing(operation->result.value, resources, n, operation->arena);
    return missing.n == 0 ||
           refuse(operation,
                  dv_str_printf(operation->arena, "failed quota: %.*s: must specify %.*s",
                                DV_FMT(quota->object->meta->name), DV_FMT(missing))
                      .p);
}

static bool check(struct dv_cluster_operation *operation, const struct dv_namespace_quota *quota)
{
    if (!dv_quota_is_charged(operation, quota))
        return true;
    if (!check_said(operation, quota))
        return false;
    for (size_t i = 0; i < quota->n_parts; i++) {
        const struct dv_quota_part *part = &quota->parts[i];

        if (is_restricted(operation, part) && !(part->is_told && part->is_counted))
            return refuse_unknown(operation, quota);
    }
    return check_amounts(operation, quota);
}

/* Adds what the object uses to what is coming, or takes it off. */
static void count(struct dv_cluster_operation *operation, struct dv_namespace_quota *quota,
                  int sign)
{
    if (!dv_quota_is_charged(operation, quota))
        return;
    for (size_t i = 0; i < quota->n_parts; i++) {
        struct dv_quota_amount amount =
            dv_quota_use(kind_of(operation), operation->result.value, &quota->parts[i].resource);

        quota->parts[i].coming += sign * amount.milli;
        if (amount.milli != 0)
            quota->parts[i].format = amount.format;
    }
    dv_quota_publish(quota);
}

static bool has_room_for_quota(struct dv_cluster_operation *operation, const struct dv_list *quotas)
{
    size_t n = 0;

    for (const struct dv_link *at = quotas->head.next; at != &quotas->head; at = at->next)
        n++;
    if (n < DV_QUOTAS_MAX)
        return true;
    return refuse(operation, dv_str_printf(operation->arena,
                                           "the namespace has %zu quotas, and %u is the most; one "
                                           "quota can limit many resources",
                                           n, DV_QUOTAS_MAX)
                                 .p);
}

/* Scopes go by what of a pod cannot change, but for this. */
bool dv_quota_moves(const struct dv_cluster_operation *operation)
{
    const struct dv_object *old = operation->entry->object;
    const struct dv_api_pod *pod = operation->result.value;

    return old && kind_of(operation)->id == DV_KIND_POD &&
           !((const struct dv_api_pod *)old->value)->spec.active_deadline_seconds !=
               !pod->spec.active_deadline_seconds;
}

bool dv_quota_admit(struct dv_cluster_operation *operation)
{
    struct dv_embedded *embedded = operation->embedded;
    struct dv_list *quotas;

    if (!kind_of(operation)->is_namespaced)
        return true;
    quotas = dv_quotas_of(embedded, dv_entry_namespace(operation->entry));
    if (!quotas)
        return true;
    if (kind_of(operation)->id == DV_KIND_RESOURCE_QUOTA && !has_room_for_quota(operation, quotas))
        return false;
    if (operation->entry->object) /* it is not created */
        operation->quota_old = dv_object_ref(operation->entry->object);
    for (struct dv_link *at = quotas->head.next; at != &quotas->head; at = at->next)
        if (!check(operation, DV_CONTAINER(at, struct dv_namespace_quota, link)))
            return false;
    if (operation->is_dry_run)
        return true;
    for (struct dv_link *at = quotas->head.next; at != &quotas->head; at = at->next)
        count(operation, DV_CONTAINER(at, struct dv_namespace_quota, link), 1);
    dv_list_push(&embedded->quotas.coming, &operation->quota_link);
    operation->is_counted = true;
    return true;
}

void dv_quota_settle(struct dv_cluster_operation *operation)
{
    struct dv_list *quotas =
        dv_quotas_of(operation->embedded, dv_entry_namespace(operation->entry));

    dv_link_remove(&operation->quota_link);
    operation->is_counted = false;
    for (struct dv_link *at = quotas ? quotas->head.next : NULL; at && at != &quotas->head;
         at = at->next)
        count(operation, DV_CONTAINER(at, struct dv_namespace_quota, link), -1);
}
