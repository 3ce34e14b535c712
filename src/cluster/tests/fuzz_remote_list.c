/* fuzz_remote_list.c - a page of a list: what is read can be shown, and is the same when it is read
 * again from a copy; nothing of the text is needed afterwards. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cluster/remote/remote_event.h"
#include "resource/resource.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* From a copy that is gone when this returns. */
static bool read_page(const struct dv_kind *kind, const uint8_t *data, size_t size,
                      struct dv_arena *arena, struct dv_remote_page *page)
{
    char *copy = malloc(size + 1);
    struct dv_err err;
    bool is_read;

    assert(copy);
    memcpy(copy, data, size);
    is_read = dv_remote_page_read(kind, &kind->versions[kind->n_versions - 1], (dv_str){copy, size},
                                  arena, page, &err);
    assert(is_read || err.msg[0]);
    free(copy);
    return is_read;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_kind *kind = dv_kind(DV_KIND_CLASS);
    struct dv_remote_page page;
    struct dv_remote_page again;

    if (!read_page(kind, data, size, arena, &page))
        return 0;
    assert(read_page(kind, data, size, arena, &again));
    assert(page.version > 0 && page.version == again.version);
    assert(page.n_objects == again.n_objects && dv_str_eq(page.more, again.more));
    for (size_t i = 0; i < page.n_objects; i++) {
        assert(page.objects[i]->meta->name.n > 0 && page.objects[i]->version > 0);
        assert(dv_message_eq(kind->versions[0].message, page.objects[i]->value,
                             again.objects[i]->value));
    }
    dv_remote_page_drop(&page);
    dv_remote_page_drop(&again);
    return 0;
}
