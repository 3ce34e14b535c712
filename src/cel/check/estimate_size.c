/* estimate_size.c - how large values may be. */
#include <math.h>

#include "base/arena.h"
#include "base/num.h"
#include "cel/check/estimate.h"
#include "cel/value/cel_value.h"
#include "cel/value/type.h"

/* The API's limits for the parts of a device. */
#define DRIVER_SIZE 63u
#define DOMAIN_SIZE 63u
#define ID_SIZE 32u
#define N_ENTRIES 32u
#define VALUE_SIZE 64u

/* -- Ranges -------------------------------------------------------------------------------------
 */

struct dv_cel_size dv_cel_range_fixed(uint64_t n)
{
    return (struct dv_cel_size){n, n};
}

static uint64_t multiply_u64(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t scale_u64(uint64_t n, double factor)
{
    double product = ceil((double)n * factor);

    if ((double)n > 0 && factor > 0 && (double)n > 0x1p64 / factor)
        return UINT64_MAX;
    return product >= 0x1p64 ? UINT64_MAX : (uint64_t)product;
}

struct dv_cel_size dv_cel_range_add(struct dv_cel_size a, struct dv_cel_size b)
{
    return (struct dv_cel_size){dv_u64_add_clamped(a.min, b.min), dv_u64_add_clamped(a.max, b.max)};
}

struct dv_cel_size dv_cel_range_multiply(struct dv_cel_size a, struct dv_cel_size b)
{
    return (struct dv_cel_size){multiply_u64(a.min, b.min), multiply_u64(a.max, b.max)};
}

struct dv_cel_size dv_cel_range_scale(struct dv_cel_size a, double factor)
{
    return (struct dv_cel_size){scale_u64(a.min, factor), scale_u64(a.max, factor)};
}

struct dv_cel_size dv_cel_range_join(struct dv_cel_size a, struct dv_cel_size b)
{
    return (struct dv_cel_size){dv_u64_min(a.min, b.min), dv_u64_max(a.max, b.max)};
}

const struct dv_cel_size *dv_cel_size_keep(struct dv_cel_estimator *e, struct dv_cel_size range)
{
    struct dv_cel_size *size = DV_NEW(e->arena, struct dv_cel_size);

    *size = (struct dv_cel_size){range.min, range.max};
    return size;
}

struct dv_cel_size dv_cel_range_of(const struct dv_cel_size *size)
{
    return size ? (struct dv_cel_size){size->min, size->max} : DV_CEL_SIZE_UNKNOWN;
}

/* -- Paths ---------------------------------------------------------------------------------------
 */

const struct dv_cel_path *dv_cel_path_step(struct dv_cel_estimator *e, const struct dv_cel_path *up,
                                           dv_str name)
{
    struct dv_cel_path *path = DV_NEW(e->arena, struct dv_cel_path);

    *path = (struct dv_cel_path){up, name};
    return path;
}

const struct dv_cel_local *dv_cel_local_find(const struct dv_cel_estimator *e, dv_str name)
{
    const struct dv_cel_local *local = e->locals;

    while (local && !dv_str_eq(local->name, name))
        local = local->up;
    return local;
}

const struct dv_cel_path *dv_cel_path_of(const struct dv_cel_estimator *e,
                                         const struct dv_cel_ast *ast)
{
    if (ast->kind == DV_CEL_AST_IDENT) {
        const struct dv_cel_local *local = dv_cel_local_find(e, ast->name);

        if (local)
            return local->path;
    }
    return ast->path;
}

static bool is_step(const struct dv_cel_path *path, const char *name)
{
    return dv_str_eq(path->name, dv_str_from_c(name));
}

/* The places in a device. */
enum place {
    NOWHERE,
    DEVICE,
    DRIVER,
    MULTIPLE,
    ATTRIBUTES,
    CAPACITY,
    INNER_ATTRIBUTES,
    INNER_CAPACITY,
    DOMAIN,
    ID,
    ATTRIBUTE,
    QUANTITY,
};

static enum place field_place(const struct dv_cel_path *path)
{
    if (is_step(path, "driver"))
        return DRIVER;
    if (is_step(path, "attributes"))
        return ATTRIBUTES;
    if (is_step(path, "capacity"))
        return CAPACITY;
    return is_step(path, "allowMultipleAllocations") ? MULTIPLE : NOWHERE;
}

static enum place place_of(const struct dv_cel_path *path)
{
    bool is_value;
    bool is_key;
    enum place up;

    if (!path->up)
        return is_step(path, "device") ? DEVICE : NOWHERE;
    up = place_of(path->up);
    is_value = is_step(path, "@values") || is_step(path, "@items");
    is_key = is_step(path, "@keys");
    switch (up) {
    case DEVICE:
        return field_place(path);
    case ATTRIBUTES:
        return is_value ? INNER_ATTRIBUTES : (is_key ? DOMAIN : NOWHERE);
    case CAPACITY:
        return is_value ? INNER_CAPACITY : (is_key ? DOMAIN : NOWHERE);
    case INNER_ATTRIBUTES:
        return is_key ? ID : ATTRIBUTE;
    case INNER_CAPACITY:
        return is_value ? QUANTITY : (is_key ? ID : NOWHERE);
    case NOWHERE:
    case DRIVER:
    case MULTIPLE:
    case DOMAIN:
    case ID:
    case ATTRIBUTE:
    case QUANTITY:
        break;
    }
    return NOWHERE;
}

/* False: no bound is known. */
bool dv_cel_size_at(const struct dv_cel_path *path, struct dv_cel_size *size)
{
    static const uint64_t sizes[] = {
        [DEVICE] = 0,
        [DRIVER] = DRIVER_SIZE,
        [MULTIPLE] = 1,
        [ATTRIBUTES] = N_ENTRIES,
        [CAPACITY] = N_ENTRIES,
        [INNER_ATTRIBUTES] = N_ENTRIES,
        [INNER_CAPACITY] = N_ENTRIES,
        [DOMAIN] = DOMAIN_SIZE,
        [ID] = ID_SIZE,
        [ATTRIBUTE] = VALUE_SIZE,
        [QUANTITY] = VALUE_SIZE,
    };
    enum place place = path ? place_of(path) : NOWHERE;

    if (place == NOWHERE)
        return false;
    *size = (struct dv_cel_size){0, sizes[place]};
    return true;
}

/* -- Sizes ----------------------------------------------------------------------------------- */

static bool is_scalar(const struct dv_cel_type *type)
{
    switch (type->kind) {
    case DV_CEL_T_BOOL:
    case DV_CEL_T_INT:
    case DV_CEL_T_UINT:
    case DV_CEL_T_DOUBLE:
    case DV_CEL_T_TIMESTAMP:
    case DV_CEL_T_DURATION:
        return true;
    case DV_CEL_T_OPAQUE:
        return dv_cel_type_is_optional(type) && is_scalar(type->params[0]);
    case DV_CEL_T_ERROR:
    case DV_CEL_T_DYN:
    case DV_CEL_T_ANY:
    case DV_CEL_T_NULL:
    case DV_CEL_T_STRING:
    case DV_CEL_T_BYTES:
    case DV_CEL_T_TYPE:
    case DV_CEL_T_LIST:
    case DV_CEL_T_MAP:
    case DV_CEL_T_OBJECT:
    case DV_CEL_T_VAR:
        break;
    case DV_CEL_T_WRAPPER:
        return is_scalar(type->params[0]);
    }
    return false;
}

static bool own_size(const struct dv_cel_ast *ast, struct dv_cel_size *size)
{
    if (ast->kind == DV_CEL_AST_LITERAL)
        *size = dv_cel_range_fixed(dv_cel_val_size(&ast->literal));
    else if (ast->kind == DV_CEL_AST_LIST)
        *size = dv_cel_range_fixed(ast->n_args);
    else if (ast->kind == DV_CEL_AST_MAP)
        *size = dv_cel_range_fixed(ast->n_args / 2);
    else
        return false;
    return true;
}

/* NULL: DV_CEL_SIZE_UNKNOWN. */
const struct dv_cel_size *dv_cel_size_of(struct dv_cel_estimator *e, struct dv_cel_ast *ast)
{
    const struct dv_cel_local *local;
    struct dv_cel_size size;

    if (ast->size)
        return ast->size;
    if (own_size(ast, &size))
        return dv_cel_size_keep(e, size);
    if (dv_cel_size_at(dv_cel_path_of(e, ast), &size)) {
        ast->size = dv_cel_size_keep(e, size);
        return ast->size;
    }
    if (is_scalar(ast->type))
        return dv_cel_size_keep(e, dv_cel_range_fixed(1));
    local = ast->kind == DV_CEL_AST_IDENT ? dv_cel_local_find(e, ast->name) : NULL;
    return local ? local->size : NULL;
}

struct dv_cel_size dv_cel_size_or_unknown(struct dv_cel_estimator *e, struct dv_cel_ast *ast)
{
    return dv_cel_range_of(dv_cel_size_of(e, ast));
}

const struct dv_cel_entry_size *dv_cel_entry_size_of(const struct dv_cel_estimator *e,
                                                     const struct dv_cel_ast *ast)
{
    const struct dv_cel_local *local;

    if (ast->entry_size)
        return ast->entry_size;
    local = ast->kind == DV_CEL_AST_IDENT ? dv_cel_local_find(e, ast->name) : NULL;
    return local ? local->entry_size : NULL;
}

const struct dv_cel_entry_size *dv_cel_entry_join(struct dv_cel_estimator *e,
                                                  const struct dv_cel_entry_size *a,
                                                  const struct dv_cel_entry_size *b)
{
    struct dv_cel_entry_size *size;

    if (!a || !b)
        return NULL;
    size = DV_NEW(e->arena, struct dv_cel_entry_size);
    size->is_map = a->is_map;
    size->key = dv_cel_range_join(a->key, b->key);
    size->value = dv_cel_range_join(a->value, b->value);
    return size;
}
