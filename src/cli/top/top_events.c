/* top_events.c - the newest events of the API: listed, then watched. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client/cli_api.h"
#include "cli/describe/describe.h"
#include "cli/top/top.h"
#include "cli/top/top_feed.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "rest/rest.h"
#include "json/json.h"

/* An event is a few kilobytes. */
#define LINE_BYTES_MAX (4u << 20)
#define ANSWER_MS 30000u
/* Bookmarks come once a minute. */
#define IDLE_MS 150000u
#define RETRY_MS 3000u

static const struct dv_rest_field fields[] = {
    {DV_STR_INIT("Accept"), DV_STR_INIT("application/json")}
};

static void list(struct dv_top_events *events);

/* ---- what is kept ---- */

static int newest_first(const void *a, const void *b)
{
    int64_t x = ((const struct dv_top_kept_event *)a)->event.at_ms;
    int64_t y = ((const struct dv_top_kept_event *)b)->event.at_ms;

    return (x < y) - (x > y);
}

static void drop(struct dv_top_events *events, size_t i)
{
    dv_arena_free(events->kept[i].arena);
    memmove(&events->kept[i], &events->kept[i + 1], (events->n - i - 1) * sizeof(events->kept[0]));
    events->n--;
}

static void drop_uid(struct dv_top_events *events, dv_str uid)
{
    for (size_t i = events->n; i-- > 0;)
        if (dv_str_eq(events->kept[i].event.uid, uid))
            drop(events, i);
}

static void keep(struct dv_top_events *events, const struct dv_api_event *from)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_time seen = dv_event_last_seen(from);
    int64_t count = dv_event_count(from);

    if (!seen.is_set)
        seen = from->metadata.creation_timestamp;
    drop_uid(events, from->metadata.uid);
    events->kept[events->n++] = (struct dv_top_kept_event){
        .arena = arena,
        .event =
            {
                    .uid = dv_str_copy(from->metadata.uid, arena),
                    .at_ms = seen.seconds * 1000,
                    .type = dv_str_copy(from->type, arena),
                    .reason = dv_str_copy(from->reason, arena),
                    .object = dv_str_printf(arena, "%.*s %.*s", DV_FMT(from->involved_object.kind),
                    DV_FMT(from->involved_object.name)),
                    .message = dv_str_copy(dv_str_trim(from->message), arena),
                    .count = count > 0 ? (uint64_t)count : 1,
                    },
    };
    qsort(events->kept, events->n, sizeof(events->kept[0]), newest_first);
    if (events->n > DV_TOP_EVENTS_MAX)
        drop(events, events->n - 1);
}

static void take(struct dv_top_events *events, const struct dv_json *doc, struct dv_arena *arena)
{
    struct dv_object object;
    struct dv_err err;

    if (dv_cli_object_decode(dv_kind(DV_KIND_EVENT), doc, arena, &object, &err))
        keep(events, object.value);
}

/* ---- asking ---- */

static void on_time(struct dv_timer *timer)
{
    list(DV_CONTAINER(timer, struct dv_top_events, timer));
}

static void list_later(struct dv_top_events *events)
{
    dv_timer_start(&events->timer, events->loop, dv_loop_now_ms(events->loop) + RETRY_MS, on_time);
}

static void note(struct dv_top_events *events, const char *text)
{
    (void)snprintf(events->note, sizeof(events->note), "no events: %.400s", text); /* is enough */
    events->changed(events->ctx);
}

static void on_line(struct dv_top_events *events, dv_str text)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_err err;
    const struct dv_json *change = dv_json_parse(text, NULL, arena, &err);
    const struct dv_json *doc = dv_json_get(change, DV_STR("object"));
    dv_str type = dv_cli_text(change, "", "type");

    if (dv_str_eq(type, DV_STR("ADDED")) || dv_str_eq(type, DV_STR("MODIFIED")))
        take(events, doc, arena);
    else if (dv_str_eq(type, DV_STR("DELETED")))
        drop_uid(events, dv_cli_text(doc, "metadata", "uid"));
    events->changed(events->ctx);
}

static void on_body(struct dv_rest_fetch *fetch, dv_str part)
{
    struct dv_top_events *events = DV_CONTAINER(fetch, struct dv_top_events, fetch);

    while (part.n > 0) {
        size_t end = dv_str_find_char(part, '\n');

        dv_buf_add(&events->line, dv_str_slice(part, 0, end));
        if (end == part.n)
            return;
        on_line(events, dv_buf_str(&events->line));
        dv_buf_clear(&events->line);
        part = dv_str_slice(part, end + 1, part.n);
    }
}

/* A watch ends now and then; all of them are listed again, lest one is missed. */
static void on_watched(struct dv_rest_fetch *fetch, const struct dv_err *err)
{
    struct dv_top_events *events = DV_CONTAINER(fetch, struct dv_top_events, fetch);

    (void)err; /* the list will tell, if it fails, too */
    if (!events->is_closing)
        list_later(events);
}

static void fetch(struct dv_top_events *events, uint64_t deadline_ms, uint64_t idle_ms,
                  void (*done)(struct dv_rest_fetch *fetch, const struct dv_err *err))
{
    events->fetch = (struct dv_rest_fetch){
        .method = DV_STR("GET"),
        .target = dv_str_from_c(events->target),
        .fields = fields,
        .n_fields = 1,
        .deadline_ms = deadline_ms,
        .idle_ms = idle_ms,
        .on_body = idle_ms > 0 ? on_body : NULL,
        .done = done,
    };
    dv_rest_fetch_start(events->client, &events->fetch);
}

static void on_listed(struct dv_rest_fetch *answer, const struct dv_err *err)
{
    struct dv_top_events *events = DV_CONTAINER(answer, struct dv_top_events, fetch);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_err trouble;
    struct dv_json *doc = NULL;
    dv_str version;

    if (events->is_closing)
        return;
    if (!err)
        doc = dv_json_parse(answer->answer, NULL, arena, &trouble);
    if (!doc || answer->status != 200) {
        note(events, err   ? err->msg
                     : doc ? dv_str_to_c(dv_cli_text(doc, "", "message"), arena)
                           : trouble.msg);
        list_later(events);
        return;
    }
    while (events->n > 0)
        drop(events, events->n - 1);
    for (struct dv_json *item = dv_json_first(dv_json_get(doc, DV_STR("items"))); item;
         item = dv_json_next(item)) {
        dv_json_set(item, DV_STR("apiVersion"), dv_json_new_str(DV_STR("v1"), arena), arena);
        dv_json_set(item, DV_STR("kind"), dv_json_new_str(DV_STR("Event"), arena), arena);
        take(events, item, arena); /* what it is, a list says once for all */
    }
    events->note[0] = '\0';
    version = dv_cli_text(doc, "metadata", "resourceVersion");
    (void)snprintf(events->target, sizeof(events->target), /* a version is a number */
                   "/api/v1/events?watch=true&allowWatchBookmarks=true&resourceVersion=%.*s",
                   DV_FMT(version));
    dv_buf_clear(&events->line);
    fetch(events, 0, IDLE_MS, on_watched);
    events->changed(events->ctx);
}

static void list(struct dv_top_events *events)
{
    (void)snprintf(events->target, sizeof(events->target), "/api/v1/events"); /* fits */
    fetch(events, dv_loop_now_ms(events->loop) + ANSWER_MS, 0, on_listed);
}

void dv_top_events_open(struct dv_top_events *events, struct dv_loop *loop,
                        struct dv_rest_client *client, void (*changed)(void *ctx), void *ctx)
{
    *events = (struct dv_top_events){.loop = loop,
                                     .client = client,
                                     .changed = changed,
                                     .ctx = ctx,
                                     .note = "asking for events"};
    dv_buf_init(&events->line, LINE_BYTES_MAX);
    list(events);
}

void dv_top_events_get(const struct dv_top_events *events, struct dv_arena *arena,
                       struct dv_top_data *data)
{
    struct dv_top_event *made = DV_NEW_ARRAY(arena, struct dv_top_event, events->n);

    for (size_t i = 0; i < events->n; i++)
        made[i] = events->kept[i].event;
    data->events = made;
    data->n_events = events->n;
    data->events_note = dv_str_from_c(events->note);
}

void dv_top_events_close(struct dv_top_events *events)
{
    events->is_closing = true;
    dv_timer_cancel(&events->timer);
    dv_rest_fetch_cancel(&events->fetch);
}

void dv_top_events_fini(struct dv_top_events *events)
{
    while (events->n > 0)
        drop(events, events->n - 1);
    dv_buf_fini(&events->line);
}
