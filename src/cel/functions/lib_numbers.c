/* lib_numbers.c - quantities and versions. */
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "cel/check/decls.h"
#include "cel/value/cel_run.h"
#include "cel/value/cel_value.h"
#include "number/number.h"

static struct dv_cel_val from_quantity(struct dv_cel_run *run, const struct dv_quantity *quantity)
{
    struct dv_quantity *copy = DV_NEW(run->arena, struct dv_quantity);

    *copy = *quantity;
    return (struct dv_cel_val){.kind = DV_CEL_QUANTITY, .quantity = copy};
}

static void fn_quantity(struct dv_cel_run *run, const struct dv_cel_val *args,
                        struct dv_cel_val *out)
{
    struct dv_quantity quantity;
    struct dv_err err;

    *out = dv_quantity_parse(args[0].s, run->arena, &quantity, &err)
               ? from_quantity(run, &quantity)
               : dv_cel_error_printf(run->arena, "%s", err.msg);
}

static void fn_is_quantity(struct dv_cel_run *run, const struct dv_cel_val *args,
                           struct dv_cel_val *out)
{
    struct dv_quantity quantity;
    struct dv_err err;

    *out = dv_cel_bool(dv_quantity_parse(args[0].s, run->arena, &quantity, &err));
}

static int compare(const struct dv_cel_val *args)
{
    if (args[0].kind == DV_CEL_QUANTITY)
        return dv_quantity_cmp(args[0].quantity, args[1].quantity);
    return dv_version_cmp(args[0].version, args[1].version);
}

static void fn_is_greater(struct dv_cel_run *run, const struct dv_cel_val *args,
                          struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_bool(compare(args) > 0);
}

static void fn_is_less(struct dv_cel_run *run, const struct dv_cel_val *args,
                       struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_bool(compare(args) < 0);
}

static void fn_compare(struct dv_cel_run *run, const struct dv_cel_val *args,
                       struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_int(compare(args));
}

static void fn_as_float(struct dv_cel_run *run, const struct dv_cel_val *args,
                        struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_double(dv_quantity_to_double(args[0].quantity));
}

static void fn_as_integer(struct dv_cel_run *run, const struct dv_cel_val *args,
                          struct dv_cel_val *out)
{
    int64_t value;

    (void)run;
    *out = dv_quantity_to_i64(args[0].quantity, &value)
               ? dv_cel_int(value)
               : dv_cel_error(DV_STR("cannot convert value to integer"));
}

static void fn_is_integer(struct dv_cel_run *run, const struct dv_cel_val *args,
                          struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_bool(dv_quantity_is_integer(args[0].quantity));
}

static void fn_sign(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_int(dv_quantity_sign(args[0].quantity));
}

/* The second argument, a quantity or an int. */
static struct dv_quantity operand(const struct dv_cel_val *val)
{
    return val->kind == DV_CEL_INT ? dv_quantity_from_i64(val->i, DV_QUANTITY_DECIMAL_SI)
                                   : *val->quantity;
}

static void fn_add(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    struct dv_quantity b = operand(&args[1]);
    struct dv_quantity sum = dv_quantity_add(args[0].quantity, &b, run->arena);

    *out = from_quantity(run, &sum);
    out->is_sum = true;
}

static void fn_sub(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    struct dv_quantity b = operand(&args[1]);
    struct dv_quantity rest = dv_quantity_sub(args[0].quantity, &b, run->arena);

    *out = from_quantity(run, &rest);
    out->is_sum = true;
}

static void parse_version(struct dv_cel_run *run, dv_str text, bool is_tolerant,
                          struct dv_cel_val *out)
{
    struct dv_version *version = DV_NEW(run->arena, struct dv_version);
    struct dv_err err;

    if (is_tolerant ? dv_version_parse_tolerant(text, version, &err)
                    : dv_version_parse(text, version, &err))
        *out = (struct dv_cel_val){.kind = DV_CEL_VERSION, .version = version};
    else
        *out = dv_cel_error_printf(run->arena, "%s", err.msg);
}

static void fn_version(struct dv_cel_run *run, const struct dv_cel_val *args,
                       struct dv_cel_val *out)
{
    parse_version(run, args[0].s, false, out);
}

static void fn_version_tolerant(struct dv_cel_run *run, const struct dv_cel_val *args,
                                struct dv_cel_val *out)
{
    parse_version(run, args[0].s, args[1].b, out);
}

static void fn_is_version(struct dv_cel_run *run, const struct dv_cel_val *args,
                          struct dv_cel_val *out)
{
    struct dv_version version;
    struct dv_err err;

    (void)run;
    *out = dv_cel_bool(dv_version_parse(args[0].s, &version, &err));
}

static void fn_is_version_tolerant(struct dv_cel_run *run, const struct dv_cel_val *args,
                                   struct dv_cel_val *out)
{
    struct dv_version version;
    struct dv_err err;

    (void)run;
    *out = dv_cel_bool(args[1].b ? dv_version_parse_tolerant(args[0].s, &version, &err)
                                 : dv_version_parse(args[0].s, &version, &err));
}

static void fn_major(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_int((int64_t)args[0].version->major);
}

static void fn_minor(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_int((int64_t)args[0].version->minor);
}

static void fn_patch(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_int((int64_t)args[0].version->patch);
}

static const struct dv_cel_overload rows[] = {
    {"quantity",           "s>Q",   fn_quantity,            DV_CEL_COST_PARSE,  0},
    {"isQuantity",         "s>b",   fn_is_quantity,         DV_CEL_COST_PARSE,  0},
    {"sign",               "Q>i",   fn_sign,                DV_CEL_COST_MEMBER, 0},
    {"asApproximateFloat", ".Q>d",  fn_as_float,            DV_CEL_COST_MEMBER, 0},
    {"asInteger",          ".Q>i",  fn_as_integer,          DV_CEL_COST_MEMBER, 0},
    {"isInteger",          ".Q>b",  fn_is_integer,          DV_CEL_COST_MEMBER, 0},
    {"isGreaterThan",      ".QQ>b", fn_is_greater,          DV_CEL_COST_MEMBER, 0},
    {"isGreaterThan",      ".VV>b", fn_is_greater,          DV_CEL_COST_MEMBER, 0},
    {"isLessThan",         ".QQ>b", fn_is_less,             DV_CEL_COST_MEMBER, 0},
    {"isLessThan",         ".VV>b", fn_is_less,             DV_CEL_COST_MEMBER, 0},
    {"compareTo",          ".QQ>i", fn_compare,             DV_CEL_COST_MEMBER, 0},
    {"compareTo",          ".VV>i", fn_compare,             DV_CEL_COST_MEMBER, 0},
    {"add",                ".QQ>Q", fn_add,                 DV_CEL_COST_MEMBER, 0},
    {"add",                ".Qi>Q", fn_add,                 DV_CEL_COST_MEMBER, 0},
    {"sub",                ".QQ>Q", fn_sub,                 DV_CEL_COST_MEMBER, 0},
    {"sub",                ".Qi>Q", fn_sub,                 DV_CEL_COST_MEMBER, 0},
    {"semver",             "s>V",   fn_version,             DV_CEL_COST_PARSE,  0},
    {"semver",             "sb>V",  fn_version_tolerant,    DV_CEL_COST_PARSE,  0},
    {"isSemver",           "s>b",   fn_is_version,          DV_CEL_COST_PARSE,  0},
    {"isSemver",           "sb>b",  fn_is_version_tolerant, DV_CEL_COST_PARSE,  0},
    {"major",              ".V>i",  fn_major,               DV_CEL_COST_MEMBER, 0},
    {"minor",              ".V>i",  fn_minor,               DV_CEL_COST_MEMBER, 0},
    {"patch",              ".V>i",  fn_patch,               DV_CEL_COST_MEMBER, 0},
};
const struct dv_cel_lib dv_cel_lib_numbers = {rows, DV_COUNT(rows)};
