/* kube_cache.c - keeps the texts of events, so that a thousand watchers of one kind share one. A
 * change is told to all its watchers in a row, so a few places are enough: each holds the text of
 * one object in one form, and is overwritten by the next that falls on it. */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "serve/kube/kube_call.h"

#define N_SLOTS 64u
/* The text of a larger object goes into the one place `large`, so that all others together stay
 * small. */
#define KEPT_BYTES_MAX (256u << 10)
#define EVENT_BYTES_MAX (64u << 20)

struct slot {
    struct dv_object *object; /* a reference; NULL: the place is empty */
    const struct dv_api_version *version;
    struct dv_rendering rendering;
    const char *type;
    struct dv_buf text;
};

struct dv_event_cache {
    struct slot slots[N_SLOTS];
    struct slot large;
    struct dv_buf scratch; /* for a text that is not kept */
};

struct dv_event_cache *dv_event_cache_new(void)
{
    struct dv_event_cache *cache = DV_ALLOC(struct dv_event_cache);

    for (size_t i = 0; i < N_SLOTS; i++)
        dv_buf_init(&cache->slots[i].text, EVENT_BYTES_MAX);
    dv_buf_init(&cache->large.text, EVENT_BYTES_MAX);
    dv_buf_init(&cache->scratch, EVENT_BYTES_MAX);
    return cache;
}

static void slot_clear(struct slot *slot)
{
    dv_object_unref(slot->object);
    slot->object = NULL;
    dv_buf_fini(&slot->text);
    dv_buf_init(&slot->text, EVENT_BYTES_MAX);
}

void dv_event_cache_free(struct dv_event_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < N_SLOTS; i++)
        slot_clear(&cache->slots[i]);
    slot_clear(&cache->large);
    dv_buf_fini(&cache->scratch);
    free(cache);
}

static bool is_same(const struct slot *slot, const struct dv_render *render, const char *type,
                    const struct dv_object *object)
{
    return slot->object == object && slot->version == render->version && slot->type == type &&
           slot->rendering.media == render->rendering.media &&
           slot->rendering.form == render->rendering.form &&
           slot->rendering.is_beta == render->rendering.is_beta;
}

static void make(const struct dv_render *render, const char *type, const struct dv_object *object,
                 struct dv_buf *text)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();

    dv_render_event(render, type, object, false, scratch, text);
}

/* Whether the text may be kept. Rows of tables say how old an object is, so they are never kept. */
static bool is_kept(const struct dv_render *render)
{
    return render->rendering.form != DV_FORM_TABLE;
}

dv_str dv_event_cache_get(struct dv_event_cache *cache, const struct dv_render *render,
                          const char *type, struct dv_object *object)
{
    struct slot *slot = object->size_bytes > KEPT_BYTES_MAX
                            ? &cache->large
                            : &cache->slots[((uintptr_t)object >> 6) % N_SLOTS];

    if (!is_kept(render)) {
        dv_buf_clear(&cache->scratch);
        make(render, type, object, &cache->scratch);
        return dv_buf_str(&cache->scratch);
    }
    if (!is_same(slot, render, type, object)) {
        slot_clear(slot);
        slot->object = dv_object_ref(object);
        slot->version = render->version;
        slot->rendering = render->rendering;
        slot->type = type;
        make(render, type, object, &slot->text);
    }
    return dv_buf_str(&slot->text);
}
