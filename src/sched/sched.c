/* sched.c - opens and closes the scheduler: the views feed the records (sched_nodes.c,
 * sched_slices.c, sched_claims.c, sched_pods.c), pods are queued (sched_queue.c), decided on
 * (decide.c) and bound (bind.c). Closing waits for the answer of every request that is under way,
 * and undoes nothing: whoever is opened next finds what was written. */
#include "sched/sched.h"

#include <stdlib.h>
#include <string.h>

#include "affinity/affinity.h"
#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "loop/loop.h"
#include "resource/prepare.h"
#include "resource/resource.h"
#include "sched/crowd.h"
#include "sched/fit.h"
#include "sched/placed.h"
#include "sched/sched_state.h"

#define N_BINDING_MAX 512u
#define BINDING_TIMEOUT_MS 600000u
#define TURN_BUDGET UINT64_C(100000)
#define TEXT_BYTES_MAX ((size_t)64 * 1024)
#define KEY_BYTES_MAX ((size_t)16 * 1024 * 1024)

/* ---- for all files ---- */

dv_str dv_sched_key(struct dv_sched *sched, dv_str namespace, dv_str name)
{
    dv_buf_clear(&sched->text);
    dv_buf_add(&sched->text, namespace);
    dv_buf_add_char(&sched->text, '/');
    dv_buf_add(&sched->text, name);
    return dv_buf_str(&sched->text);
}

struct dv_time dv_sched_now(const struct dv_sched *sched)
{
    return dv_api_seconds_from_ns(dv_clock_wall_ns(dv_loop_clock(sched->loop)));
}

void dv_sched_request(struct dv_sched *sched, struct dv_request *request)
{
    sched->n_requests++;
    /* What the scheduler writes has no owner in managedFields: that costs more than the write, and
     * nobody applies these fields. */
    request->is_untracked = true;
    if (request->field_manager.n == 0)
        request->field_manager = sched->name;
    dv_request_start(sched->cluster, request);
}

void dv_sched_tell_devices(const struct dv_sched *sched)
{
    if (sched->options.devices_changed && !sched->is_closing && sched->n_unsynced == 0)
        sched->options.devices_changed(sched->options.ctx);
}

/* ---- the end ---- */

static void free_all(struct dv_sched *sched)
{
    dv_task_cancel(&sched->turn);
    dv_task_cancel(&sched->relate);
    dv_timer_cancel(&sched->rest);
    dv_timer_cancel(&sched->say_again);
    dv_timer_cancel(&sched->tell_again);
    dv_timer_cancel(&sched->tell_late);
    dv_task_cancel(&sched->end);
    dv_task_cancel(&sched->wake);
    dv_sched_metrics_close(sched);
    dv_sched_pods_free(sched);
    dv_sched_claims_free(sched);
    dv_sched_crowds_free(sched);
    dv_sched_placed_free(sched);
    dv_sched_slices_free(sched);
    dv_sched_nodes_free(sched);
    dv_affinity_free(sched->affinity);
    dv_sched_resources_fini(&sched->resources);
    dv_sched_amounts_fini(&sched->amounts);
    dv_slabs_fini(&sched->memory);
    dv_inventory_free(sched->inventory);
    dv_arena_free(sched->scratch);
    dv_buf_fini(&sched->text);
    dv_buf_fini(&sched->why);
    dv_buf_fini(&sched->crowd_key);
    free((void *)(uintptr_t)sched->name.p); /* a copy made by set_options */
    free(sched);
}

static void on_end(struct dv_task *task)
{
    struct dv_sched *sched = DV_CONTAINER(task, struct dv_sched, end);
    dv_closed_fn *closed = sched->closed;
    void *ctx = sched->closed_ctx;

    free_all(sched);
    if (closed)
        closed(ctx);
}

static void end_if_idle(struct dv_sched *sched)
{
    if (sched->is_closing && sched->n_requests == 0)
        dv_task_post(&sched->end, sched->loop, on_end);
}

void dv_sched_request_done(struct dv_sched *sched)
{
    sched->n_requests--;
    end_if_idle(sched);
}

static void close_views(struct dv_sched *sched)
{
    for (size_t i = 0; i < DV_N_SCHED_VIEWS; i++) {
        if (sched->views[i])
            dv_view_close(sched->views[i]);
        sched->views[i] = NULL;
    }
}

void dv_sched_close(struct dv_sched *sched, dv_closed_fn *closed, void *ctx)
{
    const struct dv_map_entry *entry;

    sched->is_closing = true;
    sched->closed = closed;
    sched->closed_ctx = ctx;
    close_views(sched);
    dv_task_cancel(&sched->turn);
    dv_task_cancel(&sched->wake);
    dv_sched_attempt_drop(sched);
    dv_sched_says_cancel(sched);
    for (size_t at = 0; (entry = dv_map_next(&sched->claims, &at));)
        dv_sched_write_cancel(entry->value);
    dv_sched_binds_cancel(sched);
    dv_sched_evictions_cancel(sched);
    end_if_idle(sched);
}

/* ---- the beginning ---- */

static void on_synced(void *ctx)
{
    struct dv_sched *sched = ctx;

    if (--sched->n_unsynced > 0)
        return;
    dv_sched_pods_start(sched);
    dv_sched_turn(sched);
    dv_sched_tell_devices(sched);
}

/* On a real cluster the account may have no right to see namespaces and budgets, as it needed none
 * before: then terms that select namespaces by labels find none, nobody is spared for a budget, and
 * all else works. */
static bool is_waited_for(const struct dv_sched *sched, size_t view)
{
    return (view != DV_SCHED_VIEW_NAMESPACES && view != DV_SCHED_VIEW_BUDGETS) ||
           sched->cluster->is_embedded;
}

static bool open_views(struct dv_sched *sched, struct dv_err *err)
{
    static const struct {
        enum dv_kind_id kind;
        void (*changed)(void *ctx, struct dv_object *old, struct dv_object *now);
    } all[DV_N_SCHED_VIEWS] = {
        [DV_SCHED_VIEW_NAMESPACES] = {DV_KIND_NAMESPACE,         dv_sched_namespace_changed},
        [DV_SCHED_VIEW_NODES] = {DV_KIND_NODE,              dv_sched_node_changed     },
        [DV_SCHED_VIEW_CLASSES] = {DV_KIND_CLASS,             dv_sched_class_changed    },
        [DV_SCHED_VIEW_SLICES] = {DV_KIND_SLICE,             dv_sched_slice_changed    },
        [DV_SCHED_VIEW_RULES] = {DV_KIND_TAINT_RULE,        dv_sched_rule_changed     },
        [DV_SCHED_VIEW_CLAIMS] = {DV_KIND_CLAIM,             dv_sched_claim_changed    },
        [DV_SCHED_VIEW_PODS] = {DV_KIND_POD,               dv_sched_pod_changed      },
        [DV_SCHED_VIEW_BUDGETS] = {DV_KIND_DISRUPTION_BUDGET, dv_sched_budget_changed   },
    };

    for (size_t i = 0; i < DV_N_SCHED_VIEWS; i++) {
        const struct dv_view_options options = {.kind = dv_kind(all[i].kind),
                                                .changed = all[i].changed,
                                                .synced =
                                                    is_waited_for(sched, i) ? on_synced : NULL,
                                                .ctx = sched,
                                                .is_optional = i == DV_SCHED_VIEW_RULES};

        if (i == DV_SCHED_VIEW_RULES &&
            (sched->options.without_taint_rules || !(sched->options.gates & DV_GATE_DEVICE_TAINTS)))
            continue;
        sched->views[i] = dv_view_open(sched->cluster, &options, err);
        if (!sched->views[i])
            return dv_wrap(err, "scheduler: a view of %.*s", DV_FMT(options.kind->plural));
        sched->n_unsynced += is_waited_for(sched, i);
    }
    return true;
}

struct dv_inventory *dv_sched_new_inventory(unsigned gates)
{
    struct dv_alloc_features features = dv_alloc_features_default();

    features.binding_conditions =
        (gates & DV_GATE_BINDING_CONDITIONS) && (gates & DV_GATE_DEVICE_STATUS);
    features.consumable_capacity = gates & DV_GATE_CONSUMABLE_CAPACITY;
    features.device_taints = gates & DV_GATE_DEVICE_TAINTS;
    features.list_attributes = gates & DV_GATE_LIST_ATTRIBUTES;
    features.partitionable_devices = gates & DV_GATE_PARTITIONABLE_DEVICES;
    features.prioritized_list = gates & DV_GATE_PRIORITIZED_LIST;
    return dv_inventory_new(&features);
}

static void set_options(struct dv_sched *sched, const struct dv_sched_options *options)
{
    dv_str name = options->scheduler_name.n > 0 ? options->scheduler_name : DV_STR(DV_SCHED_NAME);
    char *copy = dv_alloc(name.n + 1);

    memcpy(copy, name.p, name.n);
    sched->name = (dv_str){copy, name.n};
    sched->options = *options;
    if (sched->options.gates == 0)
        sched->options.gates = DV_GATES_DEFAULT;
    if (!(sched->options.gates & DV_GATE_DEVICE_STATUS))
        sched->options.gates &= ~(unsigned)DV_GATE_BINDING_CONDITIONS;
    if (sched->options.n_binding_max == 0)
        sched->options.n_binding_max = N_BINDING_MAX;
    if (sched->options.binding_timeout_ms == 0)
        sched->options.binding_timeout_ms = BINDING_TIMEOUT_MS;
    if (sched->options.turn_budget == 0)
        sched->options.turn_budget = TURN_BUDGET;
}

static void init_maps(struct dv_sched *sched)
{
    struct dv_map *maps[] = {&sched->slice_changes_by_name,
                             &sched->slices,
                             &sched->pools,
                             &sched->class_waits,
                             &sched->nodes_by_name,
                             &sched->claims,
                             &sched->taken,
                             &sched->extended,
                             &sched->pods,
                             &sched->placed,
                             &sched->crowds};
    struct dv_list *lists[] = {&sched->slice_changes, &sched->crowds_waiting, &sched->idle,
                               &sched->to_say,        &sched->events,         &sched->telling,
                               &sched->nominated,     &sched->evictions,      &sched->bindings,
                               &sched->woken};

    for (size_t i = 0; i < DV_COUNT(maps); i++)
        dv_map_init(maps[i]);
    for (size_t i = 0; i < DV_COUNT(lists); i++)
        dv_list_init(lists[i]);
    dv_buf_init(&sched->text, TEXT_BYTES_MAX);
    dv_buf_init(&sched->why, TEXT_BYTES_MAX);
    dv_buf_init(&sched->crowd_key, KEY_BYTES_MAX);
}

struct dv_sched *dv_sched_open(struct dv_loop *loop, const struct dv_sched_options *options,
                               struct dv_err *err)
{
    struct dv_sched *sched = DV_ALLOC(struct dv_sched);

    sched->loop = loop;
    sched->cluster = options->cluster;
    set_options(sched, options);
    init_maps(sched);
    dv_sched_resources_init(&sched->resources);
    sched->scratch = dv_arena_new();
    sched->affinity = dv_affinity_new();
    sched->inventory = dv_sched_new_inventory(sched->options.gates);
    dv_slabs_init(&sched->memory);
    dv_sched_metrics_open(sched);
    if (!open_views(sched, err)) {
        close_views(sched);
        free_all(sched);
        return NULL;
    }
    return sched;
}

bool dv_sched_is_synced(const struct dv_sched *sched)
{
    return sched->n_unsynced == 0;
}
