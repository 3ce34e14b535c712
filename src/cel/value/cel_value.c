#include "cel/value/cel_value.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "cel/value/cel_map.h"
#include "cel/value/cel_net.h"
#include "cel/value/type.h"
#include "cel/value/url.h"
#include "number/number.h"

/* The smallest block for a list that is appended to. */
#define BLOCK_ROOM_MIN 8u

struct dv_cel_val dv_cel_error_printf(struct dv_arena *arena, const char *fmt, ...)
{
    char text[256];
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    assert(n >= 0);
    return dv_cel_error(
        dv_str_copy((dv_str){text, dv_size_min((size_t)n, sizeof(text) - 1)}, arena));
}

struct dv_cel_val dv_cel_optional(const struct dv_cel_val *value, struct dv_arena *arena)
{
    struct dv_cel_val *copy = dv_arena_alloc_raw(arena, sizeof(*copy), _Alignof(struct dv_cel_val));

    *copy = *value;
    return (struct dv_cel_val){.kind = DV_CEL_OPTIONAL, .optional = copy};
}

/* -- Lists ----------------------------------------------------------------------------------- */

struct dv_cel_val dv_cel_list_new(size_t n, struct dv_arena *arena, struct dv_cel_val **elements)
{
    struct dv_cel_list *list = DV_NEW(arena, struct dv_cel_list);

    assert(n < UINT32_MAX / 2);
    *elements = DV_NEW_ARRAY(arena, struct dv_cel_val, n);
    list->n = (uint32_t)n;
    list->v = *elements;
    return (struct dv_cel_val){.kind = DV_CEL_LIST, .list = list};
}

/* Makes a block with the elements of `a` and room for more. */
static struct dv_cel_block *new_block(const struct dv_cel_list *a, uint32_t n,
                                      struct dv_arena *arena)
{
    uint32_t size = n * 2 > BLOCK_ROOM_MIN ? n * 2 : BLOCK_ROOM_MIN;
    struct dv_cel_block *block = dv_arena_alloc_raw(
        arena, sizeof(*block) + size * sizeof(block->v[0]), _Alignof(struct dv_cel_block));

    block->size = size;
    block->n_used = a->n;
    if (a->n > 0)
        memcpy(block->v, a->v, a->n * sizeof(block->v[0]));
    return block;
}

struct dv_cel_val dv_cel_list_concat(const struct dv_cel_list *a, const struct dv_cel_list *b,
                                     struct dv_arena *arena)
{
    struct dv_cel_list *list = DV_NEW(arena, struct dv_cel_list);
    uint32_t n = a->n + b->n;
    struct dv_cel_block *block = a->block;

    assert(n < UINT32_MAX / 4);
    /* The first list that was appended to this one has taken the room behind it. */
    if (!block || block->n_used != a->n || block->size < n)
        block = new_block(a, n, arena);
    if (b->n > 0)
        memcpy(block->v + a->n, b->v, b->n * sizeof(block->v[0]));
    block->n_used = n;
    *list = (struct dv_cel_list){n, block->v, block};
    return (struct dv_cel_val){.kind = DV_CEL_LIST, .list = list};
}

struct dv_cel_val dv_cel_list_slice(const struct dv_cel_list *list, uint32_t from, uint32_t to,
                                    struct dv_arena *arena)
{
    struct dv_cel_list *slice = DV_NEW(arena, struct dv_cel_list);

    *slice = (struct dv_cel_list){to - from, list->v + from, NULL};
    return (struct dv_cel_val){.kind = DV_CEL_LIST, .list = slice};
}

bool dv_cel_list_contains(const struct dv_cel_list *list, const struct dv_cel_val *val)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (dv_cel_eq(val, &list->v[i])) /* in this order: the two can differ */
            return true;
    return false;
}

/* -- Order and equality ---------------------------------------------------------------------- */

static int cmp_i64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int cmp_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int cmp_doubles(double a, double b)
{
    return (a > b) - (a < b);
}

/* As in the reference, a double in the range of the integers is compared with the integer as a
 * double, roundings included. */
static int cmp_double_i64(double a, int64_t b)
{
    if (a < -0x1p63)
        return -1;
    return a > 0x1p63 ? 1 : cmp_doubles(a, (double)b);
}

static int cmp_double_u64(double a, uint64_t b)
{
    if (a < 0)
        return -1;
    return a > 0x1p64 ? 1 : cmp_doubles(a, (double)b);
}

static int cmp_numbers(const struct dv_cel_val *a, const struct dv_cel_val *b)
{
    if (a->kind == DV_CEL_INT) {
        if (b->kind == DV_CEL_INT)
            return cmp_i64(a->i, b->i);
        if (b->kind == DV_CEL_UINT)
            return a->i < 0 ? -1 : cmp_u64((uint64_t)a->i, b->u);
        return -cmp_double_i64(b->d, a->i);
    }
    if (a->kind == DV_CEL_UINT) {
        if (b->kind == DV_CEL_INT)
            return b->i < 0 ? 1 : cmp_u64(a->u, (uint64_t)b->i);
        if (b->kind == DV_CEL_UINT)
            return cmp_u64(a->u, b->u);
        return -cmp_double_u64(b->d, a->u);
    }
    if (b->kind == DV_CEL_INT)
        return cmp_double_i64(a->d, b->i);
    if (b->kind == DV_CEL_UINT)
        return cmp_double_u64(a->d, b->u);
    return cmp_doubles(a->d, b->d);
}

static bool is_nan_val(const struct dv_cel_val *val)
{
    return val->kind == DV_CEL_DOUBLE && isnan(val->d);
}

bool dv_cel_cmp(const struct dv_cel_val *a, const struct dv_cel_val *b, int *order, bool *is_nan)
{
    *is_nan = false;
    if (dv_cel_is_number(a) && dv_cel_is_number(b)) {
        *is_nan = is_nan_val(a) || is_nan_val(b);
        if (*is_nan)
            return false;
        *order = cmp_numbers(a, b);
        return true;
    }
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case DV_CEL_BOOL:
        *order = (int)a->b - (int)b->b;
        return true;
    case DV_CEL_STRING:
    case DV_CEL_BYTES:
        *order = dv_str_cmp(a->s, b->s);
        *order = (*order > 0) - (*order < 0);
        return true;
    case DV_CEL_DURATION:
        *order = cmp_i64(a->i, b->i);
        return true;
    case DV_CEL_TIMESTAMP:
        *order = a->i != b->i ? cmp_i64(a->i, b->i) : cmp_i64(a->nanos, b->nanos);
        return true;
    default:
        return false;
    }
}

static enum dv_cel_equality equality(bool is_equal)
{
    return is_equal ? DV_CEL_EQUAL : DV_CEL_DIFFERENT;
}

/* Compares lists. Elements that cannot be compared do not make a difference. */
static enum dv_cel_equality compare_lists(const struct dv_cel_list *a, const struct dv_cel_list *b)
{
    if (a->n != b->n)
        return DV_CEL_DIFFERENT;
    for (uint32_t i = 0; i < a->n; i++)
        if (dv_cel_compare(&a->v[i], &b->v[i]) == DV_CEL_DIFFERENT)
            return DV_CEL_DIFFERENT;
    return DV_CEL_EQUAL;
}

static enum dv_cel_equality compare_optionals(const struct dv_cel_val *a,
                                              const struct dv_cel_val *b)
{
    return a && b ? dv_cel_compare(a, b) : equality(a == b);
}

static enum dv_cel_equality compare_same_kind(const struct dv_cel_val *a,
                                              const struct dv_cel_val *b)
{
    switch ((enum dv_cel_kind)a->kind) {
    case DV_CEL_NULL:
        return DV_CEL_EQUAL;
    case DV_CEL_BOOL:
        return equality(a->b == b->b);
    case DV_CEL_STRING:
    case DV_CEL_BYTES:
        return equality(dv_str_eq(a->s, b->s));
    case DV_CEL_LIST:
        return compare_lists(a->list, b->list);
    case DV_CEL_MAP:
        return dv_cel_map_compare(a->map, b->map);
    case DV_CEL_TYPE: /* by name: what a list is of does not count */
        return equality(dv_str_eq(a->type->name, b->type->name));
    case DV_CEL_TIMESTAMP:
        return equality(a->i == b->i && a->nanos == b->nanos);
    case DV_CEL_DURATION:
        return equality(a->i == b->i);
    case DV_CEL_OPTIONAL:
        return compare_optionals(a->optional, b->optional);
    case DV_CEL_QUANTITY:
        return b->is_sum ? DV_CEL_INCOMPARABLE
                         : equality(dv_quantity_cmp(a->quantity, b->quantity) == 0);
    case DV_CEL_VERSION:
        return equality(dv_version_cmp(a->version, b->version) == 0);
    case DV_CEL_URL:
        return equality(dv_cel_url_eq(a->url, b->url));
    case DV_CEL_IP:
        return equality(dv_cel_ip_eq(a->ip, b->ip));
    case DV_CEL_CIDR:
        return equality(dv_cel_cidr_eq(a->cidr, b->cidr));
    case DV_CEL_FORMAT:
        return equality(a->format == b->format);
    case DV_CEL_AUTHORIZER:
    case DV_CEL_PATH_CHECK:
    case DV_CEL_GROUP_CHECK:
    case DV_CEL_RESOURCE_CHECK:
    case DV_CEL_DECISION:
        return equality(a->authz == b->authz);
    case DV_CEL_ERROR:
    case DV_CEL_INT:
    case DV_CEL_UINT:
    case DV_CEL_DOUBLE:
    case DV_CEL_N_KINDS:
        break;
    }
    return DV_CEL_DIFFERENT;
}

enum dv_cel_equality dv_cel_compare(const struct dv_cel_val *a, const struct dv_cel_val *b)
{
    if (dv_cel_is_number(a) && dv_cel_is_number(b))
        return equality(!is_nan_val(a) && !is_nan_val(b) && cmp_numbers(a, b) == 0);
    if (dv_cel_is_error(a) || dv_cel_is_error(b)) /* inside of optionals */
        return DV_CEL_INCOMPARABLE;
    if (a->kind == b->kind)
        return compare_same_kind(a, b);
    return a->kind >= DV_CEL_QUANTITY ? DV_CEL_INCOMPARABLE : DV_CEL_DIFFERENT;
}

/* -- Looking at values ----------------------------------------------------------------------- */

const struct dv_cel_type *dv_cel_val_type(const struct dv_cel_val *val)
{
    static const struct dv_cel_type *const types[DV_CEL_N_KINDS] = {
        [DV_CEL_ERROR] = &dv_cel_t_error,
        [DV_CEL_NULL] = &dv_cel_t_null,
        [DV_CEL_BOOL] = &dv_cel_t_bool,
        [DV_CEL_INT] = &dv_cel_t_int,
        [DV_CEL_UINT] = &dv_cel_t_uint,
        [DV_CEL_DOUBLE] = &dv_cel_t_double,
        [DV_CEL_STRING] = &dv_cel_t_string,
        [DV_CEL_BYTES] = &dv_cel_t_bytes,
        [DV_CEL_LIST] = &dv_cel_t_list,
        [DV_CEL_MAP] = &dv_cel_t_map,
        [DV_CEL_TYPE] = &dv_cel_t_type,
        [DV_CEL_TIMESTAMP] = &dv_cel_t_timestamp,
        [DV_CEL_DURATION] = &dv_cel_t_duration,
        [DV_CEL_OPTIONAL] = &dv_cel_t_optional,
        [DV_CEL_QUANTITY] = &dv_cel_t_quantity,
        [DV_CEL_VERSION] = &dv_cel_t_version,
        [DV_CEL_URL] = &dv_cel_t_url,
        [DV_CEL_IP] = &dv_cel_t_ip,
        [DV_CEL_CIDR] = &dv_cel_t_cidr,
        [DV_CEL_FORMAT] = &dv_cel_t_format,
        [DV_CEL_AUTHORIZER] = &dv_cel_t_authorizer,
        [DV_CEL_PATH_CHECK] = &dv_cel_t_path_check,
        [DV_CEL_GROUP_CHECK] = &dv_cel_t_group_check,
        [DV_CEL_RESOURCE_CHECK] = &dv_cel_t_resource_check,
        [DV_CEL_DECISION] = &dv_cel_t_decision,
    };

    return types[val->kind];
}

dv_str dv_cel_val_type_name(const struct dv_cel_val *val)
{
    return dv_cel_val_type(val)->name;
}

size_t dv_cel_utf8_len(dv_str s)
{
    size_t n = s.n;
    size_t i = 0;

    /* Bytes that go on with a character (10xxxxxx) are taken off, eight at a time. */
    for (; i + 8 <= s.n; i += 8) {
        uint64_t word;

        memcpy(&word, s.p + i, 8);
        word = word >> 7 & ~word >> 6 & 0x0101010101010101u;
        n -= word * 0x0101010101010101u >> 56;
    }
    for (; i < s.n; i++)
        n -= ((unsigned char)s.p[i] & 0xc0) == 0x80;
    return n;
}

uint64_t dv_cel_val_size(const struct dv_cel_val *val)
{
    switch (val->kind) {
    case DV_CEL_STRING:
        return dv_cel_utf8_len(val->s);
    case DV_CEL_BYTES:
        return val->s.n;
    case DV_CEL_LIST:
        return val->list->n;
    case DV_CEL_MAP:
        return val->map->n;
    case DV_CEL_IP:
        return dv_cel_ip_size(val->ip);
    case DV_CEL_CIDR:
        return dv_cel_cidr_size(val->cidr);
    case DV_CEL_OPTIONAL:
        return val->optional ? dv_cel_val_size(val->optional) : 1;
    default:
        return 1;
    }
}

uint64_t dv_cel_val_weigh(const struct dv_cel_val *val, uint64_t max)
{
    uint64_t sum = 0;

    switch ((int)val->kind) {
    case DV_CEL_LIST:
        for (uint32_t i = 0; i < val->list->n && sum < max; i++)
            sum += 1 + dv_cel_val_weigh(&val->list->v[i], max - sum);
        return sum;
    case DV_CEL_MAP:
        for (uint32_t i = 0; i < val->map->n && sum < max; i++)
            sum += 2 + dv_cel_val_weigh(&val->map->v[i].value, max - sum);
        return sum;
    case DV_CEL_OPTIONAL:
        return val->optional ? dv_cel_val_weigh(val->optional, max) : 0;
    default:
        return 0;
    }
}
