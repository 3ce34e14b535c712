/* kube_list.c - answers with a long list in parts: a worker prints some of its objects, and goes on
 * when the client has taken most of them. So the first byte goes out before the last object was
 * looked at, and the answer never lies in memory as a whole.
 *
 * The client may leave while a worker prints. What that reads is therefore not the call's, but
 * copied here: the call ends with the client, this when both are done. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/embedded.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "rest/rest.h"
#include "serve/kube/kube_call.h"
#include "serve/wire/kube_accept.h"
#include "serve/wire/kube_render.h"

/* The first part is short, because the client waits for it, and the others fill a few writes. */
#define FIRST_BYTES (16u * 1024u)
#define PART_BYTES (256u * 1024u)
/* One object, which is printed whole, may make a part longer than that. */
#define PART_BYTES_MAX (64u << 20)
/* The client may take as long as for an answer in one piece: a while, and so much longer. */
#define TAKE_MS 60000u
#define TAKE_BYTES_PER_MS 16u

struct list {
    struct dv_kube *kube;
    struct dv_kube_call *call; /* NULL: the client has left, or has got everything */
    struct dv_arena *arena;    /* holds this and what the worker reads */
    struct dv_render render;
    struct dv_list_page page; /* references to the objects from `n_freed` on */
    size_t n_printed;
    size_t n_freed;
    struct dv_buf part;
    struct dv_rest_stream stream;
    struct dv_timer timer;
    struct dv_work work;
    bool is_printing; /* the worker has it */
    bool is_over;     /* the stream takes no more */
};

static void free_list(struct list *list)
{
    struct dv_loop *loop = list->kube->options.loop;

    for (size_t i = list->n_freed; i < list->page.n_objects; i++)
        dv_object_unref(list->page.objects[i]);
    dv_buf_fini(&list->part);
    dv_loop_free_arena(loop, list->arena);
}

/* ---- printing, on a worker ---- */

static void print_part(struct dv_work *work)
{
    struct list *list = DV_CONTAINER(work, struct list, work);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    size_t max = list->n_printed == 0 ? FIRST_BYTES : PART_BYTES;

    if (list->n_printed == 0)
        dv_render_list_begin(&list->render, &list->page, scratch, &list->part);
    while (list->part.n < max && list->n_printed < list->page.n_objects) {
        dv_render_list_item(&list->render, list->page.objects[list->n_printed],
                            list->n_printed == 0, scratch, &list->part);
        list->n_printed++;
    }
    if (list->n_printed == list->page.n_objects)
        dv_render_list_end(&list->part);
}

static void print_next(struct list *list)
{
    if (list->is_printing || list->is_over || list->n_printed == list->page.n_objects)
        return;
    list->is_printing = true;
    dv_work_start(&list->work, list->kube->options.loop);
}

static void break_off(struct list *list)
{
    list->is_over = true;
    dv_rest_stream_cancel(&list->stream);
}

static void on_printed(struct dv_work *work, const struct dv_err *unused)
{
    struct list *list = DV_CONTAINER(work, struct list, work);
    struct dv_err err;

    (void)unused; /* nobody cancels it */
    list->is_printing = false;
    if (!list->call) {
        free_list(list);
        return;
    }
    while (list->n_freed < list->n_printed)
        dv_object_unref(list->page.objects[list->n_freed++]);
    if (list->is_over)
        return;
    if (!dv_buf_check(&list->part, "part of a list", &err) ||
        !dv_rest_stream_send(&list->stream, dv_buf_str(&list->part), &err)) {
        break_off(list); /* the client sees that something is missing */
        return;
    }
    dv_buf_clear(&list->part);
    if (list->n_printed == list->page.n_objects) {
        list->is_over = true;
        dv_rest_stream_finish(&list->stream);
    } else if (dv_rest_stream_unsent_bytes(&list->stream) < PART_BYTES) {
        print_next(list);
    }
}

/* ---- the stream ---- */

static void on_room(struct dv_rest_stream *stream)
{
    print_next(DV_CONTAINER(stream, struct list, stream));
}

static void on_ended(struct dv_rest_stream *stream, const struct dv_err *err)
{
    struct list *list = DV_CONTAINER(stream, struct list, stream);
    struct dv_kube *kube = list->kube;

    (void)err; /* a client that is gone is not worth a log line */
    dv_kube_count(list->call, 200);
    dv_timer_cancel(&list->timer);
    list->is_over = true;
    list->call = NULL;
    if (!list->is_printing)
        free_list(list);
    dv_kube_release(kube);
}

static void on_late(struct dv_timer *timer)
{
    break_off(DV_CONTAINER(timer, struct list, timer));
}

/* ---- the beginning ---- */

bool dv_kube_can_stream(const struct dv_kube_call *call)
{
    /* The length of a message in protobuf stands before it; YAML and indented JSON are made from
     * the whole text. */
    return call->render.rendering.media == DV_MEDIA_JSON && !dv_kube_is_pretty(call);
}

static struct list *new_list(struct dv_kube_call *call, const struct dv_list_page *page)
{
    struct dv_arena *arena = dv_arena_new();
    struct list *list = DV_NEW(arena, struct list);

    list->kube = call->kube;
    list->call = call;
    list->arena = arena;
    list->render = call->render;
    list->render.include_object = dv_str_copy(call->render.include_object, arena);
    list->page = *page;
    list->page.objects = DV_NEW_ARRAY(arena, struct dv_object *, page->n_objects);
    memcpy(list->page.objects, page->objects, page->n_objects * sizeof(page->objects[0]));
    list->page.continue_token = dv_str_copy(page->continue_token, arena);
    dv_buf_init(&list->part, PART_BYTES_MAX);
    return list;
}

void dv_kube_stream_list(struct dv_kube_call *call, const struct dv_list_page *page, size_t n_bytes)
{
    struct dv_loop *loop = call->kube->options.loop;
    struct list *list = new_list(call, page);

    list->stream = (struct dv_rest_stream){.room = on_room, .ended = on_ended};
    list->work = (struct dv_work){.run = print_part, .done = on_printed};
    dv_timer_start(&list->timer, loop,
                   dv_u64_add_clamped(dv_loop_now_ms(loop), TAKE_MS + n_bytes / TAKE_BYTES_PER_MS),
                   on_late);
    dv_kube_add_fields(call, dv_media_name(DV_MEDIA_JSON));
    dv_rest_stream_start(&list->stream, call->rest, 200);
    print_next(list);
}
