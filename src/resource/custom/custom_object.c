/* custom_object.c - objects of kinds that definitions make: their bodies pruned, prepared, checked.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/custom.h"
#include "resource/custom/schema.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"
#include "json/json.h"

/* The ceiling of a body's text: as large as a request may be, with its defaults. */
#define BODY_BYTES_MAX (64u * 1024u * 1024u)

static dv_str body_of(const struct dv_api_custom_object *object)
{
    return object->unknown ? *object->unknown : DV_STR_NONE;
}

/* The body as a document, which nobody has refused before. */
static struct dv_json *read_body(const struct dv_api_custom_object *object, struct dv_arena *arena)
{
    dv_str body = body_of(object);
    struct dv_json *doc;
    struct dv_err err;

    if (body.n == 0)
        return dv_json_new_object(arena);
    doc = dv_json_parse(dv_str_printf(arena, "{%.*s}", DV_FMT(body)), NULL, arena, &err);
    return doc ? doc : dv_json_new_object(arena); /* it was printed by us, so it can be read */
}

static void set_body(struct dv_api_custom_object *object, const struct dv_json *doc,
                     struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    dv_str *text;

    dv_buf_init(&buf, BODY_BYTES_MAX);
    dv_json_print(doc, &(const struct dv_json_style){.sort_keys = true}, &buf);
    object->unknown = NULL;
    if (buf.n <= 2)
        return;
    text = DV_NEW(arena, dv_str);
    *text = dv_str_copy(dv_str_slice(dv_buf_str(&buf), 1, buf.n - 1), arena);
    object->unknown = text;
}

bool dv_custom_set_number(struct dv_api_custom_object *object, dv_str path, int64_t number,
                          struct dv_arena *arena)
{
    struct dv_json *doc = read_body(object, arena);
    struct dv_json *at = doc;
    dv_str rest = dv_str_slice(path, 1, path.n); /* it begins with a dot */
    dv_str name;

    while (dv_str_split(&rest, '.', &name)) {
        struct dv_json *child = dv_json_get(at, name);

        if (!dv_json_is(at, DV_JSON_OBJECT))
            return false;
        if (rest.n == 0) {
            dv_json_set(at, name, dv_json_new_i64(number, arena), arena);
            break;
        }
        if (!child) {
            child = dv_json_new_object(arena);
            dv_json_set(at, name, child, arena);
        }
        at = child;
    }
    set_body(object, doc, arena);
    return true;
}

static void set_text(struct dv_json *doc, const char *key, dv_str text, struct dv_arena *arena)
{
    if (text.n > 0)
        dv_json_set(doc, dv_str_from_c(key), dv_json_new_str(text, arena), arena);
}

struct dv_json *dv_custom_document(const struct dv_custom_version *version,
                                   const struct dv_api_custom_object *object,
                                   struct dv_arena *arena)
{
    struct dv_json *doc = read_body(object, arena);
    struct dv_json *metadata = dv_json_new_object(arena);
    const dv_str parts[] = {version->api.group, DV_STR("/"), version->api.version};

    set_text(doc, "apiVersion", dv_str_concat(parts, DV_COUNT(parts), arena), arena);
    set_text(doc, "kind", version->custom->names->kind, arena);
    set_text(metadata, "name", object->metadata.name, arena);
    set_text(metadata, "generateName", object->metadata.generate_name, arena);
    dv_json_set(doc, DV_STR("metadata"), metadata, arena);
    return doc;
}

bool dv_custom_settle(const struct dv_custom_version *version, struct dv_api_custom_object *object,
                      struct dv_arena *arena, struct dv_decode_notes *notes)
{
    const struct dv_json *doc = read_body(object, arena);
    const struct dv_json *settled = dv_schema_prune(version->schema, doc, true, arena, notes);

    if (settled)
        set_body(object, settled, arena);
    return settled != NULL;
}

const struct dv_api_custom_object *dv_custom_shown(const struct dv_object *object,
                                                   const struct dv_custom_version *version,
                                                   struct dv_arena *arena)
{
    const struct dv_api_custom_object *value = object->value;
    struct dv_api_custom_object *shown;

    /* Of several versions nobody knows in which one it was written. */
    if (version->custom->n_versions == 1 && object->version > version->custom->since)
        return value;
    shown = DV_NEW(arena, struct dv_api_custom_object);
    *shown = *value;
    return dv_custom_settle(version, shown, arena, NULL) ? shown : value;
}

/* ---- writes ---- */

static void drop(struct dv_json *doc, dv_str name)
{
    struct dv_json *node = dv_json_get(doc, name);

    if (node)
        dv_json_remove(node);
}

/* Makes a member of `doc` what it is in `from`. */
static void keep(struct dv_json *doc, const struct dv_json *from, dv_str name,
                 struct dv_arena *arena)
{
    const struct dv_json *node = dv_json_get(from, name);

    if (node)
        dv_json_set(doc, name, dv_json_copy(node, arena), arena);
    else
        drop(doc, name);
}

void dv_custom_prepare_create(const struct dv_custom_version *version,
                              struct dv_api_custom_object *object, struct dv_arena *arena)
{
    struct dv_json *doc;

    object->metadata.generation = 1;
    if (!version->has_status)
        return;
    doc = read_body(object, arena);
    drop(doc, DV_STR("status"));
    set_body(object, doc, arena);
}

/* Whether they differ in what the generation counts: all but the status, where that is apart. */
static bool is_changed(const struct dv_json *doc, const struct dv_json *old,
                       const struct dv_custom_version *version, struct dv_arena *arena)
{
    struct dv_json *a = dv_json_copy(doc, arena);
    struct dv_json *b = dv_json_copy(old, arena);

    if (version->has_status) {
        drop(a, DV_STR("status"));
        drop(b, DV_STR("status"));
    }
    return !dv_json_eq(a, b);
}

void dv_custom_prepare_update(const struct dv_custom_version *version, bool is_status,
                              struct dv_api_custom_object *object,
                              const struct dv_api_custom_object *old, struct dv_arena *arena)
{
    struct dv_json *doc = read_body(object, arena);
    const struct dv_json *before = read_body(old, arena);

    if (is_status) {
        struct dv_json *status = dv_json_get(doc, DV_STR("status"));

        status = status ? dv_json_copy(status, arena) : NULL;
        doc = dv_json_copy(before, arena);
        drop(doc, DV_STR("status"));
        if (status)
            dv_json_set(doc, DV_STR("status"), status, arena);
    } else if (version->has_status) {
        keep(doc, before, DV_STR("status"), arena);
    }
    if (is_changed(doc, before, version, arena) && object->metadata.generation < INT64_MAX)
        object->metadata.generation++;
    /* What means the same keeps the text that it had, so that nothing is written for it. */
    if (dv_json_eq(doc, before))
        object->unknown = old->unknown;
    else
        set_body(object, doc, arena);
}

void dv_custom_check(const struct dv_custom_version *version,
                     const struct dv_api_custom_object *object,
                     const struct dv_api_custom_object *old, struct dv_problems *problems,
                     struct dv_problems *warnings)
{
    struct dv_arena *arena = problems->arena;
    size_t n_problems = problems->n;
    const struct dv_json *doc = dv_custom_document(version, object, arena);
    const struct dv_json *before = old ? dv_custom_document(version, old, arena) : NULL;

    dv_schema_check(version->schema, doc, before, NULL,
                    DV_SCHEMA_STEPS_MAX + 4 * (uint64_t)body_of(object).n, problems);
    if (problems->n == n_problems)
        dv_schema_check_rules(version->schema, doc, before, NULL, problems, warnings);
    else if (version->schema->has_rules)
        dv_problem_add(problems, DV_PROBLEM_INVALID, NULL, "<nil>", dv_bad_null(),
                       "some validation rules were not checked because the object was invalid; "
                       "correct the existing errors to complete validation");
}
