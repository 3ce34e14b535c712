/* fuzz_validate.c - any object of any kind can be checked, twice with the same result, and what is
 * said about it is text. A good one is good as well after it was printed and read again. */
#include "resource/validate.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"
#include "json/json.h"

#define PRINT_BYTES_MAX (64u * 1024u * 1024u)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void *decode(const struct dv_kind *kind, dv_str text, struct dv_arena *arena)
{
    const struct dv_json_opts opts = {.depth_max = 100, .nodes_max = 20000};
    const struct dv_message *message = kind->versions[0].message;
    const struct dv_time now = {.seconds = 1767225600, .is_set = true};
    void *value = dv_arena_alloc(arena, message->size, message->align);
    struct dv_err err;
    const struct dv_json *json = dv_json_parse(text, &opts, arena, &err);

    if (!json || !dv_decode_json(message, json, DV_UNKNOWN_DROP, arena, value, NULL, &err))
        return NULL;
    dv_default(kind, &kind->versions[0], value, now, arena);
    return value;
}

static void assert_same(const struct dv_problems *a, const struct dv_problems *b)
{
    assert(a->n == b->n);
    for (size_t i = 0; i < a->n; i++) {
        assert(a->v[i].type == b->v[i].type);
        assert(dv_str_eq(a->v[i].field, b->v[i].field));
        assert(dv_str_eq(a->v[i].detail, b->v[i].detail));
        assert(a->v[i].detail.n > 0 && dv_str_is_utf8(a->v[i].detail));
    }
}

/* The first byte chooses the kind, the second the operation; the rest is an object, or two with a
 * NUL between them: the second one is stored. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf printed;
    struct dv_problems first = {.arena = arena};
    struct dv_problems second = {.arena = arena};
    struct dv_problems again = {.arena = arena};
    struct dv_problems before = {.arena = arena};
    struct dv_validation what = {.operation = DV_CREATE};
    const struct dv_message *message;
    dv_str text;
    size_t end;

    dv_buf_init(&printed, PRINT_BYTES_MAX);
    if (size < 2)
        return 0;
    what.kind = dv_kind((enum dv_kind_id)(data[0] % DV_N_KINDS));
    what.version = &what.kind->versions[data[1] / 3 % what.kind->n_versions];
    message = what.kind->versions[0].message;
    text = (dv_str){(const char *)data + 2, size - 2};
    end = dv_str_find_char(text, '\0');
    what.value = decode(what.kind, dv_str_slice(text, 0, end), arena);
    if (!what.value)
        return 0;
    if (data[1] % 3 != 0) {
        what.old = decode(what.kind, dv_str_slice(text, end + 1, text.n), arena);
        if (!what.old)
            return 0;
        what.operation = data[1] % 3 == 1 ? DV_UPDATE : DV_UPDATE_STATUS;
        dv_validate_before_update(&what, &before);
    }
    dv_validate(&what, &first);
    dv_validate(&what, &second);
    assert_same(&first, &second);
    if (first.n > 0)
        return 0;
    dv_encode_json_text(message, what.value, NULL, DV_STR(""), &printed);
    what.value = decode(what.kind, dv_buf_str(&printed), arena);
    if (what.value) /* with its defaults it may be larger than what is read here */
        dv_validate(&what, &again);
    assert(again.n == 0);
    return 0;
}
