/* kube_cache.c - keeps the texts of objects that were written, so that the answer to the writer and
 * the events of a thousand watchers share one. All watchers are told a portion of changes before
 * any is told the next one, so the last few texts are enough: those of a portion, in the forms that
 * clients ask for. They are dropped soon: an object that is kept here is kept unpacked. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "serve/kube/kube_call.h"

/* Four forms of a portion of changes (cluster_watch.c). */
#define N_SLOTS 64u
/* The text of a larger object goes into the one place `large`, so that all others together stay
 * small. */
#define KEPT_BYTES_MAX (256u << 10)
#define REUSED_BYTES_MAX (8u << 10)
#define EVENT_BYTES_MAX (64u << 20)

struct slot {
    struct dv_object *object; /* a reference; NULL: the place is empty */
    const struct dv_api_version *version;
    struct dv_rendering rendering;
    struct dv_buf text;
    bool is_old; /* it was there when texts were last dropped */
};

struct dv_event_cache {
    struct slot slots[N_SLOTS]; /* a ring: the oldest text makes room */
    size_t oldest;
    size_t next; /* the place behind the one that was found last: the next event is likely there */
    struct slot large;
    struct dv_buf event; /* the last one */
};

struct dv_event_cache *dv_event_cache_new(void)
{
    struct dv_event_cache *cache = DV_ALLOC(struct dv_event_cache);

    for (size_t i = 0; i < N_SLOTS; i++)
        dv_buf_init(&cache->slots[i].text, EVENT_BYTES_MAX);
    dv_buf_init(&cache->large.text, EVENT_BYTES_MAX);
    dv_buf_init(&cache->event, EVENT_BYTES_MAX);
    return cache;
}

/* Keeps the memory of a usual text for the next one. */
static void empty(struct dv_buf *text)
{
    if (text->size > REUSED_BYTES_MAX)
        dv_buf_fini(text);
    dv_buf_clear(text);
}

static void slot_clear(struct slot *slot)
{
    dv_object_unref(slot->object);
    slot->object = NULL;
    empty(&slot->text);
}

void dv_event_cache_free(struct dv_event_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < N_SLOTS; i++) {
        slot_clear(&cache->slots[i]);
        dv_buf_fini(&cache->slots[i].text);
    }
    slot_clear(&cache->large);
    dv_buf_fini(&cache->large.text);
    dv_buf_fini(&cache->event);
    free(cache);
}

static bool is_same(const struct slot *slot, const struct dv_render *render,
                    const struct dv_object *object)
{
    return slot->object == object && slot->version == render->version &&
           slot->rendering.media == render->rendering.media &&
           slot->rendering.form == render->rendering.form &&
           slot->rendering.is_beta == render->rendering.is_beta;
}

static void make(const struct dv_render *render, const struct dv_object *object,
                 struct dv_buf *text)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();

    dv_buf_reserve(text, object->size_bytes); /* about what it takes in JSON */
    dv_render_object(render, object, scratch, text);
}

/* Returns the place that has the text; NULL: none has. */
static struct slot *find(struct dv_event_cache *cache, const struct dv_render *render,
                         const struct dv_object *object)
{
    for (size_t i = 0; i < N_SLOTS; i++) {
        size_t at = (cache->next + i) % N_SLOTS;

        if (is_same(&cache->slots[at], render, object)) {
            cache->next = at + 1;
            return &cache->slots[at];
        }
    }
    return NULL;
}

static void fill(struct slot *slot, const struct dv_render *render, struct dv_object *object)
{
    slot_clear(slot);
    slot->object = dv_object_ref(object);
    slot->is_old = false;
    slot->version = render->version;
    slot->rendering = render->rendering;
    make(render, object, &slot->text);
}

/* Drops the text when it is old, with its memory; true: it is still there. */
static bool age(struct slot *slot)
{
    if (slot->object && slot->is_old) {
        slot_clear(slot);
        dv_buf_fini(&slot->text);
    }
    slot->is_old = true;
    return slot->object != NULL;
}

bool dv_event_cache_age(struct dv_event_cache *cache)
{
    bool has_more = age(&cache->large);

    for (size_t i = 0; i < N_SLOTS; i++)
        has_more |= age(&cache->slots[i]);
    return has_more;
}

dv_str dv_event_cache_object(struct dv_event_cache *cache, const struct dv_render *render,
                             struct dv_object *object)
{
    struct slot *slot;

    if (object->size_bytes > KEPT_BYTES_MAX) {
        if (!is_same(&cache->large, render, object))
            fill(&cache->large, render, object);
        return dv_buf_str(&cache->large.text);
    }
    slot = find(cache, render, object);
    if (!slot) {
        slot = &cache->slots[cache->oldest];
        cache->oldest = (cache->oldest + 1) % N_SLOTS;
        fill(slot, render, object);
    }
    return dv_buf_str(&slot->text);
}

dv_str dv_event_cache_get(struct dv_event_cache *cache, const struct dv_render *render,
                          const char *type, struct dv_object *object)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = NULL;

    empty(&cache->event);
    /* Rows of tables say how old an object is, so they are never kept. */
    if (render->rendering.form == DV_FORM_TABLE) {
        scratch = dv_arena_new();
        dv_render_event(render, type, object, false, scratch, &cache->event);
    } else {
        dv_render_event_of(render->rendering.media, type,
                           dv_event_cache_object(cache, render, object), &cache->event);
    }
    return dv_buf_str(&cache->event);
}
