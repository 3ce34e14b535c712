/* test_values.h - what the tests of objects share: values from JSON, and back. */
#ifndef DV_RESOURCE_TEST_VALUES_H
#define DV_RESOURCE_TEST_VALUES_H

#include "support/dvtest.h"

#include "base/arena.h"
#include "base/buf.h"
#include "resource/resource.h"
#include "json/json.h"

static inline struct dv_json *parsed(const char *text, struct dv_arena *arena)
{
    struct dv_err err;
    struct dv_json *doc = dv_json_parse(dv_str_from_c(text), NULL, arena, &err);

    if (!doc)
        fail_msg("%s", err.msg);
    return doc;
}

static inline void *new_value(const struct dv_message *message, struct dv_arena *arena)
{
    return dv_arena_alloc(arena, message->size, message->align);
}

static inline void *decoded(const struct dv_message *message, const char *text,
                            struct dv_arena *arena)
{
    void *value = new_value(message, arena);
    struct dv_err err;

    assert_ok(
        dv_decode_json(message, parsed(text, arena), DV_UNKNOWN_DROP, arena, value, NULL, &err),
        &err);
    return value;
}

static inline dv_str as_json(const struct dv_message *message, const void *value,
                             struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, SIZE_MAX);
    dv_encode_json_text(message, value, NULL, DV_STR_NONE, &buf);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

static inline dv_str as_pb(const struct dv_message *message, const void *value,
                           struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, SIZE_MAX);
    dv_encode_pb(message, value, &buf);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

#endif
