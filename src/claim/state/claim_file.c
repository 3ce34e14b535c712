#include "claim/state/claim_file.h"

#include "base/err.h"
#include "base/num.h"
#include "json/json.h"

const struct dv_json *dv_claim_file_parse(struct dv_claim_file *file, dv_str text)
{
    static const struct dv_json_opts opts = {.replace_bad_utf8 = true};
    const struct dv_json *node = dv_json_parse(text, &opts, file->arena, file->err);

    if (!node)
        file->verdict = DV_CLAIM_FILE_JSON_SYNTAX;
    return node;
}

/* Notes a value of the wrong type; the first one is the error that Go reports. */
static bool fail_type(struct dv_claim_file *file, const struct dv_json *node, const char *wanted)
{
    if (file->verdict != DV_CLAIM_FILE_OK)
        return false;
    file->verdict = DV_CLAIM_FILE_JSON_TYPE;
    return dv_json_fail(node, file->err, "expected %s, got %s", wanted,
                        dv_json_kind_name(dv_json_kind(node)));
}

bool dv_claim_file_text(struct dv_claim_file *file, const struct dv_json *node, dv_str *text)
{
    struct dv_err err;

    if (dv_json_is(node, DV_JSON_NULL))
        return false;
    if (!dv_json_as_str(node, text, &err))
        return fail_type(file, node, "a string");
    if (!text->p)
        *text = DV_STR("");
    return true;
}

bool dv_claim_file_i64(struct dv_claim_file *file, const struct dv_json *node, int64_t *number)
{
    if (dv_json_is(node, DV_JSON_NULL))
        return false;
    if (!dv_json_is(node, DV_JSON_NUMBER) || !dv_str_to_i64(dv_json_number_text(node), number))
        return fail_type(file, node, "a whole number");
    return true;
}

bool dv_claim_file_u32(struct dv_claim_file *file, const struct dv_json *node, uint32_t *number)
{
    if (dv_json_is(node, DV_JSON_NULL))
        return false;
    if (!dv_json_is(node, DV_JSON_NUMBER) || !dv_str_to_u32(dv_json_number_text(node), number))
        return fail_type(file, node, "a number of 32 bits without sign and fraction");
    return true;
}

bool dv_claim_file_object(struct dv_claim_file *file, const struct dv_json *node)
{
    if (dv_json_is(node, DV_JSON_NULL))
        return false;
    return dv_json_is(node, DV_JSON_OBJECT) || fail_type(file, node, "an object");
}

bool dv_claim_file_array(struct dv_claim_file *file, const struct dv_json *node)
{
    if (dv_json_is(node, DV_JSON_NULL))
        return false;
    return dv_json_is(node, DV_JSON_ARRAY) || fail_type(file, node, "a list");
}
