#include "cel/check/decls.h"

#include <string.h>

#include "cel/value/cel_map.h"
#include "cel/value/cel_value.h"
#include "cel/value/type.h"

static const struct dv_cel_lib *const libs[] = {
    &dv_cel_lib_operators, &dv_cel_lib_order,      &dv_cel_lib_conversions, &dv_cel_lib_times,
    &dv_cel_lib_optionals, &dv_cel_lib_strings,    &dv_cel_lib_lists,       &dv_cel_lib_aggregates,
    &dv_cel_lib_regex,     &dv_cel_lib_urls,       &dv_cel_lib_numbers,     &dv_cel_lib_net,
    &dv_cel_lib_formats,   &dv_cel_lib_authorizer,
};

/* -- Functions ------------------------------------------------------------------------------- */

const struct dv_cel_overload *dv_cel_overload_next(const struct dv_cel_decls *decls,
                                                   dv_str function,
                                                   const struct dv_cel_overload *last)
{
    bool is_past = last == NULL;

    for (size_t i = 0; i < DV_COUNT(libs); i++) {
        const struct dv_cel_overload *end = libs[i]->rows + libs[i]->n_rows;
        const struct dv_cel_overload *row = libs[i]->rows;

        if (!is_past && (last < row || last >= end))
            continue;
        for (row = is_past ? row : last + 1; row < end; row++) {
            if (row->function[0] != (function.n > 0 ? function.p[0] : '\0') ||
                !dv_str_eq(function, dv_str_from_c(row->function)))
                continue;
            if ((!(row->flags & DV_CEL_FN_LISTS) || !decls->hide_includes) &&
                (!(row->flags & DV_CEL_FN_POLICY) || decls->is_policy))
                return row;
        }
        is_past = true;
    }
    return NULL;
}

bool dv_cel_overload_is_member(const struct dv_cel_overload *overload)
{
    return overload->signature[0] == '.';
}

static const char *first_param(const struct dv_cel_overload *overload)
{
    return overload->signature + (overload->signature[0] == '.');
}

/* Skips one type of a signature. */
static const char *skip_type(const char *sig)
{
    switch (*sig) {
    case 'M':
        return skip_type(skip_type(sig + 1));
    case 'L':
    case 'O':
    case 't':
        return skip_type(sig + 1);
    default:
        return sig + 1;
    }
}

size_t dv_cel_overload_n_params(const struct dv_cel_overload *overload)
{
    const char *sig = first_param(overload);
    size_t n = 0;

    for (; *sig != '>'; sig = skip_type(sig))
        n++;
    return n;
}

static const struct {
    char letter;
    enum dv_cel_kind kind;
    const struct dv_cel_type *type;
} letters[] = {
    {'b', DV_CEL_BOOL,           &dv_cel_t_bool          },
    {'i', DV_CEL_INT,            &dv_cel_t_int           },
    {'u', DV_CEL_UINT,           &dv_cel_t_uint          },
    {'d', DV_CEL_DOUBLE,         &dv_cel_t_double        },
    {'s', DV_CEL_STRING,         &dv_cel_t_string        },
    {'y', DV_CEL_BYTES,          &dv_cel_t_bytes         },
    {'n', DV_CEL_NULL,           &dv_cel_t_null          },
    {'T', DV_CEL_TIMESTAMP,      &dv_cel_t_timestamp     },
    {'D', DV_CEL_DURATION,       &dv_cel_t_duration      },
    {'Q', DV_CEL_QUANTITY,       &dv_cel_t_quantity      },
    {'V', DV_CEL_VERSION,        &dv_cel_t_version       },
    {'W', DV_CEL_URL,            &dv_cel_t_url           },
    {'I', DV_CEL_IP,             &dv_cel_t_ip            },
    {'C', DV_CEL_CIDR,           &dv_cel_t_cidr          },
    {'F', DV_CEL_FORMAT,         &dv_cel_t_format        },
    {'a', DV_CEL_AUTHORIZER,     &dv_cel_t_authorizer    },
    {'p', DV_CEL_PATH_CHECK,     &dv_cel_t_path_check    },
    {'g', DV_CEL_GROUP_CHECK,    &dv_cel_t_group_check   },
    {'r', DV_CEL_RESOURCE_CHECK, &dv_cel_t_resource_check},
    {'e', DV_CEL_DECISION,       &dv_cel_t_decision      },
    {'t', DV_CEL_TYPE,           &dv_cel_t_type          },
    {'L', DV_CEL_LIST,           &dv_cel_t_list          },
    {'M', DV_CEL_MAP,            &dv_cel_t_map           },
    {'O', DV_CEL_OPTIONAL,       &dv_cel_t_optional      },
};

static size_t find_letter(char letter)
{
    size_t i = 0;

    while (letters[i].letter != letter)
        i++;
    return i;
}

static const struct dv_cel_type *read_type(const char **sig, struct dv_cel_unifier *unifier,
                                           const struct dv_cel_type **vars)
{
    const struct dv_cel_type *first;
    char c = *(*sig)++;

    switch (c) {
    case '?':
        return &dv_cel_t_dyn;
    case 'A':
    case 'B':
        if (!vars[c - 'A'])
            vars[c - 'A'] = dv_cel_var_new(unifier);
        return vars[c - 'A'];
    case 'L':
        return dv_cel_list_of(read_type(sig, unifier, vars), unifier->arena);
    case 'O':
        return dv_cel_optional_of(read_type(sig, unifier, vars), unifier->arena);
    case 't':
        return dv_cel_type_of(read_type(sig, unifier, vars), unifier->arena);
    case 'M':
        first = read_type(sig, unifier, vars);
        return dv_cel_map_of(first, read_type(sig, unifier, vars), unifier->arena);
    default:
        return letters[find_letter(c)].type;
    }
}

const struct dv_cel_type *dv_cel_overload_types(const struct dv_cel_overload *overload,
                                                struct dv_cel_unifier *unifier,
                                                const struct dv_cel_type **params)
{
    const struct dv_cel_type *vars[2] = {NULL, NULL};
    const char *sig = first_param(overload);

    for (size_t i = 0; *sig != '>'; i++)
        params[i] = read_type(&sig, unifier, vars);
    sig++;
    return read_type(&sig, unifier, vars);
}

static bool takes(const char *sig, const struct dv_cel_val *val)
{
    if (*sig == '?' || *sig == 'A' || *sig == 'B')
        return true;
    if (val->kind != letters[find_letter(*sig)].kind)
        return false;
    if (*sig == 'L')
        return val->list->n == 0 || takes(sig + 1, &val->list->v[0]);
    if (*sig == 'M')
        return val->map->n == 0 || (takes(sig + 1, &val->map->v[0].key) &&
                                    takes(skip_type(sig + 1), &val->map->v[0].value));
    return true;
}

bool dv_cel_overload_takes(const struct dv_cel_overload *overload, const struct dv_cel_val *args,
                           size_t n_args)
{
    const char *sig = first_param(overload);

    for (size_t i = 0; i < n_args; i++, sig = skip_type(sig))
        if (*sig == '>' || !takes(sig, &args[i]))
            return false;
    return *sig == '>';
}

bool dv_cel_overload_suits(const struct dv_cel_overload *overload, size_t i,
                           const struct dv_cel_type *type)
{
    const char *sig = first_param(overload);

    for (; i > 0 && *sig != '>'; i--)
        sig = skip_type(sig);
    return type && *sig != '>' && strchr("biudsyTDQVWIC", *sig) &&
           letters[find_letter(*sig)].type == type;
}

/* -- Names ----------------------------------------------------------------------------------- */

const struct dv_cel_type *dv_cel_type_named(dv_str name)
{
    static const struct dv_cel_type *const types[] = {
        &dv_cel_t_bool,   &dv_cel_t_bytes, &dv_cel_t_double,   &dv_cel_t_dyn,
        &dv_cel_t_int,    &dv_cel_t_list,  &dv_cel_t_map,      &dv_cel_t_null,
        &dv_cel_t_string, &dv_cel_t_type,  &dv_cel_t_uint,     &dv_cel_t_timestamp,
        &dv_cel_t_ip,     &dv_cel_t_cidr,  &dv_cel_t_duration, &dv_cel_t_optional,
    };

    for (size_t i = 0; i < DV_COUNT(types); i++)
        if (dv_str_eq(types[i]->name, name))
            return types[i];
    return NULL;
}

const struct dv_cel_type *dv_cel_field_type(const struct dv_cel_decls *decls, dv_str name,
                                            struct dv_arena *arena)
{
    const struct dv_cel_type *value;

    if (dv_str_eq(name, DV_STR("driver")))
        return &dv_cel_t_string;
    if (dv_str_eq(name, DV_STR("allowMultipleAllocations")))
        return decls->hide_multiple ? NULL : &dv_cel_t_bool;
    if (dv_str_eq(name, DV_STR("attributes")))
        value = decls->dyn_attributes ? &dv_cel_t_dyn : &dv_cel_t_any;
    else if (dv_str_eq(name, DV_STR("capacity")))
        value = &dv_cel_t_quantity;
    else
        return NULL;
    return dv_cel_map_of(&dv_cel_t_string, dv_cel_map_of(&dv_cel_t_string, value, arena), arena);
}

bool dv_cel_candidate(dv_str container, dv_str name, size_t *i, struct dv_arena *arena,
                      dv_str *candidate)
{
    size_t n_dots = 0;
    size_t cut = container.n;

    /* a name that begins with a point is looked up from the root only */
    if (name.n > 0 && name.p[0] == '.') {
        *candidate = dv_str_slice(name, 1, name.n);
        return (*i)++ == 0;
    }
    if (container.n == 0) {
        *candidate = name;
        return (*i)++ == 0;
    }
    /* In the container a.b, the candidates are a.b.name, a.name, name. */
    while (n_dots < *i && cut > 0) {
        cut--;
        n_dots += container.p[cut] == '.' || cut == 0;
    }
    if (n_dots < *i)
        return false;
    (*i)++;
    *candidate = cut == 0 ? name
                          : dv_str_printf(arena, "%.*s.%.*s",
                                          DV_FMT(dv_str_slice(container, 0, cut)), DV_FMT(name));
    return true;
}
