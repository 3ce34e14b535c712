/* config_image.c - which image a container names, and the hash by which a change of it is seen. */
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/image.h"
#include "resource/resource.h"
#include "workload/config.h"
#include "json/json.h"

/* FNV-1a of 32 bits. */
#define FNV_START UINT32_C(0x811c9dc5)
#define FNV_PRIME UINT32_C(0x01000193)

#define HASHED_BYTES_MAX (16u * 1024u * 1024u)

static uint32_t hash_byte(uint32_t hash, char c)
{
    return (hash ^ (unsigned char)c) * FNV_PRIME;
}

static uint32_t hash_text(uint32_t hash, const char *text)
{
    for (; *text; text++)
        hash = hash_byte(hash, *text);
    return hash;
}

static uint32_t hash_decimal(uint32_t hash, unsigned char value)
{
    if (value >= 100)
        hash = hash_byte(hash, (char)('0' + value / 100));
    if (value >= 10)
        hash = hash_byte(hash, (char)('0' + value / 10 % 10));
    return hash_byte(hash, (char)('0' + value % 10));
}

/* The reference hashes what Go prints of a slice of bytes, and not the bytes. */
uint32_t dv_config_hash(const struct dv_api_container *container)
{
    static const struct dv_json_style go = {.escape_html = true};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct dv_json *doc = dv_json_new_object(scratch);
    uint32_t hash = hash_text(FNV_START, "([]uint8)[");
    struct dv_buf buf;

    dv_json_set(doc, DV_STR("image"), dv_json_new_str(container->image, scratch), scratch);
    dv_json_set(doc, DV_STR("name"), dv_json_new_str(container->name, scratch), scratch);
    dv_buf_init(&buf, HASHED_BYTES_MAX);
    dv_json_print(doc, &go, &buf);
    for (size_t i = 0; i < buf.n; i++) {
        if (i > 0)
            hash = hash_byte(hash, ' ');
        hash = hash_decimal(hash, (unsigned char)buf.p[i]);
    }
    dv_buf_fini(&buf);
    return hash_text(hash, "]");
}

bool dv_config_image(dv_str reference, struct dv_arena *arena, dv_str *image, struct dv_err *err)
{
    if (!dv_image_check(reference, err)) {
        (void)dv_wrap(err, "couldn't parse image name \"%.*s\"", DV_FMT(reference));
        return dv_wrap(err, "Failed to apply default image tag \"%.*s\"", DV_FMT(reference));
    }
    *image = dv_image_is_bare(reference) ? dv_str_printf(arena, "%.*s:latest", DV_FMT(reference))
                                         : reference;
    return true;
}
