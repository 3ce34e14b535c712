/* lib_operators.c - arithmetic, !, in, size, and what comprehensions are made of. */
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "cel/check/decls.h"
#include "cel/value/cel_map.h"
#include "cel/value/cel_run.h"
#include "cel/value/cel_time.h"
#include "cel/value/cel_value.h"

#define OVERFLOW_TEXT DV_STR("integer overflow")
#define UINT_OVERFLOW_TEXT DV_STR("unsigned integer overflow")

static struct dv_cel_val int_result(bool is_over, int64_t value)
{
    return is_over ? dv_cel_error(OVERFLOW_TEXT) : dv_cel_int(value);
}

static struct dv_cel_val uint_result(bool is_over, uint64_t value)
{
    return is_over ? dv_cel_error(UINT_OVERFLOW_TEXT) : dv_cel_uint(value);
}

static struct dv_cel_val concat(struct dv_cel_run *run, const struct dv_cel_val *args)
{
    struct dv_cel_val val = args[0];
    size_t n = args[0].s.n + args[1].s.n;
    char *text;

    if (n > DV_CEL_STRING_MAX) {
        dv_cel_run_stop(run, DV_CEL_FAULT_MEMORY, &val);
        return val;
    }
    text = dv_arena_alloc_raw(run->arena, n, 1);
    if (args[0].s.n > 0)
        memcpy(text, args[0].s.p, args[0].s.n);
    if (args[1].s.n > 0)
        memcpy(text + args[0].s.n, args[1].s.p, args[1].s.n);
    val.s = (dv_str){text, n};
    return val;
}

static struct dv_cel_val add_lists(struct dv_cel_run *run, const struct dv_cel_val *args)
{
    struct dv_cel_val val = {0};

    if (args[0].list->n == 0)
        return args[1];
    if (args[1].list->n == 0)
        return args[0];
    if (args[0].list->n + args[1].list->n > DV_CEL_LIST_MAX) {
        dv_cel_run_stop(run, DV_CEL_FAULT_MEMORY, &val);
        return val;
    }
    val = dv_cel_list_concat(args[0].list, args[1].list, run->arena);
    dv_cel_run_work(run, args[1].list->n);
    /* there was no room behind the first list, so that was copied too */
    if (val.list->v != args[0].list->v)
        dv_cel_run_work(run, args[0].list->n);
    return val;
}

static struct dv_cel_val add_same(struct dv_cel_run *run, const struct dv_cel_val *args)
{
    int64_t i;
    uint64_t u;
    bool is_over;

    switch (args[0].kind) {
    case DV_CEL_INT:
        is_over = __builtin_add_overflow(args[0].i, args[1].i, &i);
        return int_result(is_over, i);
    case DV_CEL_UINT:
        is_over = __builtin_add_overflow(args[0].u, args[1].u, &u);
        return uint_result(is_over, u);
    case DV_CEL_DOUBLE:
        return dv_cel_double(args[0].d + args[1].d);
    case DV_CEL_STRING:
    case DV_CEL_BYTES:
        return concat(run, args);
    case DV_CEL_LIST:
        return add_lists(run, args);
    case DV_CEL_DURATION:
        if (__builtin_add_overflow(args[0].i, args[1].i, &i))
            return dv_cel_error(OVERFLOW_TEXT);
        return dv_cel_duration(i);
    default:
        return dv_cel_no_overload(DV_STR("_+_"));
    }
}

static void op_add(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    if (args[0].kind == args[1].kind)
        *out = add_same(run, args);
    else if (args[0].kind == DV_CEL_TIMESTAMP && args[1].kind == DV_CEL_DURATION)
        *out = dv_cel_time_add(&args[0], args[1].i, false);
    else if (args[0].kind == DV_CEL_DURATION && args[1].kind == DV_CEL_TIMESTAMP)
        *out = dv_cel_time_add(&args[1], args[0].i, false);
    else
        *out = dv_cel_no_overload(DV_STR("_+_"));
}

static struct dv_cel_val subtract_same(const struct dv_cel_val *args)
{
    int64_t i;
    uint64_t u;
    bool is_over;

    switch (args[0].kind) {
    case DV_CEL_INT:
        is_over = __builtin_sub_overflow(args[0].i, args[1].i, &i);
        return int_result(is_over, i);
    case DV_CEL_UINT:
        is_over = __builtin_sub_overflow(args[0].u, args[1].u, &u);
        return uint_result(is_over, u);
    case DV_CEL_DOUBLE:
        return dv_cel_double(args[0].d - args[1].d);
    case DV_CEL_DURATION:
        if (__builtin_sub_overflow(args[0].i, args[1].i, &i))
            return dv_cel_error(OVERFLOW_TEXT);
        return dv_cel_duration(i);
    case DV_CEL_TIMESTAMP:
        return dv_cel_time_between(&args[0], &args[1]);
    default:
        return dv_cel_no_overload(DV_STR("_-_"));
    }
}

static void op_subtract(struct dv_cel_run *run, const struct dv_cel_val *args,
                        struct dv_cel_val *out)
{
    (void)run;
    if (args[0].kind == args[1].kind)
        *out = subtract_same(args);
    else if (args[0].kind == DV_CEL_TIMESTAMP && args[1].kind == DV_CEL_DURATION)
        *out = dv_cel_time_add(&args[0], args[1].i, true);
    else
        *out = dv_cel_no_overload(DV_STR("_-_"));
}

static void op_multiply(struct dv_cel_run *run, const struct dv_cel_val *args,
                        struct dv_cel_val *out)
{
    uint8_t kind = args[0].kind == args[1].kind ? args[0].kind : DV_CEL_ERROR;
    int64_t i;
    uint64_t u;
    bool is_over;

    (void)run;
    if (kind == DV_CEL_INT) {
        is_over = __builtin_mul_overflow(args[0].i, args[1].i, &i);
        *out = int_result(is_over, i);
    } else if (kind == DV_CEL_UINT) {
        is_over = __builtin_mul_overflow(args[0].u, args[1].u, &u);
        *out = uint_result(is_over, u);
    } else if (kind == DV_CEL_DOUBLE) {
        *out = dv_cel_double(args[0].d * args[1].d);
    } else {
        *out = dv_cel_no_overload(DV_STR("_*_"));
    }
}

static void op_divide(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    uint8_t kind = args[0].kind == args[1].kind ? args[0].kind : DV_CEL_ERROR;

    (void)run;
    if (kind == DV_CEL_DOUBLE)
        *out = dv_cel_double(args[0].d / args[1].d);
    else if (kind != DV_CEL_INT && kind != DV_CEL_UINT)
        *out = dv_cel_no_overload(DV_STR("_/_"));
    else if (args[1].u == 0)
        *out = dv_cel_error(DV_STR("division by zero"));
    else if (kind == DV_CEL_UINT)
        *out = dv_cel_uint(args[0].u / args[1].u);
    else if (args[0].i == INT64_MIN && args[1].i == -1)
        *out = dv_cel_error(OVERFLOW_TEXT);
    else
        *out = dv_cel_int(args[0].i / args[1].i);
}

static void op_modulo(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    uint8_t kind = args[0].kind == args[1].kind ? args[0].kind : DV_CEL_ERROR;

    (void)run;
    if (kind != DV_CEL_INT && kind != DV_CEL_UINT)
        *out = dv_cel_no_overload(DV_STR("_%_"));
    else if (args[1].u == 0)
        *out = dv_cel_error(DV_STR("modulus by zero"));
    else if (kind == DV_CEL_UINT)
        *out = dv_cel_uint(args[0].u % args[1].u);
    else if (args[0].i == INT64_MIN && args[1].i == -1)
        *out = dv_cel_error(OVERFLOW_TEXT);
    else
        *out = dv_cel_int(args[0].i % args[1].i);
}

static void op_negate(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    (void)run;
    if (args[0].kind == DV_CEL_DOUBLE)
        *out = dv_cel_double(-args[0].d);
    else if (args[0].kind != DV_CEL_INT)
        *out = dv_cel_no_overload(DV_STR("-_"));
    else if (args[0].i == INT64_MIN)
        *out = dv_cel_error(OVERFLOW_TEXT);
    else
        *out = dv_cel_int(-args[0].i);
}

static void op_not(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    (void)run;
    *out = args[0].kind == DV_CEL_BOOL ? dv_cel_bool(!args[0].b) : dv_cel_no_overload(DV_STR("!_"));
}

static void op_not_strictly_false(struct dv_cel_run *run, const struct dv_cel_val *args,
                                  struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_bool(args[0].kind != DV_CEL_BOOL || args[0].b);
}

static void op_in(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    (void)run;
    if (args[1].kind == DV_CEL_LIST)
        *out = dv_cel_bool(dv_cel_list_contains(args[1].list, &args[0]));
    else if (args[1].kind == DV_CEL_MAP)
        *out = dv_cel_bool(dv_cel_map_find(args[1].map, &args[0]) != NULL);
    else
        *out = dv_cel_no_overload(DV_STR("@in"));
}

static void fn_size(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    (void)run;
    if (args[0].kind == DV_CEL_STRING || args[0].kind == DV_CEL_BYTES ||
        args[0].kind == DV_CEL_LIST || args[0].kind == DV_CEL_MAP)
        *out = dv_cel_int((int64_t)dv_cel_val_size(&args[0]));
    else
        *out = dv_cel_no_overload(DV_STR("size"));
}

static struct dv_cel_val insert(struct dv_cel_run *run, const struct dv_cel_map *map,
                                const struct dv_cel_val *key, const struct dv_cel_val *value)
{
    const struct dv_cel_map *longer;

    if (!dv_cel_is_key(key))
        return dv_cel_error(DV_STR("unsupported key type"));
    if (dv_cel_map_find(map, key))
        return dv_cel_error(DV_STR("insert failed: key already exists"));
    longer = dv_cel_map_with(map, key, value, run->arena);
    if (longer->v != map->v) /* there was no room behind the map's entries, so all were copied */
        dv_cel_run_work(run, longer->n);
    return (struct dv_cel_val){.kind = DV_CEL_MAP, .map = longer};
}

static void fn_insert(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    *out = insert(run, args[0].map, &args[1], &args[2]);
}

static void fn_insert_all(struct dv_cel_run *run, const struct dv_cel_val *args,
                          struct dv_cel_val *out)
{
    *out = args[0];
    for (uint32_t i = 0; i < args[1].map->n && !dv_cel_is_error(out) && !run->stop; i++)
        *out = insert(run, out->map, &args[1].map->v[i].key, &args[1].map->v[i].value);
}

#define SELF DV_CEL_FN_SELF_CHECKED

static const struct dv_cel_overload rows[] = {
    {"_?_:_",               "bAA>A",      NULL,                  DV_CEL_COST_CHOOSE,     0   },
    {"_&&_",                "bb>b",       NULL,                  DV_CEL_COST_ONE,        0   },
    {"_||_",                "bb>b",       NULL,                  DV_CEL_COST_ONE,        0   },
    {"_==_",                "AA>b",       NULL,                  DV_CEL_COST_EQ,         0   },
    {"_!=_",                "AA>b",       NULL,                  DV_CEL_COST_EQ,         0   },
    {"_[_]",                "LAi>A",      NULL,                  DV_CEL_COST_INDEX_LIST, 0   },
    {"_[_]",                "MABA>B",     NULL,                  DV_CEL_COST_INDEX_MAP,  0   },
    {"_[_]",                "OLAi>OA",    NULL,                  DV_CEL_COST_ONE,        0   },
    {"_[_]",                "OMABA>OB",   NULL,                  DV_CEL_COST_ONE,        0   },
    {"_[?_]",               "LAi>OA",     NULL,                  DV_CEL_COST_ONE,        0   },
    {"_[?_]",               "OLAi>OA",    NULL,                  DV_CEL_COST_ONE,        0   },
    {"_[?_]",               "MABA>OB",    NULL,                  DV_CEL_COST_ONE,        0   },
    {"_[?_]",               "OMABA>OB",   NULL,                  DV_CEL_COST_ONE,        0   },
    {"!_",                  "b>b",        op_not,                DV_CEL_COST_ONE,        SELF},
    {"-_",                  "i>i",        op_negate,             DV_CEL_COST_ONE,        SELF},
    {"-_",                  "d>d",        op_negate,             DV_CEL_COST_ONE,        SELF},
    {"_+_",                 "yy>y",       op_add,                DV_CEL_COST_CONCAT,     SELF},
    {"_+_",                 "dd>d",       op_add,                DV_CEL_COST_ONE,        SELF},
    {"_+_",                 "DD>D",       op_add,                DV_CEL_COST_ONE,        SELF},
    {"_+_",                 "DT>T",       op_add,                DV_CEL_COST_ONE,        SELF},
    {"_+_",                 "TD>T",       op_add,                DV_CEL_COST_ONE,        SELF},
    {"_+_",                 "ii>i",       op_add,                DV_CEL_COST_ONE,        SELF},
    {"_+_",                 "LALA>LA",    op_add,                DV_CEL_COST_ADD_LIST,   SELF},
    {"_+_",                 "ss>s",       op_add,                DV_CEL_COST_CONCAT,     SELF},
    {"_+_",                 "uu>u",       op_add,                DV_CEL_COST_ONE,        SELF},
    {"_-_",                 "dd>d",       op_subtract,           DV_CEL_COST_ONE,        SELF},
    {"_-_",                 "DD>D",       op_subtract,           DV_CEL_COST_ONE,        SELF},
    {"_-_",                 "ii>i",       op_subtract,           DV_CEL_COST_ONE,        SELF},
    {"_-_",                 "TD>T",       op_subtract,           DV_CEL_COST_ONE,        SELF},
    {"_-_",                 "TT>D",       op_subtract,           DV_CEL_COST_ONE,        SELF},
    {"_-_",                 "uu>u",       op_subtract,           DV_CEL_COST_ONE,        SELF},
    {"_*_",                 "dd>d",       op_multiply,           DV_CEL_COST_ONE,        SELF},
    {"_*_",                 "ii>i",       op_multiply,           DV_CEL_COST_ONE,        SELF},
    {"_*_",                 "uu>u",       op_multiply,           DV_CEL_COST_ONE,        SELF},
    {"_/_",                 "dd>d",       op_divide,             DV_CEL_COST_ONE,        SELF},
    {"_/_",                 "ii>i",       op_divide,             DV_CEL_COST_ONE,        SELF},
    {"_/_",                 "uu>u",       op_divide,             DV_CEL_COST_ONE,        SELF},
    {"_%_",                 "ii>i",       op_modulo,             DV_CEL_COST_ONE,        SELF},
    {"_%_",                 "uu>u",       op_modulo,             DV_CEL_COST_ONE,        SELF},
    {"@in",                 "ALA>b",      op_in,                 DV_CEL_COST_IN_LIST,    SELF},
    {"@in",                 "AMAB>b",     op_in,                 DV_CEL_COST_ONE,        SELF},
    {"@not_strictly_false", "b>b",        op_not_strictly_false, DV_CEL_COST_ONE,
     SELF | DV_CEL_FN_NOT_STRICT                                                             },
    {"cel.@mapInsert",      "MABMAB>MAB", fn_insert_all,         DV_CEL_COST_ONE,        0   },
    {"cel.@mapInsert",      "MABAB>MAB",  fn_insert,             DV_CEL_COST_ONE,        0   },
    {"size",                "y>i",        fn_size,               DV_CEL_COST_ONE,        SELF},
    {"size",                "LA>i",       fn_size,               DV_CEL_COST_ONE,        SELF},
    {"size",                "MAB>i",      fn_size,               DV_CEL_COST_ONE,        SELF},
    {"size",                "s>i",        fn_size,               DV_CEL_COST_ONE,        SELF},
    {"size",                ".y>i",       fn_size,               DV_CEL_COST_ONE,        SELF},
    {"size",                ".LA>i",      fn_size,               DV_CEL_COST_ONE,        SELF},
    {"size",                ".MAB>i",     fn_size,               DV_CEL_COST_ONE,        SELF},
    {"size",                ".s>i",       fn_size,               DV_CEL_COST_ONE,        SELF},
};
const struct dv_cel_lib dv_cel_lib_operators = {rows, DV_COUNT(rows)};
