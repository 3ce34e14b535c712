/* kube_list.c - answers with a long list in parts, see serve/wire/answer_parts.h. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/str.h"
#include "cluster/embedded.h"
#include "loop/loop.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "serve/kube/kube_call.h"
#include "serve/wire/answer_parts.h"
#include "serve/wire/kube_accept.h"
#include "serve/wire/kube_render.h"

struct list {
    struct dv_parts parts;
    struct dv_kube_call *call; /* until the client has left, or has got everything */
    struct dv_arena *arena;    /* holds this and what the worker reads */
    struct dv_render render;
    struct dv_list_page page; /* references to the objects from `n_freed` on */
    size_t n_printed;
    size_t n_freed;
};

/* Runs on a worker. */
static bool print_part(struct dv_parts *parts, size_t n_bytes, struct dv_buf *part)
{
    struct list *list = DV_CONTAINER(parts, struct list, parts);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();

    if (list->n_printed == 0)
        dv_render_list_begin(&list->render, &list->page, scratch, part);
    while (part->n < n_bytes && list->n_printed < list->page.n_objects) {
        dv_render_list_item(&list->render, list->page.objects[list->n_printed],
                            list->n_printed == 0, scratch, part);
        list->n_printed++;
    }
    if (list->n_printed < list->page.n_objects)
        return false;
    dv_render_list_end(part);
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
    dv_loop_free_arena(parts->priv.loop, list->arena);
}

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

    list->call = call;
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
    dv_kube_add_fields(call, dv_media_name(DV_MEDIA_JSON));
    dv_parts_start(&list->parts, call->kube->options.loop, call->rest, n_bytes);
}
