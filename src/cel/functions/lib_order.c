/* lib_order.c - < <= > >= on everything that has an order. */
#include "base/str.h"
#include "cel/check/decls.h"
#include "cel/value/cel_value.h"

/* Compares the arguments. False, with the error in out: they have no order. */
static bool compare(const struct dv_cel_val *args, dv_str name, int *order, struct dv_cel_val *out)
{
    bool is_nan;

    if (dv_cel_cmp(&args[0], &args[1], order, &is_nan))
        return true;
    *out = is_nan ? dv_cel_error(DV_STR("NaN values cannot be ordered")) : dv_cel_no_overload(name);
    return false;
}

static void op_less(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    int order;

    (void)run;
    if (compare(args, DV_STR("_<_"), &order, out))
        *out = dv_cel_bool(order < 0);
}

static void op_less_equal(struct dv_cel_run *run, const struct dv_cel_val *args,
                          struct dv_cel_val *out)
{
    int order;

    (void)run;
    if (compare(args, DV_STR("_<=_"), &order, out))
        *out = dv_cel_bool(order <= 0);
}

static void op_greater(struct dv_cel_run *run, const struct dv_cel_val *args,
                       struct dv_cel_val *out)
{
    int order;

    (void)run;
    if (compare(args, DV_STR("_>_"), &order, out))
        *out = dv_cel_bool(order > 0);
}

static void op_greater_equal(struct dv_cel_run *run, const struct dv_cel_val *args,
                             struct dv_cel_val *out)
{
    int order;

    (void)run;
    if (compare(args, DV_STR("_>=_"), &order, out))
        *out = dv_cel_bool(order >= 0);
}

#define ROW(NAME, SIG, FN, COST)                                                                   \
    {                                                                                              \
        NAME, SIG, FN, COST, DV_CEL_FN_SELF_CHECKED                                                \
    }
#define ROWS(NAME, FN)                                                                             \
    ROW(NAME, "bb>b", FN, DV_CEL_COST_ONE), ROW(NAME, "ii>b", FN, DV_CEL_COST_ONE),                \
        ROW(NAME, "id>b", FN, DV_CEL_COST_ONE), ROW(NAME, "iu>b", FN, DV_CEL_COST_ONE),            \
        ROW(NAME, "uu>b", FN, DV_CEL_COST_ONE), ROW(NAME, "ud>b", FN, DV_CEL_COST_ONE),            \
        ROW(NAME, "ui>b", FN, DV_CEL_COST_ONE), ROW(NAME, "dd>b", FN, DV_CEL_COST_ONE),            \
        ROW(NAME, "di>b", FN, DV_CEL_COST_ONE), ROW(NAME, "du>b", FN, DV_CEL_COST_ONE),            \
        ROW(NAME, "ss>b", FN, DV_CEL_COST_LESS), ROW(NAME, "yy>b", FN, DV_CEL_COST_LESS),          \
        ROW(NAME, "TT>b", FN, DV_CEL_COST_ONE), ROW(NAME, "DD>b", FN, DV_CEL_COST_ONE)

static const struct dv_cel_overload rows[] = {
    ROWS("_<_", op_less),
    ROWS("_<=_", op_less_equal),
    ROWS("_>_", op_greater),
    ROWS("_>=_", op_greater_equal),
};
const struct dv_cel_lib dv_cel_lib_order = {rows, DV_COUNT(rows)};
