/* fuzz_object.h - what the fuzzers of objects share: the first byte of an input chooses the kind
 * and version, and what is printed is read again. */
#ifndef DV_RESOURCE_FUZZ_OBJECT_H
#define DV_RESOURCE_FUZZ_OBJECT_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"
#include "json/json.h"

static inline const struct dv_kind *chosen_kind(uint8_t byte)
{
    return dv_kind((enum dv_kind_id)(byte % DV_N_KINDS));
}

static inline const struct dv_api_version *chosen_version(const struct dv_kind *kind, uint8_t byte)
{
    return &kind->versions[byte / DV_N_KINDS % kind->n_versions];
}

static inline void *new_value(const struct dv_message *message, struct dv_arena *arena)
{
    return dv_arena_alloc(arena, message->size, message->align);
}

static inline void *decode_text(const struct dv_message *message, dv_str text,
                                enum dv_unknown unknown, struct dv_arena *arena)
{
    struct dv_err err;
    struct dv_json *doc = dv_json_parse(text, NULL, arena, &err);
    void *value = new_value(message, arena);

    if (!doc || !dv_decode_json(message, doc, unknown, arena, value, NULL, &err))
        return NULL;
    return value;
}

static inline dv_str encode_text(const struct dv_message *message, const void *value,
                                 struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, SIZE_MAX);
    dv_encode_json_text(message, value, NULL, DV_STR_NONE, &buf);
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

static inline dv_str encode_bytes(const struct dv_message *message, const void *value,
                                  struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str bytes;

    dv_buf_init(&buf, SIZE_MAX);
    dv_encode_pb(message, value, &buf);
    bytes = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return bytes;
}

#endif
