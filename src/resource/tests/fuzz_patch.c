/* fuzz_patch.c - three documents, one a line: a pod, and two patches for it.
 *
 * A merge patch is done once it is done; a strategic patch that says nothing changes nothing; a
 * result of a JSON patch is what it says it is; and a configuration that was applied stays so: the
 * same again conflicts with nobody and changes neither the object nor who owns what. Two structs
 * differ as the documents do that they print. */
#include "resource/patch.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/patch/field_set.h"
#include "resource/patch/typed.h"
#include "resource/resource.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct dv_manager first = {
    .name = DV_STR_INIT("first"),
    .api_version = DV_STR_INIT("v1"),
    .now = {.seconds = 1, .is_set = true}
};
static const struct dv_manager second = {
    .name = DV_STR_INIT("second"),
    .api_version = DV_STR_INIT("v1"),
    .now = {.seconds = 2, .is_set = true}
};

static void check_merge(const struct dv_json *doc, const struct dv_json *patch,
                        struct dv_arena *arena)
{
    struct dv_json *once = dv_patch_merge(doc, patch, arena);

    assert(dv_json_eq(dv_patch_merge(once, patch, arena), once));
}

static void check_strategic(const struct dv_json *doc, const struct dv_json *patch,
                            struct dv_arena *arena)
{
    struct dv_err err;
    struct dv_json *once = dv_patch_strategic(&dv_message_pod, doc, patch, arena, &err);
    struct dv_json *again;

    if (!once)
        return;
    again = dv_patch_strategic(&dv_message_pod, once, dv_json_new_object(arena), arena, &err);
    assert(again && dv_json_eq(once, again));
}

static void check_json(const struct dv_json *doc, const struct dv_json *patch,
                       struct dv_arena *arena)
{
    struct dv_err err;
    struct dv_json *once = dv_patch_json(doc, patch, arena, &err);
    struct dv_json *test = dv_json_new_object(arena);
    struct dv_json *tests = dv_json_new_array(arena);

    if (!once)
        return;
    dv_json_set(test, DV_STR("op"), dv_json_new_str(DV_STR("test"), arena), arena);
    dv_json_set(test, DV_STR("path"), dv_json_new_str(DV_STR(""), arena), arena);
    dv_json_set(test, DV_STR("value"), dv_json_copy(once, arena), arena);
    dv_json_append(tests, test);
    assert(dv_patch_json(once, tests, arena, &err));
}

/* Applies by force, and then the same again. False when the configuration does not fit. */
static bool check_twice(struct dv_json **live, struct dv_managed_fields *managed,
                        const struct dv_json *config, const struct dv_manager *manager,
                        struct dv_arena *arena)
{
    struct dv_apply_result once;
    struct dv_apply_result again;
    struct dv_err err;

    if (!dv_apply(&dv_message_pod, *live, managed, config, manager, true, arena, &once, &err))
        return false;
    assert(once.n_conflicts == 0);
    assert(dv_apply(&dv_message_pod, once.doc, &once.managed, config, manager, false, arena, &again,
                    &err));
    assert(again.n_conflicts == 0);
    assert(dv_json_eq(once.doc, again.doc));
    /* Who applied an empty list only owns nothing. Such an object counts as one whose ownership was
     * never kept, as in the reference, and the next apply finds an owner for what is there. */
    assert(once.managed.n == 0 || dv_managed_fields_eq(&once.managed, &again.managed));
    *live = once.doc;
    *managed = once.managed;
    return true;
}

static void check_apply(const struct dv_json *config, const struct dv_json *other,
                        struct dv_arena *arena)
{
    struct dv_managed_fields managed = {0};
    struct dv_json *live = NULL;

    if (check_twice(&live, &managed, config, &first, arena) &&
        check_twice(&live, &managed, other, &second, arena))
        (void)check_twice(&live, &managed, config, &first, arena);
}

/* Structs are compared as the documents are that they print. */
static void check_compare(const void *a, const void *b, struct dv_arena *arena)
{
    const struct dv_message *message = &dv_message_pod;
    const struct dv_typed root = dv_typed_root(message);
    struct dv_fields values = dv_typed_compare_values(message, a, b, arena);
    struct dv_fields docs =
        dv_typed_compare(&root, dv_encode_json(message, a, NULL, DV_STR_NONE, arena),
                         dv_encode_json(message, b, NULL, DV_STR_NONE, arena), arena);

    assert(dv_fields_eq(&values, &docs));
}

static void check_update(const struct dv_json *old_doc, const struct dv_json *doc,
                         struct dv_arena *arena)
{
    struct dv_api_pod *old = DV_NEW(arena, struct dv_api_pod);
    struct dv_api_pod *now = DV_NEW(arena, struct dv_api_pod);
    struct dv_managed_fields created = {0};
    struct dv_managed_fields updated;
    struct dv_managed_fields again;
    struct dv_err err;

    if (!dv_decode_json(&dv_message_pod, old_doc, DV_UNKNOWN_KEEP, arena, old, NULL, &err) ||
        !dv_decode_json(&dv_message_pod, doc, DV_UNKNOWN_KEEP, arena, now, NULL, &err))
        return;
    check_compare(DV_NEW(arena, struct dv_api_pod), old, arena);
    check_compare(old, now, arena);
    dv_apply_update(&dv_message_pod, NULL, old, &created, &first, arena, &created);
    dv_apply_update(&dv_message_pod, old, now, &created, &second, arena, &updated);
    dv_apply_update(&dv_message_pod, now, now, &updated, &first, arena, &again);
    assert(dv_managed_fields_eq(&updated, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str rest = {size ? (const char *)data : "", size};
    struct dv_json *docs[3];

    for (size_t i = 0; i < DV_COUNT(docs); i++) {
        struct dv_err err;
        dv_str line;

        if (!dv_str_split(&rest, '\n', &line))
            return 0;
        docs[i] = dv_json_parse(line, NULL, arena, &err);
        if (!docs[i])
            return 0;
    }
    check_merge(docs[0], docs[1], arena);
    check_json(docs[0], docs[2], arena);
    if (!dv_json_is(docs[0], DV_JSON_OBJECT) || !dv_json_is(docs[1], DV_JSON_OBJECT))
        return 0;
    check_strategic(docs[0], docs[1], arena);
    check_apply(docs[0], docs[1], arena);
    check_update(docs[0], docs[1], arena);
    return 0;
}
