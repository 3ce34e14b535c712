#include <stdlib.h>
#include <string.h>

#include "sample.h"

struct choice {
    const char *id;
    int numa; /* -1: not known */
    bool is_taken;
};

struct choosing {
    struct choice *v;
    size_t n;
    size_t n_left; /* to be chosen yet */
    struct davit_call *call;
};

static void take(struct choosing *choosing, struct choice *choice)
{
    if (choice->is_taken || choosing->n_left == 0)
        return;
    choice->is_taken = true;
    choosing->n_left--;
    davit_prefer_add_id(choosing->call, choice->id);
}

/* ttyS2 before ttyS10. */
static int compare(const void *a, const void *b)
{
    return strverscmp(((const struct choice *)a)->id, ((const struct choice *)b)->id);
}

/* A NUMA node, as the choice stands now. */
struct place {
    size_t n_free;
    bool is_used; /* by one that is taken */
};

/* Whether a is better than b: one that is used already; then one that has enough, and as few as can
 * be; then the one that has most. */
static bool is_better(const struct place *a, const struct place *b, size_t n_left)
{
    bool a_suffices = a->n_free >= n_left;
    bool b_suffices = b->n_free >= n_left;

    if (a->is_used != b->is_used)
        return a->is_used;
    if (a_suffices != b_suffices)
        return a_suffices;
    return a_suffices ? a->n_free < b->n_free : a->n_free > b->n_free;
}

/* The node to take from next; false: nothing is left. */
static bool find_place(const struct choosing *choosing, int *numa)
{
    struct place places[1 + SAMPLE_NODES_MAX] = {{0}}; /* by node + 1 */
    const struct place *best = NULL;

    for (size_t i = 0; i < choosing->n; i++) {
        struct place *place = &places[choosing->v[i].numa + 1];

        place->is_used |= choosing->v[i].is_taken;
        place->n_free += !choosing->v[i].is_taken;
    }
    for (size_t i = 0; i < 1 + SAMPLE_NODES_MAX; i++)
        if (places[i].n_free > 0 && (!best || is_better(&places[i], best, choosing->n_left)))
            best = &places[i];
    if (best)
        *numa = (int)(best - places) - 1;
    return best;
}

static void take_packed(struct choosing *choosing)
{
    int numa;

    while (choosing->n_left > 0 && find_place(choosing, &numa))
        for (size_t i = 0; i < choosing->n; i++)
            if (choosing->v[i].numa == numa)
                take(choosing, &choosing->v[i]);
}

static void take_those(struct choosing *choosing, const struct davit_prefer_request *request)
{
    for (size_t i = 0; i < request->n_must_include; i++) {
        struct choice key = {.id = request->must_include[i]};
        struct choice *choice = bsearch(&key, choosing->v, choosing->n, sizeof(key), compare);

        if (choice)
            take(choosing, choice);
    }
}

void sample_prefer(const struct sample_devices *devices, struct davit_call *call,
                   const struct davit_prefer_request *request)
{
    struct choosing choosing = {
        .v = sample_alloc(request->n_available * sizeof(struct choice)),
        .n = request->n_available,
        .n_left = request->size,
        .call = call,
    };

    for (size_t i = 0; i < choosing.n; i++) {
        const struct sample_device *device = sample_devices_find(devices, request->available[i]);

        choosing.v[i].id = request->available[i];
        choosing.v[i].numa = device && device->numa.n > 0 ? device->numa.nodes[0] : -1;
    }
    qsort(choosing.v, choosing.n, sizeof(choosing.v[0]), compare);
    take_those(&choosing, request);
    if (devices->options->preference == SAMPLE_PREFER_PACKED)
        take_packed(&choosing);
    for (size_t i = 0; i < choosing.n; i++) {
        bool is_lowest = devices->options->preference == SAMPLE_PREFER_LOWEST;

        take(&choosing, &choosing.v[is_lowest ? i : choosing.n - 1 - i]);
    }
    free(choosing.v);
    davit_call_finish(call);
}
