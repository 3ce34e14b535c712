/* agent.c - opens and closes the agent, which carries out what the API says about the pods of this
 * node. Each pod is looked at by agent_pod.c, which asks agent_step.c what is to be done; writes to
 * the API are few at a time. */
#include "pod/agent.h"

#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "claim/claim_manager.h"
#include "cluster/cluster.h"
#include "pod/agent/agent_state.h"
#include "pod/agent/agent_step.h"
#include "pod/agent/outside.h"
#include "pod/pod.h"
#include "pod/runner.h"
#include "resource/references.h"
#include "resource/resource.h"

bool dv_agent_has_runner(const struct dv_agent *agent)
{
    return agent->options.runner && dv_runner_is_active(agent->options.runner);
}

const struct dv_strs *dv_agent_host_ips(const struct dv_agent *agent)
{
    return agent->options.runner ? dv_runner_host_ips(agent->options.runner) : NULL;
}

bool dv_agent_is_given(const struct dv_agent_pod *pod)
{
    return dv_agent_has_runner(pod->agent) &&
           dv_runner_state(pod->agent->options.runner, pod->uid) >= DV_RUNNER_RUNNING;
}

bool dv_agent_write_begin(struct dv_agent_write *write)
{
    if (write->is_running)
        return false;
    write->is_running = true;
    write->arena = dv_arena_new();
    write->request =
        (struct dv_request){.field_manager = DV_STR("davit-node"), .is_untracked = true};
    return true;
}

void dv_agent_write_end(struct dv_agent_write *write)
{
    write->is_running = false;
    dv_arena_free(write->arena);
    write->arena = NULL;
}

/* ---- what happens ---- */

static struct dv_agent_pod *pod_of(struct dv_agent *agent, const struct dv_object *object)
{
    struct dv_agent_pod *pod = dv_map_get(&agent->pods, object->meta->uid);

    if (pod)
        return pod;
    pod = dv_agent_pod_new(agent, object->meta->uid, object->meta->namespace, object->meta->name);
    /* the node released the pod before a restart, and the API has not been told */
    if (dv_pods_has_ended(agent->options.pods, pod->uid)) {
        pod->state = DV_AGENT_RELEASED;
        pod->has_ended = true;
        pod->is_dirty = true;
    }
    return pod;
}

static bool is_known(void *ctx, dv_str uid)
{
    return dv_map_get(&((struct dv_agent *)ctx)->pods, uid) != NULL;
}

void dv_agent_pod_set_object(struct dv_agent_pod *pod, struct dv_object *object)
{
    bool is_other = object && pod->object && dv_agent_pod_differs(pod->object, object);
    bool was_accounted_for = dv_agent_pod_is_accounted_for(pod);

    dv_object_unref(pod->object);
    pod->object = object ? dv_object_ref(object) : NULL;
    if (object)
        dv_pods_renew(pod->agent->options.pods, object);
    if (dv_agent_pod_is_accounted_for(pod) != was_accounted_for) {
        dv_agent_note_holder(pod->agent, pod->uid);
        dv_agent_node_look(pod->agent);
    }
    if (dv_agent_is_given(pod) && object)
        dv_runner_set_pod(pod->agent->options.runner, object, pod->is_static);
    else if (!object && dv_agent_has_runner(pod->agent))
        dv_runner_set_vanished(pod->agent->options.runner, pod->uid);
    if (is_other)
        dv_agent_pod_wake(pod);
    dv_agent_pod_look(pod);
}

static bool is_mirror(const struct dv_object *object)
{
    return object && dv_pod_is_mirror(object->value);
}

static void on_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_agent *agent = ctx;
    struct dv_agent_pod *gone = old && (!now || !dv_str_eq(old->meta->uid, now->meta->uid))
                                    ? dv_map_get(&agent->pods, old->meta->uid)
                                    : NULL;

    if (is_mirror(old) || is_mirror(now)) {
        dv_agent_mirror_changed(agent, old, now);
        return;
    }
    if (gone)
        dv_agent_pod_set_object(gone, NULL);
    if (now)
        dv_agent_pod_set_object(pod_of(agent, now), now);
}

/* The pods of the API and of files are all known now. What the node has of other pods is given
 * back. */
void dv_agent_settle(struct dv_agent *agent)
{
    const struct dv_map_entry *entry;

    if (agent->is_synced || !agent->has_api_pods || !agent->has_file_pods)
        return;
    agent->is_synced = true;
    dv_pods_forget_all_ended(agent->options.pods, is_known, agent);
    for (size_t at = 0; (entry = dv_map_next(&agent->pods, &at)) != NULL;)
        dv_agent_pod_look(entry->value);
    dv_claim_manager_reconcile(agent->options.claims);
    dv_agent_mirrors_look(agent);
    if (agent->options.runner)
        dv_runner_settle(agent->options.runner);
    /* what each device's holder is to the API decides what the Node object offers */
    dv_agent_note_holders(agent);
    agent->node.is_dirty = true;
    dv_agent_node_look(agent);
}

static void on_synced(void *ctx)
{
    struct dv_agent *agent = ctx;

    agent->has_api_pods = true;
    dv_agent_settle(agent);
}

/* Whether something else is known about what runs in the pod than at the last look. */
static bool sees_other_run(struct dv_agent_pod *pod, const struct dv_pod_view *view)
{
    struct dv_pod_told told = dv_pods_told(pod->agent->options.pods, pod->uid);

    if (told.version == pod->told_version && told.is_running == pod->is_running &&
        view->is_owned == pod->is_owned)
        return false;
    pod->told_version = told.version;
    pod->is_running = told.is_running;
    pod->is_owned = view->is_owned;
    pod->is_dirty = true;
    return true;
}

/* Finds out what has happened to a pod on the node: it was released, its process has ended, or its
 * admission waits for something else now. */
static void see_change(struct dv_agent_pod *pod)
{
    struct dv_pod_ref ref = {.uid = pod->uid};
    struct dv_pod_view view;

    if (pod->state == DV_AGENT_PAUSING || pod->kept) {
        dv_agent_pod_check(pod);
    } else if (pod->state == DV_AGENT_ADMITTING) {
        dv_agent_pod_note_wait(pod);
        pod->is_dirty = true;
        dv_agent_pod_look(pod);
    } else if (pod->state == DV_AGENT_ADMITTED && dv_agent_is_given(pod)) {
        if (!dv_pods_find(pod->agent->options.pods, &ref, &view))
            /* by `davit release` */
            dv_runner_evict(pod->agent->options.runner, pod->uid, DV_STR("Released"),
                            DV_STR("What the pod held was given back by hand"));
    } else if (pod->state == DV_AGENT_ADMITTED) {
        bool is_here = dv_pods_find(pod->agent->options.pods, &ref, &view);

        if (!is_here) { /* by `davit release` */
            dv_timer_cancel(&pod->timer);
            pod->state = DV_AGENT_RELEASED;
            pod->has_ended = true;
        }
        if (!is_here || view.has_ended || sees_other_run(pod, &view))
            dv_agent_pod_look(pod);
    }
}

void dv_agent_pods_changed(struct dv_agent *agent, const dv_str *uids, size_t n_uids)
{
    bool has_one_gone = false;

    if (agent->is_closing)
        return;
    for (size_t i = 0; i < n_uids; i++) {
        const struct dv_pod_ref ref = {.uid = uids[i]};
        struct dv_agent_pod *pod = dv_map_get(&agent->pods, uids[i]);
        struct dv_pod_view view;

        if (pod)
            see_change(pod);
        dv_agent_note_holder(agent, uids[i]);
        has_one_gone |= !dv_pods_find(agent->options.pods, &ref, &view);
    }
    if (has_one_gone)
        dv_agent_waiting_check(agent); /* it may have had what others wait for */
    dv_agent_node_look(agent);
}

static void on_claims_task(struct dv_task *task)
{
    struct dv_agent *agent = DV_CONTAINER(task, struct dv_agent, claims_task);
    struct dv_link *next;

    for (struct dv_link *link = dv_list_first(&agent->waiting);
         link && link != &agent->waiting.head; link = next) {
        struct dv_agent_pod *pod = DV_CONTAINER(link, struct dv_agent_pod, waiting);

        next = link->next;
        if (dv_agent_pod_is_waiting(pod))
            see_change(pod);
        else
            dv_link_remove(link);
    }
}

void dv_agent_claims_changed(struct dv_agent *agent)
{
    if (!agent->is_closing)
        dv_task_post(&agent->claims_task, agent->loop, on_claims_task);
}

void dv_agent_health_changed(struct dv_agent *agent, const dv_str *pod_uids, size_t n_pod_uids)
{
    for (size_t i = 0; i < n_pod_uids; i++) {
        struct dv_agent_pod *pod = dv_map_get(&agent->pods, pod_uids[i]);

        if (!pod)
            continue;
        if (agent->options.runner)
            dv_runner_look(agent->options.runner, pod->uid);
        pod->is_dirty = true;
        dv_agent_pod_look(pod);
    }
}

/* ---- the runner ---- */

static void on_pod_changed(void *ctx, dv_str uid)
{
    struct dv_agent *agent = ctx;
    struct dv_agent_pod *pod = dv_map_get(&agent->pods, uid);

    if (!pod)
        return;
    pod->is_dirty = true;
    dv_agent_pod_look(pod);
}

static void on_runtime_changed(void *ctx)
{
    struct dv_agent *agent = ctx;
    const struct dv_map_entry *entry;

    dv_pods_set_runtime(agent->options.pods, dv_agent_has_runner(agent));
    agent->node.is_dirty = true;
    dv_agent_node_look(agent);
    for (size_t at = 0; (entry = dv_map_next(&agent->pods, &at)) != NULL;)
        dv_agent_pod_look(entry->value);
}

static bool is_wanted(void *ctx, dv_str uid)
{
    const struct dv_agent *agent = ctx;
    const struct dv_agent_pod *pod = dv_map_get(&agent->pods, uid);

    return !agent->is_synced || (pod && pod->object);
}

static void listen(struct dv_agent *agent)
{
    const struct dv_runner_listener listener = {.pod_changed = on_pod_changed,
                                                .runtime_changed = on_runtime_changed,
                                                .is_wanted = is_wanted,
                                                .ctx = agent};

    dv_pods_set_runtime(agent->options.pods, dv_agent_has_runner(agent));
    if (agent->options.runner)
        dv_runner_listen(agent->options.runner, &listener);
}

void dv_agent_devices_changed(struct dv_agent *agent)
{
    agent->node.is_dirty = true;
    dv_agent_node_look(agent);
    if (!agent->is_closing)
        dv_agent_waiting_check(agent);
}

/* Whether the pod waits because another one has its device: until that one has gone there is
 * nothing to keep prepared for it. */
static bool is_behind_rival(const struct dv_agent_pod *pod)
{
    return pod->state == DV_AGENT_PAUSING && pod->is_behind_rival;
}

bool dv_agent_wants(const struct dv_agent *agent, dv_str pod_uid)
{
    const struct dv_agent_pod *pod = dv_map_get(&agent->pods, pod_uid);
    const struct dv_api_pod *value = pod && pod->object ? pod->object->value : NULL;

    if (!agent->is_synced)
        return true;
    return value && !value->metadata.deletion_timestamp.is_set && pod->state != DV_AGENT_REFUSED &&
           pod->state != DV_AGENT_RELEASED && !pod->has_ended && !is_behind_rival(pod);
}

bool dv_agent_next_unadmitted(const struct dv_agent *agent, size_t *at,
                              struct dv_agent_unadmitted *unadmitted)
{
    const struct dv_map_entry *entry;

    while ((entry = dv_map_next(&agent->pods, at)) != NULL) {
        const struct dv_agent_pod *pod = entry->value;
        bool is_pausing = pod->state == DV_AGENT_PAUSING;

        if (!pod->object || !pod->reason || (!is_pausing && pod->state != DV_AGENT_REFUSED))
            continue;
        *unadmitted = (struct dv_agent_unadmitted){
            .uid = pod->uid,
            .namespace = pod->namespace,
            .name = pod->name,
            .reason = dv_str_from_c(pod->reason),
            .message = dv_str_from_c(pod->message),
            .since_wall_ns = pod->refused_ns,
            .retry_at_ms = is_pausing && dv_timer_is_set(&pod->timer) ? pod->timer.at_ms : 0,
            .is_final = !is_pausing,
        };
        return true;
    }
    return false;
}

bool dv_agent_find_name(const struct dv_agent *agent, dv_str uid, dv_str *namespace, dv_str *name)
{
    const struct dv_agent_pod *pod = dv_map_get(&agent->pods, uid);

    if (!pod)
        return false;
    *namespace = pod->namespace;
    *name = pod->name;
    return true;
}

struct dv_object *dv_agent_next_pod(const struct dv_agent *agent, size_t *at)
{
    const struct dv_map_entry *entry;

    while ((entry = dv_map_next(&agent->pods, at)) != NULL) {
        const struct dv_agent_pod *pod = entry->value;

        if (pod->object)
            return pod->object;
    }
    return NULL;
}

const struct dv_object *dv_agent_find_pod(const struct dv_agent *agent, dv_str namespace,
                                          dv_str name)
{
    const struct dv_object *pod;

    for (size_t at = 0; (pod = dv_agent_next_pod(agent, &at)) != NULL;)
        if (dv_str_eq(pod->meta->namespace, namespace) && dv_str_eq(pod->meta->name, name))
            return pod;
    return NULL;
}

/* ---- life ---- */

static void on_close_task(struct dv_task *task)
{
    struct dv_agent *agent = DV_CONTAINER(task, struct dv_agent, close_task);
    dv_closed_fn *closed = agent->closed;
    void *ctx = agent->closed_ctx;
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&agent->pods, &at)) != NULL;)
        if (!dv_agent_pod_is_idle(entry->value))
            return;
    if (!dv_agent_node_is_idle(agent) || agent->folder || !dv_agent_mirrors_are_idle(agent))
        return;
    for (size_t at = 0; (entry = dv_map_next(&agent->pods, &at)) != NULL;)
        dv_agent_pod_free(entry->value);
    dv_map_fini(&agent->pods);
    dv_agent_mirrors_free(agent);
    free(agent->node.api_key);
    dv_outside_free(agent->outside);
    free(agent);
    if (closed)
        closed(ctx);
}

void dv_agent_check_closed(struct dv_agent *agent)
{
    if (agent->is_closing)
        dv_task_post(&agent->close_task, agent->loop, on_close_task);
}

void dv_agent_close(struct dv_agent *agent, dv_closed_fn *closed, void *ctx)
{
    const struct dv_map_entry *entry;

    assert(!agent->is_closing);
    agent->is_closing = true;
    agent->closed = closed;
    agent->closed_ctx = ctx;
    dv_task_cancel(&agent->claims_task);
    if (agent->options.runner)
        dv_runner_listen(agent->options.runner, NULL);
    if (agent->view)
        dv_view_close(agent->view);
    if (agent->claims)
        dv_view_close(agent->claims);
    dv_agent_node_stop(agent);
    for (size_t at = 0; (entry = dv_map_next(&agent->pods, &at)) != NULL;)
        dv_agent_pod_stop(entry->value);
    dv_agent_mirrors_stop(agent);
    dv_agent_check_closed(agent);
}

/* Takes the pods that were admitted for the API before a restart; the API tells whether they are
 * still there. */
static void take_known(struct dv_agent *agent)
{
    struct dv_pod_view view;

    for (size_t at = 0; dv_pods_next(agent->options.pods, &at, &view);) {
        struct dv_agent_pod *pod;

        if (!dv_pod_origin_is_agents(view.spec->origin))
            continue;
        pod = dv_agent_pod_new(agent, view.spec->ref.uid, view.spec->ref.namespace,
                               view.spec->ref.name);
        pod->state = DV_AGENT_ADMITTED;
        pod->is_static = view.spec->origin == DV_POD_ORIGIN_FILE;
        pod->since_ns = view.since_wall_ns;
        pod->is_owned = view.is_owned;
        pod->is_dirty = true;
    }
}

struct dv_agent *dv_agent_open(struct dv_loop *loop, const struct dv_agent_options *options,
                               struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_agent *agent = DV_ALLOC(struct dv_agent);
    struct dv_view_options view = {
        .kind = dv_kind(DV_KIND_POD),
        .field_selector = dv_str_printf(arena, "spec.nodeName=%.*s", DV_FMT(options->node_name)),
        .changed = on_changed,
        .synced = on_synced,
        .ctx = agent,
    };

    agent->loop = loop;
    agent->options = *options;
    dv_map_init(&agent->pods);
    dv_map_init(&agent->mirrors);
    dv_list_init(&agent->waiting);
    agent->outside = dv_outside_new();
    take_known(agent);
    dv_agent_folder_open(agent);
    listen(agent);
    agent->view = dv_view_open(options->cluster, &view, err);
    if (agent->view && dv_agent_node_open(agent, err) &&
        (!options->watches_claims || dv_agent_claims_open(agent, err)))
        return agent;
    dv_agent_close(agent, NULL, NULL);
    return NULL;
}
