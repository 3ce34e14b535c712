/* schema_prune.c - removes from a document what its schema does not have, and fills in defaults.
 * The document is made anew in one walk, because taking members out of a large object one by one
 * costs its number of members each time. */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/custom/schema.h"
#include "resource/resource.h"
#include "json/json.h"

/* The longest path that is noted, and how many are: more help nobody. */
#define PATH_BYTES_MAX 4096u
#define NOTES_MAX 256u

/* Where the walk is, for notes. */
struct place {
    const struct place *up;
    dv_str name; /* empty: an item */
    size_t index;
};

struct pruning {
    struct dv_arena *arena;
    struct dv_decode_notes *notes; /* NULL: nobody asks */
    size_t *room;                  /* bytes that defaults may still add */
    bool *is_over;
};

static struct dv_json *prune(const struct pruning *pruning, const struct dv_structural *schema,
                             const struct dv_json *node, const struct place *place, bool is_root);

static void print_place(const struct place *place, struct dv_buf *buf)
{
    if (!place)
        return;
    print_place(place->up, buf);
    if (place->name.n > 0) {
        dv_buf_add_c(buf, place->up ? "." : "");
        dv_buf_add(buf, place->name);
    } else {
        dv_buf_printf(buf, "[%zu]", place->index);
    }
}

static void note(const struct pruning *pruning, const struct place *place)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf path;

    dv_buf_init(&path, PATH_BYTES_MAX);
    if (!pruning->notes || pruning->notes->n >= NOTES_MAX)
        return;
    print_place(place, &path);
    *dv_vec_add_in(pruning->notes, pruning->arena) =
        dv_str_printf(pruning->arena, "unknown field \"%.*s\"", DV_FMT(dv_buf_str(&path)));
}

static bool is_type_meta(dv_str name)
{
    return dv_str_eq(name, DV_STR("apiVersion")) || dv_str_eq(name, DV_STR("kind")) ||
           dv_str_eq(name, DV_STR("metadata"));
}

/* Adds the member that was found in the document, or leaves it out. */
static void add_member(const struct pruning *pruning, const struct dv_structural *schema,
                       const struct dv_json *member, const struct place *up, bool is_root,
                       struct dv_json *made)
{
    dv_str name = dv_json_key(member);
    const struct place place = {.up = up, .name = name};
    const struct dv_structural *known = dv_schema_member(schema, name);
    bool is_kept = ((is_root || schema->is_embedded) && is_type_meta(name)) ||
                   (!known && (schema->keeps_unknown || schema->takes_any_more));

    if (is_kept)
        dv_json_add(made, name, dv_json_copy(member, pruning->arena), pruning->arena);
    else if (!known)
        note(pruning, &place);
    else if (!dv_json_is(member, DV_JSON_NULL) || known->is_nullable)
        dv_json_add(made, name, prune(pruning, known, member, &place, false), pruning->arena);
}

static void add_defaults(const struct pruning *pruning, const struct dv_structural *schema,
                         struct dv_json *made)
{
    for (size_t i = 0; i < schema->n_properties; i++) {
        const struct dv_schema_property *property = &schema->properties[i];

        if (!property->schema->default_value || dv_json_get(made, property->name))
            continue;
        *pruning->is_over |= property->schema->default_bytes > *pruning->room;
        if (*pruning->is_over)
            return;
        *pruning->room -= property->schema->default_bytes;
        dv_json_add(made, property->name,
                    dv_json_copy(property->schema->default_value, pruning->arena), pruning->arena);
    }
}

static struct dv_json *prune_object(const struct pruning *pruning,
                                    const struct dv_structural *schema, const struct dv_json *node,
                                    const struct place *place, bool is_root)
{
    struct dv_json *made = dv_json_new_object(pruning->arena);

    for (const struct dv_json *child = dv_json_first(node); child; child = dv_json_next(child))
        add_member(pruning, schema, child, place, is_root, made);
    add_defaults(pruning, schema, made);
    return made;
}

static struct dv_json *prune_array(const struct pruning *pruning,
                                   const struct dv_structural *schema, const struct dv_json *node,
                                   const struct place *up)
{
    struct dv_json *made = dv_json_new_array(pruning->arena);
    struct place place = {.up = up};

    for (const struct dv_json *item = dv_json_first(node); item; item = dv_json_next(item)) {
        dv_json_append(made, prune(pruning, schema->items, item, &place, false));
        place.index++;
    }
    return made;
}

static struct dv_json *prune(const struct pruning *pruning, const struct dv_structural *schema,
                             const struct dv_json *node, const struct place *place, bool is_root)
{
    if (dv_json_is(node, DV_JSON_OBJECT))
        return prune_object(pruning, schema, node, place, is_root);
    if (dv_json_is(node, DV_JSON_ARRAY) && schema->items)
        return prune_array(pruning, schema, node, place);
    return dv_json_copy(node, pruning->arena);
}

struct dv_json *dv_schema_prune(const struct dv_structural *schema, const struct dv_json *doc,
                                bool is_root, struct dv_arena *arena, struct dv_decode_notes *notes)
{
    size_t room = DV_SCHEMA_DEFAULT_BYTES_MAX;
    bool is_over = false;
    const struct pruning pruning = {
        .arena = arena, .notes = notes, .room = &room, .is_over = &is_over};
    struct dv_json *made = prune(&pruning, schema, doc, NULL, is_root);

    return is_over ? NULL : made;
}
