/* spec.c - one spec file: its text read, checked, and kept. */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "cdi/cdi_name.h"
#include "cdi/cdi_read.h"
#include "cdi/shape.h"
#include "json/json.h"

/* A spec is 7 levels deep: the arguments of a hook of the edits of a device. */
#define DEPTH_MAX 16u
/* A spec of the largest size that is all short strings would be twice that; such a one has some
 * 16,000 devices with 30 values each. */
#define NODES_MAX (512u * 1024u)

struct shared_spec {
    struct dv_cdi_spec spec;
    struct dv_arena *arena; /* the struct is in it */
    size_t n_refs;
};

static const struct dv_json_opts limits = {
    .bytes_max = DV_CDI_SPEC_BYTES_MAX,
    .nodes_max = NODES_MAX,
    .depth_max = DEPTH_MAX,
    .refuse_duplicates = true,
};

bool dv_cdi_is_spec_path(dv_str path)
{
    return dv_str_ends_with(path, DV_STR(".json")) || dv_str_ends_with(path, DV_STR(".yaml"));
}

/* YAML unless it is called JSON, which has lines and columns for its errors too. */
static struct dv_json *parse(const struct dv_cdi_file *file, struct dv_arena *arena,
                             struct dv_err *err)
{
    struct dv_json *doc;

    if (file->unreadable) {
        *err = *file->unreadable;
        return NULL;
    }
    doc = dv_str_ends_with(file->path, DV_STR(".json"))
              ? dv_json_parse(file->text, &limits, arena, err)
              : dv_yaml_parse(file->text, &limits, arena, err);
    if (dv_json_is(doc, DV_JSON_NULL)) {
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "the file is empty");
        return NULL;
    }
    if (dv_json_n(dv_cdi_member(doc, DV_STR("devices"))) > DV_CDI_SPEC_DEVICES_MAX) {
        (void)dv_fail(err, DV_RESOURCE_EXHAUSTED, "%zu devices: at most %u are allowed",
                      dv_json_n(dv_cdi_member(doc, DV_STR("devices"))), DV_CDI_SPEC_DEVICES_MAX);
        return NULL;
    }
    return doc;
}

/* The version decides over the other fields, wherever it stands. One that is not known is a problem
 * of its own, and no reason for others. */
static void read_release(struct dv_cdi_reader *reader, const struct dv_json *doc)
{
    const struct dv_json *node = dv_cdi_member(doc, DV_STR("cdiVersion"));
    dv_str text = DV_STR_NONE;
    struct dv_err err;

    reader->release = DV_CDI_1_1_0;
    if (!node ||
        (dv_json_as_str(node, &text, &err) && dv_cdi_release_parse(text, &reader->release)))
        return;
    if (dv_json_is(node, DV_JSON_NUMBER))
        text = dv_json_number_text(node);
    dv_cdi_complain(reader, node, "\"%.*s\" is not a version from 0.3.0 to 1.1.0", DV_FMT(text));
}

static void name_devices(struct dv_cdi_spec *spec, struct dv_arena *arena)
{
    struct dv_err err;

    if (!dv_cdi_kind_parse(spec->kind, &spec->vendor, &spec->class, &err))
        return; /* is one of the problems */
    for (size_t i = 0; i < spec->n_devices; i++)
        spec->devices[i].full_name =
            dv_str_printf(arena, "%.*s=%.*s", DV_FMT(spec->kind), DV_FMT(spec->devices[i].name));
}

struct dv_cdi_spec *dv_cdi_spec_new(const struct dv_cdi_file *file)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct dv_arena *arena = dv_arena_new();
    struct shared_spec *shared = DV_NEW(arena, struct shared_spec);
    struct dv_cdi_spec *spec = &shared->spec;
    dv_str problems[DV_CDI_SPEC_PROBLEMS_MAX + 1];
    struct dv_cdi_reader reader = {.arena = arena, .problems = problems};
    struct dv_err err;
    struct dv_json *doc = parse(file, scratch, &err);

    *shared = (struct shared_spec){
        .spec = {.path = dv_str_copy(file->path, arena), .priority = file->priority},
        .arena = arena,
        .n_refs = 1,
    };
    if (doc) {
        read_release(&reader, doc);
        dv_cdi_read(&reader, &dv_cdi_spec_shape, doc, spec);
    } else {
        problems[reader.n_problems++] = dv_str_copy(dv_str_from_c(err.msg), arena);
    }
    name_devices(spec, arena);
    spec->problems = DV_NEW_ARRAY(arena, dv_str, reader.n_problems);
    spec->n_problems = reader.n_problems;
    for (size_t i = 0; i < reader.n_problems; i++)
        spec->problems[i] = problems[i];
    return spec;
}

struct dv_cdi_spec *dv_cdi_spec_ref(struct dv_cdi_spec *spec)
{
    DV_CONTAINER(spec, struct shared_spec, spec)->n_refs++;
    return spec;
}

void dv_cdi_spec_unref(struct dv_cdi_spec *spec)
{
    struct shared_spec *shared;

    if (!spec)
        return;
    shared = DV_CONTAINER(spec, struct shared_spec, spec);
    if (--shared->n_refs == 0)
        dv_arena_free(shared->arena);
}

void dv_cdi_spec_unrefp(struct dv_cdi_spec **spec)
{
    dv_cdi_spec_unref(*spec);
}
