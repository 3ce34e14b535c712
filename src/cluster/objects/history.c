/* history.c - the last changes of a kind, numbered, with the states before and after: for watches
 * and lists that begin at an older version. What is kept is bounded by number and by bytes. */
#include "cluster/objects/history.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "resource/object_pool.h"
#include "resource/resource.h"

#define FIRST_SIZE 16u

/* How many bytes the old states of a kind may take, so that large slices do not fill the memory;
 * packed, they are a thousand pods. A minimum of changes is kept beyond that, so that a client can
 * list and then watch; and for the largest objects there is a second ceiling. */
#define BYTES_MAX (1024u * 1024u)
#define N_MIN 128u
#define LARGE_BYTES_MAX (32u * 1024u * 1024u)
/* What is kept when clients have had the time to list and then watch: of large objects hardly any.
 */
#define AGED_BYTES_MAX (256u * 1024u)
#define AGED_N_MIN 16u
#define AGED_LARGE_BYTES_MAX (1024u * 1024u)

static struct dv_change *at(const struct dv_history *history, uint64_t number)
{
    return &history->ring[number & (history->size - 1)];
}

static size_t bytes_of(const struct dv_change *change)
{
    return sizeof(*change) + (change->old ? dv_object_kept_bytes(change->old) : 0) +
           (change->gone ? change->gone->size_bytes : 0);
}

static void forget_first(struct dv_history *history)
{
    struct dv_change *change = at(history, history->first);

    history->size_bytes -= bytes_of(change);
    history->floor = change->version;
    history->first++;
    dv_object_unkeep(change->old);
    dv_object_unkeep(change->now);
    dv_object_unref(change->gone);
    *change = (struct dv_change){0};
}

static void grow(struct dv_history *history)
{
    struct dv_change *old = history->ring;
    size_t n_old = history->size;

    history->size = n_old > 0 ? n_old * 2 : FIRST_SIZE;
    history->ring = dv_alloc(history->size * sizeof(history->ring[0]));
    for (uint64_t number = history->first; number < history->end; number++)
        *at(history, number) = old[number & (n_old - 1)];
    free(old);
}

void dv_history_init(struct dv_history *history, size_t n_max, uint64_t floor)
{
    *history = (struct dv_history){.n_max = n_max, .floor = floor};
}

void dv_history_fini(struct dv_history *history)
{
    while (history->first < history->end)
        forget_first(history);
    free(history->ring);
    history->ring = NULL;
    history->size = 0;
}

void dv_history_add(struct dv_history *history, uint64_t version, struct dv_object *old,
                    struct dv_object *now)
{
    struct dv_change *change;

    if (history->end - history->first == history->size)
        grow(history);
    change = at(history, history->end++);
    change->version = version;
    change->old = old ? dv_object_keep(old) : NULL;
    change->now = now ? dv_object_keep(now) : NULL;
    history->size_bytes += bytes_of(change);
    while (history->end - history->first > history->n_max ||
           (history->size_bytes > BYTES_MAX && history->end - history->first > N_MIN) ||
           (history->size_bytes > LARGE_BYTES_MAX && history->end - history->first > 1))
        forget_first(history);
}

static bool is_long(const struct dv_history *history)
{
    return (history->size_bytes > AGED_BYTES_MAX && history->end - history->first > AGED_N_MIN) ||
           history->size_bytes > AGED_LARGE_BYTES_MAX;
}

bool dv_history_age(struct dv_history *history)
{
    while (is_long(history) && history->first < history->aged)
        forget_first(history);
    history->aged = history->end;
    return is_long(history);
}

struct dv_change *dv_history_get(const struct dv_history *history, uint64_t number)
{
    assert(number >= history->first && number < history->end);
    return at(history, number);
}

uint64_t dv_history_after(const struct dv_history *history, uint64_t version)
{
    uint64_t low = history->first;
    uint64_t high = history->end;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (at(history, middle)->version <= version)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct dv_object *dv_object_with_version(const struct dv_object *object, uint64_t version)
{
    size_t size = object->kind->versions[0].message->size;
    struct dv_api_object_meta *meta;
    struct dv_object *copy;
    char text[24];
    void *value = dv_alloc(size);

    /* A shallow copy: the new object copies what it refers to. */
    memcpy(value, object->value, size);
    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)version); /* 20 digits fit */
    meta = (struct dv_api_object_meta *)((char *)value + ((const char *)object->meta -
                                                          (const char *)object->value));
    meta->resource_version = dv_str_from_c(text);
    copy = dv_object_new(object->kind, value);
    free(value);
    return copy;
}

struct dv_object *dv_history_gone(struct dv_history *history, struct dv_change *change)
{
    if (!change->gone) {
        change->gone = dv_object_with_version(dv_object_unpack(change->old), change->version);
        history->size_bytes += change->gone->size_bytes;
    }
    return change->gone;
}
