/* test_cdi.h - specs and indexes from a few words. Texts are YAML, whose flow style needs few
 * quotes, unless their path says JSON. */
#ifndef DV_CDI_TEST_CDI_H
#define DV_CDI_TEST_CDI_H

#include "support/dvtest.h" /* IWYU pragma: export */

#include "base/arena.h" /* IWYU pragma: export */
#include "base/buf.h"   /* IWYU pragma: export */
#include "base/defs.h"  /* IWYU pragma: export */
#include "base/err.h"   /* IWYU pragma: export */
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

/* Whether nothing is wrong with it; `err` gets the first problem. */
static inline bool check_spec(const struct dv_cdi_spec *spec, struct dv_err *err)
{
    if (spec->n_problems == 0)
        return true;
    return dv_fail(err, DV_INVALID_ARGUMENT, "CDI spec %.*s: %.*s", DV_FMT(spec->path),
                   DV_FMT(spec->problems[0]));
}

/* Of specs that it takes. */
static inline struct dv_cdi_index *index_of(struct dv_cdi_spec **specs, size_t n_specs)
{
    struct dv_cdi_index *index = dv_cdi_index_new(specs, n_specs);

    for (size_t i = 0; i < n_specs; i++)
        dv_cdi_spec_unref(specs[i]);
    return index;
}

/* The devices by name, a line each: "v.com/c=a /etc/cdi/v.yaml", with the file that has it too. */
static inline void print_devices(const struct dv_cdi_index *index, struct dv_buf *buf)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    size_t n;
    const struct dv_cdi_entry **entries = dv_cdi_index_list(index, arena, &n);

    for (size_t i = 0; i < n; i++)
        dv_buf_printf(buf, "%.*s %.*s%s%.*s\n", DV_FMT(entries[i]->device->full_name),
                      DV_FMT(entries[i]->spec->path), entries[i]->rival ? " and " : "",
                      DV_FMT(entries[i]->rival ? entries[i]->rival->path : DV_STR_NONE));
}

static inline dv_str print_json(const struct dv_json *node, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, PRINT_BYTES_MAX);
    dv_json_print(node, NULL, &buf);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

#endif
