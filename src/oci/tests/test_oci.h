/* test_oci.h - a config, a spec and a host in a few words: all texts are YAML in flow style. */
#ifndef DV_OCI_TEST_OCI_H
#define DV_OCI_TEST_OCI_H

#include "support/dvtest.h" /* IWYU pragma: export */

#include <stdbool.h>
#include <stdio.h>
#include <string.h> /* IWYU pragma: export */

#include "base/arena.h" /* IWYU pragma: export */
#include "base/buf.h"   /* IWYU pragma: export */
#include "base/defs.h"  /* IWYU pragma: export */
#include "cdi/cdi.h"    /* IWYU pragma: export */
#include "oci/oci.h"    /* IWYU pragma: export */
#include "json/json.h"  /* IWYU pragma: export */

#define PRINT_BYTES_MAX 65536u

/* A host with two devices and a pipe. */
static inline bool look(const struct dv_oci_host *host, dv_str path, struct dv_oci_node *node,
                        struct dv_err *err)
{
    (void)host;
    if (dv_str_eq(path, DV_STR("/dev/null")))
        *node = (struct dv_oci_node){DV_CDI_NODE_CHAR, 1, 3};
    else if (dv_str_eq(path, DV_STR("/dev/disk")))
        *node = (struct dv_oci_node){DV_CDI_NODE_BLOCK, 8, 1};
    else if (dv_str_eq(path, DV_STR("/dev/pipe")))
        *node = (struct dv_oci_node){DV_CDI_NODE_FIFO, 0, 0};
    else
        return dv_fail(err, DV_NOT_FOUND, "no such file");
    return true;
}

static const struct dv_oci_host test_host = {look};

static inline struct dv_json *yaml(const char *text, struct dv_arena *arena)
{
    struct dv_err err;
    struct dv_json *doc = dv_yaml_parse(dv_str_from_c(text), NULL, arena, &err);

    assert_ok(doc, &err);
    return doc;
}

static inline dv_str print(const struct dv_json *node, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, PRINT_BYTES_MAX);
    dv_json_print(node, NULL, &buf);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

/* An index of one spec with devices "v.com/c=d0", "v.com/c=d1", ... that have these edits, up to a
 * NULL; `own` are the spec's. */
static inline struct dv_cdi_index *make_index(const char *own, const char *const *edits,
                                              struct dv_arena *arena)
{
    dv_str text = dv_str_printf(
        arena, "{cdiVersion: 1.1.0, kind: v.com/c, containerEdits: %s, devices: [", own);
    struct dv_cdi_file file = {.path = DV_STR("/etc/cdi/v.yaml")};
    struct dv_cdi_index *index;
    struct dv_cdi_spec *spec;

    for (size_t i = 0; edits[i]; i++)
        text = dv_str_printf(arena, "%.*s%s{name: d%zu, containerEdits: %s}", DV_FMT(text),
                             i ? ", " : "", i, edits[i]);
    file.text = dv_str_printf(arena, "%.*s]}", DV_FMT(text));
    spec = dv_cdi_spec_new(&file);
    assert_int_equal(spec->n_problems, 0);
    index = dv_cdi_index_new(&spec, 1);
    dv_cdi_spec_unref(spec);
    return index;
}

/* The config with all the devices applied, printed; or the error's message. Applied twice, it is
 * the same. */
static inline const char *apply(const char *config, const char *own, const char *const *edits)
{
    static char result[4096];
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *index = make_index(own, edits, arena);
    struct dv_json *before = yaml(config, arena);
    dv_str old_text = print(before, arena);
    struct dv_cdi_edits resolved;
    struct dv_json *after;
    struct dv_json *again;
    struct dv_err err;
    dv_str names[8];
    size_t n = 0;

    for (; edits[n]; n++)
        names[n] = dv_str_printf(arena, "v.com/c=d%zu", n);
    assert_ok(dv_cdi_resolve(index, names, n, arena, &resolved, &err), &err);
    after = dv_oci_apply(before, &resolved, &test_host, arena, &err);
    assert_str(print(before, arena), dv_str_to_c(old_text, arena));
    if (!after) {
        (void)snprintf(result, sizeof(result), "%s", err.msg);
        return result;
    }
    again = dv_oci_apply(after, &resolved, &test_host, arena, &err);
    assert_ok(again, &err);
    assert_str(print(again, arena), dv_str_to_c(print(after, arena), arena));
    (void)snprintf(result, sizeof(result), "%.*s", DV_FMT(print(after, arena)));
    return result;
}

struct apply_case {
    const char *config;
    const char *own;
    const char *edits[4];
    const char *want; /* in YAML; or the error's message */
};

static inline void check_cases(const struct apply_case *cases, size_t n_cases)
{
    for (size_t i = 0; i < n_cases; i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        const char *got = apply(cases[i].config, cases[i].own, cases[i].edits);
        const char *want = cases[i].want;

        if (want[0] == '{')
            want = dv_str_to_c(print(yaml(want, arena), arena), arena);
        if (strcmp(got, want) != 0)
            fail_msg("case %zu: got %s, want %s", i, got, want);
    }
}

#endif
