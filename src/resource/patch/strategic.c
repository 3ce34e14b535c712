/* strategic.c - strategic merge patch: maps are merged member by member; what their lists do is in
 * strategic_list.c. A patch only goes down together with the document, so the depth here is the
 * document's. */
#include "resource/patch/strategic.h"

#include <stddef.h>

#include "base/err.h"
#include "base/map.h"
#include "resource/field.h"
#include "resource/patch.h"
#include "json/json.h"

#define PATCH DV_STR("$patch")
#define RETAIN_KEYS DV_STR("$retainKeys")
#define ORDER "$setElementOrder/"
#define DELETE "$deleteFromPrimitiveList/"

/* All entries of a patch that are about one member. */
struct change {
    const struct dv_json *value; /* NULL: nothing */
    const struct dv_json *order;
    const struct dv_json *gone;
};

static struct change find_change(const struct dv_json *patch, dv_str key, bool has_directives,
                                 struct dv_arena *arena)
{
    struct change change = {.value = dv_json_get(patch, key)};

    if (has_directives) {
        change.order = dv_json_get(patch, dv_str_printf(arena, ORDER "%.*s", DV_FMT(key)));
        change.gone = dv_json_get(patch, dv_str_printf(arena, DELETE "%.*s", DV_FMT(key)));
    }
    return change;
}

static bool has_directives(const struct dv_json *patch)
{
    for (const struct dv_json *child = dv_json_first(patch); child; child = dv_json_next(child))
        if (dv_patch_is_directive(dv_json_key(child)))
            return true;
    return false;
}

struct dv_strategic_type dv_strategic_type_of(const struct dv_field *field)
{
    if (field->type == DV_TYPE_MESSAGE)
        return (struct dv_strategic_type){.message = field->message};
    return (struct dv_strategic_type){0};
}

/* The field of that name; in a map, the map itself stands for all its values. */
static const struct dv_field *find_field(struct dv_patch_work *work, struct dv_strategic_type type,
                                         dv_str key)
{
    const struct dv_field *field = type.map;

    if (!field && type.message)
        field = dv_message_field(type.message, key, NULL);
    if (!field)
        (void)dv_fail_in(work->err, work->arena, DV_INTERNAL,
                         "unable to find api field in struct %.*s for the json field \"%.*s\"",
                         DV_FMT(type.message ? type.message->name : DV_STR("RawExtension")),
                         DV_FMT(key));
    return field;
}

static bool merges(const struct dv_field *field)
{
    return field->patch_key.n > 0 || (field->flags & DV_FIELD_PATCH_SET);
}

static struct dv_json *patch_object(struct dv_patch_work *work, struct dv_strategic_type type,
                                    const struct dv_json *doc, const struct dv_json *patch)
{
    const struct dv_field *field = find_field(work, type, dv_json_key(patch));
    struct dv_strategic_type inner;

    if (!field)
        return NULL;
    if (field->shape == DV_SHAPE_MAP && !type.map)
        inner = (struct dv_strategic_type){.map = field};
    else
        inner = dv_strategic_type_of(field);
    return dv_patch_map(work, inner, doc, patch);
}

static struct dv_json *patch_array(struct dv_patch_work *work, struct dv_strategic_type type,
                                   dv_str key, const struct dv_json *doc,
                                   const struct change *change)
{
    const struct dv_field *field = find_field(work, type, key);

    if (!field)
        return NULL;
    if (!merges(field) && !change->order)
        return dv_json_copy(change->value, work->arena);
    return dv_patch_list(work, field, doc, change->value, change->order);
}

/* Computes what `doc` (NULL: absent) becomes; *value is NULL when it is removed. */
static bool patch_value(struct dv_patch_work *work, struct dv_strategic_type type, dv_str key,
                        const struct dv_json *doc, const struct change *change,
                        struct dv_json **value)
{
    if (change->order) {
        if (!dv_json_is(change->order, DV_JSON_ARRAY))
            return dv_patch_no_list(change->order, work->err);
        if (doc && !dv_json_is(doc, DV_JSON_ARRAY))
            return dv_patch_no_list(doc, work->err);
        if (change->value && !dv_json_is(change->value, DV_JSON_ARRAY))
            return dv_patch_no_list(change->value, work->err);
        *value = patch_array(work, type, key, doc, change);
        return *value != NULL;
    }
    *value = NULL;
    if (!change->value) {
        *value = doc ? dv_json_copy(doc, work->arena) : NULL;
        return true;
    }
    if (dv_json_is(change->value, DV_JSON_NULL))
        return true;
    if (!doc || dv_json_kind(doc) != dv_json_kind(change->value))
        *value = dv_patch_new(change->value, work->arena);
    else if (dv_json_is(doc, DV_JSON_OBJECT))
        *value = patch_object(work, type, doc, change->value);
    else if (dv_json_is(doc, DV_JSON_ARRAY))
        *value = patch_array(work, type, key, doc, change);
    else
        *value = dv_json_copy(change->value, work->arena);
    return *value != NULL;
}

static bool patch_member(struct dv_patch_work *work, struct dv_strategic_type type, dv_str key,
                         const struct dv_json *doc, const struct change *change,
                         struct dv_json *out)
{
    struct dv_json *value = NULL;

    if (!patch_value(work, type, key, doc, change, &value))
        return false;
    if (doc && value && change->gone && dv_json_is(value, DV_JSON_ARRAY)) {
        if (!dv_json_is(change->gone, DV_JSON_ARRAY))
            return dv_fail(work->err, DV_INVALID_ARGUMENT,
                           "invalid patch format of primitive list");
        value = dv_patch_drop(work, value, change->gone);
    }
    if (value)
        dv_json_set(out, key, value, work->arena);
    return true;
}

/* Reads the keys of a $retainKeys directive; every key that the patch sets must be one of them. */
static bool read_retained(struct dv_patch_work *work, const struct dv_json *patch,
                          struct dv_map *keys)
{
    const struct dv_json *list = dv_json_get(patch, RETAIN_KEYS);
    struct dv_err ignored;
    dv_str key;

    if (!dv_json_is(list, DV_JSON_ARRAY))
        return dv_fail(work->err, DV_INVALID_ARGUMENT, "invalid patch format of retainKeys");
    for (struct dv_json *item = dv_json_first(list); item; item = dv_json_next(item))
        if (dv_json_as_str(item, &key, &ignored))
            (void)dv_map_set(keys, key, item);
    for (const struct dv_json *set = dv_json_first(patch); set; set = dv_json_next(set))
        if (!dv_json_is(set, DV_JSON_NULL) && !dv_patch_is_directive(dv_json_key(set)) &&
            !dv_map_get(keys, dv_json_key(set)))
            return dv_fail(work->err, DV_INVALID_ARGUMENT, "invalid patch format of retainKeys");
    return true;
}

/* Merges member by member. `kept` (may be NULL) are the only keys of `doc` that count. */
static bool patch_members(struct dv_patch_work *work, struct dv_strategic_type type,
                          const struct dv_json *doc, const struct dv_json *patch,
                          const struct dv_map *kept, struct dv_json *out)
{
    bool directives = has_directives(patch);
    struct change change;

    for (const struct dv_json *old = dv_json_first(doc); old; old = dv_json_next(old)) {
        dv_str key = dv_json_key(old);

        if (kept && !dv_map_get(kept, key))
            continue;
        change = find_change(patch, key, directives, work->arena);
        if (!patch_member(work, type, key, old, &change, out))
            return false;
    }
    for (const struct dv_json *new = dv_json_first(patch); new; new = dv_json_next(new)) {
        dv_str key = dv_json_key(new);

        if (dv_patch_is_directive(key) || dv_json_get(doc, key))
            continue;
        change = find_change(patch, key, directives, work->arena);
        if (!patch_member(work, type, key, NULL, &change, out))
            return false;
    }
    return true;
}

/* $patch: "replace" takes the patch as it is, "delete" leaves nothing. */
static struct dv_json *replace_map(struct dv_patch_work *work, const struct dv_json *patch)
{
    const struct dv_json *directive = dv_json_get(patch, PATCH);
    struct dv_json *out = dv_json_new_object(work->arena);
    dv_str word = dv_patch_text(directive);

    if (dv_str_eq(word, DV_STR("delete")))
        return out;
    if (!dv_str_eq(word, DV_STR("replace"))) {
        (void)dv_patch_bad_type(directive, patch, work->err);
        return NULL;
    }
    for (const struct dv_json *child = dv_json_first(patch); child; child = dv_json_next(child))
        if (child != directive)
            dv_json_set(out, dv_json_key(child), dv_json_copy(child, work->arena), work->arena);
    return out;
}

struct dv_json *dv_patch_map(struct dv_patch_work *work, struct dv_strategic_type type,
                             const struct dv_json *doc, const struct dv_json *patch)
{
    struct dv_json *out;
    struct dv_map kept;
    bool retains = dv_json_get(patch, RETAIN_KEYS) != NULL;
    bool done;

    if (dv_json_get(patch, PATCH))
        return replace_map(work, patch);
    out = dv_json_new_object(work->arena);
    dv_map_init(&kept);
    done = (!retains || read_retained(work, patch, &kept)) &&
           patch_members(work, type, doc, patch, retains ? &kept : NULL, out);
    dv_map_fini(&kept);
    return done ? out : NULL;
}

struct dv_json *dv_patch_strategic(const struct dv_message *message, const struct dv_json *doc,
                                   const struct dv_json *patch, struct dv_arena *arena,
                                   struct dv_err *err)
{
    static const char *const names[] = {"null", "bool", "number", "string", "array", "object"};
    struct dv_patch_work work = {arena, err};

    if (dv_json_is(patch, DV_JSON_NULL))
        return dv_json_copy(doc, arena);
    if (!dv_json_is(patch, DV_JSON_OBJECT)) {
        (void)dv_fail(err, DV_INVALID_ARGUMENT,
                      "json: cannot unmarshal %s into Go value of type map[string]interface {}",
                      names[dv_json_kind(patch)]);
        return NULL;
    }
    return dv_patch_map(&work, (struct dv_strategic_type){.message = message}, doc, patch);
}
