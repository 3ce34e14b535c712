/* docs.h - documents that are made by tests, in one arena that lives as long as a test. */
#ifndef DV_TESTS_DOCS_H
#define DV_TESTS_DOCS_H

#include "base/arena.h"
#include "base/str.h"
#include "support/dvtest.h"
#include "json/json.h"

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

#define doc_test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

static inline struct dv_json *parse_yaml(const char *text)
{
    struct dv_err err;
    struct dv_json *doc = dv_yaml_parse(dv_str_from_c(text), NULL, arena, &err);

    assert_ok(doc, &err);
    return doc;
}

#endif
