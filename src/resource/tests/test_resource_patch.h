/* test_resource_patch.h - documents in the tests of patches: written as YAML, compared as values.
 */
#ifndef DV_RESOURCE_TEST_RESOURCE_PATCH_H
#define DV_RESOURCE_TEST_RESOURCE_PATCH_H

#include "support/dvtest.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/json.h"

#define PRINT_BYTES_MAX 65536u

static struct dv_arena *arena;

static inline int set_up(void **state)
{
    (void)state;
    arena = dv_arena_new();
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    dv_arena_free(arena);
    return 0;
}

#define patch_test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

static inline struct dv_json *parse(const char *text)
{
    struct dv_err err;
    struct dv_json *doc = dv_yaml_parse(dv_str_from_c(text), NULL, arena, &err);

    assert_ok(doc, &err);
    return doc;
}

static inline dv_str print(const struct dv_json *node)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, PRINT_BYTES_MAX);
    dv_json_print(node, NULL, &buf);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

static inline void assert_doc(const struct dv_json *got, const char *wanted)
{
    if (!dv_json_eq(got, parse(wanted)))
        fail_msg("got %.*s, want %.*s", DV_FMT(print(got)), DV_FMT(print(parse(wanted))));
}

#endif
