/* lib_lists.c - lists from lists, and lists as sets. */
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "cel/check/decls.h"
#include "cel/value/cel_map.h"
#include "cel/value/cel_run.h"
#include "cel/value/cel_value.h"

#define SHORT_MAX 12u

static void fn_slice(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    int64_t from = args[1].i;
    int64_t to = args[2].i;
    long long n = args[0].list->n;

    if (from < 0 || to < 0)
        *out = dv_cel_error_printf(run->arena,
                                   "cannot slice(%lld, %lld), negative indexes not supported",
                                   (long long)from, (long long)to);
    else if (from > to)
        *out = dv_cel_error_printf(
            run->arena,
            "cannot slice(%lld, %lld), start index must be less than or equal to end index",
            (long long)from, (long long)to);
    else if (to > n)
        *out = dv_cel_error_printf(run->arena, "cannot slice(%lld, %lld), list is length %lld",
                                   (long long)from, (long long)to, n);
    else
        *out = dv_cel_list_slice(args[0].list, (uint32_t)from, (uint32_t)to, run->arena);
}

/* Counts the elements with `depth` levels of lists taken away. */
static uint64_t count_flat(const struct dv_cel_list *list, int64_t depth)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < list->n && n <= DV_CEL_LIST_MAX; i++)
        n += depth > 0 && list->v[i].kind == DV_CEL_LIST ? count_flat(list->v[i].list, depth - 1)
                                                         : 1;
    return n;
}

static struct dv_cel_val *put_flat(const struct dv_cel_list *list, int64_t depth,
                                   struct dv_cel_val *at)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (depth > 0 && list->v[i].kind == DV_CEL_LIST)
            at = put_flat(list->v[i].list, depth - 1, at);
        else
            *at++ = list->v[i];
    }
    return at;
}

static void flatten(struct dv_cel_run *run, const struct dv_cel_list *list, int64_t depth,
                    struct dv_cel_val *out)
{
    uint64_t n = count_flat(list, depth);
    struct dv_cel_val *elements;

    if (n > DV_CEL_LIST_MAX) {
        dv_cel_run_stop(run, DV_CEL_FAULT_MEMORY, out);
        return;
    }
    *out = dv_cel_list_new(n, run->arena, &elements);
    (void)put_flat(list, depth, elements);
}

static void fn_flatten(struct dv_cel_run *run, const struct dv_cel_val *args,
                       struct dv_cel_val *out)
{
    flatten(run, args[0].list, 1, out);
}

static void fn_flatten_to(struct dv_cel_run *run, const struct dv_cel_val *args,
                          struct dv_cel_val *out)
{
    if (args[1].i < 0)
        *out = dv_cel_error(DV_STR("level must be non-negative"));
    else
        flatten(run, args[0].list, args[1].i, out);
}

static void fn_distinct(struct dv_cel_run *run, const struct dv_cel_val *args,
                        struct dv_cel_val *out)
{
    const struct dv_cel_list *list = args[0].list;
    struct dv_cel_map *seen = dv_cel_map_new(list->n, run->arena);
    struct dv_cel_val yes = dv_cel_bool(true);
    struct dv_cel_val *elements;
    struct dv_cel_val all = dv_cel_list_new(list->n, run->arena, &elements);
    uint32_t n = 0;

    for (uint32_t i = 0; i < list->n; i++) {
        const struct dv_cel_val *val = &list->v[i];
        bool is_new;

        if (dv_cel_is_key(val)) {
            is_new = !dv_cel_map_find(seen, val);
            dv_cel_map_set(seen, val, &yes, run->arena);
        } else {
            struct dv_cel_list so_far = {.n = n, .v = elements};

            is_new = !dv_cel_list_contains(&so_far, val);
        }
        if (is_new)
            elements[n++] = *val;
    }
    *out = dv_cel_list_slice(all.list, 0, n, run->arena);
}

static void fn_reverse(struct dv_cel_run *run, const struct dv_cel_val *args,
                       struct dv_cel_val *out)
{
    const struct dv_cel_list *list = args[0].list;
    struct dv_cel_val *elements;

    *out = dv_cel_list_new(list->n, run->arena, &elements);
    for (uint32_t i = 0; i < list->n; i++)
        elements[i] = list->v[list->n - 1 - i];
}

static void fn_range(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    int64_t n = args[0].i > 0 ? args[0].i : 0;
    struct dv_cel_val *elements;

    if (n > DV_CEL_LIST_MAX) {
        dv_cel_run_stop(run, DV_CEL_FAULT_MEMORY, out);
        return;
    }
    *out = dv_cel_list_new((size_t)n, run->arena, &elements);
    for (int64_t i = 0; i < n; i++)
        elements[i] = dv_cel_int(i);
}

/* -- Sorting --------------------------------------------------------------------------------------
 */

/* What is not a number is before nothing, and nothing before it. */
static bool is_before(const struct dv_cel_val *a, const struct dv_cel_val *b)
{
    bool is_nan;
    int order;

    return dv_cel_cmp(a, b, &order, &is_nan) && order < 0;
}

/* Merges two sorted halves of `v`, stably, by the keys that the indexes mean. */
static void merge(uint32_t *v, uint32_t *spare, uint32_t half, uint32_t n,
                  const struct dv_cel_val *keys)
{
    uint32_t a = 0;
    uint32_t b = half;

    for (uint32_t i = 0; i < n; i++) {
        if (b >= n || (a < half && !is_before(&keys[v[b]], &keys[v[a]])))
            spare[i] = v[a++];
        else
            spare[i] = v[b++];
    }
    memcpy(v, spare, n * sizeof(v[0]));
}

static void sort_long(uint32_t *v, uint32_t *spare, uint32_t n, const struct dv_cel_val *keys)
{
    uint32_t half = n / 2;

    if (n < 2)
        return;
    sort_long(v, spare, half, keys);
    sort_long(v + half, spare, n - half, keys);
    merge(v, spare, half, n, keys);
}

/* Sorts by insertion. The reference does the same with so few, so that also keys which are not
 * numbers end in the same places. */
static void sort_short(uint32_t *v, uint32_t n, const struct dv_cel_val *keys)
{
    for (uint32_t i = 1; i < n; i++) {
        for (uint32_t j = i; j > 0 && is_before(&keys[v[j]], &keys[v[j - 1]]); j--) {
            uint32_t earlier = v[j - 1];

            v[j - 1] = v[j];
            v[j] = earlier;
        }
    }
}

static bool is_sortable(const struct dv_cel_list *keys)
{
    for (uint32_t i = 0; i < keys->n; i++) {
        int order;
        bool is_nan;

        if (keys->v[i].kind != keys->v[0].kind ||
            (!dv_cel_cmp(&keys->v[i], &keys->v[0], &order, &is_nan) && !is_nan))
            return false;
    }
    return true;
}

static void sort_by(struct dv_cel_run *run, const struct dv_cel_list *list,
                    const struct dv_cel_list *keys, struct dv_cel_val *out)
{
    struct dv_cel_val *elements;
    uint32_t *order;

    if (list->n != keys->n) {
        *out = dv_cel_error(DV_STR("@sortByAssociatedKeys() expected a list of the same size as "
                                   "the associated keys list"));
        return;
    }
    if (!is_sortable(keys)) {
        *out = dv_cel_error(DV_STR("list elements must have the same type"));
        return;
    }
    order = DV_NEW_ARRAY(run->arena, uint32_t, (size_t)list->n * 2);
    for (uint32_t i = 0; i < list->n; i++)
        order[i] = i;
    if (list->n <= SHORT_MAX)
        sort_short(order, list->n, keys->v);
    else
        sort_long(order, order + list->n, list->n, keys->v);
    *out = dv_cel_list_new(list->n, run->arena, &elements);
    for (uint32_t i = 0; i < list->n; i++)
        elements[i] = list->v[order[i]];
}

static void fn_sort(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    sort_by(run, args[0].list, args[0].list, out);
}

static void fn_sort_by(struct dv_cel_run *run, const struct dv_cel_val *args,
                       struct dv_cel_val *out)
{
    sort_by(run, args[0].list, args[1].list, out);
}

/* -- Sets ------------------------------------------------------------------------------------ */

static bool contains_all(const struct dv_cel_list *list, const struct dv_cel_list *part)
{
    for (uint32_t i = 0; i < part->n; i++)
        if (!dv_cel_list_contains(list, &part->v[i]))
            return false;
    return true;
}

static void fn_contains(struct dv_cel_run *run, const struct dv_cel_val *args,
                        struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_bool(contains_all(args[0].list, args[1].list));
}

static void fn_equivalent(struct dv_cel_run *run, const struct dv_cel_val *args,
                          struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_bool(contains_all(args[0].list, args[1].list) &&
                       contains_all(args[1].list, args[0].list));
}

static void fn_intersects(struct dv_cel_run *run, const struct dv_cel_val *args,
                          struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_bool(false);
    for (uint32_t i = 0; i < args[0].list->n && !out->b; i++)
        out->b = dv_cel_list_contains(args[1].list, &args[0].list->v[i]);
}

#define SORTED(LETTER, COST)                                                                       \
    {"sort", ".L" LETTER ">L" LETTER, fn_sort, COST, 0},                                           \
    {                                                                                              \
        "@sortByAssociatedKeys", ".LAL" LETTER ">LA", fn_sort_by, COST, DV_CEL_FN_ONE_FOR_ALL      \
    }

static const struct dv_cel_overload rows[] = {
    {"slice",           ".LAii>LA", fn_slice,      DV_CEL_COST_SLICE,      0},
    {"flatten",         ".LLA>LA",  fn_flatten,    DV_CEL_COST_FLATTEN,    0},
    {"flatten",         ".L?i>L?",  fn_flatten_to, DV_CEL_COST_FLATTEN,    0},
    {"distinct",        ".LA>LA",   fn_distinct,   DV_CEL_COST_PAIRWISE,   0},
    {"reverse",         ".LA>LA",   fn_reverse,    DV_CEL_COST_REVERSE,    0},
    {"lists.range",     "i>Li",     fn_range,      DV_CEL_COST_RANGE,      0},
    {"sets.contains",   "LALA>b",   fn_contains,   DV_CEL_COST_SETS,       0},
    {"sets.equivalent", "LALA>b",   fn_equivalent, DV_CEL_COST_SETS_TWICE, 0},
    {"sets.intersects", "LALA>b",   fn_intersects, DV_CEL_COST_SETS,       0},
    SORTED("i", DV_CEL_COST_PAIRWISE),
    SORTED("u", DV_CEL_COST_PAIRWISE),
    SORTED("d", DV_CEL_COST_PAIRWISE),
    SORTED("b", DV_CEL_COST_PAIRWISE),
    SORTED("D", DV_CEL_COST_PAIRWISE),
    SORTED("T", DV_CEL_COST_PAIRWISE),
    SORTED("s", DV_CEL_COST_PAIRWISE_TEXT),
    SORTED("y", DV_CEL_COST_PAIRWISE_TEXT),
};
const struct dv_cel_lib dv_cel_lib_lists = {rows, DV_COUNT(rows)};
