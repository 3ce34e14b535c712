#include "serve/node/use_ring.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/vec.h"

struct series {
    char *text; /* the three names, one behind the other */
    struct dv_use_key key;
    uint32_t held[DV_USE_SAMPLES]; /* a ring: the present sample is at `ring->at` */
    size_t n;                      /* since it is known */
    bool is_seen;                  /* in the present sample */
};

struct dv_use_ring {
    DV_VEC(struct series *) series; /* by key */
    size_t at;
};

static int compare(const struct dv_use_key *a, const struct dv_use_key *b)
{
    int order = dv_str_cmp(a->resource, b->resource);

    if (order == 0)
        order = dv_str_cmp(a->driver, b->driver);
    return order != 0 ? order : dv_str_cmp(a->pool, b->pool);
}

static dv_str put(char **at, dv_str text)
{
    dv_str copy = {*at, text.n};

    if (text.n > 0)
        memcpy(*at, text.p, text.n);
    *at += text.n;
    return copy;
}

static struct series *series_new(const struct dv_use_key *key)
{
    struct series *series = DV_ALLOC(struct series);
    char *at = series->text = dv_alloc(key->resource.n + key->driver.n + key->pool.n + 1);

    series->key.resource = put(&at, key->resource);
    series->key.driver = put(&at, key->driver);
    series->key.pool = put(&at, key->pool);
    series->n = 1;
    return series;
}

static void series_free(struct series *series)
{
    free(series->text);
    free(series);
}

/* Whether anything was held in the samples that are kept. */
static bool was_held(const struct series *series)
{
    for (size_t i = 0; i < DV_USE_SAMPLES; i++)
        if (series->held[i] > 0)
            return true;
    return false;
}

struct dv_use_ring *dv_use_ring_new(void)
{
    return DV_ALLOC(struct dv_use_ring);
}

void dv_use_ring_free(struct dv_use_ring *ring)
{
    if (!ring)
        return;
    for (size_t i = 0; i < ring->series.n; i++)
        series_free(ring->series.v[i]);
    dv_vec_fini(&ring->series);
    free(ring);
}

void dv_use_ring_begin(struct dv_use_ring *ring)
{
    size_t n_kept = 0;

    ring->at = (ring->at + 1) % DV_USE_SAMPLES;
    for (size_t i = 0; i < ring->series.n; i++) {
        struct series *series = ring->series.v[i];

        if (!series->is_seen && !was_held(series)) {
            series_free(series);
            continue;
        }
        series->held[ring->at] = 0;
        series->n = dv_size_min(series->n + 1, DV_USE_SAMPLES);
        series->is_seen = false;
        ring->series.v[n_kept++] = series;
    }
    ring->series.n = n_kept;
}

void dv_use_ring_add(struct dv_use_ring *ring, const struct dv_use_key *key, uint64_t n)
{
    size_t at = ring->series.n;
    struct series *series;

    while (at > 0 && compare(&ring->series.v[at - 1]->key, key) > 0)
        at--;
    if (at > 0 && compare(&ring->series.v[at - 1]->key, key) == 0) {
        series = ring->series.v[at - 1];
    } else {
        if (ring->series.n == DV_USES_MAX)
            return;
        series = series_new(key);
        *dv_vec_add(&ring->series) = series;
        memmove(&ring->series.v[at + 1], &ring->series.v[at],
                (ring->series.n - 1 - at) * sizeof(ring->series.v[0]));
        ring->series.v[at] = series;
    }
    series->is_seen = true;
    series->held[ring->at] = (uint32_t)dv_u64_min(series->held[ring->at] + n, UINT32_MAX);
}

size_t dv_use_ring_list(const struct dv_use_ring *ring, struct dv_arena *arena,
                        struct dv_past_use **uses)
{
    struct dv_past_use *v = DV_NEW_ARRAY(arena, struct dv_past_use, ring->series.n);

    for (size_t i = 0; i < ring->series.n; i++) {
        const struct series *series = ring->series.v[i];
        uint32_t *held = DV_NEW_ARRAY(arena, uint32_t, series->n);

        for (size_t k = 0; k < series->n; k++)
            held[k] =
                series->held[(ring->at + DV_USE_SAMPLES + 1 + k - series->n) % DV_USE_SAMPLES];
        v[i] = (struct dv_past_use){.key = series->key, .held = held, .n = series->n};
    }
    *uses = v;
    return ring->series.n;
}
