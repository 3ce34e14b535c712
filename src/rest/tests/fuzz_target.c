/* fuzz_target.c - what a good target is made of, decoded, encoded again and put together, is a good
 * target with the same parts; and all parts are UTF-8 without a NUL. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "rest/rest.h"
#include "rest/target.h"

#define TEXT_BYTES_MAX (16u * 1024u * 1024u)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_part(dv_str part)
{
    assert(dv_str_is_utf8(part));
    assert(dv_str_find_char(part, '\0') == part.n);
}

/* The target, encoded as ours are; false: it is not good. */
static bool encode(dv_str target, struct dv_arena *arena, struct dv_buf *text)
{
    struct dv_err err;
    dv_str path;
    dv_str query;
    dv_str rest;
    dv_str name;
    dv_str value;

    if (!dv_rest_target_parse(target, &path, &query, &err))
        return false;
    for (rest = path; dv_rest_path_next(&rest, arena, &value);) {
        check_part(value);
        dv_buf_add_char(text, '/');
        dv_rest_add_encoded(text, value);
    }
    dv_buf_add_char(text, '?');
    for (rest = query; dv_rest_query_next(&rest, arena, &name, &value);) {
        dv_str found;

        check_part(name);
        check_part(value);
        assert(dv_rest_query_get(query, name, arena, &found));
        dv_rest_add_encoded(text, name);
        dv_buf_add_char(text, '=');
        dv_rest_add_encoded(text, value);
        dv_buf_add_char(text, '&');
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf once;
    DV_CLEANUP(dv_buf_fini) struct dv_buf twice;

    dv_buf_init(&once, TEXT_BYTES_MAX);
    dv_buf_init(&twice, TEXT_BYTES_MAX);
    if (size > 65536 || !encode((dv_str){(const char *)data, size}, arena, &once))
        return 0;
    assert(encode(dv_buf_str(&once), arena, &twice));
    assert(dv_str_eq(dv_buf_str(&once), dv_buf_str(&twice)));
    return 0;
}
