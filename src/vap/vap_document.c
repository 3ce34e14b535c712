#include "vap/vap_document.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "cel/cel_policy.h"
#include "resource/resource.h"
#include "vap/vap.h"
#include "json/json.h"

/* ---- documents ---- */

static void add_number(struct dv_cel_tree *tree, const struct dv_json *node, struct dv_arena *arena)
{
    struct dv_err err;
    int64_t number;

    if (dv_json_as_i64(node, &number, &err))
        dv_cel_tree_int(tree, number);
    else
        dv_cel_tree_double(
            tree, strtod(dv_str_printf(arena, "%.*s", DV_FMT(dv_json_number_text(node))).p, NULL));
}

static void add_scalar(struct dv_cel_tree *tree, const struct dv_json *node, struct dv_arena *arena)
{
    struct dv_err err;
    bool is_true;
    dv_str text;

    if (dv_json_is(node, DV_JSON_NUMBER))
        add_number(tree, node, arena);
    else if (dv_json_is(node, DV_JSON_STRING) && dv_json_as_str(node, &text, &err))
        dv_cel_tree_string(tree, text);
    else if (dv_json_is(node, DV_JSON_BOOL) && dv_json_as_bool(node, &is_true, &err))
        dv_cel_tree_bool(tree, is_true);
    else
        dv_cel_tree_null(tree);
}

/* Begins a list or a map, or adds anything else; returns the first child. */
static const struct dv_json *enter(struct dv_cel_tree *tree, const struct dv_json *node,
                                   struct dv_arena *arena)
{
    size_t n = dv_json_n(node);

    if (dv_json_is(node, DV_JSON_OBJECT)) {
        dv_cel_tree_begin_map(tree, n);
    } else if (dv_json_is(node, DV_JSON_ARRAY)) {
        dv_cel_tree_begin_list(tree, n);
    } else {
        add_scalar(tree, node, arena);
        return NULL;
    }
    if (n == 0)
        dv_cel_tree_end(tree);
    return dv_json_first(node);
}

/* Documents may be deep, so nothing recurses: `open` are the nodes whose children are added. */
const struct dv_cel_val *dv_vap_from_json(const struct dv_json *doc, struct dv_arena *arena)
{
    struct dv_cel_tree *tree = dv_cel_tree_new(arena);
    DV_VEC(const struct dv_json *) open = {0};
    const struct dv_json *node = enter(tree, doc, arena);

    if (node)
        *dv_vec_add_in(&open, arena) = doc;
    while (open.n > 0) {
        const struct dv_json *child;

        if (!node) { /* all siblings have been added */
            dv_cel_tree_end(tree);
            node = --open.n > 0 ? dv_json_next(open.v[open.n]) : NULL;
            continue;
        }
        if (dv_json_key(node).p)
            dv_cel_tree_key(tree, dv_json_key(node));
        child = enter(tree, node, arena);
        if (child)
            *dv_vec_add_in(&open, arena) = node;
        node = child ? child : dv_json_next(node);
    }
    return dv_cel_tree_value(tree);
}

const struct dv_cel_val *dv_vap_from_object(const struct dv_message *message, const void *value,
                                            const struct dv_api_version *version, dv_str kind,
                                            struct dv_arena *arena)
{
    return dv_vap_from_json(dv_encode_json(message, value, version, kind, arena), arena);
}

/* ---- the request ---- */

static void set_text(struct dv_json *object, const char *key, dv_str text, struct dv_arena *arena)
{
    dv_json_set(object, dv_str_from_c(key), dv_json_new_str(text, arena), arena);
}

/* Sets what the reference leaves out when it is empty. */
static void set_filled(struct dv_json *object, const char *key, dv_str text, struct dv_arena *arena)
{
    if (text.n > 0)
        set_text(object, key, text, arena);
}

static void set_triple(struct dv_json *request, const char *key,
                       const struct dv_api_version *version, const char *last, dv_str name,
                       struct dv_arena *arena)
{
    struct dv_json *triple = dv_json_new_object(arena);

    set_text(triple, "group", version->group, arena);
    set_text(triple, "version", version->version, arena);
    set_text(triple, last, name, arena);
    dv_json_set(request, dv_str_from_c(key), triple, arena);
}

static void set_kinds(struct dv_json *request, const struct dv_vap_write *write,
                      const struct dv_api_version *version, struct dv_arena *arena)
{
    bool is_other = write->other != NULL;
    dv_str kind = is_other ? write->other_kind : write->kind->name;

    set_triple(request, "kind", is_other ? write->other_version : version, "kind", kind, arena);
    set_triple(request, "resource", version, "resource", write->kind->plural, arena);
    set_filled(request, "subResource", write->subresource, arena);
    set_triple(request, "requestKind", is_other ? write->other_version : write->version, "kind",
               kind, arena);
    set_triple(request, "requestResource", write->version, "resource", write->kind->plural, arena);
    set_filled(request, "requestSubResource", write->subresource, arena);
}

const struct dv_cel_val *dv_vap_request(const struct dv_vap_write *write,
                                        const struct dv_api_version *version,
                                        struct dv_arena *arena)
{
    static const char *const operations[] = {
        [DV_VAP_CREATE] = "CREATE",
        [DV_VAP_UPDATE] = "UPDATE",
        [DV_VAP_DELETE] = "DELETE",
        [DV_VAP_CONNECT] = "CONNECT",
    };
    struct dv_json *request = dv_json_new_object(arena);

    set_kinds(request, write, version, arena);
    set_filled(request, "name", write->name, arena);
    set_filled(request, "namespace", write->namespace, arena);
    set_text(request, "operation", dv_str_from_c(operations[write->operation]), arena);
    dv_json_set(request, DV_STR("userInfo"),
                dv_encode_json(&dv_message_user_info, write->user, NULL, DV_STR_NONE, arena),
                arena);
    dv_json_set(request, DV_STR("dryRun"), dv_json_new_bool(write->is_dry_run, arena), arena);
    if (write->options)
        dv_json_set(request, DV_STR("options"), dv_json_copy(write->options, arena), arena);
    return dv_vap_from_json(request, arena);
}
