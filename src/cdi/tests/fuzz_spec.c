/* fuzz_spec.c - files of specs, each behind a line "%%": a spec that is taken, written and read
 * again, is the same; one that is refused says why, and no name gives an edit of it; each device of
 * the index is resolved, or is had by two. */
#include "cdi/cdi.h"
#include "cdi/shape.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "json/json.h"

#define FILES_MAX 4u
#define PRINT_BYTES_MAX (64u * 1024u * 1024u)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static dv_str print(const struct dv_json *doc, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, PRINT_BYTES_MAX);
    dv_json_print(doc, NULL, &buf);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

/* A text that begins as JSON does is read as JSON, all else as YAML; each second file is of the
 * second directory. */
static struct dv_cdi_spec *read_file(dv_str text, size_t number)
{
    struct dv_cdi_file file = {
        .path = text.n > 0 && text.p[0] == '{' ? DV_STR("x.json") : DV_STR("x.yaml"),
        .text = text,
        .priority = number % 2,
    };

    return dv_cdi_spec_new(&file);
}

static void check_round_trip(const struct dv_cdi_spec *spec)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str text = print(dv_cdi_write(&dv_cdi_spec_shape, spec, arena), arena);
    struct dv_cdi_spec *again = read_file(text, spec->priority);

    if (text.n <= DV_CDI_SPEC_BYTES_MAX) { /* escapes can be longer than what they stand for */
        assert(again->n_problems == 0);
        assert(dv_str_eq(print(dv_cdi_write(&dv_cdi_spec_shape, again, arena), arena), text));
        assert(spec->n_devices > 0 && again->n_devices == spec->n_devices);
    }
    dv_cdi_spec_unref(again);
}

static void check_device(const struct dv_cdi_index *index, const struct dv_cdi_spec *spec,
                         const struct dv_cdi_device *device)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_cdi_entry *entry;
    struct dv_cdi_edits edits;
    struct dv_err err;

    if (!dv_cdi_resolve(index, &device->full_name, 1, arena, &edits, &err)) {
        entry = dv_cdi_index_find(index, device->full_name);
        assert(spec->n_problems > 0 || (entry && entry->rival));
        return;
    }
    assert(edits.n_parts == 2);
    for (size_t i = 0; i < edits.n_parts; i++)
        assert(edits.parts[i].spec->n_problems == 0);
    assert(spec->n_problems > 0 || edits.parts[0].spec->priority >= spec->priority);
    assert(dv_str_eq(edits.parts[1].device->full_name, device->full_name));
    assert(dv_cdi_edits_to_json(&edits, arena));
}

static void check_index(struct dv_cdi_spec *const *specs, size_t n_specs)
{
    DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *index = dv_cdi_index_new(specs, n_specs);
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    size_t n_problems = 0;

    dv_buf_init(&buf, PRINT_BYTES_MAX);
    for (size_t i = 0; i < n_specs; i++) {
        n_problems += specs[i]->n_problems;
        for (size_t k = 0; k < specs[i]->n_devices; k++)
            check_device(index, specs[i], &specs[i]->devices[k]);
    }
    assert(dv_cdi_check_print(index, &buf) >= n_problems);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dv_str rest = {(const char *)data, size};
    struct dv_cdi_spec *specs[FILES_MAX] = {NULL};
    size_t n_specs = 0;

    while (n_specs < FILES_MAX && rest.n > 0) {
        size_t end = dv_str_find(rest, DV_STR("%%\n"));
        struct dv_cdi_spec *spec = read_file(dv_str_slice(rest, 0, end), n_specs);

        rest = dv_str_slice(rest, end + 3, rest.n);
        specs[n_specs++] = spec;
        if (spec->n_problems == 0)
            check_round_trip(spec);
    }
    check_index(specs, n_specs);
    for (size_t i = 0; i < n_specs; i++)
        dv_cdi_spec_unref(specs[i]);
    return 0;
}
