/* fuzz_apply.c - a spec, a line "%%", a config: all devices of the spec applied to the config give
 * a document that is valid JSON, that has every other member as it was, and that the same edits do
 * not change again. A config with nothing in it takes any edits that go together. */
#include "oci/oci.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "json/json.h"

#define PRINT_BYTES_MAX (64u * 1024u * 1024u)
#define DEPTH_MAX 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is there is told by the last letter of its path. */
static bool look(const struct dv_oci_host *host, dv_str path, struct dv_oci_node *node,
                 struct dv_err *err)
{
    char last = path.p[path.n - 1];

    (void)host;
    if (last == 'x')
        return dv_fail(err, DV_FAILED_PRECONDITION, "nothing there");
    node->type = last == 'b'   ? DV_CDI_NODE_BLOCK
                 : last == 'p' ? DV_CDI_NODE_FIFO
                               : DV_CDI_NODE_CHAR;
    node->major = (uint32_t)(unsigned char)last;
    node->minor = 1;
    return true;
}

static const struct dv_oci_host host = {look};

static dv_str print(const struct dv_json *doc, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, PRINT_BYTES_MAX);
    dv_json_print(doc, NULL, &buf);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

static bool is_edited(dv_str key)
{
    return dv_str_eq(key, DV_STR("process")) || dv_str_eq(key, DV_STR("linux")) ||
           dv_str_eq(key, DV_STR("mounts")) || dv_str_eq(key, DV_STR("hooks"));
}

static void check_result(const struct dv_json *config, const struct dv_json *edited,
                         const struct dv_cdi_edits *edits, struct dv_arena *arena)
{
    dv_str text = print(edited, arena);
    struct dv_json *again;
    struct dv_err err;

    for (const struct dv_json *at = dv_json_first(config); at; at = dv_json_next(at)) {
        const struct dv_json *same = dv_json_get(edited, dv_json_key(at));

        assert(same && (is_edited(dv_json_key(at)) || dv_json_eq(at, same)));
    }
    again = dv_json_parse(text, NULL, arena, &err);
    assert(again && dv_json_eq(again, edited));
    again = dv_oci_apply(edited, edits, &host, arena, &err);
    assert(again && dv_str_eq(print(again, arena), text));
}

static void check_config(const struct dv_json *config, const struct dv_cdi_edits *edits,
                         struct dv_arena *arena)
{
    dv_str before = print(config, arena);
    struct dv_json *edited;
    struct dv_err err;

    edited = dv_oci_apply(config, edits, &host, arena, &err);
    assert(dv_str_eq(print(config, arena), before));
    if (edited)
        check_result(config, edited, edits, arena);
    else
        assert(err.code == DV_FAILED_PRECONDITION || dv_json_kind(config) != DV_JSON_OBJECT ||
               dv_json_n(config) > 0);
}

static void check_spec(struct dv_cdi_spec *spec, dv_str config_text)
{
    DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *index = dv_cdi_index_new(&spec, 1);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_json_opts opts = {.depth_max = DEPTH_MAX};
    dv_str *names = DV_NEW_ARRAY(arena, dv_str, spec->n_devices);
    struct dv_cdi_edits edits;
    struct dv_json *config;
    struct dv_err err;

    for (size_t i = 0; i < spec->n_devices; i++)
        names[i] = spec->devices[i].full_name;
    if (!dv_cdi_resolve(index, names, spec->n_devices, arena, &edits, &err))
        return;
    check_config(dv_json_new_object(arena), &edits, arena);
    config = dv_json_parse(config_text, &opts, arena, &err);
    if (config)
        check_config(config, &edits, arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dv_str all = {(const char *)data, size};
    size_t end = dv_str_find(all, DV_STR("%%\n"));
    struct dv_cdi_file file = {.path = DV_STR("x.yaml"), .text = dv_str_slice(all, 0, end)};
    struct dv_cdi_spec *spec = dv_cdi_spec_new(&file);

    if (spec->n_problems == 0)
        check_spec(spec, dv_str_slice(all, end + 3, all.n));
    dv_cdi_spec_unref(spec);
    return 0;
}
