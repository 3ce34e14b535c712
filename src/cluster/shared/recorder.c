/* recorder.c - writes Events. The same note again is counted in the Event that is there: one write
 * for many notes that come meanwhile. Nobody waits for an Event. A burst waits here as keys, and so
 * does what the API has no time for; only beyond a bound that no burst should reach notes are
 * dropped and counted. */
#include "cluster/recorder.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/num.h"
#include "cluster/cluster.h"
#include "resource/patch.h"
#include "resource/resource.h"

#define MESSAGE_BYTES_MAX 1024u
/* How many Events are remembered, so that the same note again is counted in them. */
#define KNOWN_MAX 4096u
/* How many may wait: a key has some 300 bytes. */
#define WAITING_MAX 32768u
#define RUNNING_MAX 128u
/* The pause of all writes after the API had no time for one, and how often one is tried. */
#define BUSY_MS 1000u
#define TRIES_MAX 8u
#define JITTER_PER_MILLE 200u
#define NOT_FOUND 404
#define TOO_MANY 429

/* One object gets so many writes at once and then one in five minutes, as with the reference: what
 * a container does, such as failing a probe each second with other words, must not fill the API. */
#define BURST 25u
#define PAUSE_MS (5u * 60u * 1000u)
/* Objects whose writes are counted; one that takes another's place leaves that a new burst. */
#define N_SHARES 1024u

/* What an object has used up: the time at which all of it is given back. */
struct share {
    uint64_t hash; /* of the object */
    uint64_t whole_ms;
};

struct known;

/* The write of an Event. */
struct writing {
    struct known *known;
    struct dv_arena *arena;
    struct dv_request request;
    struct dv_api_event event;
};

/* An Event that is remembered, from its first note on. There are many, so little is kept. */
struct known {
    struct dv_recorder *recorder;
    struct dv_link age;  /* in the list by age: the one that was noted longest ago is the first */
    struct dv_link work; /* in the list of those that wait, or of those that are being written */
    struct writing *writing;        /* NULL: it is not being written */
    struct dv_note_subject subject; /* its texts, and those below, are in the key */
    dv_str reason;
    dv_str message;
    struct dv_time first;
    struct dv_time last;
    uint64_t name; /* the end of the Event's name */
    int64_t count;
    int64_t n_written; /* the count that was written; 0: the Event does not exist yet */
    int64_t n_writing;
    unsigned n_failures; /* in a row */
    bool is_warning;
    char key[]; /* as print_key made it: the message is its end */
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
    struct share shares[N_SHARES];
    struct dv_timer again; /* runs: nothing is written before it fires */
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

static dv_str key_of(const struct known *known)
{
    return (dv_str){known->key, (size_t)(known->message.p - known->key) + known->message.n};
}

static void free_writing(struct writing *writing)
{
    writing->known->writing = NULL;
    dv_arena_free(writing->arena);
    free(writing);
}

static void free_known(struct known *known)
{
    (void)dv_map_remove(&known->recorder->known, key_of(known));
    dv_link_remove(&known->age);
    dv_link_remove(&known->work);
    if (known->writing)
        free_writing(known->writing);
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
    dv_timer_cancel(&recorder->again);
    recorder->closed = closed;
    recorder->closed_ctx = ctx;
    DV_LIST_EACH (&recorder->running, link) {
        dv_request_cancel(recorder->cluster,
                          &DV_CONTAINER(link, struct known, work)->writing->request);
    }
    dv_task_post(&recorder->close_task, recorder->cluster->loop, on_close_task);
}

/* ---- writing ---- */

static void drop(struct known *known)
{
    known->recorder->n_dropped++;
    free_known(known);
}

static void wait(struct known *known)
{
    dv_list_push(&known->recorder->waiting, &known->work);
    known->recorder->n_waiting++;
}

static void on_again(struct dv_timer *timer)
{
    pump(DV_CONTAINER(timer, struct dv_recorder, again));
}

/* Whether the write is tried again: the API only had no time or no room for it. */
static bool try_again(struct known *known, const struct dv_api_status *failure)
{
    struct dv_recorder *recorder = known->recorder;
    struct dv_loop *loop = recorder->cluster->loop;

    if ((failure->code != TOO_MANY && failure->code < 500) || ++known->n_failures >= TRIES_MAX)
        return false;
    wait(known);
    dv_timer_start(&recorder->again, loop,
                   dv_loop_now_ms(loop) + dv_jitter(BUSY_MS, JITTER_PER_MILLE), on_again);
    return true;
}

static void on_written(struct dv_request *request, const struct dv_api_status *failure)
{
    struct writing *writing = DV_CONTAINER(request, struct writing, request);
    struct known *known = writing->known;
    struct dv_recorder *recorder = known->recorder;
    bool was_there = known->n_written > 0;

    dv_link_remove(&known->work);
    recorder->n_running--;
    if (recorder->is_closing) {
        dv_task_post(&recorder->close_task, recorder->cluster->loop, on_close_task);
        return;
    }
    if (failure && was_there && failure->code == NOT_FOUND) {
        known->n_written = 0; /* somebody has deleted the Event: the next write makes a new one */
        wait(known);
    } else if (failure && !try_again(known, failure)) {
        dv_log(DV_LOG_WARN, "cluster: an event could not be written",
               DV_F_STR("event", writing->event.metadata.name), DV_F_STR("why", failure->message));
        drop(known);
        pump(recorder);
        return;
    } else if (!failure) {
        known->n_failures = 0;
        known->n_written = known->n_writing;
        if (known->count > known->n_written) /* noted again while it was written */
            wait(known);
    }
    free_writing(writing);
    pump(recorder);
}

/* The whole Event. */
static struct dv_api_event event_of(const struct known *known, struct dv_arena *arena)
{
    const struct dv_recorder *recorder = known->recorder;
    const struct dv_note_subject *subject = &known->subject;

    return (struct dv_api_event){
        .metadata = {.namespace = subject->namespace.n > 0 ? subject->namespace : DV_STR("default"),
                     .name = dv_str_printf(arena,          "%.*s.%016llx",
                     DV_FMT(dv_str_slice(subject->name, 0, 200)),
                     (unsigned long long)known->name)},
        .involved_object = {.kind = subject->kind,
                     .namespace = subject->namespace,
                     .name = subject->name,
                     .uid = subject->uid,
                     .api_version = subject->api_version,
                     .field_path = subject->field_path},
        .reason = known->reason,
        .message = known->message,
        .source = {.component = recorder->component,                                               .host = recorder->host  },
        .reporting_component = recorder->component,
        .reporting_instance = recorder->host,
        .type = known->is_warning ? DV_STR("Warning") : DV_STR("Normal"),
        .count = known->count,
        .first_timestamp = known->first,
        .last_timestamp = known->last,
    };
}

/* Sets in the Event that is there what has changed since. */
static bool set_count(const struct dv_request *request, void *value, struct dv_arena *arena)
{
    const struct writing *writing = request->ctx;
    struct dv_api_event *event = value;

    (void)arena;
    event->count = writing->event.count;
    event->last_timestamp = writing->event.last_timestamp;
    return true;
}

static void write_one(struct known *known)
{
    struct dv_recorder *recorder = known->recorder;
    const struct dv_kind *kind = dv_kind(DV_KIND_EVENT);
    struct writing *writing = DV_ALLOC(struct writing);
    struct dv_request *request = &writing->request;

    if (known->n_written == 0)
        known->name = dv_random_u64();
    writing->known = known;
    writing->arena = dv_arena_new();
    writing->event = event_of(known, writing->arena);
    *request = (struct dv_request){
        .kind = kind,
        .version = &kind->versions[0],
        .namespace = writing->event.metadata.namespace,
        .field_manager = recorder->component,
        .is_untracked = true,
        .done = on_written,
    };
    if (known->n_written == 0) {
        request->verb = DV_VERB_CREATE;
        request->value = &writing->event;
    } else {
        struct dv_api_event changed = {.count = known->count, .last_timestamp = known->last};

        request->verb = DV_VERB_PATCH;
        request->patch_type = DV_PATCH_MERGE;
        request->name = writing->event.metadata.name;
        request->ctx = writing;
        if (recorder->cluster->is_embedded)
            request->change = set_count;
        else
            request->patch = dv_encode_patch(kind->versions[0].message, &changed, writing->arena);
    }
    known->writing = writing;
    known->n_writing = known->count;
    recorder->n_running++;
    dv_list_push(&recorder->running, &known->work);
    dv_request_start(recorder->cluster, request);
}

static void pump(struct dv_recorder *recorder)
{
    struct dv_link *link;

    while (recorder->n_running < RUNNING_MAX && !dv_timer_is_set(&recorder->again) &&
           (link = dv_list_shift(&recorder->waiting))) {
        recorder->n_waiting--;
        write_one(DV_CONTAINER(link, struct known, work));
    }
}

/* ---- notes ---- */

/* Forgets the oldest of those that are written when too many of them are remembered. One that is
 * passed over because it waits or is being written becomes the youngest, so that the next call does
 * not meet it again: a note costs little however many wait. */
static void make_room(struct dv_recorder *recorder)
{
    size_t n_work = recorder->n_waiting + recorder->n_running;

    while (recorder->known.n >= KNOWN_MAX + n_work) {
        struct known *known = DV_CONTAINER(recorder->ages.head.next, struct known, age);

        if (!dv_link_is_in(&known->work)) {
            free_known(known);
            continue;
        }
        dv_link_remove(&known->age);
        dv_list_push(&recorder->ages, &known->age);
    }
}

/* Takes the next text of a key: that of the same size as `text`. */
static dv_str part(dv_str text, const char **at)
{
    dv_str found = {*at, text.n};

    *at += text.n + 1;
    return found;
}

static struct known *add(struct dv_recorder *recorder, const struct dv_note_subject *subject,
                         bool is_warning, dv_str reason, dv_str message, dv_str key)
{
    struct known *known = dv_alloc(sizeof(*known) + key.n + 1);
    const char *at = known->key;

    memcpy(known->key, key.p, key.n);
    known->recorder = recorder;
    known->subject.kind = part(subject->kind, &at); /* in the order of `print_key` */
    known->subject.api_version = part(subject->api_version, &at);
    known->subject.namespace = part(subject->namespace, &at);
    known->subject.name = part(subject->name, &at);
    known->subject.uid = part(subject->uid, &at);
    known->subject.field_path = part(subject->field_path, &at);
    known->reason = part(reason, &at);
    known->message = part(message, &at);
    known->is_warning = is_warning;
    (void)dv_map_set(&recorder->known, key_of(known), known);
    return known;
}

/* A key has all that tells two Events apart. A text may have any bytes. */
static dv_str print_key(const struct dv_note_subject *subject, dv_str reason, dv_str message,
                        struct dv_arena *arena)
{
    const dv_str parts[] = {
        subject->kind,
        subject->api_version,
        subject->namespace,
        subject->name,
        subject->uid,
        subject->field_path,
        reason,
        message,
    };
    size_t n = DV_COUNT(parts) - 1;
    char *key;
    char *at;

    for (size_t i = 0; i < DV_COUNT(parts); i++)
        n += parts[i].n;
    at = key = DV_NEW_ARRAY(arena, char, n);
    for (size_t i = 0; i < DV_COUNT(parts); i++) {
        if (i > 0)
            *at++ = '/';
        if (parts[i].n > 0)
            memcpy(at, parts[i].p, parts[i].n);
        at += parts[i].n;
    }
    return (dv_str){key, n};
}

/* A message that can be read again: containers say anything, and it is cut between characters. */
static dv_str clean(dv_str message, struct dv_arena *arena)
{
    char *text;
    size_t n = 0;

    if (message.n <= MESSAGE_BYTES_MAX && dv_str_is_utf8(message))
        return message;
    text = dv_arena_alloc(arena, MESSAGE_BYTES_MAX, 1);
    while (message.n > 0) {
        size_t n_char = dv_str_utf8_char(message);
        dv_str one = n_char > 0 ? dv_str_slice(message, 0, n_char) : DV_STR("\xef\xbf\xbd");

        if (n + one.n > MESSAGE_BYTES_MAX)
            break;
        memcpy(text + n, one.p, one.n);
        n += one.n;
        message = dv_str_slice(message, n_char > 0 ? n_char : 1, message.n);
    }
    return (dv_str){text, n};
}

/* Whether one more Event of the object may be written; if so, that is counted. */
static bool take_share(struct dv_recorder *recorder, const struct dv_note_subject *subject,
                       struct dv_arena *arena)
{
    uint64_t now_ms = dv_loop_now_ms(recorder->cluster->loop);
    struct dv_note_subject whole = *subject;
    struct share *share;
    uint64_t hash;
    uint64_t used_ms;

    whole.field_path = DV_STR("");
    hash = dv_hash(print_key(&whole, DV_STR(""), DV_STR(""), arena));
    share = &recorder->shares[hash % N_SHARES];
    if (share->hash != hash)
        *share = (struct share){.hash = hash};
    used_ms = share->whole_ms > now_ms ? share->whole_ms - now_ms : 0;
    if (used_ms > (BURST - 1) * (uint64_t)PAUSE_MS)
        return false;
    share->whole_ms = now_ms + used_ms + PAUSE_MS;
    return true;
}

void dv_recorder_note(struct dv_recorder *recorder, const struct dv_note_subject *subject,
                      bool is_warning, dv_str reason, dv_str message)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_time now =
        dv_api_seconds_from_ns(dv_clock_wall_ns(dv_loop_clock(recorder->cluster->loop)));
    struct known *known;
    bool may_write;
    dv_str key;

    message = clean(message, arena);
    key = print_key(subject, reason, message, arena);
    known = recorder->is_closing ? NULL : dv_map_get(&recorder->known, key);
    may_write = take_share(recorder, subject, arena);
    if (!known && (!may_write || recorder->is_closing || recorder->n_waiting >= WAITING_MAX)) {
        recorder->n_dropped++;
        return;
    }
    if (!known) {
        make_room(recorder);
        known = add(recorder, subject, is_warning, reason, message, key);
        known->first = now;
    }
    known->count++;
    known->last = now;
    dv_link_remove(&known->age);
    dv_list_push(&recorder->ages, &known->age);
    if (dv_link_is_in(&known->work) || !may_write)
        return; /* it waits or is being written, or is written later: with the new count */
    wait(known);
    pump(recorder);
}

uint64_t dv_recorder_n_dropped(const struct dv_recorder *recorder)
{
    return recorder->n_dropped;
}
