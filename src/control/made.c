/* made.c - claims that we have made and that the view does not show yet. A pod that is looked at in
 * between must not get a second claim for the same entry. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "control/control_index.h"
#include "control/controllers.h"
#include "loop/loop.h"
#include "resource/resource.h"

/* How long such a claim is remembered, as in the reference. A view is never so late: by then it has
 * missed the claim, which is gone again. */
#define MADE_MS 3600000u

struct made {
    struct dv_link link;
    struct dv_object *object;
    uint64_t until_ms;
    dv_str key;
};

static void on_timer(struct dv_timer *timer);

void dv_made_init(struct dv_control *control)
{
    dv_map_init(&control->made.claims);
    dv_list_init(&control->made.order);
}

static void drop(struct dv_control *control, struct made *made)
{
    (void)dv_map_remove(&control->made.claims, made->key);
    dv_link_remove(&made->link);
    dv_object_unref(made->object);
    free(made);
}

static void set_timer(struct dv_control *control)
{
    struct dv_link *link = dv_list_first(&control->made.order);

    if (link)
        dv_timer_start(&control->made.timer, control->loop,
                       DV_CONTAINER(link, struct made, link)->until_ms, on_timer);
    else
        dv_timer_cancel(&control->made.timer);
}

void dv_made_fini(struct dv_control *control)
{
    struct dv_link *link;

    dv_timer_cancel(&control->made.timer);
    while ((link = dv_list_first(&control->made.order)) != NULL)
        drop(control, DV_CONTAINER(link, struct made, link));
    dv_map_fini(&control->made.claims);
}

static void on_timer(struct dv_timer *timer)
{
    struct dv_control *control = DV_CONTAINER(timer, struct dv_control, made.timer);
    uint64_t now_ms = dv_loop_now_ms(control->loop);
    struct dv_link *link;

    while ((link = dv_list_first(&control->made.order)) != NULL) {
        struct made *made = DV_CONTAINER(link, struct made, link);

        if (made->until_ms > now_ms)
            break;
        dv_index_set(&control->claims, made->key, NULL, 0);
        drop(control, made);
    }
    set_timer(control);
}

void dv_made_add(struct dv_control *control, struct dv_object *claim)
{
    const struct dv_api_object_meta *meta = claim->meta;
    size_t n = meta->namespace.n + 1 + meta->name.n;
    struct made *made;
    char *text;

    /* The embedded API shows a change before it answers: then nothing has to be remembered. */
    if (dv_control_get(control, DV_CONTROL_CLAIMS, meta->namespace, meta->name))
        return;
    made = dv_alloc(sizeof(*made) + n);
    text = (char *)(made + 1);
    memcpy(text, meta->namespace.p, meta->namespace.n);
    text[meta->namespace.n] = '/';
    memcpy(text + meta->namespace.n + 1, meta->name.p, meta->name.n);
    made->key = (dv_str){text, n};
    made->object = dv_object_ref(claim);
    made->until_ms = dv_loop_now_ms(control->loop) + MADE_MS;
    dv_made_forget(control, meta->namespace, meta->name);
    /* Looked up above: an old one was removed. */
    (void)dv_map_set(&control->made.claims, made->key, made);
    dv_list_push(&control->made.order, &made->link);
    dv_control_index_claim(control, made->key, claim->value);
    set_timer(control);
}

void dv_made_forget(struct dv_control *control, dv_str namespace, dv_str name)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = NULL;
    const dv_str parts[] = {namespace, DV_STR("/"), name};
    struct made *made;

    if (control->made.claims.n == 0)
        return;
    scratch = dv_arena_new();
    made = dv_map_get(&control->made.claims, dv_str_concat(parts, DV_COUNT(parts), scratch));
    if (made)
        drop(control, made);
}

struct dv_object *dv_made_get(const struct dv_control *control, dv_str key)
{
    const struct made *made = dv_map_get(&control->made.claims, key);

    return made ? made->object : NULL;
}
