/* kube_list.c - answers with a long list in parts, see serve/wire/answer_parts.h.
 *
 * In protobuf the length of a list stands before its objects, so these are encoded twice: first
 * only to be measured. What comes before the length goes out at once. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/str.h"
#include "cluster/embedded.h"
#include "loop/loop.h"
#include "resource/custom.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "serve/kube/kube_call.h"
#include "serve/wire/answer_parts.h"
#include "serve/wire/kube_accept.h"
#include "serve/wire/kube_render.h"

/* The limit of one object, which is printed whole. */
#define ITEM_BYTES_MAX ((size_t)64 << 20)
/* So much is measured between two looks at whether the client is still there. */
#define MEASURED_BYTES ((size_t)4 << 20)

struct list {
    struct dv_parts parts;
    struct dv_kube_call *call; /* until the client has left, or has got everything */
    struct dv_arena *arena;    /* holds this and what the worker reads */
    struct dv_render render;
    struct dv_list_page page; /* references to the objects from `n_freed` on */
    size_t n_measured;
    size_t n_items_bytes; /* of those that are measured */
    bool has_head;
    bool has_begun;
    size_t n_printed;
    size_t n_freed;
    struct dv_custom *custom; /* a reference that was the call's, or NULL */
};

static bool needs_length(const struct list *list)
{
    return list->render.rendering.media == DV_MEDIA_PROTOBUF;
}

/* Measures some of the objects that are left; true: all are measured. */
static bool measure(struct list *list)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf item;
    size_t n_before = list->n_items_bytes;

    dv_buf_init(&item, ITEM_BYTES_MAX);
    while (list->n_measured < list->page.n_objects &&
           list->n_items_bytes - n_before < MEASURED_BYTES) {
        dv_buf_clear(&item);
        dv_arena_reset(scratch);
        dv_render_list_item(&list->render, list->page.objects[list->n_measured],
                            list->n_measured == 0, scratch, &item);
        list->n_items_bytes += item.n;
        list->n_measured++;
    }
    return list->n_measured == list->page.n_objects;
}

/* Runs on a worker. */
static bool print_part(struct dv_parts *parts, size_t n_bytes, struct dv_buf *part)
{
    struct list *list = DV_CONTAINER(parts, struct list, parts);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();

    if (!list->has_head) {
        list->has_head = true;
        dv_render_list_head(&list->render, scratch, part);
        if (needs_length(list))
            return false;
    }
    if (needs_length(list) && !measure(list))
        return false;
    if (!list->has_begun) {
        list->has_begun = true;
        dv_render_list_begin(&list->render, &list->page, list->n_items_bytes, scratch, part);
    }
    while (part->n < n_bytes && list->n_printed < list->page.n_objects) {
        dv_arena_reset(scratch);
        dv_render_list_item(&list->render, list->page.objects[list->n_printed],
                            list->n_printed == 0, scratch, part);
        list->n_printed++;
    }
    if (list->n_printed < list->page.n_objects)
        return false;
    dv_render_list_end(&list->render, part);
    if (!needs_length(list))
        dv_buf_add_char(part, '\n'); /* as after every document */
    return true;
}

static void on_printed(struct dv_parts *parts)
{
    struct list *list = DV_CONTAINER(parts, struct list, parts);

    while (list->n_freed < list->n_printed)
        dv_object_unkeep(list->page.objects[list->n_freed++]);
}

static void on_ended(struct dv_parts *parts)
{
    struct list *list = DV_CONTAINER(parts, struct list, parts);
    struct dv_kube *kube = list->call->kube;

    dv_kube_count(list->call, 200);
    list->call = NULL;
    dv_kube_release(kube);
}

static void free_list(struct dv_parts *parts)
{
    struct list *list = DV_CONTAINER(parts, struct list, parts);

    for (size_t i = list->n_freed; i < list->page.n_objects; i++)
        dv_object_unkeep(list->page.objects[i]);
    dv_custom_unref(list->custom);
    dv_loop_free_arena(parts->priv.loop, list->arena);
}

bool dv_kube_can_stream(const struct dv_kube_call *call)
{
    /* YAML and indented JSON are made from the whole text. */
    return call->render.rendering.media == DV_MEDIA_PROTOBUF ||
           (call->render.rendering.media == DV_MEDIA_JSON && !dv_kube_is_pretty(call));
}

static struct list *new_list(struct dv_kube_call *call, const struct dv_list_page *page)
{
    struct dv_arena *arena = dv_arena_new();
    struct list *list = DV_NEW(arena, struct list);

    list->call = call;
    list->custom = call->custom;
    call->custom = NULL;
    list->arena = arena;
    list->render = call->render;
    list->render.include_object = dv_str_copy(call->render.include_object, arena);
    list->page = *page;
    list->page.objects = DV_NEW_ARRAY(arena, struct dv_object *, page->n_objects);
    memcpy(list->page.objects, page->objects, page->n_objects * sizeof(page->objects[0]));
    list->page.continue_token = dv_str_copy(page->continue_token, arena);
    return list;
}

void dv_kube_stream_list(struct dv_kube_call *call, const struct dv_list_page *page, size_t n_bytes)
{
    struct list *list = new_list(call, page);

    list->parts.print = print_part;
    list->parts.printed = on_printed;
    list->parts.ended = on_ended;
    list->parts.free = free_list;
    dv_kube_add_fields(call, dv_media_name(call->render.rendering.media));
    dv_parts_start(&list->parts, call->kube->options.loop, call->rest, n_bytes);
}
