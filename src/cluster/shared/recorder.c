/* recorder.c - writes Events. The same note again is counted in the Event that is there: one write
 * for many notes that come meanwhile. Nobody waits for an Event, and nothing is kept beyond a
 * bound: what is too much is dropped and counted. */
#include "cluster/recorder.h"

#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/num.h"
#include "cluster/cluster.h"
#include "resource/resource.h"

#define MESSAGE_BYTES_MAX 1024u
/* How many Events are remembered, so that the same note again is counted in them. */
#define KNOWN_MAX 4096u
#define WAITING_MAX 1024u
#define RUNNING_MAX 32u
#define NOT_FOUND 404
#define NS_PER_S UINT64_C(1000000000)

/* An Event that is remembered, from its first note on. */
struct known {
    struct dv_recorder *recorder;
    struct dv_arena *arena;
    struct dv_link age;  /* in the list by age: the one that was noted longest ago is the first */
    struct dv_link work; /* in the list of those that wait, or of those that are being written */
    dv_str key;
    struct dv_api_event event;
    struct dv_request request;
    struct dv_arena *patch_arena;
    int64_t n_written; /* the count that was written; 0: the Event does not exist yet */
    int64_t n_writing;
    bool is_running;
};

struct dv_recorder {
    struct dv_cluster *cluster;
    struct dv_arena *arena;
    dv_str component;
    dv_str host;
    struct dv_map known; /* by subject with its part, reason and message */
    struct dv_list ages;
    struct dv_list waiting;
    struct dv_list running;
    size_t n_waiting;
    size_t n_running;
    uint64_t n_dropped;
    struct dv_task close_task;
    bool is_closing;
    dv_closed_fn *closed;
    void *closed_ctx;
};

static void pump(struct dv_recorder *recorder);

struct dv_note_subject dv_note_subject_of(const struct dv_object *object)
{
    const struct dv_api_version *version = &object->kind->versions[0];
    bool is_core = version->group.n == 0;

    return (struct dv_note_subject){
        .kind = object->kind->name,
        /* resource.k8s.io is the only other group whose objects get notes. */
        .api_version = is_core ? version->version : DV_STR("resource.k8s.io/v1"),
        .namespace = object->meta->namespace,
        .name = object->meta->name,
        .uid = object->meta->uid,
    };
}

/* ---- life ---- */

static void free_known(struct known *known)
{
    (void)dv_map_remove(&known->recorder->known, known->key);
    dv_link_remove(&known->age);
    dv_link_remove(&known->work);
    dv_arena_free(known->patch_arena);
    dv_arena_free(known->arena);
    free(known);
}

struct dv_recorder *dv_recorder_open(struct dv_cluster *cluster, dv_str component, dv_str host)
{
    struct dv_recorder *recorder = DV_ALLOC(struct dv_recorder);

    recorder->cluster = cluster;
    recorder->arena = dv_arena_new();
    recorder->component = dv_str_copy(component, recorder->arena);
    recorder->host = dv_str_copy(host, recorder->arena);
    dv_map_init(&recorder->known);
    dv_list_init(&recorder->ages);
    dv_list_init(&recorder->waiting);
    dv_list_init(&recorder->running);
    return recorder;
}

static void on_close_task(struct dv_task *task)
{
    struct dv_recorder *recorder = DV_CONTAINER(task, struct dv_recorder, close_task);
    dv_closed_fn *closed = recorder->closed;
    void *ctx = recorder->closed_ctx;

    if (recorder->n_running > 0)
        return;
    while (!dv_list_is_empty(&recorder->ages))
        free_known(DV_CONTAINER(recorder->ages.head.next, struct known, age));
    dv_map_fini(&recorder->known);
    dv_arena_free(recorder->arena);
    free(recorder);
    if (closed)
        closed(ctx);
}

void dv_recorder_close(struct dv_recorder *recorder, dv_closed_fn *closed, void *ctx)
{
    struct dv_link *link;

    assert(!recorder->is_closing);
    recorder->is_closing = true;
    recorder->closed = closed;
    recorder->closed_ctx = ctx;
    DV_LIST_EACH (&recorder->running, link) {
        dv_request_cancel(recorder->cluster, &DV_CONTAINER(link, struct known, work)->request);
    }
    dv_task_post(&recorder->close_task, recorder->cluster->loop, on_close_task);
}

/* ---- writing ---- */

static void drop(struct known *known)
{
    known->recorder->n_dropped++;
    free_known(known);
}

static void on_written(struct dv_request *request, const struct dv_api_status *failure)
{
    struct known *known = DV_CONTAINER(request, struct known, request);
    struct dv_recorder *recorder = known->recorder;
    bool was_there = known->n_written > 0;

    dv_link_remove(&known->work);
    known->is_running = false;
    recorder->n_running--;
    if (recorder->is_closing) {
        dv_task_post(&recorder->close_task, recorder->cluster->loop, on_close_task);
        return;
    }
    if (failure && was_there && failure->code == NOT_FOUND) {
        known->n_written = 0; /* somebody has deleted the Event: the next write makes a new one */
        dv_list_push(&recorder->waiting, &known->work);
        recorder->n_waiting++;
    } else if (failure) {
        dv_log(DV_LOG_WARN, "cluster: an event could not be written",
               DV_F_STR("event", known->event.metadata.name), DV_F_STR("why", failure->message));
        drop(known);
    } else {
        known->n_written = known->n_writing;
        if (known->event.count > known->n_written) { /* noted again while it was written */
            dv_list_push(&recorder->waiting, &known->work);
            recorder->n_waiting++;
        }
    }
    pump(recorder);
}

static void name_it(struct known *known)
{
    dv_str name = known->event.involved_object.name;

    known->event.metadata.name =
        dv_str_printf(known->arena, "%.*s.%016llx", DV_FMT(dv_str_slice(name, 0, 200)),
                      (unsigned long long)dv_random_u64());
}

static void write_one(struct known *known)
{
    struct dv_recorder *recorder = known->recorder;
    const struct dv_kind *kind = dv_kind(DV_KIND_EVENT);

    dv_arena_free(known->patch_arena);
    known->patch_arena = NULL;
    known->request = (struct dv_request){
        .kind = kind,
        .version = &kind->versions[0],
        .namespace = known->event.metadata.namespace,
        .field_manager = recorder->component,
        .is_untracked = true,
        .done = on_written,
    };
    if (known->n_written == 0) {
        name_it(known);
        known->request.verb = DV_VERB_CREATE;
        known->request.value = &known->event;
    } else {
        struct dv_api_event changed = {.count = known->event.count,
                                       .last_timestamp = known->event.last_timestamp};

        known->patch_arena = dv_arena_new();
        known->request.verb = DV_VERB_PATCH;
        known->request.patch_type = DV_PATCH_MERGE;
        known->request.name = known->event.metadata.name;
        known->request.patch = dv_encode_json(kind->versions[0].message, &changed, NULL, DV_STR(""),
                                              known->patch_arena);
    }
    known->n_writing = known->event.count;
    known->is_running = true;
    recorder->n_running++;
    dv_list_push(&recorder->running, &known->work);
    dv_request_start(recorder->cluster, &known->request);
}

static void pump(struct dv_recorder *recorder)
{
    struct dv_link *link;

    while (recorder->n_running < RUNNING_MAX && (link = dv_list_shift(&recorder->waiting))) {
        recorder->n_waiting--;
        write_one(DV_CONTAINER(link, struct known, work));
    }
}

/* ---- notes ---- */

/* Makes room for one more by forgetting the oldest. False: all that are remembered are being
 * written. */
static bool make_room(struct dv_recorder *recorder)
{
    struct dv_link *link;

    if (recorder->known.n < KNOWN_MAX)
        return true;
    DV_LIST_EACH (&recorder->ages, link) {
        struct known *known = DV_CONTAINER(link, struct known, age);

        if (dv_link_is_in(&known->work))
            continue;
        free_known(known);
        return true;
    }
    return false;
}

static struct known *add(struct dv_recorder *recorder, const struct dv_note_subject *subject,
                         bool is_warning, dv_str reason, dv_str message, dv_str key)
{
    struct known *known = DV_ALLOC(struct known);
    struct dv_arena *arena = dv_arena_new();
    dv_str namespace = subject->namespace.n > 0 ? subject->namespace : DV_STR("default");

    known->recorder = recorder;
    known->arena = arena;
    known->key = dv_str_copy(key, arena);
    known->event = (struct dv_api_event){
        .metadata.namespace = dv_str_copy(namespace, arena),
        .involved_object = {.kind = dv_str_copy(subject->kind, arena),
                            .namespace = dv_str_copy(subject->namespace, arena),
                            .name = dv_str_copy(subject->name, arena),
                            .uid = dv_str_copy(subject->uid, arena),
                            .api_version = dv_str_copy(subject->api_version, arena),
                            .field_path = dv_str_copy(subject->field_path, arena)},
        .reason = dv_str_copy(reason, arena),
        .message = dv_str_copy(message, arena),
        .source = {.component = recorder->component,                           .host = recorder->host        },
        .reporting_component = recorder->component,
        .type = is_warning ? DV_STR("Warning") : DV_STR("Normal"),
    };
    (void)dv_map_set(&recorder->known, known->key, known);
    return known;
}

void dv_recorder_note(struct dv_recorder *recorder, const struct dv_note_subject *subject,
                      bool is_warning, dv_str reason, dv_str message)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    uint64_t now_ns = dv_clock_wall_ns(dv_loop_clock(recorder->cluster->loop));
    struct dv_time now = {.seconds = (int64_t)(now_ns / NS_PER_S), .is_set = true};
    struct known *known;
    dv_str key;

    message = dv_str_slice(message, 0, MESSAGE_BYTES_MAX);
    key = dv_str_printf(arena, "%.*s/%.*s/%.*s/%.*s/%.*s/%.*s/%.*s", DV_FMT(subject->kind),
                        DV_FMT(subject->namespace), DV_FMT(subject->name), DV_FMT(subject->uid),
                        DV_FMT(subject->field_path), DV_FMT(reason), DV_FMT(message));
    known = recorder->is_closing ? NULL : dv_map_get(&recorder->known, key);
    if (!known &&
        (recorder->is_closing || recorder->n_waiting >= WAITING_MAX || !make_room(recorder))) {
        recorder->n_dropped++;
        return;
    }
    if (!known) {
        known = add(recorder, subject, is_warning, reason, message, key);
        known->event.first_timestamp = now;
    }
    known->event.count++;
    known->event.last_timestamp = now;
    dv_link_remove(&known->age);
    dv_list_push(&recorder->ages, &known->age);
    if (known->is_running || dv_link_is_in(&known->work))
        return; /* it is being written: the new count follows when that is done */
    dv_list_push(&recorder->waiting, &known->work);
    recorder->n_waiting++;
    pump(recorder);
}

uint64_t dv_recorder_n_dropped(const struct dv_recorder *recorder)
{
    return recorder->n_dropped;
}
