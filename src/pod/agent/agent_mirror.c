/* agent_mirror.c - static pods: taken from their folder, and shown in the API by mirrors.
 *
 * The pods of the folder become the agent's like those of the API, with objects that are made of
 * what the file says and, once there is a mirror, of the status that it has. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/log.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "loop/loop.h"
#include "pod/agent.h"
#include "pod/agent/agent_pause.h"
#include "pod/agent/agent_state.h"
#include "pod/agent/agent_step.h"
#include "pod/agent/mirror_step.h"
#include "pod/pod.h"
#include "pod/static_pods.h"
#include "resource/references.h"
#include "resource/resource.h"

#define NOT_FOUND 404
#define PAUSE_JITTER_PER_MILLE 200u

/* ---- who is who ---- */

static bool has_name(const struct dv_agent_pod *pod, dv_str namespace, dv_str name)
{
    return pod->is_static && dv_str_eq(pod->namespace, namespace) && dv_str_eq(pod->name, name);
}

/* The static pod of that name; the one that has been here longest, when a file was changed. */
static struct dv_agent_pod *find_pod(const struct dv_agent *agent, dv_str namespace, dv_str name)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&agent->pods, &at)) != NULL;)
        if (has_name(entry->value, namespace, name))
            return entry->value;
    return NULL;
}

bool dv_agent_pod_is_behind(const struct dv_agent_pod *pod)
{
    return pod->is_static && find_pod(pod->agent, pod->namespace, pod->name) != pod;
}

static dv_str hash_of(const struct dv_object *mirror)
{
    const struct dv_str_entry *entry = dv_entry_find(
        mirror->meta->annotations, mirror->meta->n_annotations, DV_STR(DV_MIRROR_ANNOTATION));

    return entry ? entry->value : DV_STR("");
}

static struct dv_agent_mirror *find_mirror(const struct dv_agent *agent, dv_str namespace,
                                           dv_str name)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    return dv_map_get(&agent->mirrors,
                      dv_str_printf(arena, "%.*s/%.*s", DV_FMT(namespace), DV_FMT(name)));
}

static struct dv_agent_mirror *mirror_of(struct dv_agent *agent, dv_str namespace, dv_str name)
{
    struct dv_agent_mirror *mirror = find_mirror(agent, namespace, name);
    size_t n = namespace.n + 1 + name.n;

    if (mirror)
        return mirror;
    mirror = dv_alloc(sizeof(*mirror) + n);
    memcpy(mirror->text, namespace.p, namespace.n);
    mirror->text[namespace.n] = '/';
    memcpy(mirror->text + namespace.n + 1, name.p, name.n);
    mirror->namespace = (dv_str){mirror->text, namespace.n};
    mirror->name = (dv_str){mirror->text + namespace.n + 1, name.n};
    mirror->agent = agent;
    (void)dv_map_set(&agent->mirrors, (dv_str){mirror->text, n}, mirror); /* there was none */
    return mirror;
}

const struct dv_object *dv_agent_pod_shown(const struct dv_agent_pod *pod)
{
    const struct dv_agent_mirror *mirror;

    if (!pod->is_static)
        return pod->object;
    mirror = find_mirror(pod->agent, pod->namespace, pod->name);
    return mirror && mirror->object && dv_str_eq(hash_of(mirror->object), pod->uid) ? mirror->object
                                                                                    : NULL;
}

/* ---- the pod's object ---- */

/* Makes the pod's object of what its file says and the status that its mirror has. */
static void compose(struct dv_agent_pod *pod)
{
    const struct dv_object *shown = dv_agent_pod_shown(pod);
    struct dv_object *object;
    struct dv_api_pod value;

    if (!pod->file) {
        dv_agent_pod_set_object(pod, NULL);
        return;
    }
    value = *(const struct dv_api_pod *)pod->file->value;
    if (shown) {
        value.status = ((const struct dv_api_pod *)shown->value)->status;
        value.metadata.generation = shown->meta->generation;
    }
    object = dv_object_new(dv_kind(DV_KIND_POD), &value);
    dv_agent_pod_set_object(pod, object);
    dv_object_unref(object);
}

/* ---- one mirror ---- */

static void look(struct dv_agent_mirror *mirror);

static void on_timer(struct dv_timer *timer)
{
    look(DV_CONTAINER(timer, struct dv_agent_mirror, timer));
}

static void on_written(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_agent_mirror *mirror = DV_CONTAINER(request, struct dv_agent_mirror, write.request);
    struct dv_agent *agent = mirror->agent;
    bool has_failed = failure && failure->code != NOT_FOUND;
    uint64_t now_ms = dv_loop_now_ms(agent->loop);

    if (has_failed && !agent->is_closing)
        dv_log(DV_LOG_WARN, "pod: the API does not take the mirror of a static pod",
               DV_F_STR("namespace", mirror->namespace), DV_F_STR("pod", mirror->name),
               DV_F_STR("why", failure->message));
    dv_agent_write_end(&mirror->write);
    if (agent->is_closing) {
        dv_agent_check_closed(agent);
        return;
    }
    if (has_failed)
        dv_timer_start(
            &mirror->timer, agent->loop,
            now_ms + dv_jitter(dv_agent_pause_fail(&mirror->pause, now_ms, DV_AGENT_PAUSE_MAX_MS),
                               PAUSE_JITTER_PER_MILLE),
            on_timer);
    else
        mirror->pause = (struct dv_agent_pause){0};
    look(mirror);
}

static void address(struct dv_agent_mirror *mirror, enum dv_verb verb)
{
    struct dv_request *request = &mirror->write.request;

    request->verb = verb;
    request->kind = dv_kind(DV_KIND_POD);
    request->namespace = mirror->namespace;
    request->name = mirror->name;
    request->done = on_written;
}

static const struct dv_object *node_of(const struct dv_agent *agent)
{
    return agent->node.view ? dv_view_get(agent->node.view, DV_STR(""), agent->options.node_name)
                            : NULL;
}

/* The mirror as it is created: the pod, marked, and owned by the Node, with which it goes. */
static struct dv_api_pod *make(const struct dv_agent_pod *pod, const struct dv_object *node,
                               struct dv_arena *arena)
{
    static const bool is_controller = true;
    struct dv_api_pod *value = DV_NEW(arena, struct dv_api_pod);
    struct dv_api_object_meta *meta = &value->metadata;

    dv_message_copy(&dv_message_pod, pod->file->value, arena, value);
    dv_entry_set(&meta->annotations, &meta->n_annotations, DV_STR(DV_MIRROR_ANNOTATION), pod->uid,
                 arena);
    meta->uid = DV_STR("");
    meta->owner_references = DV_NEW(arena, struct dv_api_owner_reference);
    meta->n_owner_references = 1;
    meta->owner_references[0] = (struct dv_api_owner_reference){
        .api_version = DV_STR("v1"),
        .kind = DV_STR("Node"),
        .name = node->meta->name,
        .uid = node->meta->uid,
        .controller = &is_controller,
    };
    value->status = (struct dv_api_pod_status){0};
    return value;
}

static void create(struct dv_agent_mirror *mirror, const struct dv_agent_pod *pod)
{
    if (!dv_agent_write_begin(&mirror->write))
        return;
    address(mirror, DV_VERB_CREATE);
    mirror->write.request.value = make(pod, node_of(mirror->agent), mirror->write.arena);
    dv_request_start(mirror->agent->options.cluster, &mirror->write.request);
}

static void remove_it(struct dv_agent_mirror *mirror)
{
    static const int64_t at_once = 0;
    struct dv_api_delete_options *options;

    if (!dv_agent_write_begin(&mirror->write))
        return;
    options = DV_NEW(mirror->write.arena, struct dv_api_delete_options);
    options->grace_period_seconds = &at_once;
    options->preconditions = DV_NEW(mirror->write.arena, struct dv_api_preconditions);
    options->preconditions->uid = dv_str_copy(mirror->object->meta->uid, mirror->write.arena);
    address(mirror, DV_VERB_DELETE);
    mirror->write.request.delete_options = options;
    dv_request_start(mirror->agent->options.cluster, &mirror->write.request);
}

static void free_mirror(struct dv_agent_mirror *mirror)
{
    dv_timer_cancel(&mirror->timer);
    dv_task_cancel(&mirror->task);
    dv_object_unref(mirror->object);
    dv_arena_free(mirror->write.arena);
    free(mirror);
}

static void step(struct dv_task *task)
{
    struct dv_agent_mirror *mirror = DV_CONTAINER(task, struct dv_agent_mirror, task);
    const struct dv_agent_pod *pod = find_pod(mirror->agent, mirror->namespace, mirror->name);
    struct dv_mirror_facts facts = {
        .is_settled = mirror->agent->is_synced,
        .has_pod = pod != NULL,
        .is_wanted = pod && pod->file,
        .is_there = mirror->object != NULL,
        .is_same = pod && mirror->object && dv_str_eq(hash_of(mirror->object), pod->uid),
        .is_deleting = mirror->object && mirror->object->meta->deletion_timestamp.is_set,
        .is_writing = mirror->write.is_running,
        .is_pausing = dv_timer_is_set(&mirror->timer),
        .has_node = node_of(mirror->agent) != NULL,
    };

    switch (dv_mirror_next(&facts)) {
    case DV_MIRROR_WAIT:
        return;
    case DV_MIRROR_CREATE:
        assert(pod); /* it is wanted */
        create(mirror, pod);
        return;
    case DV_MIRROR_REMOVE:
        remove_it(mirror);
        return;
    case DV_MIRROR_FORGET:
        (void)dv_map_remove(&mirror->agent->mirrors,
                            (dv_str){mirror->text, mirror->namespace.n + 1 + mirror->name.n});
        free_mirror(mirror);
        return;
    }
}

static void look(struct dv_agent_mirror *mirror)
{
    if (!mirror->agent->is_closing)
        dv_task_post(&mirror->task, mirror->agent->loop, step);
}

void dv_agent_mirrors_look(struct dv_agent *agent)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&agent->mirrors, &at)) != NULL;)
        look(entry->value);
}

/* ---- what happens ---- */

void dv_agent_mirror_changed(struct dv_agent *agent, struct dv_object *old, struct dv_object *now)
{
    const struct dv_object *known = now ? now : old;
    struct dv_agent_mirror *mirror = mirror_of(agent, known->meta->namespace, known->meta->name);
    struct dv_agent_pod *pod = find_pod(agent, mirror->namespace, mirror->name);
    bool is_other =
        !now || !mirror->object || !dv_str_eq(mirror->object->meta->uid, now->meta->uid);

    dv_object_unref(mirror->object);
    mirror->object = now ? dv_object_ref(now) : NULL;
    if (pod && is_other) { /* a new one shows nothing yet */
        pod->written = 0;
        pod->is_dirty = true;
    }
    if (pod && pod->file)
        compose(pod);
    look(mirror);
}

void dv_agent_mirror_forget(struct dv_agent *agent, const struct dv_agent_pod *gone)
{
    struct dv_agent_pod *next = find_pod(agent, gone->namespace, gone->name);

    if (next)
        dv_agent_pod_look(next);
    look(mirror_of(agent, gone->namespace, gone->name));
}

/* ---- the folder ---- */

static struct dv_agent_pod *pod_of(struct dv_agent *agent, const struct dv_object *file)
{
    struct dv_agent_pod *pod = dv_map_get(&agent->pods, file->meta->uid);

    if (pod)
        return pod->is_static ? pod : NULL;
    pod = dv_agent_pod_new(agent, file->meta->uid, file->meta->namespace, file->meta->name);
    pod->is_static = true;
    if (dv_pods_has_ended(agent->options.pods, pod->uid)) { /* before a restart */
        pod->state = DV_AGENT_RELEASED;
        pod->has_ended = true;
        pod->is_dirty = true;
    }
    return pod;
}

static void set_file(struct dv_agent_pod *pod, struct dv_object *file)
{
    dv_object_unref(pod->file);
    pod->file = file ? dv_object_ref(file) : NULL;
    compose(pod);
    look(mirror_of(pod->agent, pod->namespace, pod->name));
}

static void on_file_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_agent *agent = ctx;
    struct dv_agent_pod *gone = old && (!now || !dv_str_eq(old->meta->uid, now->meta->uid))
                                    ? dv_map_get(&agent->pods, old->meta->uid)
                                    : NULL;
    struct dv_agent_pod *pod = now ? pod_of(agent, now) : NULL;

    if (gone && gone->is_static)
        set_file(gone, NULL);
    if (pod)
        set_file(pod, now);
    else if (now) /* a uid that somebody wrote into the file */
        dv_log(DV_LOG_WARN, "pod: a static pod has the uid of a pod of the API, and is left out",
               DV_F_STR("pod", now->meta->name), DV_F_STR("uid", now->meta->uid));
}

static void on_folder_read(void *ctx)
{
    struct dv_agent *agent = ctx;

    agent->has_file_pods = true;
    dv_agent_settle(agent);
}

static void on_faulty(void *ctx, const dv_str *texts, size_t n_texts)
{
    const struct dv_agent *agent = ctx;

    if (agent->options.faulty)
        agent->options.faulty(agent->options.ctx, texts, n_texts);
}

void dv_agent_folder_open(struct dv_agent *agent)
{
    const struct dv_static_pods_options options = {
        .dir = agent->options.pod_manifest_path,
        .node_name = agent->options.node_name,
        .changed = on_file_changed,
        .synced = on_folder_read,
        .faulty = on_faulty,
        .ctx = agent,
    };

    if (options.dir.n > 0)
        agent->folder = dv_static_pods_open(agent->loop, &options);
    else
        agent->has_file_pods = true; /* static pods from before are given back */
}

/* ---- the end ---- */

static void on_folder_closed(void *ctx)
{
    struct dv_agent *agent = ctx;

    agent->folder = NULL;
    dv_agent_check_closed(agent);
}

void dv_agent_mirrors_stop(struct dv_agent *agent)
{
    const struct dv_map_entry *entry;

    if (agent->folder)
        dv_static_pods_close(agent->folder, on_folder_closed, agent);
    for (size_t at = 0; (entry = dv_map_next(&agent->mirrors, &at)) != NULL;) {
        struct dv_agent_mirror *mirror = entry->value;

        dv_timer_cancel(&mirror->timer);
        dv_task_cancel(&mirror->task);
        if (mirror->write.is_running)
            dv_request_cancel(agent->options.cluster, &mirror->write.request);
    }
}

bool dv_agent_mirrors_are_idle(const struct dv_agent *agent)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&agent->mirrors, &at)) != NULL;)
        if (((const struct dv_agent_mirror *)entry->value)->write.is_running)
            return false;
    return true;
}

void dv_agent_mirrors_free(struct dv_agent *agent)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&agent->mirrors, &at)) != NULL;)
        free_mirror(entry->value);
    dv_map_fini(&agent->mirrors);
}
