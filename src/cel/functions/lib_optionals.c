/* lib_optionals.c - values that may be absent. */
#include <string.h>

#include "base/str.h"
#include "cel/check/decls.h"
#include "cel/value/cel_map.h"
#include "cel/value/cel_run.h"
#include "cel/value/cel_value.h"

static void fn_of(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    *out = dv_cel_optional(&args[0], run->arena);
}

static bool is_zero(const struct dv_cel_val *val)
{
    switch (val->kind) {
    case DV_CEL_NULL:
        return true;
    case DV_CEL_BOOL:
        return !val->b;
    case DV_CEL_INT:
    case DV_CEL_DURATION:
        return val->i == 0;
    case DV_CEL_UINT:
        return val->u == 0;
    case DV_CEL_DOUBLE:
        return val->d == 0;
    case DV_CEL_STRING:
    case DV_CEL_BYTES:
        return val->s.n == 0;
    case DV_CEL_LIST:
        return val->list->n == 0;
    case DV_CEL_MAP:
        return val->map->n == 0;
    case DV_CEL_OPTIONAL:
        return !val->optional;
    default:
        return false;
    }
}

static void fn_of_non_zero(struct dv_cel_run *run, const struct dv_cel_val *args,
                           struct dv_cel_val *out)
{
    *out = is_zero(&args[0]) ? dv_cel_none() : dv_cel_optional(&args[0], run->arena);
}

static void fn_none(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    (void)run;
    (void)args;
    *out = dv_cel_none();
}

static void fn_value(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    (void)run;
    *out =
        args[0].optional ? *args[0].optional : dv_cel_error(DV_STR("optional.none() dereference"));
}

static void fn_has_value(struct dv_cel_run *run, const struct dv_cel_val *args,
                         struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_bool(args[0].optional != NULL);
}

static void fn_unwrap(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    const struct dv_cel_list *list = args[0].list;
    struct dv_cel_val *elements;
    struct dv_cel_val all = dv_cel_list_new(list->n, run->arena, &elements);
    uint32_t n = 0;

    for (uint32_t i = 0; i < list->n; i++) {
        if (list->v[i].kind != DV_CEL_OPTIONAL) {
            *out = dv_cel_error(DV_STR("value is not an optional"));
            return;
        }
        if (list->v[i].optional)
            elements[n++] = *list->v[i].optional;
    }
    *out = dv_cel_list_slice(all.list, 0, n, run->arena);
}

static void fn_first(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    const struct dv_cel_list *list = args[0].list;

    *out = list->n == 0 ? dv_cel_none() : dv_cel_optional(&list->v[0], run->arena);
}

static void fn_last(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    const struct dv_cel_list *list = args[0].list;

    *out = list->n == 0 ? dv_cel_none() : dv_cel_optional(&list->v[list->n - 1], run->arena);
}

#define ONE DV_CEL_COST_ONE
#define SELF DV_CEL_FN_SELF_CHECKED

static const struct dv_cel_overload rows[] = {
    {"optional.of",             "A>OA",     fn_of,          ONE, SELF},
    {"optional.ofNonZeroValue", "A>OA",     fn_of_non_zero, ONE, SELF},
    {"optional.none",           ">OA",      fn_none,        ONE, SELF},
    {"optional.unwrap",         "LOA>LA",   fn_unwrap,      ONE, 0   },
    {"unwrapOpt",               ".LOA>LA",  fn_unwrap,      ONE, 0   },
    {"value",                   ".OA>A",    fn_value,       ONE, 0   },
    {"hasValue",                ".OA>b",    fn_has_value,   ONE, 0   },
    {"or",                      ".OAOA>OA", NULL,           ONE, 0   },
    {"orValue",                 ".OAA>A",   NULL,           ONE, 0   },
    {"first",                   ".LA>OA",   fn_first,       ONE, 0   },
    {"last",                    ".LA>OA",   fn_last,        ONE, 0   },
};
const struct dv_cel_lib dv_cel_lib_optionals = {rows, DV_COUNT(rows)};
