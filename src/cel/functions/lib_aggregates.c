/* lib_aggregates.c - isSorted, sum, min, max, indexOf, lastIndexOf on lists; includes. */
#include "base/str.h"
#include "cel/check/decls.h"
#include "cel/value/cel_run.h"
#include "cel/value/cel_value.h"

/* The longest list that `includes` looks at. */
#define INCLUDES_MAX 48u

/* Whether values of that kind have an order, each among themselves. Where the elements of a list
 * are of several kinds, or one is not a number, the two are taken as they come: the reference does
 * not look whether a comparison failed. */
static bool have_order(const struct dv_cel_list *list)
{
    for (uint32_t i = 0; i < list->n; i++) {
        int order;
        bool is_nan;

        if (!dv_cel_cmp(&list->v[i], &list->v[i], &order, &is_nan) && !is_nan)
            return false;
    }
    return true;
}

static int compare(const struct dv_cel_val *a, const struct dv_cel_val *b)
{
    bool is_nan;
    int order;

    return dv_cel_cmp(a, b, &order, &is_nan) ? order : 0;
}

static void fn_is_sorted(struct dv_cel_run *run, const struct dv_cel_val *args,
                         struct dv_cel_val *out)
{
    const struct dv_cel_list *list = args[0].list;

    (void)run;
    *out = dv_cel_bool(true);
    for (uint32_t i = 1; i < list->n && out->b; i++)
        *out = dv_cel_bool(compare(&list->v[i - 1], &list->v[i]) <= 0);
    if (!have_order(list))
        *out = dv_cel_no_overload(DV_STR("isSorted"));
}

/* Finds the smallest (sign 1) or the largest (sign -1) element, the first of several. */
static void extreme(const struct dv_cel_list *list, int sign, const char *name,
                    struct dv_cel_run *run, struct dv_cel_val *out)
{
    uint32_t best = 0;

    if (list->n == 0) {
        *out = dv_cel_error_printf(run->arena, "%s called on empty list", name);
        return;
    }
    if (!have_order(list)) {
        *out = dv_cel_no_overload(dv_str_from_c(name));
        return;
    }
    for (uint32_t i = 1; i < list->n; i++)
        if (compare(&list->v[i], &list->v[best]) * sign < 0)
            best = i;
    *out = list->v[best];
}

static void fn_min(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    extreme(args[0].list, 1, "min", run, out);
}

static void fn_max(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    extreme(args[0].list, -1, "max", run, out);
}

static bool add(struct dv_cel_val *sum, const struct dv_cel_val *val)
{
    if (val->kind != sum->kind)
        return false;
    switch (val->kind) {
    case DV_CEL_INT:
    case DV_CEL_DURATION:
        return !__builtin_add_overflow(sum->i, val->i, &sum->i);
    case DV_CEL_UINT:
        return !__builtin_add_overflow(sum->u, val->u, &sum->u);
    default:
        sum->d += val->d;
        return true;
    }
}

static void sum_from(const struct dv_cel_list *list, struct dv_cel_val sum, struct dv_cel_val *out)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (!add(&sum, &list->v[i])) {
            *out = sum.kind == DV_CEL_UINT ? dv_cel_error(DV_STR("unsigned integer overflow"))
                                           : dv_cel_error(DV_STR("integer overflow"));
            return;
        }
    }
    *out = sum;
}

static void fn_sum_int(struct dv_cel_run *run, const struct dv_cel_val *args,
                       struct dv_cel_val *out)
{
    (void)run;
    sum_from(args[0].list, dv_cel_int(0), out);
}

static void fn_sum_uint(struct dv_cel_run *run, const struct dv_cel_val *args,
                        struct dv_cel_val *out)
{
    (void)run;
    sum_from(args[0].list, dv_cel_uint(0), out);
}

static void fn_sum_double(struct dv_cel_run *run, const struct dv_cel_val *args,
                          struct dv_cel_val *out)
{
    (void)run;
    sum_from(args[0].list, dv_cel_double(0), out);
}

static void fn_sum_duration(struct dv_cel_run *run, const struct dv_cel_val *args,
                            struct dv_cel_val *out)
{
    (void)run;
    sum_from(args[0].list, dv_cel_duration(0), out);
}

static void fn_index_of(struct dv_cel_run *run, const struct dv_cel_val *args,
                        struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_int(-1);
    for (uint32_t i = 0; i < args[0].list->n; i++) {
        if (dv_cel_eq(&args[0].list->v[i], &args[1])) {
            *out = dv_cel_int(i);
            return;
        }
    }
}

static void fn_last_index_of(struct dv_cel_run *run, const struct dv_cel_val *args,
                             struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_int(-1);
    for (uint32_t i = args[0].list->n; i-- > 0;) {
        if (dv_cel_eq(&args[0].list->v[i], &args[1])) {
            *out = dv_cel_int(i);
            return;
        }
    }
}

static void fn_includes(struct dv_cel_run *run, const struct dv_cel_val *args,
                        struct dv_cel_val *out)
{
    const struct dv_cel_list *list = args[0].list;

    (void)run;
    if (args[0].kind != DV_CEL_LIST) {
        *out = dv_cel_bool(dv_cel_eq(&args[0], &args[1]));
        return;
    }
    *out = dv_cel_bool(false);
    for (uint32_t i = 0; i < list->n && i < INCLUDES_MAX && !out->b; i++)
        out->b = dv_cel_eq(&list->v[i], &args[1]);
    if (!out->b && list->n > INCLUDES_MAX)
        *out = dv_cel_error(DV_STR("'includes' function cannot be applied to lists longer than 48 "
                                   "values"));
}

#define WALK DV_CEL_COST_TRAVERSE
#define ORDERED(LETTER)                                                                            \
    {"isSorted", ".L" LETTER ">b", fn_is_sorted, WALK, 0},                                         \
        {"min", ".L" LETTER ">" LETTER, fn_min, WALK, 0},                                          \
    {                                                                                              \
        "max", ".L" LETTER ">" LETTER, fn_max, WALK, 0                                             \
    }

static const struct dv_cel_overload rows[] = {
    ORDERED("i"),
    ORDERED("u"),
    ORDERED("d"),
    ORDERED("b"),
    ORDERED("D"),
    ORDERED("T"),
    ORDERED("s"),
    ORDERED("y"),
    {"sum",         ".Li>i",  fn_sum_int,       WALK,                 0},
    {"sum",         ".Lu>u",  fn_sum_uint,      WALK,                 0},
    {"sum",         ".Ld>d",  fn_sum_double,    WALK,                 0},
    {"sum",         ".LD>D",  fn_sum_duration,  WALK,                 0},
    {"indexOf",     ".LAA>i", fn_index_of,      WALK,                 0},
    {"lastIndexOf", ".LAA>i", fn_last_index_of, WALK,                 0},
    {"includes",    ".A?>b",  fn_includes,      DV_CEL_COST_INCLUDES,
           DV_CEL_FN_LISTS | DV_CEL_FN_SELF_CHECKED                          },
};
const struct dv_cel_lib dv_cel_lib_aggregates = {rows, DV_COUNT(rows)};
