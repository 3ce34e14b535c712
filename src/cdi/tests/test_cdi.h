/* test_cdi.h - specs and indexes from a few words. Texts are YAML, whose flow style needs few
 * quotes, unless their path says JSON. */
#ifndef DV_CDI_TEST_CDI_H
#define DV_CDI_TEST_CDI_H

#include "support/dvtest.h" /* IWYU pragma: export */

#include "base/arena.h" /* IWYU pragma: export */
#include "base/buf.h"   /* IWYU pragma: export */
#include "base/defs.h"  /* IWYU pragma: export */
#include "cdi/cdi.h"    /* IWYU pragma: export */
#include "json/json.h"  /* IWYU pragma: export */

#define PRINT_BYTES_MAX 65536u

/* A spec of one device, "v.com/c=d", with these edits. */
#define ONE(version, edits)                                                                        \
    "{cdiVersion: " version ", kind: v.com/c, devices: [{name: d, containerEdits: " edits "}]}"

static inline struct dv_cdi_spec *spec_of(const char *path, const char *text)
{
    struct dv_cdi_file file = {.path = dv_str_from_c(path), .text = dv_str_from_c(text)};

    return dv_cdi_spec_new(&file);
}

static inline struct dv_cdi_spec *spec_at(const char *path, uint32_t priority, const char *text)
{
    struct dv_cdi_file file = {
        .path = dv_str_from_c(path), .text = dv_str_from_c(text), .priority = priority};

    return dv_cdi_spec_new(&file);
}

/* Of specs that it takes. */
static inline struct dv_cdi_index *index_of(struct dv_cdi_spec **specs, size_t n_specs)
{
    struct dv_cdi_index *index = dv_cdi_index_new(specs, n_specs);

    for (size_t i = 0; i < n_specs; i++)
        dv_cdi_spec_unref(specs[i]);
    return index;
}

static inline dv_str print_json(const struct dv_json *node, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, PRINT_BYTES_MAX);
    dv_json_print(node, NULL, &buf);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

#endif
