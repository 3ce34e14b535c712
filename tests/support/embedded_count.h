/* embedded_count.h - how many objects of a kind the embedded API has: for tests, fuzzers and
 * benchmarks, which wait for a number of them. */
#ifndef DV_TESTS_EMBEDDED_COUNT_H
#define DV_TESTS_EMBEDDED_COUNT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/defs.h"
#include "cluster/embedded.h"
#include "resource/resource.h"

struct dv_api_status;

static inline size_t embedded_count(struct dv_embedded *embedded, const struct dv_kind *kind)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_list_query query = {.kind = kind, .version = &kind->versions[0]};
    struct dv_api_status *failure;
    struct dv_list_page page;
    bool is_ok = dv_embedded_list(embedded, &query, arena, &page, &failure);

    assert(is_ok);
    return page.n_objects;
}

#endif
