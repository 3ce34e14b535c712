/* golden_quantity.c - replays golden/quantity: every text of parse.jsonl is read, every pair of
 * pairs.jsonl compared, added and subtracted.
 *
 *     golden_quantity DIR      DIR holds these files
 *
 * Compared is what the corpus' README says, and beyond it the texts that only JSON allows, the
 * integers of CEL, the doubles, and the negated values. */
#include "number/number.h"

#include <math.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "jsonl.h"
#include "json/json.h"

#define TEXT_BYTES_MAX 100000u

static dv_str printed(const struct jsonl_record *record, const struct dv_quantity *quantity)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_quantity_print(quantity, &buf);
    return dv_str_copy(dv_buf_str(&buf), record->arena);
}

static dv_str format_of(const struct dv_quantity *quantity)
{
    static const char *const names[] = {
        [DV_QUANTITY_DECIMAL_SI] = "DecimalSI",
        [DV_QUANTITY_BINARY_SI] = "BinarySI",
        [DV_QUANTITY_DECIMAL_EXPONENT] = "DecimalExponent",
    };

    return dv_str_from_c(names[quantity->format]);
}

/* As decimal text, or nothing when there is no value. */
static dv_str number(const struct jsonl_record *record, bool has_value, int64_t value)
{
    return has_value ? dv_str_printf(record->arena, "%lld", (long long)value) : DV_STR("no number");
}

static dv_str optional(const struct jsonl_record *record, const char *key)
{
    return dv_json_get(record->json, dv_str_from_c(key)) ? jsonl_str(record, key)
                                                         : DV_STR("no number");
}

static void compare_numbers(struct jsonl_record *record, const struct dv_quantity *quantity)
{
    int64_t value = 0;
    bool has_value = dv_quantity_to_i64_ceil(quantity, &value);

    if (!jsonl_bool(record, "valueOverflows") && !jsonl_bool(record, "valueQuirk"))
        jsonl_compare_str(record, "value", number(record, has_value, value),
                          jsonl_str(record, "value"));
    has_value = dv_quantity_to_milli_ceil(quantity, &value);
    if (!jsonl_bool(record, "milliOverflows") && !jsonl_bool(record, "milliQuirk"))
        jsonl_compare_str(record, "milliValue", number(record, has_value, value),
                          jsonl_str(record, "milliValue"));
    has_value = dv_quantity_to_i64(quantity, &value);
    jsonl_compare_str(record, "asInt64", number(record, has_value, value),
                      optional(record, "asInt64"));
    jsonl_compare_bool(record, "isInteger", dv_quantity_is_integer(quantity), has_value);
}

/* The README allows for a correctly rounded double; ours is the reference's own. */
static void compare_double(struct jsonl_record *record, const struct dv_quantity *quantity)
{
    double got = dv_quantity_to_double(quantity);
    double want = strtod(dv_str_to_c(jsonl_str(record, "approxFloat"), record->arena), NULL);

    if (got != want && !(isnan(got) && isnan(want)))
        jsonl_compare_str(record, "approxFloat", dv_str_printf(record->arena, "%.17g", got),
                          dv_str_printf(record->arena, "%.17g", want));
}

static void replay_parse(struct jsonl_record *record)
{
    dv_str text = jsonl_str(record, "s");
    struct dv_quantity zero = {0};
    struct dv_quantity quantity;
    struct dv_quantity negated;
    struct dv_err err;
    bool is_ok = dv_quantity_parse_json(text, record->arena, &quantity, &err);

    jsonl_compare_bool(record, "jsonOk", is_ok, jsonl_bool(record, "jsonOk"));
    if (is_ok && dv_json_get(record->json, DV_STR("jsonCanonical")))
        jsonl_compare_str(record, "jsonCanonical", printed(record, &quantity),
                          jsonl_str(record, "jsonCanonical"));
    is_ok = dv_quantity_parse(text, record->arena, &quantity, &err);
    jsonl_compare_bool(record, "ok", is_ok, jsonl_bool(record, "ok"));
    if (!is_ok || record->has_failed)
        return;
    negated = dv_quantity_sub(&zero, &quantity, record->arena);
    if (!jsonl_bool(record, "canonicalQuirk")) {
        jsonl_compare_str(record, "canonical", printed(record, &quantity),
                          jsonl_str(record, "canonical"));
        jsonl_compare_str(record, "neg", printed(record, &negated), jsonl_str(record, "neg"));
    }
    jsonl_compare_str(record, "format", format_of(&quantity), jsonl_str(record, "format"));
    jsonl_compare_i64(record, "sign", dv_quantity_sign(&quantity), jsonl_i64(record, "sign"));
    compare_numbers(record, &quantity);
    compare_double(record, &quantity);
}

static void compare_result(struct jsonl_record *record, const struct dv_quantity *result,
                           const char *what, const char *format, const char *quirk)
{
    if (!jsonl_bool(record, quirk))
        jsonl_compare_str(record, what, printed(record, result), jsonl_str(record, what));
    jsonl_compare_str(record, format, format_of(result), jsonl_str(record, format));
}

static void replay_pair(struct jsonl_record *record)
{
    struct dv_quantity a;
    struct dv_quantity b;
    struct dv_quantity result;
    struct dv_err err;
    bool is_ok = dv_quantity_parse(jsonl_str(record, "a"), record->arena, &a, &err) &&
                 dv_quantity_parse(jsonl_str(record, "b"), record->arena, &b, &err);

    jsonl_compare_bool(record, "ok", is_ok, true);
    if (!is_ok)
        return;
    jsonl_compare_i64(record, "cmp", dv_quantity_cmp(&a, &b), jsonl_i64(record, "cmp"));
    result = dv_quantity_add(&a, &b, record->arena);
    compare_result(record, &result, "sum", "sumFormat", "sumQuirk");
    result = dv_quantity_sub(&a, &b, record->arena);
    compare_result(record, &result, "diff", "diffFormat", "diffQuirk");
}

int main(int argc, char **argv)
{
    static const struct jsonl_replay replays[] = {
        {{"parse.jsonl", {"s", "jsonOk"}, {NULL}},   replay_parse},
        {{"pairs.jsonl", {"a", "b", "sum"}, {NULL}}, replay_pair },
    };

    return jsonl_main(argc, argv, replays, DV_COUNT(replays));
}
