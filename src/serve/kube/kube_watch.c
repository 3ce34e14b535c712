/* kube_watch.c - streams of changes. A watch is a call whose answer has no end: a line for each
 * change, as the engine tells it. A client that does not read gets no more until it does; when the
 * history has moved past it meanwhile, the stream ends with an error that makes it list anew. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/metric.h"
#include "base/num.h"
#include "cluster/embedded.h"
#include "resource/custom.h"
#include "resource/status.h"
#include "rest/rest.h"
#include "serve/kube/kube_call.h"
#include "serve/kube/kube_watch_share.h"
#include "serve/tokens.h"

/* A watcher with more unsent bytes than this waits. An object has at most 3 MiB, and a stream takes
 * 4 MiB. */
#define UNSENT_BYTES_MAX (256u << 10)
#define EVENT_BYTES_MAX (64u << 20)
/* How long a watch lasts that sets no time: clients begin a new one, but not all at the same
 * time. */
#define LONG_MS UINT64_C(1800000)
/* A longer time than a week is taken as a week. */
#define TIMEOUT_S_MAX UINT64_C(604800)
#define BOOKMARK_MS UINT64_C(60000)
/* The limit for a node or a driver: one watch for each of its kinds, and for each pod's claims and
 * secrets. */
#define USER_WATCHES_MAX 256u

struct watch {
    struct dv_kube *kube;
    const struct dv_kind *kind;
    struct dv_kube_call *call; /* freed when the stream has ended */
    struct dv_rest_stream stream;
    struct dv_watcher watcher;
    struct dv_timer timer;
    struct dv_token_use use;   /* use of the token that the watch was begun with */
    struct dv_watch_part part; /* its part in what the user's watches may hold */
    struct dv_link link;
    uint64_t told; /* the version of the last event that was sent */
    uint64_t end_ms;
    uint64_t bookmark_ms;     /* when the next bookmark is due; 0: none are wanted */
    bool has_columns;         /* the next event has the columns of the table */
    bool is_over;             /* nothing more is sent */
    struct dv_custom *custom; /* a reference that was the call's, or NULL */
};

static const char added[] = "ADDED";
static const char modified[] = "MODIFIED";
static const char deleted[] = "DELETED";

static struct watch *watch_of(struct dv_watcher *watcher)
{
    return DV_CONTAINER(watcher, struct watch, watcher);
}

/* ---- the end ---- */

static void finish(struct watch *watch)
{
    if (watch->is_over)
        return;
    watch->is_over = true;
    dv_watcher_stop(&watch->watcher);
    dv_timer_cancel(&watch->timer);
    dv_token_use_end(&watch->use);
    dv_rest_stream_finish(&watch->stream);
}

static struct dv_gauge *gauge_of(const struct watch *watch)
{
    struct dv_family *family = watch->kube->open_watches;

    return family ? dv_family_gauge(family, &watch->kind->plural) : NULL;
}

/* ---- pace ---- */

static void hold_all(const struct dv_watch_share *share)
{
    struct dv_link *link;

    DV_LIST_EACH (&share->watches, link)
        dv_watcher_pause(&DV_CONTAINER(link, struct watch, part.link)->watcher);
}

/* Lets the user's other watches go on; those that have much unread themselves go on when it is
 * read. */
static void let_go_on(const struct dv_watch_share *share)
{
    struct dv_link *link;

    DV_LIST_EACH (&share->watches, link) {
        struct watch *watch = DV_CONTAINER(link, struct watch, part.link);

        if (watch->part.unsent_bytes <= UNSENT_BYTES_MAX)
            dv_watcher_resume(&watch->watcher);
    }
}

/* Decides whether the watch goes on, after something was sent or has been read. */
static void keep_pace(struct watch *watch)
{
    size_t unsent = dv_rest_stream_unsent_bytes(&watch->stream);
    bool is_behind = unsent > UNSENT_BYTES_MAX;

    switch (dv_watch_part_note(&watch->part, unsent)) {
    case DV_PACE_FREE:
        break;
    case DV_PACE_ONE_BY_ONE:
        is_behind |= unsent > 0;
        break;
    case DV_PACE_STOP:
        hold_all(watch->part.share);
        return;
    case DV_PACE_GO:
        let_go_on(watch->part.share);
        break;
    }
    if (is_behind || watch->part.share->is_full)
        dv_watcher_pause(&watch->watcher);
    else
        dv_watcher_resume(&watch->watcher);
}

static void leave_share(struct watch *watch)
{
    const struct dv_watch_share *share = watch->part.share;

    if (dv_watch_part_leave(&watch->part))
        let_go_on(share);
}

static void on_ended(struct dv_rest_stream *stream, const struct dv_err *err)
{
    struct watch *watch = DV_CONTAINER(stream, struct watch, stream);
    struct dv_kube *kube = watch->kube;
    struct dv_gauge *gauge = gauge_of(watch);

    (void)err; /* a client that is gone is not worth a log line */
    dv_watcher_stop(&watch->watcher);
    dv_timer_cancel(&watch->timer);
    dv_token_use_end(&watch->use);
    leave_share(watch);
    dv_link_remove(&watch->link);
    dv_custom_unref(watch->custom);
    kube->n_watches--;
    if (gauge)
        dv_gauge_add(gauge, -1);
    free(watch);
    dv_kube_release(kube);
}

/* ---- sending ---- */

static void send(struct watch *watch, dv_str bytes)
{
    struct dv_err err;

    if (watch->is_over)
        return;
    if (!dv_rest_stream_send(&watch->stream, bytes, &err)) {
        /* The stream takes no more; it ends, because the client must not miss an event
         * unnoticed. */
        watch->is_over = true;
        dv_watcher_stop(&watch->watcher);
        dv_timer_cancel(&watch->timer);
        dv_rest_stream_cancel(&watch->stream);
    } else {
        keep_pace(watch);
    }
}

static void on_room(struct dv_rest_stream *stream)
{
    struct watch *watch = DV_CONTAINER(stream, struct watch, stream);

    if (!watch->is_over)
        keep_pace(watch);
}

static void send_bookmark(struct watch *watch, uint64_t version, bool is_initial_end)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct dv_buf text;

    if (!version)
        return;
    dv_buf_init(&text, EVENT_BYTES_MAX);
    dv_render_bookmark(&watch->call->render, version, is_initial_end, watch->has_columns, scratch,
                       &text);
    watch->has_columns = false;
    send(watch, dv_buf_str(&text));
    dv_buf_fini(&text);
}

static void send_error(struct watch *watch, const struct dv_api_status *status)
{
    struct dv_buf text;

    dv_buf_init(&text, EVENT_BYTES_MAX);
    dv_render_error_event(watch->call->render.rendering.media, status, &text);
    send(watch, dv_buf_str(&text));
    dv_buf_fini(&text);
}

/* Sends the first row of a table, which has the columns. It cannot be shared with other
 * watchers. */
static void send_with_columns(struct watch *watch, const char *type, const struct dv_object *object)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct dv_buf text;

    dv_buf_init(&text, EVENT_BYTES_MAX);
    dv_render_event(&watch->call->render, type, object, true, scratch, &text);
    watch->has_columns = false;
    send(watch, dv_buf_str(&text));
    dv_buf_fini(&text);
}

static void on_event(struct dv_watcher *watcher, enum dv_object_event event,
                     struct dv_object *object, uint64_t version)
{
    struct watch *watch = watch_of(watcher);
    struct dv_kube_call *call = watch->call;
    const char *type = event == DV_OBJECT_ADDED      ? added
                       : event == DV_OBJECT_MODIFIED ? modified
                                                     : deleted;

    watch->told = version;
    if (event == DV_OBJECT_INITIAL_END) {
        if (watch->bookmark_ms)
            send_bookmark(watch, version, true);
        return;
    }
    call->render.now = dv_kube_now(watch->kube);
    if (watch->has_columns)
        send_with_columns(watch, type, object);
    else
        send(watch, dv_event_cache_get(dv_kube_cache(watch->kube), &call->render, type, object));
}

static void on_closed(struct dv_watcher *watcher)
{
    struct watch *watch = watch_of(watcher);
    uint64_t current = dv_embedded_version(watch->kube->options.embedded);

    if (watcher->is_expired)
        send_error(watch,
                   dv_status_expired(watch->call->arena, "too old resource version: %llu (%llu)",
                                     (unsigned long long)watch->told, (unsigned long long)current));
    finish(watch);
}

/* Ends the watch: the holder of a revoked token sees nothing from now on, and is told why. */
static void on_token_ended(struct dv_token_use *use)
{
    struct watch *watch = DV_CONTAINER(use, struct watch, use);

    send_error(watch, dv_status_unauthorized(watch->call->arena));
    finish(watch);
}

/* ---- time ---- */

static void set_timer(struct watch *watch);

/* The version that the client has seen all changes up to. */
static uint64_t version_of(const struct watch *watch)
{
    return watch->call->route.is_empty ? dv_embedded_version(watch->kube->options.embedded)
                                       : dv_watcher_version(&watch->watcher);
}

static void on_time(struct dv_timer *timer)
{
    struct watch *watch = DV_CONTAINER(timer, struct watch, timer);
    uint64_t now_ms = dv_loop_now_ms(watch->kube->options.loop);
    uint64_t every_ms = watch->kube->options.bookmark_ms;

    if (watch->bookmark_ms && (now_ms >= watch->bookmark_ms || now_ms >= watch->end_ms)) {
        watch->bookmark_ms = now_ms + (every_ms ? every_ms : BOOKMARK_MS);
        send_bookmark(watch, version_of(watch), false);
    }
    if (now_ms >= watch->end_ms)
        finish(watch);
    else if (!watch->is_over)
        set_timer(watch);
}

static void set_timer(struct watch *watch)
{
    uint64_t at_ms = watch->end_ms;

    if (watch->bookmark_ms && watch->bookmark_ms < at_ms)
        at_ms = watch->bookmark_ms;
    dv_timer_start(&watch->timer, watch->kube->options.loop, at_ms, on_time);
}

/* ---- the start ---- */

/* Finds the version that the watch begins at. False: the call has been answered. */
static bool find_since(struct dv_kube_call *call, const struct dv_list_options *options,
                       struct dv_watcher *watcher)
{
    uint64_t current = dv_embedded_version(call->kube->options.embedded);
    dv_str text = call->query.resource_version;
    uint64_t version = 0;

    if (text.n && !dv_str_to_u64(text, &version)) {
        dv_kube_reply_status(call, dv_status_new(500, DV_STR_NONE, call->arena,
                                                 "resourceVersion: Invalid value: \"%.*s\": "
                                                 "strconv.ParseUint: parsing \"%.*s\": invalid "
                                                 "syntax",
                                                 DV_FMT(text), DV_FMT(text)));
        return false;
    }
    if (options->sends_initial && version > current) {
        dv_kube_reply_status(call, dv_status_too_large_version(version, current, call->arena));
        return false;
    }
    watcher->wants_initial_end =
        options->sends_initial ||
        (!options->has_send_initial && options->allows_bookmarks && text.n && version == 0);
    if (options->sends_initial)
        watcher->since = 0;
    else if (options->has_send_initial && version == 0)
        watcher->since = current;
    else
        watcher->since = version;
    return true;
}

static void begin_stream(struct watch *watch)
{
    struct dv_kube_call *call = watch->call;
    struct dv_kube *kube = call->kube;
    struct dv_gauge *gauge = gauge_of(watch);

    dv_kube_add_fields(call, call->render.rendering.media == DV_MEDIA_PROTOBUF
                                 ? "application/vnd.kubernetes.protobuf;stream=watch"
                                 : "application/json");
    dv_kube_count(call, 200);
    watch->custom = call->custom;
    call->custom = NULL;
    watch->stream.room = on_room;
    watch->stream.ended = on_ended;
    dv_list_push(&kube->watches, &watch->link);
    dv_watch_part_join(&watch->part, &kube->watch_shares, call->user.username);
    if (watch->part.share->is_full)
        dv_watcher_pause(&watch->watcher);
    kube->n_watches++;
    if (gauge)
        dv_gauge_add(gauge, 1);
    dv_rest_stream_start(&watch->stream, call->rest, 200);
}

static void fill_watcher(struct watch *watch)
{
    struct dv_kube_call *call = watch->call;
    const struct dv_route *route = &call->route;
    struct dv_watcher *watcher = &watch->watcher;

    watcher->kind = route->kind;
    watcher->version = route->api_version;
    watcher->namespace = route->kind->is_namespaced ? route->namespace : DV_STR_NONE;
    watcher->label_selector = call->query.label_selector;
    watcher->field_selector = call->query.field_selector;
    watcher->event = on_event;
    watcher->closed = on_closed;
}

/* Checks how many watches a node or a driver has. Other users may have as many as they have
 * connections. False: the call has been answered. */
static bool check_share(struct dv_kube_call *call)
{
    dv_str node, driver;
    size_t n = dv_watch_shares_n(&call->kube->watch_shares, call->user.username);

    if (n < USER_WATCHES_MAX || dv_auth_scope(&call->user, &node, &driver) == DV_SCOPE_ADMIN)
        return true;
    dv_kube_reply_status(
        call, dv_status_too_many_requests(1, call->arena,
                                          "user \"%.*s\" has %zu watches open, which is all it may "
                                          "have: end some of them",
                                          DV_FMT(call->user.username), n));
    return false;
}

/* Begins to tell what happens. Of a kind without objects nothing does: there all has been told at
 * once. */
static bool start_watcher(struct watch *watch, struct dv_api_status **failure)
{
    return watch->call->route.is_empty ||
           dv_watcher_start(watch->kube->options.embedded, &watch->watcher, watch->call->arena,
                            failure);
}

static void tell_empty(struct watch *watch)
{
    if (watch->call->route.is_empty && watch->watcher.wants_initial_end && watch->bookmark_ms)
        send_bookmark(watch, version_of(watch), true);
}

void dv_kube_watch(struct dv_kube_call *call, const struct dv_list_options *options)
{
    struct dv_kube *kube = call->kube;
    struct watch *watch;
    uint64_t now_ms = dv_loop_now_ms(kube->options.loop);
    uint64_t every_ms = kube->options.bookmark_ms ? kube->options.bookmark_ms : BOOKMARK_MS;
    struct dv_api_status *failure;

    if (call->render.rendering.media == DV_MEDIA_YAML) {
        call->render.rendering = (struct dv_rendering){0};
        dv_kube_reply_status(call, dv_status_new(406, DV_STR("NotAcceptable"), call->arena,
                                                 "only the following media types are accepted: "
                                                 "application/json, "
                                                 "application/vnd.kubernetes.protobuf;"
                                                 "stream=watch"));
        return;
    }
    if (!check_share(call))
        return;
    watch = DV_ALLOC(struct watch);
    watch->kube = kube;
    watch->kind = call->route.kind;
    watch->call = call;
    fill_watcher(watch);
    if (!find_since(call, options, &watch->watcher)) {
        free(watch);
        return;
    }
    watch->has_columns = call->render.rendering.form == DV_FORM_TABLE;
    watch->bookmark_ms = options->allows_bookmarks ? now_ms + every_ms : 0;
    watch->end_ms =
        now_ms + (options->timeout_s ? dv_u64_min(options->timeout_s, TIMEOUT_S_MAX) * 1000
                                     : LONG_MS + dv_random_u64() % LONG_MS);
    if (start_watcher(watch, &failure)) {
        begin_stream(watch);
        set_timer(watch);
        tell_empty(watch);
        watch->use.ended = on_token_ended;
        if (call->token_hash.n &&
            !dv_token_use_begin(&watch->use, kube->options.tokens, call->token_hash))
            on_token_ended(&watch->use);
        if (kube->is_closing)
            finish(watch);
    } else if (failure->code == 410) { /* clients look for this error in the stream */
        begin_stream(watch);
        send_error(watch, failure);
        finish(watch);
    } else {
        free(watch);
        dv_kube_reply_status(call, failure);
    }
}

void dv_kube_end_watches(struct dv_kube *kube)
{
    struct dv_link *link;

    DV_LIST_EACH (&kube->watches, link)
        finish(DV_CONTAINER(link, struct watch, link));
}
