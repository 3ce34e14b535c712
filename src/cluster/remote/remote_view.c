/* remote_view.c - views by list and watch.
 *
 *     LISTING --all pages--> SWEEPING --told--> WATCHING --ends in time--> WATCHING
 *        ^                                       |    ^
 *        +--- the server has forgotten that -----+    | from where it was
 *        |                            lost, silent    |
 *        |                           or ends early    |
 *        |                                       v    |
 *        +---- it has not what was told ------- CHECKING
 *
 * Between any two of them there may be a pause, which grows with failures. A connection that is
 * lost costs no more than that and one small question: whether what answers now still has the data
 * that the view shows. A server whose database was replaced would keep a watch from our version
 * open and say nothing on it. What a watch says and cannot be understood is asked for again; when
 * it then comes first and still cannot, a list goes around it. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/remote/remote_engine.h"
#include "cluster/remote/remote_event.h"
#include "cluster/remote/remote_view.h"
#include "cluster/shared/cluster_view.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "rest/rest.h"

#define LIST_TIMEOUT_MS 60000u
#define PAGE_BYTES_MAX (64u << 20)
#define TARGET_BYTES_MAX (128u << 10)
/* The ceiling of a selector. Percent-encoded it may be three times as long, which leaves half of a
 * request target for the rest. */
#define SELECTOR_BYTES_MAX (20u << 10)
/* The ceiling of a watch event: an object has at most 3 MiB, its event a little more. */
#define EVENT_BYTES_MAX (8u << 20)
#define MS_PER_S 1000u
/* A watch on which nothing comes for so long is given up: servers send a bookmark about every
 * minute. */
#define WATCH_IDLE_MS 150000u
/* A watch without news tells nothing of itself: one that has not failed after this time, in which a
 * connection would have, counts as working. */
#define WORKS_MS 15000u
#define PAUSE_MS_MIN 800u
#define PAUSE_MS_MAX 30000u
#define PAUSE_JITTER_PER_MILLE 500u
/* After a watch that lived this long, the next failure counts as the first again. */
#define GOOD_MS 10000u

static void start(struct dv_remote_view *view, enum dv_remote_state state);

/* Frees a closed view as soon as no fetch or callback uses it any more. */
static void free_if_done(struct dv_remote_view *view)
{
    if (!view->is_closed || view->is_fetching || view->is_in_callback)
        return;
    dv_timer_cancel(&view->timer);
    dv_link_remove(&view->link);
    dv_remote_list_forget(view);
    dv_buf_fini(&view->target);
    dv_remote_lines_fini(&view->lines);
    dv_arena_free(view->scratch);
    dv_view_fini(&view->view);
    free(view);
}

/* Whether the view is still open after a callback. If not, it may have been freed, and the caller
 * must return. */
static bool goes_on(struct dv_remote_view *view)
{
    if (dv_remote_view_is_live(view))
        return true;
    free_if_done(view);
    return false;
}

/* ---- pausing ---- */

static void on_timer(struct dv_timer *timer)
{
    struct dv_remote_view *view = DV_CONTAINER(timer, struct dv_remote_view, timer);

    if (view->state == KUBE_PAUSING) {
        start(view, view->next);
        return;
    }
    dv_remote_view_tell_trouble(view, NULL);
    (void)goes_on(view);
}

static void forget_failures(struct dv_remote_view *view)
{
    uint64_t now_ms = dv_loop_now_ms(view->remote->cluster.loop);

    if (view->has_progress || now_ms - view->started_ms > GOOD_MS)
        view->pause_ms = 0;
    view->has_progress = false;
}

static void pause_before(struct dv_remote_view *view, enum dv_remote_state next,
                         uint64_t at_least_ms)
{
    struct dv_loop *loop = view->remote->cluster.loop;
    uint64_t wait_ms;

    forget_failures(view);
    view->pause_ms = dv_u64_min(dv_u64_max(view->pause_ms * 2, PAUSE_MS_MIN), PAUSE_MS_MAX);
    wait_ms = dv_jitter(view->pause_ms, PAUSE_JITTER_PER_MILLE);
    view->state = KUBE_PAUSING;
    view->next = next;
    dv_timer_start(&view->timer, loop, dv_loop_now_ms(loop) + dv_u64_max(wait_ms, at_least_ms),
                   on_timer);
}

/* Lists again: at once, or after a pause when listing again did not help before. */
static void list_again(struct dv_remote_view *view)
{
    dv_remote_list_forget(view);
    forget_failures(view);
    if (view->pause_ms > 0) {
        pause_before(view, KUBE_LISTING, 0);
        return;
    }
    view->pause_ms = PAUSE_MS_MIN;
    start(view, KUBE_LISTING);
}

static void fail(struct dv_remote_view *view, const struct dv_err *err, enum dv_remote_state next,
                 uint64_t at_least_ms)
{
    dv_remote_view_tell_trouble(view, err);
    if (goes_on(view))
        pause_before(view, next, at_least_ms);
}

/* ---- answers that are none ---- */

/* How to go on after an error of the server. One that has too much to do (429) still knows our
 * version, so the watch goes on; one that was away (502, 503) may have come back as another; after
 * any other error a new list is the way out. */
static enum dv_remote_state next_after(int64_t code)
{
    if (code == 429)
        return KUBE_WATCHING;
    return code == 502 || code == 503 ? KUBE_CHECKING : KUBE_LISTING;
}

static void refused(struct dv_remote_view *view, const char *verb, enum dv_remote_state next)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_api_status *status =
        dv_remote_status(view->fetch.status, view->fetch.answer, arena);
    const struct dv_kind *kind = view->view.options.kind;
    uint64_t wait_ms = 0;
    struct dv_err err;

    (void)dv_remote_retry_after(dv_rest_fetch_field(&view->fetch, DV_STR("Retry-After")),
                                &wait_ms); /* 0 when the answer has no Retry-After */
    if (view->fetch.status == 401)
        dv_remote_token_doubt(view->remote->token);
    if (view->fetch.status == 404 &&
        dv_remote_version_refused(view->remote, kind, view->api_version)) {
        list_again(view);
        return;
    }
    if (view->fetch.status == 404 && view->view.options.is_optional) {
        dv_remote_view_tell_synced(view);
        if (!goes_on(view))
            return;
    }
    dv_status_to_err(status, &err);
    (void)dv_wrap(&err, "%s %.*s: the server answered %u", verb, DV_FMT(kind->plural),
                  view->fetch.status);
    fail(view, &err, next, wait_ms);
}

/* ---- listing ---- */

static void end_list(struct dv_remote_view *view)
{
    view->version = view->list_version;
    dv_remote_list_forget(view);
    dv_remote_view_tell_synced(view);
    if (goes_on(view))
        start(view, KUBE_WATCHING);
}

static void on_sweep(struct dv_task *task)
{
    struct dv_remote_view *view = DV_CONTAINER(task, struct dv_remote_view, sweep);
    bool is_told = dv_remote_list_tell_gone(view);

    if (!goes_on(view))
        return;
    if (is_told)
        end_list(view);
    else
        dv_task_post(&view->sweep, view->remote->cluster.loop, on_sweep);
}

static void end_pages(struct dv_remote_view *view)
{
    view->state = KUBE_SWEEPING;
    dv_remote_list_end(view);
    dv_remote_view_tell_trouble(view, NULL);
    if (goes_on(view))
        dv_task_post(&view->sweep, view->remote->cluster.loop, on_sweep);
}

/* A page could not be read. It may have been too large: the next try asks for fewer objects at
 * once. */
static void fail_list(struct dv_remote_view *view, const struct dv_err *err)
{
    dv_remote_list_forget(view);
    if (err->code == DV_RESOURCE_EXHAUSTED)
        view->n_page_objects = dv_size_max(view->n_page_objects / 4, 1);
    fail(view, err, KUBE_LISTING, 0);
}

static void take_page(struct dv_remote_view *view)
{
    struct dv_err err;
    bool is_good = dv_remote_list_take(view, view->fetch.answer, &err);

    if (!goes_on(view))
        return;
    if (!is_good) {
        (void)dv_wrap(&err, "list %.*s", DV_FMT(view->view.options.kind->plural));
        fail_list(view, &err);
    } else if (view->more.n > 0) {
        start(view, KUBE_LISTING);
    } else {
        end_pages(view);
    }
}

static void on_page(struct dv_remote_view *view, const struct dv_err *failed)
{
    if (!failed && view->fetch.status == 200) {
        take_page(view);
    } else if (!failed && view->fetch.status == 410) {
        list_again(view); /* the list has expired because its pages were asked for too slowly */
    } else if (failed) {
        fail_list(view, failed);
    } else {
        dv_remote_list_forget(view);
        refused(view, "list", KUBE_LISTING);
    }
}

/* ---- checking ---- */

static void on_checked(struct dv_remote_view *view, const struct dv_err *failed)
{
    struct dv_err err;
    bool is_same;

    if (failed) {
        fail(view, failed, KUBE_CHECKING, 0);
    } else if (view->fetch.status != 200) {
        refused(view, "list", KUBE_CHECKING);
    } else if (!dv_remote_list_check(view, view->fetch.answer, &is_same, &err)) {
        (void)dv_wrap(&err, "list %.*s", DV_FMT(view->view.options.kind->plural));
        fail(view, &err, KUBE_LISTING, 0);
    } else {
        start(view, is_same ? KUBE_WATCHING : KUBE_LISTING);
    }
}

/* ---- watching ---- */

static void take_error(struct dv_remote_view *view, const struct dv_remote_event *event,
                       struct dv_err *err)
{
    view->is_expired = event->code == 410;
    view->next = next_after(event->code);
    (void)dv_fail(err, DV_UNAVAILABLE, "the server: %.*s (%lld)",
                  DV_FMT(dv_str_slice(event->message, 0, 200)), (long long)event->code);
}

/* Takes one event of the watch. False: the watch is over, and `next` says how to go on; or the view
 * was closed. */
static bool take_event(struct dv_remote_view *view, dv_str line, struct dv_err *err)
{
    struct dv_remote_event event;

    /* When not even the first event could be understood, it would be the same again: a list goes
     * around it. */
    view->next = view->has_progress ? KUBE_WATCHING : KUBE_LISTING;
    dv_arena_reset(view->scratch);
    if (!dv_remote_event_read(view->view.options.kind, view->api_version, line, view->scratch,
                              &event, err))
        return false;
    if (event.type == DV_REMOTE_ERROR) {
        take_error(view, &event, err);
        return false;
    }
    if (event.version < view->version ||
        (event.version == view->version && event.type != DV_REMOTE_BOOKMARK)) {
        view->next = KUBE_LISTING;
        dv_object_unref(event.object);
        return dv_fail(err, DV_INTERNAL, "version %llu came after %llu",
                       (unsigned long long)event.version, (unsigned long long)view->version);
    }
    if (event.type != DV_REMOTE_BOOKMARK && dv_remote_view_has_another(view, event.object)) {
        view->next = KUBE_LISTING;
        dv_object_unref(event.object);
        return dv_fail(err, DV_INTERNAL, "an object has another UID, and its end was not told");
    }
    view->version = event.version;
    view->has_progress = true;
    dv_remote_view_tell_trouble(view, NULL);
    if (dv_remote_view_is_live(view) && event.type == DV_REMOTE_DELETED)
        dv_remote_view_tell_gone(view, event.object);
    else if (dv_remote_view_is_live(view) && event.type != DV_REMOTE_BOOKMARK)
        dv_remote_view_tell(view, event.object);
    dv_object_unref(event.object);
    return dv_remote_view_is_live(view);
}

static void break_off(struct dv_remote_view *view, struct dv_err *err)
{
    if (!dv_remote_view_is_live(view))
        return; /* the fetch is being cancelled, and this is the rest of it */
    view->state = KUBE_BREAKING;
    dv_rest_fetch_cancel(&view->fetch);
    if (view->is_expired)
        return; /* a watch that ends after its time is nothing unusual */
    (void)dv_wrap(err, "watch %.*s", DV_FMT(view->view.options.kind->plural));
    dv_remote_view_tell_trouble(view, err);
}

static void on_part(struct dv_rest_fetch *fetch, dv_str part)
{
    struct dv_remote_view *view = DV_CONTAINER(fetch, struct dv_remote_view, fetch);
    struct dv_err err;
    dv_str line;

    while (dv_remote_view_is_live(view) && dv_remote_lines_next(&view->lines, &part, &line))
        if (dv_str_trim(line).n > 0 && !take_event(view, line, &err)) {
            break_off(view, &err);
            return;
        }
    if (!dv_remote_lines_check(&view->lines, &err)) {
        view->next = KUBE_LISTING;
        break_off(view, &err);
    }
}

static void on_watch_end(struct dv_remote_view *view, const struct dv_err *failed)
{
    uint64_t lived_ms = dv_loop_now_ms(view->remote->cluster.loop) - view->started_ms;
    /* A server that lives ends a watch when its time is over, and has something to say before. */
    bool is_in_time = !failed && lived_ms >= DV_REMOTE_WATCH_S_MIN * MS_PER_S;
    enum dv_remote_state next = is_in_time ? KUBE_WATCHING : KUBE_CHECKING;

    if (failed && failed->code != DV_DEADLINE_EXCEEDED) {
        fail(view, failed, next, 0);
    } else if (!failed && view->fetch.status == 410) {
        list_again(view);
    } else if (!failed && view->fetch.status != 200) {
        refused(view, "watch", next_after(view->fetch.status));
    } else if (lived_ms < GOOD_MS) {
        /* A server that ends watches at once is asked again after a pause only. */
        pause_before(view, next, 0);
    } else {
        view->pause_ms = 0;
        start(view, next);
    }
}

/* ---- fetching ---- */

static void on_fetched(struct dv_rest_fetch *fetch, const struct dv_err *err)
{
    struct dv_remote_view *view = DV_CONTAINER(fetch, struct dv_remote_view, fetch);

    view->is_fetching = false;
    dv_timer_cancel(&view->timer);
    if (!goes_on(view))
        return;
    if (view->state == KUBE_LISTING)
        on_page(view, err);
    else if (view->state == KUBE_CHECKING)
        on_checked(view, err);
    else if (view->state == KUBE_WATCHING)
        on_watch_end(view, err);
    else if (view->is_expired)
        list_again(view);
    else
        pause_before(view, view->next, 0);
}

static void start(struct dv_remote_view *view, enum dv_remote_state state)
{
    struct dv_loop *loop = view->remote->cluster.loop;
    uint64_t now_ms = dv_loop_now_ms(loop);

    view->state = state;
    view->started_ms = now_ms;
    view->is_expired = false;
    /* The pages of a list are asked for in one version of the API: it may change only before the
     * first. */
    if (state == KUBE_WATCHING || view->more.n == 0)
        view->api_version = dv_remote_version(view->remote, view->view.options.kind);
    dv_remote_view_target(view);
    dv_remote_lines_clear(&view->lines);
    view->field = (struct dv_rest_field){DV_STR("Accept"), DV_STR("application/json")};
    view->fetch = (struct dv_rest_fetch){
        .method = DV_STR("GET"),
        .target = dv_buf_str(&view->target),
        .fields = &view->field,
        .n_fields = 1,
        .done = on_fetched,
    };
    if (state != KUBE_WATCHING) {
        view->fetch.deadline_ms = now_ms + LIST_TIMEOUT_MS;
        view->fetch.body_bytes_max = PAGE_BYTES_MAX;
    } else {
        view->fetch.idle_ms = WATCH_IDLE_MS;
        view->fetch.on_body = on_part;
        if (view->trouble != DV_OK)
            dv_timer_start(&view->timer, loop, now_ms + WORKS_MS, on_timer);
    }
    view->is_fetching = true;
    dv_rest_fetch_start(view->remote->client, &view->fetch);
}

/* ---- life ---- */

struct dv_view *dv_remote_view_open(struct dv_cluster *cluster,
                                    const struct dv_view_options *options, struct dv_err *err)
{
    struct dv_remote *remote = DV_CONTAINER(cluster, struct dv_remote, cluster);
    struct dv_remote_view *view;

    if (options->label_selector.n + options->field_selector.n > SELECTOR_BYTES_MAX) {
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "selectors of more than %u bytes",
                      SELECTOR_BYTES_MAX);
        return NULL;
    }
    view = DV_ALLOC(struct dv_remote_view);
    if (!dv_view_init(&view->view, cluster, options, err)) {
        free(view);
        return NULL;
    }
    view->remote = remote;
    view->n_page_objects = remote->n_page_objects;
    view->scratch = dv_arena_new();
    dv_buf_init(&view->target, TARGET_BYTES_MAX);
    dv_remote_lines_init(&view->lines, EVENT_BYTES_MAX);
    dv_remote_list_init(view);
    if (remote->is_closing) {
        view->state = KUBE_ENDED;
        view->view.cluster = NULL;
    } else {
        dv_list_push(&remote->views, &view->link);
        start(view, KUBE_LISTING);
    }
    return &view->view;
}

void dv_remote_view_close(struct dv_view *base)
{
    struct dv_remote_view *view = DV_CONTAINER(base, struct dv_remote_view, view);

    view->is_closed = true;
    dv_timer_cancel(&view->timer);
    dv_task_cancel(&view->sweep);
    if (view->is_fetching)
        dv_rest_fetch_cancel(&view->fetch);
    free_if_done(view);
}

void dv_remote_views_end(struct dv_remote *remote)
{
    struct dv_link *link;

    while ((link = dv_list_shift(&remote->views)) != NULL) {
        struct dv_remote_view *view = DV_CONTAINER(link, struct dv_remote_view, link);

        dv_timer_cancel(&view->timer);
        dv_task_cancel(&view->sweep);
        view->state = KUBE_ENDED;
        view->view.cluster = NULL;
    }
}
