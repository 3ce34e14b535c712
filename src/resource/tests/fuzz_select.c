/* fuzz_select.c - a selector is either understood, or there is a complaint about it; and what it
 * says about an object does not depend on when it is asked. A field selector that demands a name
 * matches no other. Of a packed object they say the same. */
#include "resource/select.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/object_pool.h"
#include "resource/resource.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct dv_str_entry labels[] = {
    {DV_STR_INIT("a"),   DV_STR_INIT("b")},
    {DV_STR_INIT("n"),   DV_STR_INIT("5")},
    {DV_STR_INIT("x/y"), DV_STR_INIT("") },
};

static void check_labels(dv_str text, struct dv_arena *arena)
{
    struct dv_err err;
    const struct dv_label_selector *once = dv_label_selector_parse(text, arena, &err);
    const struct dv_label_selector *again = dv_label_selector_parse(text, arena, &err);

    assert(!once == !again);
    if (!once || !again)
        return;
    assert(dv_label_selector_matches(once, labels, DV_COUNT(labels)) ==
           dv_label_selector_matches(again, labels, DV_COUNT(labels)));
    assert(!dv_label_selector_is_empty(once) || dv_label_selector_matches(once, NULL, 0));
}

static void check_packed(const struct dv_object *object, const struct dv_field_selector *fields,
                         struct dv_arena *arena)
{
    struct dv_object_pool *pool = dv_object_pool_new(NULL, NULL);
    DV_CLEANUP(dv_buf_fini) struct dv_buf row;
    struct dv_object *packed;
    struct dv_err err;

    dv_buf_init(&row, SIZE_MAX);
    dv_encode_row(object, &row);
    packed = dv_object_pool_load(pool, object->kind, dv_buf_str(&row), arena, &err);
    assert(packed);
    dv_object_forget_value(packed);
    assert(dv_object_is_selected(packed, dv_label_selector_parse(DV_STR(""), arena, &err),
                                 fields) == dv_field_selector_matches(fields, object));
    dv_object_unkeep(packed);
    dv_object_pool_free(pool);
}

static void check_fields(const struct dv_object *object, dv_str group, dv_str text,
                         struct dv_arena *arena)
{
    struct dv_err err;
    const struct dv_field_selector *selector =
        dv_field_selector_parse(object->kind, group, text, arena, &err);
    dv_str name;

    if (!selector)
        return;
    if (dv_field_selector_matches(selector, object) &&
        dv_field_selector_demands(selector, DV_STR("metadata.name"), &name))
        assert(dv_str_eq(name, object->meta->name));
    if (dv_field_selector_is_empty(selector))
        assert(dv_field_selector_matches(selector, object));
    check_packed(object, selector, arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str text = {size ? (const char *)data : "", size};

    check_labels(text, arena);
    for (int i = 0; i < DV_N_KINDS; i++) {
        const struct dv_kind *kind = dv_kind((enum dv_kind_id)i);
        const struct dv_message *message = kind->versions[0].message;
        struct dv_object object = {.kind = kind,
                                   .value = dv_arena_alloc(arena, message->size, message->align)};

        object.meta = object.value; /* it is the first member of every kind */
        object.meta->name = DV_STR("a");
        for (size_t j = 0; j < kind->n_versions; j++)
            check_fields(&object, kind->versions[j].group, text, arena);
    }
    return 0;
}
