/* engine.c - what all files of the embedded API use: the time, the keys of the store, and the
 * one place where a durable change is applied to memory and told to views, watchers and the
 * collector. */
#include "cluster/embedded/engine.h"

#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "cluster/embedded/events.h"
#include "cluster/embedded/namespace_quota.h"
#include "cluster/objects/history.h"
#include "loop/loop.h"
#include "resource/custom.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "resource/status.h"

struct dv_collection *dv_engine_collection(struct dv_embedded *embedded, const struct dv_kind *kind)
{
    return dv_kind_is_custom(kind) ? &dv_custom_kind_of(kind)->collection
                                   : &embedded->collections[kind->id];
}

struct dv_collection *dv_engine_collection_at(struct dv_embedded *embedded, size_t i)
{
    if (i < DV_N_KINDS)
        return &embedded->collections[i];
    i -= DV_N_KINDS;
    return i < embedded->customs.n ? &embedded->customs.v[i]->collection : NULL;
}

size_t dv_engine_collection_index(const struct dv_collection *collection)
{
    return dv_kind_is_custom(collection->kind)
               ? DV_N_KINDS + dv_custom_kind_of(collection->kind)->index
               : (size_t)collection->kind->id;
}

const struct dv_kind *dv_engine_kind_by_name(const struct dv_embedded *embedded, dv_str group,
                                             dv_str version, dv_str name)
{
    const struct dv_kind *kind = dv_kind_by_name(group, version, name, NULL);
    const struct dv_custom_version *found;

    return kind
               ? kind
               : dv_custom_set_find(&embedded->customs.served, group, version, name, false, &found);
}

struct dv_time dv_engine_now(const struct dv_embedded *embedded)
{
    return dv_api_seconds_from_ns(dv_clock_wall_ns(dv_loop_clock(embedded->cluster.loop)));
}

dv_str dv_engine_key(const struct dv_entry *entry, struct dv_arena *arena)
{
    const dv_str parts[] = {dv_custom_key_of(entry->collection->kind, arena), DV_STR("/"),
                            dv_entry_key(entry)};

    return dv_str_concat(parts, DV_COUNT(parts), arena);
}

dv_str dv_engine_version_text(uint64_t version, struct dv_arena *arena)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + version % 10);
        version /= 10;
    } while (version > 0);
    return dv_str_copy((dv_str){digits + at, sizeof(digits) - at}, arena);
}

void dv_engine_report_retry(const char *what, const struct dv_api_status *failure)
{
    struct dv_err err;

    dv_status_to_err(failure, &err);
    dv_log(DV_LOG_WARN, "cluster: trying again", DV_F_C("what", what), DV_F_ERR(&err));
}

/* Clients that list and then watch, or come back after a break, do so within this time. */
#define AGE_MS 10000u

static void on_age(struct dv_timer *timer)
{
    struct dv_embedded *embedded = DV_CONTAINER(timer, struct dv_embedded, age);
    struct dv_collection *collection;
    bool has_more = false;

    for (size_t i = 0; (collection = dv_engine_collection_at(embedded, i)) != NULL; i++)
        has_more |= dv_history_age(&collection->history);
    if (has_more)
        dv_timer_start(timer, embedded->cluster.loop,
                       dv_loop_now_ms(embedded->cluster.loop) + AGE_MS, on_age);
}

void dv_engine_apply(struct dv_embedded *embedded, struct dv_entry *entry, struct dv_object *now,
                     uint64_t version)
{
    struct dv_collection *collection = entry->collection;
    struct dv_object *old = dv_collection_set(entry, now ? dv_object_keep(now) : NULL);

    if (old)
        (void)dv_object_ref(old); /* all who are told look at it */
    embedded->version = version;
    dv_history_add(&collection->history, version, old, now);
    if (!dv_timer_is_set(&embedded->age))
        dv_timer_start(&embedded->age, embedded->cluster.loop,
                       dv_loop_now_ms(embedded->cluster.loop) + AGE_MS, on_age);
    dv_object_owners_change(&embedded->owners, entry, old, now);
    dv_collector_look(embedded, entry, old, now);
    dv_quota_change(embedded, entry, old, now);
    dv_events_look(embedded, entry);
    dv_definitions_look(embedded, entry, now);
    dv_watchers_wake(embedded, collection);
    dv_views_tell(embedded, collection, old, now);
    dv_object_unref(now);
    dv_object_unref(old);
    dv_object_unkeep(old);
}

/* ---- packing ---- */

/* How many objects are kept unpacked though nobody uses them: those of the requests of a moment, so
 * that one that is read again at once need not be unpacked again. About a megabyte. */
#define N_UNPACKED_MAX 512u
/* What nobody has used for so long, or twice that, is packed in any case. */
#define PACK_MS 500u

static void on_pack_task(struct dv_task *task)
{
    struct dv_embedded *embedded = DV_CONTAINER(task, struct dv_embedded, pack);

    dv_object_pool_pack(embedded->pool, N_UNPACKED_MAX / 2);
}

static void on_pack_timer(struct dv_timer *timer)
{
    struct dv_embedded *embedded = DV_CONTAINER(timer, struct dv_embedded, pack_idle);

    dv_object_pool_pack(embedded->pool, 0);
    if (dv_object_pool_n_idle(embedded->pool) > 0)
        dv_timer_start(timer, embedded->cluster.loop,
                       dv_loop_now_ms(embedded->cluster.loop) + PACK_MS, on_pack_timer);
}

void dv_engine_pool_grown(void *ctx)
{
    struct dv_embedded *embedded = ctx;
    struct dv_loop *loop = embedded->cluster.loop;

    if (embedded->is_closing)
        return;
    if (dv_object_pool_n_idle(embedded->pool) > N_UNPACKED_MAX)
        dv_task_post(&embedded->pack, loop, on_pack_task);
    if (!dv_timer_is_set(&embedded->pack_idle))
        dv_timer_start(&embedded->pack_idle, loop, dv_loop_now_ms(loop) + PACK_MS, on_pack_timer);
}

bool dv_engine_is_packed(const struct dv_kind *kind)
{
    switch (kind->id) {
    case DV_KIND_POD:
    case DV_KIND_EVENT:
    case DV_KIND_SERVICE_ACCOUNT:
    case DV_KIND_SECRET:
    case DV_KIND_CONFIG_MAP:
    case DV_KIND_LEASE:
    case DV_KIND_ENDPOINTS:
    case DV_KIND_ENDPOINT_SLICE:
    case DV_KIND_CLAIM:
    case DV_KIND_TEMPLATE:
    case DV_KIND_SLICE:
    case DV_KIND_CONTROLLER_REVISION:
    case DV_KIND_CUSTOM:
        return true;
    case DV_KIND_NODE: /* the scheduler uses all of these all the time */
    case DV_KIND_CLASS:
    case DV_KIND_TAINT_RULE:
    case DV_KIND_NAMESPACE: /* few, and looked at with every write */
    case DV_KIND_RUNTIME_CLASS:
    case DV_KIND_PRIORITY_CLASS: /* few, and looked at with every pod */
    case DV_KIND_SERVICE:        /* looked at for addresses that are taken */
    case DV_KIND_RESOURCE_QUOTA: /* looked at with every write into its namespace */
    case DV_KIND_DEPLOYMENT:
    case DV_KIND_REPLICA_SET:
    case DV_KIND_JOB:
    case DV_KIND_DAEMON_SET: /* looked at with every change of its pods */
    case DV_KIND_ROLE:       /* asked with every request of a service account */
    case DV_KIND_CLUSTER_ROLE:
    case DV_KIND_ROLE_BINDING:
    case DV_KIND_CLUSTER_ROLE_BINDING:
    case DV_KIND_VALIDATING_POLICY: /* compiled as they are */
    case DV_KIND_VALIDATING_POLICY_BINDING:
    case DV_KIND_CUSTOM_DEFINITION: /* few, and looked at when others change */
    case DV_KIND_VALIDATING_WEBHOOKS:
    case DV_KIND_MUTATING_WEBHOOKS:
    case DV_KIND_DISRUPTION_BUDGET: /* looked at with every eviction */
    case DV_N_KINDS:
        break;
    }
    return false;
}
