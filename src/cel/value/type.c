#include "cel/value/type.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"

#define SIMPLE(KIND, NAME)                                                                         \
    {                                                                                              \
        .kind = (KIND), .name = DV_STR_INIT(NAME)                                                  \
    }

const struct dv_cel_type dv_cel_t_error = SIMPLE(DV_CEL_T_ERROR, "*error*");
const struct dv_cel_type dv_cel_t_dyn = SIMPLE(DV_CEL_T_DYN, "dyn");
const struct dv_cel_type dv_cel_t_any = SIMPLE(DV_CEL_T_ANY, "google.protobuf.Any");
const struct dv_cel_type dv_cel_t_null = SIMPLE(DV_CEL_T_NULL, "null_type");
const struct dv_cel_type dv_cel_t_bool = SIMPLE(DV_CEL_T_BOOL, "bool");
const struct dv_cel_type dv_cel_t_int = SIMPLE(DV_CEL_T_INT, "int");
const struct dv_cel_type dv_cel_t_uint = SIMPLE(DV_CEL_T_UINT, "uint");
const struct dv_cel_type dv_cel_t_double = SIMPLE(DV_CEL_T_DOUBLE, "double");
const struct dv_cel_type dv_cel_t_string = SIMPLE(DV_CEL_T_STRING, "string");
const struct dv_cel_type dv_cel_t_bytes = SIMPLE(DV_CEL_T_BYTES, "bytes");
const struct dv_cel_type dv_cel_t_timestamp =
    SIMPLE(DV_CEL_T_TIMESTAMP, "google.protobuf.Timestamp");
const struct dv_cel_type dv_cel_t_duration = SIMPLE(DV_CEL_T_DURATION, "google.protobuf.Duration");
const struct dv_cel_type dv_cel_t_type = SIMPLE(DV_CEL_T_TYPE, "type");
const struct dv_cel_type dv_cel_t_list = {
    .kind = DV_CEL_T_LIST, .name = DV_STR_INIT("list"), .params = {&dv_cel_t_dyn}, .n_params = 1};
const struct dv_cel_type dv_cel_t_map = {
    .kind = DV_CEL_T_MAP,
    .name = DV_STR_INIT("map"),
    .params = {&dv_cel_t_dyn, &dv_cel_t_dyn},
    .n_params = 2
};
const struct dv_cel_type dv_cel_t_optional = {.kind = DV_CEL_T_OPAQUE,
                                              .name = DV_STR_INIT("optional_type"),
                                              .params = {&dv_cel_t_dyn},
                                              .n_params = 1};
const struct dv_cel_type dv_cel_t_quantity = SIMPLE(DV_CEL_T_OBJECT, "kubernetes.Quantity");
const struct dv_cel_type dv_cel_t_version = SIMPLE(DV_CEL_T_OBJECT, "kubernetes.Semver");
const struct dv_cel_type dv_cel_t_url = SIMPLE(DV_CEL_T_OBJECT, "kubernetes.URL");
const struct dv_cel_type dv_cel_t_ip = SIMPLE(DV_CEL_T_OPAQUE, "net.IP");
const struct dv_cel_type dv_cel_t_cidr = SIMPLE(DV_CEL_T_OPAQUE, "net.CIDR");
const struct dv_cel_type dv_cel_t_format = SIMPLE(DV_CEL_T_OBJECT, "kubernetes.NamedFormat");
const struct dv_cel_type dv_cel_t_device = SIMPLE(DV_CEL_T_OBJECT, "kubernetes.DRADevice");
const struct dv_cel_type dv_cel_t_authorizer =
    SIMPLE(DV_CEL_T_OBJECT, "kubernetes.authorization.Authorizer");
const struct dv_cel_type dv_cel_t_path_check =
    SIMPLE(DV_CEL_T_OBJECT, "kubernetes.authorization.PathCheck");
const struct dv_cel_type dv_cel_t_group_check =
    SIMPLE(DV_CEL_T_OBJECT, "kubernetes.authorization.GroupCheck");
const struct dv_cel_type dv_cel_t_resource_check =
    SIMPLE(DV_CEL_T_OBJECT, "kubernetes.authorization.ResourceCheck");
const struct dv_cel_type dv_cel_t_decision =
    SIMPLE(DV_CEL_T_OBJECT, "kubernetes.authorization.Decision");

static struct dv_cel_type *new_type(const struct dv_cel_type *like, struct dv_arena *arena)
{
    struct dv_cel_type *type = DV_NEW(arena, struct dv_cel_type);

    *type = *like;
    return type;
}

static const struct dv_cel_type *with_param(const struct dv_cel_type *like,
                                            const struct dv_cel_type *param, struct dv_arena *arena)
{
    struct dv_cel_type *type = new_type(like, arena);

    type->params[0] = param;
    type->n_params = 1;
    return type;
}

const struct dv_cel_type *dv_cel_list_of(const struct dv_cel_type *element, struct dv_arena *arena)
{
    return with_param(&dv_cel_t_list, element, arena);
}

const struct dv_cel_type *dv_cel_map_of(const struct dv_cel_type *key,
                                        const struct dv_cel_type *value, struct dv_arena *arena)
{
    struct dv_cel_type *type = new_type(&dv_cel_t_map, arena);

    type->params[0] = key;
    type->params[1] = value;
    return type;
}

const struct dv_cel_type *dv_cel_optional_of(const struct dv_cel_type *value,
                                             struct dv_arena *arena)
{
    return with_param(&dv_cel_t_optional, value, arena);
}

const struct dv_cel_type *dv_cel_type_of(const struct dv_cel_type *type, struct dv_arena *arena)
{
    return with_param(&dv_cel_t_type, type, arena);
}

const struct dv_cel_type *dv_cel_wrapper_of(const struct dv_cel_type *type, struct dv_arena *arena)
{
    struct dv_cel_type *wrapper = DV_NEW(arena, struct dv_cel_type);

    wrapper->kind = DV_CEL_T_WRAPPER;
    wrapper->name = DV_STR("wrapper");
    wrapper->params[0] = type;
    wrapper->n_params = 1;
    return wrapper;
}

bool dv_cel_type_is_optional(const struct dv_cel_type *type)
{
    return type->kind == DV_CEL_T_OPAQUE && dv_str_eq(type->name, dv_cel_t_optional.name);
}

/* Counts a visit; false when there were too many. A type may contain another one twice, and that
 * again, so as a tree it can be endless. */
static bool may_visit(uint32_t *n_visits)
{
    if (*n_visits >= DV_CEL_TYPE_VISITS_MAX)
        return false;
    ++*n_visits;
    return true;
}

static bool are_equal(const struct dv_cel_type *a, const struct dv_cel_type *b, uint32_t *n_visits)
{
    if (a == b)
        return true;
    if (!may_visit(n_visits))
        return false;
    if (a->kind != b->kind || a->n_params != b->n_params)
        return false;
    if (a->kind == DV_CEL_T_VAR)
        return a->var == b->var;
    if ((a->kind == DV_CEL_T_OPAQUE || a->kind == DV_CEL_T_OBJECT) && !dv_str_eq(a->name, b->name))
        return false;
    for (size_t i = 0; i < a->n_params; i++)
        if (!are_equal(a->params[i], b->params[i], n_visits))
            return false;
    return true;
}

bool dv_cel_type_eq(const struct dv_cel_type *a, const struct dv_cel_type *b)
{
    uint32_t n_visits = 0;

    return are_equal(a, b, &n_visits);
}

static dv_str short_name(const struct dv_cel_type *type)
{
    switch ((int)type->kind) {
    case DV_CEL_T_ANY:
        return DV_STR("any");
    case DV_CEL_T_NULL:
        return DV_STR("null");
    case DV_CEL_T_TIMESTAMP:
        return DV_STR("timestamp");
    case DV_CEL_T_DURATION:
        return DV_STR("duration");
    default:
        return type->name;
    }
}

void dv_cel_type_print(const struct dv_cel_type *type, bool short_names, struct dv_buf *buf)
{
    if (buf->is_over)
        return;
    if (type->kind == DV_CEL_T_VAR) {
        dv_buf_printf(buf, "_var%u", type->var);
        return;
    }
    dv_buf_add(buf, short_names ? short_name(type) : type->name);
    if (type->n_params == 0)
        return;
    dv_buf_add_char(buf, '(');
    for (size_t i = 0; i < type->n_params; i++) {
        if (i > 0)
            dv_buf_add_c(buf, ", ");
        dv_cel_type_print(type->params[i], short_names, buf);
    }
    dv_buf_add_char(buf, ')');
}

/* -- Finding out what variables are ---------------------------------------------------------- */

const struct dv_cel_type *dv_cel_var_new(struct dv_cel_unifier *unifier)
{
    struct dv_cel_type *type = DV_NEW(unifier->arena, struct dv_cel_type);

    if (unifier->n_vars == unifier->room) {
        uint32_t room = unifier->room ? unifier->room * 2 : 32;
        const struct dv_cel_type **bound =
            DV_NEW_ARRAY(unifier->arena, const struct dv_cel_type *, room);

        if (unifier->n_vars > 0)
            memcpy(bound, unifier->bound, unifier->n_vars * sizeof(bound[0]));
        unifier->bound = bound;
        unifier->room = room;
    }
    type->kind = DV_CEL_T_VAR;
    type->var = unifier->n_vars++;
    return type;
}

static void bind(struct dv_cel_unifier *unifier, const struct dv_cel_type *var,
                 const struct dv_cel_type *type)
{
    if (unifier->n_trail == unifier->trail_room) {
        uint32_t room = unifier->trail_room ? unifier->trail_room * 2 : 32;
        struct dv_cel_binding *trail = DV_NEW_ARRAY(unifier->arena, struct dv_cel_binding, room);

        if (unifier->n_trail > 0)
            memcpy(trail, unifier->trail, unifier->n_trail * sizeof(trail[0]));
        unifier->trail = trail;
        unifier->trail_room = room;
    }
    unifier->trail[unifier->n_trail++] =
        (struct dv_cel_binding){var->var, unifier->bound[var->var]};
    unifier->bound[var->var] = type;
}

static bool occurs_in(struct dv_cel_unifier *unifier, const struct dv_cel_type *var,
                      const struct dv_cel_type *type)
{
    if (!may_visit(&unifier->n_visits))
        return true; /* the expression is refused in the end, because of too many visits */
    if (type->kind == DV_CEL_T_VAR) {
        if (type->var == var->var)
            return true;
        return unifier->bound[type->var] && occurs_in(unifier, var, unifier->bound[type->var]);
    }
    for (size_t i = 0; i < type->n_params; i++)
        if (occurs_in(unifier, var, type->params[i]))
            return true;
    return false;
}

static bool is_wild(const struct dv_cel_type *type)
{
    return type->kind == DV_CEL_T_DYN || type->kind == DV_CEL_T_ANY || type->kind == DV_CEL_T_ERROR;
}

static bool is_less_specific(const struct dv_cel_type *a, const struct dv_cel_type *b,
                             uint32_t *n_visits)
{
    if (is_wild(a) || a->kind == DV_CEL_T_VAR || a == b || !may_visit(n_visits))
        return true;
    if (is_wild(b) || b->kind == DV_CEL_T_VAR || a->kind != b->kind || a->n_params != b->n_params)
        return false;
    if (a->kind == DV_CEL_T_TYPE)
        return true;
    if (!dv_str_eq(a->name, b->name))
        return false;
    for (size_t i = 0; i < a->n_params; i++)
        if (!is_less_specific(a->params[i], b->params[i], n_visits))
            return false;
    return true;
}

const struct dv_cel_type *dv_cel_most_general(const struct dv_cel_type *a,
                                              const struct dv_cel_type *b)
{
    uint32_t n_visits = 0;

    return is_less_specific(a, b, &n_visits) ? a : b;
}

static bool fits(struct dv_cel_unifier *unifier, const struct dv_cel_type *a,
                 const struct dv_cel_type *b);

/* Fits `a` to the variable `var`. *has_known tells that the variable was known before. */
static bool fits_var(struct dv_cel_unifier *unifier, const struct dv_cel_type *a,
                     const struct dv_cel_type *var, bool *has_known)
{
    const struct dv_cel_type *known;

    *has_known = true;
    if (are_equal(a, var, &unifier->n_visits))
        return true;
    known = unifier->bound[var->var];
    if (known) {
        const struct dv_cel_type *general;

        if (are_equal(a, known, &unifier->n_visits))
            return true;
        if (!fits(unifier, a, known))
            return false;
        general = is_less_specific(a, known, &unifier->n_visits) ? a : known;
        if (!occurs_in(unifier, var, general))
            bind(unifier, var, general);
        return true;
    }
    *has_known = false;
    if (occurs_in(unifier, var, a))
        return false;
    bind(unifier, var, a);
    return true;
}

/* Whether null fits: it does for messages, opaque values, times and wrappers, but not for other
 * scalars. */
static bool fits_null(const struct dv_cel_type *type)
{
    switch (type->kind) {
    case DV_CEL_T_NULL:
    case DV_CEL_T_OBJECT:
    case DV_CEL_T_OPAQUE:
    case DV_CEL_T_TIMESTAMP:
    case DV_CEL_T_DURATION:
    case DV_CEL_T_WRAPPER:
        return true;
    case DV_CEL_T_ERROR:
    case DV_CEL_T_DYN:
    case DV_CEL_T_ANY:
    case DV_CEL_T_BOOL:
    case DV_CEL_T_INT:
    case DV_CEL_T_UINT:
    case DV_CEL_T_DOUBLE:
    case DV_CEL_T_STRING:
    case DV_CEL_T_BYTES:
    case DV_CEL_T_TYPE:
    case DV_CEL_T_LIST:
    case DV_CEL_T_MAP:
    case DV_CEL_T_VAR:
        break;
    }
    return false;
}

static bool fits_concrete(struct dv_cel_unifier *unifier, const struct dv_cel_type *a,
                          const struct dv_cel_type *b)
{
    if (is_wild(a) || is_wild(b))
        return true;
    if (a->kind == DV_CEL_T_NULL)
        return fits_null(b);
    if (b->kind == DV_CEL_T_NULL)
        return fits_null(a);
    if (a->kind == DV_CEL_T_WRAPPER && b->kind != DV_CEL_T_WRAPPER)
        return are_equal(a->params[0], b, &unifier->n_visits);
    if (b->kind == DV_CEL_T_WRAPPER && a->kind != DV_CEL_T_WRAPPER)
        return are_equal(a, b->params[0], &unifier->n_visits);
    if (a->kind != b->kind)
        return false;
    if (a->kind == DV_CEL_T_TYPE)
        return true;
    if (!dv_str_eq(a->name, b->name) || a->n_params != b->n_params)
        return false;
    for (size_t i = 0; i < a->n_params; i++)
        if (!fits(unifier, a->params[i], b->params[i]))
            return false;
    return true;
}

static bool fits(struct dv_cel_unifier *unifier, const struct dv_cel_type *a,
                 const struct dv_cel_type *b)
{
    bool has_known;

    if (!may_visit(&unifier->n_visits))
        return true; /* the expression is refused in the end, because of too many visits */
    if (b->kind == DV_CEL_T_VAR) {
        if (fits_var(unifier, a, b, &has_known))
            return true;
        if (has_known)
            return false;
    }
    if (a->kind == DV_CEL_T_VAR)
        return fits_var(unifier, b, a, &has_known);
    return fits_concrete(unifier, a, b);
}

bool dv_cel_assignable(struct dv_cel_unifier *unifier, const struct dv_cel_type *const *from,
                       const struct dv_cel_type *const *to, size_t n)
{
    uint32_t mark = unifier->n_trail;

    for (size_t i = 0; i < n; i++) {
        if (fits(unifier, from[i], to[i]))
            continue;
        while (unifier->n_trail > mark) {
            const struct dv_cel_binding *last = &unifier->trail[--unifier->n_trail];

            unifier->bound[last->var] = last->type;
        }
        return false;
    }
    return true;
}

const struct dv_cel_type *dv_cel_substitute(struct dv_cel_unifier *unifier,
                                            const struct dv_cel_type *type, bool free_is_dyn)
{
    struct dv_cel_type *copy = NULL;

    if (!may_visit(&unifier->n_visits))
        return &dv_cel_t_dyn; /* the expression is refused in the end, because of too many visits */
    if (type->kind == DV_CEL_T_VAR) {
        if (unifier->bound[type->var])
            return dv_cel_substitute(unifier, unifier->bound[type->var], free_is_dyn);
        return free_is_dyn ? &dv_cel_t_dyn : type;
    }
    for (size_t i = 0; i < type->n_params; i++) {
        const struct dv_cel_type *param = dv_cel_substitute(unifier, type->params[i], free_is_dyn);

        if (param == type->params[i])
            continue;
        if (!copy)
            copy = new_type(type, unifier->arena);
        copy->params[i] = param;
    }
    return copy ? copy : type;
}
