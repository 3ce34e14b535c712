/* control.c - opens and closes the controllers. The views call control_views.c and evict.c, which
 * put keys into queues; each queue runs the syncs of one kind (pod_sync.c, claim_sync.c,
 * eviction_sync.c, rule_sync.c, node_sync.c, stray_sync.c, account_sync.c, role_sync.c,
 * service_sync.c), which read the newest state and make requests. */
#include "control/control.h"

#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/recorder.h"
#include "control/control_index.h"
#include "control/control_queue.h"
#include "control/controllers.h"
#include "control/evict.h"
#include "resource/resource.h"

/* How many pods that are gone are remembered, as in the reference. */
#define GONE_MAX 500u

struct dv_control_gates dv_control_gates_default(void)
{
    return (struct dv_control_gates){
        .admin_access = true, .prioritized_list = true, .device_taints = true, .taint_rules = true};
}

const char *dv_claim_source_name(enum dv_claim_source source)
{
    static const char *const names[DV_N_CLAIM_SOURCES] = {
        [DV_CLAIM_PLAIN] = "",
        [DV_CLAIM_TEMPLATE] = "resource_claim_template",
        [DV_CLAIM_EXTENDED] = "extended_resource",
    };

    return names[source];
}

/* ---- what the files ask for ---- */

struct dv_object *dv_control_get(const struct dv_control *control, enum dv_control_view view,
                                 dv_str namespace, dv_str name)
{
    return control->views[view] ? dv_view_get(control->views[view], namespace, name) : NULL;
}

const struct dv_api_pod *dv_control_get_pod(const struct dv_control *control, dv_str namespace,
                                            dv_str name)
{
    const struct dv_object *object = dv_control_get(control, DV_CONTROL_PODS, namespace, name);

    return object ? object->value : NULL;
}

struct dv_time dv_control_now(const struct dv_control *control)
{
    return dv_api_seconds_from_ns(dv_clock_wall_ns(dv_loop_clock(control->loop)));
}

void dv_control_split(dv_str key, dv_str *namespace, dv_str *name)
{
    size_t n = dv_str_find_char(key, '/');

    *namespace = dv_str_slice(key, 0, n);
    *name = dv_str_slice(key, n + 1, key.n);
}

void dv_control_queue_all(struct dv_control *control, enum dv_control_queue queue,
                          const struct dv_index *index, dv_str word)
{
    const struct dv_list *refs = dv_index_find(index, word);
    struct dv_link *link;

    if (!refs)
        return;
    DV_LIST_EACH (refs, link) {
        dv_str namespace;
        dv_str name;

        dv_control_split(dv_index_thing(link), &namespace, &name);
        dv_queue_add(&control->queues[queue], namespace, name);
    }
}

/* ---- views ---- */

static bool is_synced(const struct dv_control *control, enum dv_control_view view)
{
    return control->views[view] && dv_view_is_synced(control->views[view]);
}

bool dv_control_is_ready(const struct dv_control *control)
{
    return is_synced(control, DV_CONTROL_PODS) && is_synced(control, DV_CONTROL_CLAIMS) &&
           is_synced(control, DV_CONTROL_TEMPLATES);
}

static void on_synced(void *ctx)
{
    struct dv_control *control = ctx;

    if (!dv_control_is_ready(control))
        return;
    dv_queue_start(&control->queues[DV_CONTROL_POD_QUEUE]);
    dv_queue_start(&control->queues[DV_CONTROL_CLAIM_QUEUE]);
    if (is_synced(control, DV_CONTROL_NODES) && is_synced(control, DV_CONTROL_LEASES)) {
        dv_queue_start(&control->queues[DV_CONTROL_NODE_QUEUE]);
        dv_queue_start(&control->queues[DV_CONTROL_STRAY_QUEUE]);
    }
    if (is_synced(control, DV_CONTROL_NAMESPACES) && is_synced(control, DV_CONTROL_ACCOUNTS) &&
        is_synced(control, DV_CONTROL_CONFIG_MAPS))
        dv_queue_start(&control->queues[DV_CONTROL_ACCOUNT_QUEUE]);
    if (is_synced(control, DV_CONTROL_CLUSTER_ROLES))
        dv_queue_start(&control->queues[DV_CONTROL_ROLE_QUEUE]);
    if (is_synced(control, DV_CONTROL_SERVICES) && is_synced(control, DV_CONTROL_ENDPOINT_SLICES))
        dv_queue_start(&control->queues[DV_CONTROL_SERVICE_QUEUE]);
    if (!control->evictor || !is_synced(control, DV_CONTROL_SLICES) ||
        (control->options.gates.taint_rules && !is_synced(control, DV_CONTROL_RULES)))
        return;
    dv_evictor_start(control->evictor);
    dv_queue_start(&control->queues[DV_CONTROL_EVICTION_QUEUE]);
    dv_queue_start(&control->queues[DV_CONTROL_RULE_QUEUE]);
}

static const struct {
    enum dv_kind_id kind;
    void (*changed)(void *ctx, struct dv_object *old, struct dv_object *now);
} view_table[DV_N_CONTROL_VIEWS] = {
    [DV_CONTROL_PODS] = {DV_KIND_POD,             dv_control_pod_changed           },
    [DV_CONTROL_CLAIMS] = {DV_KIND_CLAIM,           dv_control_claim_changed         },
    [DV_CONTROL_TEMPLATES] = {DV_KIND_TEMPLATE,        dv_control_template_changed      },
    [DV_CONTROL_SLICES] = {DV_KIND_SLICE,           dv_evictor_slice_changed         },
    [DV_CONTROL_RULES] = {DV_KIND_TAINT_RULE,      dv_evictor_rule_changed          },
    [DV_CONTROL_NODES] = {DV_KIND_NODE,            dv_control_node_changed          },
    [DV_CONTROL_LEASES] = {DV_KIND_LEASE,           dv_control_lease_changed         },
    [DV_CONTROL_NAMESPACES] = {DV_KIND_NAMESPACE,       dv_control_namespace_changed     },
    [DV_CONTROL_ACCOUNTS] = {DV_KIND_SERVICE_ACCOUNT, dv_control_account_changed       },
    [DV_CONTROL_CONFIG_MAPS] = {DV_KIND_CONFIG_MAP,      dv_control_config_map_changed    },
    [DV_CONTROL_CLUSTER_ROLES] = {DV_KIND_CLUSTER_ROLE,    dv_control_cluster_role_changed  },
    [DV_CONTROL_SERVICES] = {DV_KIND_SERVICE,         dv_control_service_changed       },
    [DV_CONTROL_ENDPOINT_SLICES] = {DV_KIND_ENDPOINT_SLICE,  dv_control_endpoint_slice_changed},
};

static bool is_wanted(const struct dv_control *control, enum dv_control_view view)
{
    if (view == DV_CONTROL_SLICES)
        return control->evictor != NULL;
    if (view == DV_CONTROL_RULES)
        return control->evictor && control->options.gates.taint_rules;
    if (view == DV_CONTROL_NODES || view == DV_CONTROL_LEASES)
        return control->options.watches_nodes;
    if (view == DV_CONTROL_NAMESPACES || view == DV_CONTROL_ACCOUNTS ||
        view == DV_CONTROL_CONFIG_MAPS || view == DV_CONTROL_CLUSTER_ROLES ||
        view == DV_CONTROL_SERVICES || view == DV_CONTROL_ENDPOINT_SLICES)
        return control->options.serves_cluster_defaults;
    return true;
}

static void close_views(struct dv_control *control)
{
    for (size_t i = 0; i < DV_N_CONTROL_VIEWS; i++) {
        if (control->views[i])
            dv_view_close(control->views[i]);
        control->views[i] = NULL;
    }
}

static bool open_views(struct dv_control *control, struct dv_err *err)
{
    for (size_t i = 0; i < DV_N_CONTROL_VIEWS; i++) {
        const struct dv_view_options options = {.kind = dv_kind(view_table[i].kind),
                                                .changed = view_table[i].changed,
                                                .synced = on_synced,
                                                .ctx = control,
                                                .is_optional = i == DV_CONTROL_RULES};

        if (!is_wanted(control, (enum dv_control_view)i))
            continue;
        control->views[i] = dv_view_open(control->options.cluster, &options, err);
        if (!control->views[i]) {
            close_views(control);
            return dv_wrap(err, "view of %.*s", DV_FMT(options.kind->plural));
        }
    }
    return true;
}

/* ---- life ---- */

static void free_control(struct dv_control *control)
{
    dv_task_cancel(&control->close_task);
    dv_evictor_free(control->evictor);
    for (size_t i = 0; i < DV_N_CONTROL_QUEUES; i++)
        dv_queue_fini(&control->queues[i]);
    dv_made_fini(control);
    dv_index_fini(&control->pods);
    dv_index_fini(&control->claims);
    dv_index_fini(&control->services);
    dv_index_fini(&control->endpoints);
    dv_recent_fini(&control->gone);
    dv_control_leases_free(control);
    dv_control_strays_fini(control);
    free(control);
}

static void on_close_task(struct dv_task *task)
{
    struct dv_control *control = DV_CONTAINER(task, struct dv_control, close_task);
    dv_closed_fn *closed = control->closed;
    void *ctx = control->closed_ctx;

    free_control(control);
    if (closed)
        closed(ctx);
}

static void part_closed(struct dv_control *control)
{
    assert(control->n_closing > 0);
    if (--control->n_closing == 0)
        dv_task_post(&control->close_task, control->loop, on_close_task);
}

static void on_queue_stopped(struct dv_queue *queue)
{
    part_closed(queue->options.ctx);
}

static void on_recorder_closed(void *ctx)
{
    part_closed(ctx);
}

/* How many of the queues of pods and of claims run at a time, unless the options say it: together
 * with the others 64, as many requests as the reference has workers. */
#define N_RUNNING_MAX 24u

/* The queues, with how many syncs of each run at a time; 0: as the options say. */
static const struct {
    size_t (*item_bytes)(void);
    size_t n_running_max;
    void (*run)(struct dv_queue_item *item);
} queue_table[DV_N_CONTROL_QUEUES] = {
    [DV_CONTROL_POD_QUEUE] = {dv_control_pod_sync_bytes,      0, dv_control_pod_sync_run     },
    [DV_CONTROL_CLAIM_QUEUE] = {dv_control_claim_sync_bytes,    0, dv_control_claim_sync_run   },
    [DV_CONTROL_EVICTION_QUEUE] = {dv_control_eviction_sync_bytes, 8, dv_control_eviction_sync_run},
    [DV_CONTROL_RULE_QUEUE] = {dv_control_rule_sync_bytes,     4, dv_control_rule_sync_run    },
    [DV_CONTROL_NODE_QUEUE] = {dv_control_node_sync_bytes,     4, dv_control_node_sync_run    },
    [DV_CONTROL_STRAY_QUEUE] = {dv_control_stray_sync_bytes,    4, dv_control_stray_sync_run   },
    [DV_CONTROL_ACCOUNT_QUEUE] = {dv_control_account_sync_bytes,  4, dv_control_account_sync_run },
    [DV_CONTROL_ROLE_QUEUE] = {dv_control_role_sync_bytes,     4, dv_control_role_sync_run    },
    [DV_CONTROL_SERVICE_QUEUE] = {dv_control_service_sync_bytes,  4, dv_control_service_sync_run },
};

static size_t running_max(const struct dv_control *control, enum dv_control_queue queue)
{
    if (queue_table[queue].n_running_max > 0)
        return queue_table[queue].n_running_max;
    return control->options.n_running_max > 0 ? control->options.n_running_max : N_RUNNING_MAX;
}

static void init_queues(struct dv_control *control)
{
    for (size_t i = 0; i < DV_N_CONTROL_QUEUES; i++)
        dv_queue_init(&control->queues[i],
                      &(struct dv_queue_options){.loop = control->loop,
                                                 .item_bytes = queue_table[i].item_bytes(),
                                                 .n_running_max =
                                                     running_max(control, (enum dv_control_queue)i),
                                                 .run = queue_table[i].run,
                                                 .cancel = dv_control_sync_cancel,
                                                 .stopped = on_queue_stopped,
                                                 .ctx = control});
}

struct dv_control *dv_control_open(struct dv_loop *loop, const struct dv_control_options *options,
                                   struct dv_err *err)
{
    struct dv_control *control = DV_ALLOC(struct dv_control);

    control->loop = loop;
    control->options = *options;
    init_queues(control);
    dv_made_init(control);
    dv_index_init(&control->pods);
    dv_index_init(&control->claims);
    dv_index_init(&control->services);
    dv_index_init(&control->endpoints);
    dv_recent_init(&control->gone, GONE_MAX);
    dv_map_init(&control->leases);
    dv_control_strays_init(control);
    dv_control_lookup_init(control);
    if (options->gates.device_taints)
        control->evictor = dv_evictor_new(control);
    if (!open_views(control, err)) {
        free_control(control);
        (void)dv_wrap(err, "control");
        return NULL;
    }
    control->claims_recorder =
        dv_recorder_open(options->cluster, DV_STR(DV_CONTROL_CLAIMS_COMPONENT), DV_STR_NONE);
    control->taints_recorder =
        dv_recorder_open(options->cluster, DV_STR(DV_CONTROL_TAINTS), DV_STR_NONE);
    return control;
}

void dv_control_close(struct dv_control *control, dv_closed_fn *closed, void *ctx)
{
    assert(!control->is_closing);
    control->is_closing = true;
    control->closed = closed;
    control->closed_ctx = ctx;
    control->n_closing = DV_N_CONTROL_QUEUES + 2;
    close_views(control);
    for (size_t i = 0; i < DV_N_CONTROL_QUEUES; i++)
        dv_queue_stop(&control->queues[i]);
    dv_recorder_close(control->claims_recorder, on_recorder_closed, control);
    dv_recorder_close(control->taints_recorder, on_recorder_closed, control);
    control->claims_recorder = control->taints_recorder = NULL;
}

bool dv_control_is_working_on(struct dv_control *control, dv_str namespace, dv_str pod)
{
    return dv_queue_is_busy_with(&control->queues[DV_CONTROL_POD_QUEUE], namespace, pod);
}

void dv_control_get_stats(const struct dv_control *control, struct dv_control_stats *stats)
{
    *stats = control->stats;
    if (control->evictor)
        stats->n_pending_evictions = dv_evictor_n_pending(control->evictor);
    for (size_t i = 0; i < DV_N_CONTROL_QUEUES; i++) {
        stats->n_waiting += dv_queue_n(&control->queues[i]);
        stats->n_running += control->queues[i].n_running;
        stats->n_retries += control->queues[i].n_retries;
    }
    stats->n_events_dropped = dv_recorder_n_dropped(control->claims_recorder) +
                              dv_recorder_n_dropped(control->taints_recorder);
}
