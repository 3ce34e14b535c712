#include "cel/value/cel_message.h"

#include "cel/value/cel_map.h"
#include "cel/value/cel_time.h"
#include "cel/value/cel_value.h"
#include "cel/value/type.h"

#define NS_PER_SECOND 1000000000

enum make {
    SCALAR, /* its one field, or zero */
    INT32,
    UINT32,
    FLOAT,
    DURATION,
    TIMESTAMP,
    ONE_OF, /* the field that is set, or null */
    NOTHING,
};

static const struct dv_cel_type string_map = {
    .kind = DV_CEL_T_MAP,
    .name = DV_STR_INIT("map"),
    .params = {&dv_cel_t_string, &dv_cel_t_dyn},
    .n_params = 2
};

static const struct {
    dv_str name; /* after google.protobuf. */
    enum make make;
    bool is_wrapper;
    const struct dv_cel_type *type;
} messages[] = {
    {DV_STR_INIT("BoolValue"),   SCALAR,    true,  &dv_cel_t_bool     },
    {DV_STR_INIT("BytesValue"),  SCALAR,    true,  &dv_cel_t_bytes    },
    {DV_STR_INIT("DoubleValue"), SCALAR,    true,  &dv_cel_t_double   },
    {DV_STR_INIT("FloatValue"),  FLOAT,     true,  &dv_cel_t_double   },
    {DV_STR_INIT("Int32Value"),  INT32,     true,  &dv_cel_t_int      },
    {DV_STR_INIT("Int64Value"),  SCALAR,    true,  &dv_cel_t_int      },
    {DV_STR_INIT("StringValue"), SCALAR,    true,  &dv_cel_t_string   },
    {DV_STR_INIT("UInt32Value"), UINT32,    true,  &dv_cel_t_uint     },
    {DV_STR_INIT("UInt64Value"), SCALAR,    true,  &dv_cel_t_uint     },
    {DV_STR_INIT("ListValue"),   SCALAR,    false, &dv_cel_t_list     },
    {DV_STR_INIT("Struct"),      SCALAR,    false, &string_map        },
    {DV_STR_INIT("Duration"),    DURATION,  false, &dv_cel_t_duration },
    {DV_STR_INIT("Timestamp"),   TIMESTAMP, false, &dv_cel_t_timestamp},
    {DV_STR_INIT("Value"),       ONE_OF,    false, &dv_cel_t_dyn      },
    {DV_STR_INIT("Any"),         NOTHING,   false, &dv_cel_t_any      },
};

static const struct {
    const char *message; /* NULL: a wrapper, whose field is of its own type */
    const char *field;
    const struct dv_cel_type *type;
} fields[] = {
    {"ListValue", "values",       &dv_cel_t_list  },
    {"Struct",    "fields",       &string_map     },
    {"Duration",  "seconds",      &dv_cel_t_int   },
    {"Duration",  "nanos",        &dv_cel_t_int   },
    {"Timestamp", "seconds",      &dv_cel_t_int   },
    {"Timestamp", "nanos",        &dv_cel_t_int   },
    {"Value",     "null_value",   &dv_cel_t_null  },
    {"Value",     "number_value", &dv_cel_t_double},
    {"Value",     "string_value", &dv_cel_t_string},
    {"Value",     "bool_value",   &dv_cel_t_bool  },
    {"Value",     "struct_value", &string_map     },
    {"Value",     "list_value",   &dv_cel_t_list  },
    {"Any",       "type_url",     &dv_cel_t_string},
    {"Any",       "value",        &dv_cel_t_bytes },
};

/* The index of the message; the number of messages when it is none of ours. */
static size_t find_message(dv_str name)
{
    dv_str package = DV_STR("google.protobuf.");
    size_t i = 0;

    if (!dv_str_starts_with(name, package))
        return DV_COUNT(messages);
    while (i < DV_COUNT(messages) &&
           !dv_str_eq(messages[i].name, dv_str_slice(name, package.n, name.n)))
        i++;
    return i;
}

const struct dv_cel_type *dv_cel_message_type(dv_str name, struct dv_arena *arena)
{
    size_t i = find_message(name);

    if (dv_str_eq(name, dv_cel_t_device.name))
        return &dv_cel_t_device;
    if (i == DV_COUNT(messages))
        return NULL;
    return messages[i].is_wrapper ? dv_cel_wrapper_of(messages[i].type, arena) : messages[i].type;
}

const struct dv_cel_type *dv_cel_message_field(dv_str message, dv_str field)
{
    size_t i = find_message(message);

    if (i == DV_COUNT(messages))
        return NULL;
    if (messages[i].is_wrapper)
        return dv_str_eq(field, DV_STR("value")) ? messages[i].type : NULL;
    for (size_t k = 0; k < DV_COUNT(fields); k++)
        if (dv_str_eq(messages[i].name, dv_str_from_c(fields[k].message)) &&
            dv_str_eq(field, dv_str_from_c(fields[k].field)))
            return fields[k].type;
    return NULL;
}

static struct dv_cel_val zero_of(const struct dv_cel_type *type, struct dv_arena *arena)
{
    struct dv_cel_val *elements;

    switch ((int)type->kind) {
    case DV_CEL_T_BOOL:
        return dv_cel_bool(false);
    case DV_CEL_T_BYTES:
        return dv_cel_bytes(DV_STR_NONE);
    case DV_CEL_T_DOUBLE:
        return dv_cel_double(0);
    case DV_CEL_T_INT:
        return dv_cel_int(0);
    case DV_CEL_T_STRING:
        return dv_cel_string(DV_STR_NONE);
    case DV_CEL_T_UINT:
        return dv_cel_uint(0);
    case DV_CEL_T_LIST:
        return dv_cel_list_new(0, arena, &elements);
    default:
        return dv_cel_empty_map;
    }
}

static struct dv_cel_val narrow(struct dv_cel_val value, enum make make)
{
    if (make == INT32 && (value.i < INT32_MIN || value.i > INT32_MAX))
        return dv_cel_error(DV_STR("integer overflow"));
    if (make == UINT32 && value.u > UINT32_MAX)
        return dv_cel_error(DV_STR("unsigned integer overflow"));
    if (make == FLOAT)
        return dv_cel_double((double)(float)value.d);
    return value;
}

static struct dv_cel_val make_time(bool is_duration, int64_t seconds, int64_t nanos)
{
    int64_t ns;

    if (nanos <= -NS_PER_SECOND || nanos >= NS_PER_SECOND)
        return dv_cel_error(DV_STR("invalid nanoseconds"));
    if (is_duration) {
        if (__builtin_mul_overflow(seconds, (int64_t)NS_PER_SECOND, &ns) ||
            __builtin_add_overflow(ns, nanos, &ns))
            return dv_cel_error(DV_STR("duration overflow"));
        return dv_cel_duration(ns);
    }
    if (seconds < DV_CEL_SECONDS_MIN || seconds > DV_CEL_SECONDS_MAX || nanos < 0)
        return dv_cel_error(DV_STR("timestamp overflow"));
    return dv_cel_timestamp(seconds, (int32_t)nanos);
}

static int64_t int_field(const char *name, const dv_str *names, const struct dv_cel_val *values,
                         size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(names[i], dv_str_from_c(name)) && values[i].kind == DV_CEL_INT)
            return values[i].i;
    return 0;
}

struct dv_cel_val dv_cel_message_make(dv_str message, const dv_str *names,
                                      const struct dv_cel_val *values, size_t n,
                                      struct dv_arena *arena)
{
    size_t i = find_message(message);

    if (i == DV_COUNT(messages) || messages[i].make == NOTHING)
        return dv_cel_error_printf(arena, "unknown type '%.*s'", DV_FMT(message));
    for (size_t k = 0; k < n; k++) {
        const struct dv_cel_type *type = dv_cel_message_field(message, names[k]);

        if (!type || dv_cel_val_type(&values[k])->kind != type->kind)
            return dv_cel_error_printf(arena, "unsupported field '%.*s' of '%.*s'",
                                       DV_FMT(names[k]), DV_FMT(message));
    }
    if (messages[i].make == DURATION || messages[i].make == TIMESTAMP)
        return make_time(messages[i].make == DURATION, int_field("seconds", names, values, n),
                         int_field("nanos", names, values, n));
    if (n > 0)
        return narrow(values[n - 1], messages[i].make);
    return messages[i].make == ONE_OF ? dv_cel_null() : zero_of(messages[i].type, arena);
}
