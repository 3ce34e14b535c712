#include "resource/cel_document.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "cel/cel_policy.h"
#include "resource/custom/schema.h"
#include "json/json.h"

#define NAME_BYTES_MAX 65536u

/* ---- names ---- */

static bool is_reserved(dv_str name)
{
    static const dv_str words[] = {
        DV_STR_INIT("true"),    DV_STR_INIT("false"),     DV_STR_INIT("null"),
        DV_STR_INIT("in"),      DV_STR_INIT("as"),        DV_STR_INIT("break"),
        DV_STR_INIT("const"),   DV_STR_INIT("continue"),  DV_STR_INIT("else"),
        DV_STR_INIT("for"),     DV_STR_INIT("function"),  DV_STR_INIT("if"),
        DV_STR_INIT("import"),  DV_STR_INIT("let"),       DV_STR_INIT("loop"),
        DV_STR_INIT("package"), DV_STR_INIT("namespace"), DV_STR_INIT("return"),
        DV_STR_INIT("var"),     DV_STR_INIT("void"),      DV_STR_INIT("while"),
    };

    for (size_t i = 0; i < DV_COUNT(words); i++)
        if (dv_str_eq(words[i], name))
            return true;
    return false;
}

/* A name of a member as an expression says it: "x__dash__y" for "x-y". */
static dv_str escape(dv_str name, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, NAME_BYTES_MAX);
    if (is_reserved(name))
        return dv_str_printf(arena, "__%.*s__", DV_FMT(name));
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];

        if (c == '_' && i + 1 < name.n && name.p[i + 1] == '_') {
            dv_buf_add_c(&buf, "__underscores__");
            i++;
        } else if (c == '.') {
            dv_buf_add_c(&buf, "__dot__");
        } else if (c == '-') {
            dv_buf_add_c(&buf, "__dash__");
        } else if (c == '/') {
            dv_buf_add_c(&buf, "__slash__");
        } else {
            dv_buf_add_char(&buf, c);
        }
    }
    return buf.n == name.n ? name : dv_str_copy(dv_buf_str(&buf), arena);
}

/* ---- values ---- */

/* A document that is being made a value. */
struct making {
    struct dv_cel_tree *tree;
    struct dv_arena *arena;
};

/* A node beside its schema; NULL: nothing is said of it. */
struct place {
    const struct dv_json *node;
    const struct dv_structural *schema;
};

static void add_number(const struct making *making, const struct place *place)
{
    bool is_double = place->schema && place->schema->type == DV_SCHEMA_NUMBER;
    struct dv_err err;
    int64_t number;

    if (!is_double && dv_json_as_i64(place->node, &number, &err))
        dv_cel_tree_int(making->tree, number);
    else
        dv_cel_tree_double(
            making->tree,
            strtod(dv_str_printf(making->arena, "%.*s", DV_FMT(dv_json_number_text(place->node))).p,
                   NULL));
}

static void add_scalar(const struct making *making, const struct place *place)
{
    const struct dv_json *node = place->node;
    struct dv_err err;
    bool is_true;
    dv_str text;

    if (dv_json_is(node, DV_JSON_NUMBER))
        add_number(making, place);
    else if (dv_json_is(node, DV_JSON_STRING) && dv_json_as_str(node, &text, &err))
        dv_cel_tree_string(making->tree, text);
    else if (dv_json_is(node, DV_JSON_BOOL) && dv_json_as_bool(node, &is_true, &err))
        dv_cel_tree_bool(making->tree, is_true);
    else
        dv_cel_tree_null(making->tree);
}

/* Begins a list or a map, or adds anything else; returns the first child. */
static const struct dv_json *enter(const struct making *making, const struct place *place)
{
    size_t n = dv_json_n(place->node);

    if (dv_json_is(place->node, DV_JSON_OBJECT)) {
        dv_cel_tree_begin_map(making->tree, n);
    } else if (dv_json_is(place->node, DV_JSON_ARRAY)) {
        dv_cel_tree_begin_list(making->tree, n);
    } else {
        add_scalar(making, place);
        return NULL;
    }
    if (n == 0)
        dv_cel_tree_end(making->tree);
    return dv_json_first(place->node);
}

/* Adds the child's key, when it has one; returns its schema. */
static const struct dv_structural *descend(const struct making *making, const struct place *up,
                                           const struct dv_json *child)
{
    const struct dv_structural *named = NULL;
    dv_str name = dv_json_key(child);

    if (!name.p)
        return up->schema ? up->schema->items : NULL;
    if (up->schema)
        named = dv_schema_property(up->schema, name);
    dv_cel_tree_key(making->tree, named ? escape(name, making->arena) : name);
    return named ? named : up->schema ? up->schema->more : NULL;
}

/* Documents may be deep, so nothing recurses: `open` are the nodes whose children are added. */
const struct dv_cel_val *dv_cel_from_schema(const struct dv_structural *schema,
                                            const struct dv_json *doc, struct dv_arena *arena)
{
    const struct making making = {.tree = dv_cel_tree_new(arena), .arena = arena};
    DV_VEC(struct place) open = {0};
    struct place at = {doc, schema};
    const struct dv_json *node = enter(&making, &at);

    if (node)
        *dv_vec_add_in(&open, arena) = at;
    while (open.n > 0) {
        const struct dv_json *child;

        if (!node) { /* all siblings have been added */
            dv_cel_tree_end(making.tree);
            node = --open.n > 0 ? dv_json_next(open.v[open.n].node) : NULL;
            continue;
        }
        at = (struct place){node, descend(&making, &open.v[open.n - 1], node)};
        child = enter(&making, &at);
        if (child)
            *dv_vec_add_in(&open, arena) = at;
        node = child ? child : dv_json_next(node);
    }
    return dv_cel_tree_value(making.tree);
}

const struct dv_cel_val *dv_cel_from_json(const struct dv_json *doc, struct dv_arena *arena)
{
    return dv_cel_from_schema(NULL, doc, arena);
}
