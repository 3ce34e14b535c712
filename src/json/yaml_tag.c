/* yaml_tag.c - scalars with a tag, and what scalars become: nodes and keys. */
#include "json/yaml_scalar.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/err.h"
#include "json/tree.h"

#define TAG_PREFIX "tag:yaml.org,2002:"

/* Tags that demand a kind, even of quoted text. */
static const struct {
    dv_str tag;
    enum dv_json_kind kind;
} kinds[] = {
    {DV_STR_INIT("bool"),      DV_JSON_BOOL  },
    {DV_STR_INIT("float"),     DV_JSON_NUMBER},
    {DV_STR_INIT("int"),       DV_JSON_NUMBER},
    {DV_STR_INIT("null"),      DV_JSON_NULL  },
    {DV_STR_INIT("timestamp"), DV_JSON_STRING},
};

/* -- Tags ----------------------------------------------------------------------------------- */

/* Resolves !!int and the like; `tag` is "int". */
static bool resolve_kind(dv_str text, dv_str tag, enum dv_json_kind kind,
                         struct dv_yaml_scalar *scalar, struct dv_err *err)
{
    bool is_right;

    *scalar = dv_yaml_resolve(text);
    is_right = scalar->kind == kind;
    if (dv_str_eq(tag, DV_STR("int")))
        is_right = is_right && !scalar->is_float;
    if (dv_str_eq(tag, DV_STR("timestamp")))
        is_right = is_right && dv_yaml_looks_like_date(text);
    if (dv_str_eq(tag, DV_STR("float")) && !is_right && dv_json_is_number(text)) {
        scalar->kind = DV_JSON_NUMBER; /* so the printer writes what would else be a string */
        scalar->is_huge = true;
        return true;
    }
    return is_right || dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" is not what its tag !!%.*s says",
                               DV_FMT(text), DV_FMT(tag));
}

bool dv_yaml_resolve_tagged(const struct dv_yaml_source *source, struct dv_arena *arena,
                            struct dv_yaml_scalar *scalar, struct dv_err *err)
{
    dv_str tag = source->tag;

    *scalar = (struct dv_yaml_scalar){.kind = DV_JSON_STRING, .text = source->text};
    if (tag.n == 0) {
        if (source->is_plain)
            *scalar = dv_yaml_resolve(source->text);
        return true;
    }
    if (!dv_str_starts_with(tag, DV_STR(TAG_PREFIX)))
        return true;
    tag = dv_str_slice(tag, strlen(TAG_PREFIX), tag.n);
    for (size_t i = 0; i < DV_COUNT(kinds); i++) {
        if (dv_str_eq(tag, kinds[i].tag))
            return resolve_kind(source->text, tag, kinds[i].kind, scalar, err);
    }
    if (!dv_str_eq(tag, DV_STR("binary")))
        return true;
    if (!dv_base64_decode(source->text, arena, &scalar->text))
        return dv_fail(err, DV_INVALID_ARGUMENT, "!!binary that is not base64");
    if (!dv_str_is_utf8(scalar->text))
        return dv_fail(err, DV_INVALID_ARGUMENT, "!!binary that holds no UTF-8 text");
    return true;
}

/* -- Nodes and keys ------------------------------------------------------------------------- */

static void print_integer(const struct dv_yaml_scalar *scalar, char text[DV_JSON_DOUBLE_BYTES])
{
    bool is_negative = scalar->is_negative && scalar->magnitude > 0;

    (void)snprintf(text, DV_JSON_DOUBLE_BYTES, "%s%" PRIu64, is_negative ? "-" : "",
                   scalar->magnitude);
}

void dv_yaml_to_node(const struct dv_yaml_scalar *scalar, struct dv_arena *arena,
                     struct dv_json *node)
{
    char number[DV_JSON_DOUBLE_BYTES];
    dv_str text = scalar->text;

    if (scalar->kind == DV_JSON_BOOL)
        node->n = scalar->truth;
    if (scalar->kind == DV_JSON_NUMBER && !scalar->is_huge) {
        if (scalar->is_float)
            dv_json_double_to_text(scalar->value, number);
        else
            print_integer(scalar, number);
        text = dv_str_from_c(number);
    }
    if (scalar->kind == DV_JSON_NUMBER || scalar->kind == DV_JSON_STRING) {
        node->text = dv_str_copy(text, arena).p;
        node->n = (uint32_t)text.n;
    }
}

struct dv_yaml_scalar dv_yaml_from_node(const struct dv_json *node)
{
    struct dv_yaml_scalar scalar = {.kind = dv_json_kind(node)};

    switch (scalar.kind) {
    case DV_JSON_BOOL:
        scalar.truth = node->n != 0;
        break;
    case DV_JSON_NUMBER:
        scalar = dv_yaml_resolve(dv_json_number_text(node));
        scalar.is_huge = scalar.kind == DV_JSON_STRING;
        scalar.kind = DV_JSON_NUMBER;
        break;
    case DV_JSON_STRING:
        scalar.text = (dv_str){node->text, node->n};
        break;
    case DV_JSON_NULL:
    case DV_JSON_ARRAY:
    case DV_JSON_OBJECT:
        break;
    }
    return scalar;
}

bool dv_yaml_to_key(const struct dv_yaml_scalar *scalar, struct dv_arena *arena, dv_str *key)
{
    char text[DV_JSON_DOUBLE_BYTES];

    switch (scalar->kind) {
    case DV_JSON_BOOL:
        *key = scalar->truth ? DV_STR("true") : DV_STR("false");
        return true;
    case DV_JSON_NUMBER:
        if (scalar->is_huge)
            break;
        if (scalar->is_float)
            dv_json_float_to_key(scalar->value, text);
        else
            print_integer(scalar, text);
        *key = dv_str_copy(dv_str_from_c(text), arena);
        return true;
    case DV_JSON_STRING:
        break;
    case DV_JSON_NULL:
    case DV_JSON_ARRAY:
    case DV_JSON_OBJECT:
        return false;
    }
    *key = dv_str_copy(scalar->text, arena);
    return true;
}
