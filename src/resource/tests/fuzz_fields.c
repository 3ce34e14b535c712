/* fuzz_fields.c - two sets of fields as text, one a line. What is read and printed is read as the
 * same set again, and the operations keep the laws of sets. */
#include "resource/patch/field_set.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const struct dv_fields *fields, struct dv_arena *arena)
{
    struct dv_fields again;
    struct dv_err err;

    assert(dv_fields_parse(dv_fields_print(fields, arena), arena, &again, &err));
    assert(dv_fields_eq(fields, &again));
}

static void check_laws(const struct dv_fields *a, const struct dv_fields *b, struct dv_arena *arena)
{
    struct dv_fields all = dv_fields_union(a, b, arena);
    struct dv_fields both = dv_fields_intersection(a, b, DV_FIELDS_MEMBER, arena);
    struct dv_fields rest = dv_fields_difference(a, b, DV_FIELDS_MEMBER, arena);
    struct dv_fields swapped = dv_fields_union(b, a, arena);
    struct dv_fields sum = dv_fields_union(&both, &rest, arena);

    assert(dv_fields_eq(&all, &swapped));
    assert(dv_fields_eq(&sum, a));
    rest = dv_fields_difference(a, &all, DV_FIELDS_MEMBER, arena);
    assert(dv_fields_is_empty(&rest));
    rest = dv_fields_without(a, a, arena);
    assert(dv_fields_is_empty(&rest));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str rest = {size ? (const char *)data : "", size};
    struct dv_fields sets[2];

    for (size_t i = 0; i < DV_COUNT(sets); i++) {
        struct dv_err err;
        dv_str line;

        if (!dv_str_split(&rest, '\n', &line) || !dv_fields_parse(line, arena, &sets[i], &err))
            return 0;
        check_text(&sets[i], arena);
    }
    check_laws(&sets[0], &sets[1], arena);
    return 0;
}
