/* lib_conversions.c - int, uint, double, string, bytes, bool, type, dyn. */
#include <math.h>

#include "base/num.h"
#include "base/str.h"
#include "cel/check/decls.h"
#include "cel/value/cel_run.h"
#include "cel/value/cel_time.h"
#include "cel/value/cel_value.h"
#include "cel/value/number_text.h"

static struct dv_cel_val no_conversion(struct dv_cel_run *run, const struct dv_cel_val *from,
                                       const char *to)
{
    return dv_cel_error_printf(run->arena, "type conversion error from '%.*s' to '%s'",
                               DV_FMT(dv_cel_val_type_name(from)), to);
}

static void fn_same(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    (void)run;
    *out = args[0];
}

/* -- Integers ------------------------------------------------------------------------------------
 */

static struct dv_cel_val double_to_int(double d)
{
    if (isnan(d) || d <= -0x1p63 || d >= 0x1p63)
        return dv_cel_error(DV_STR("integer overflow"));
    return dv_cel_int((int64_t)d);
}

static void fn_int(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    dv_str text = args[0].s;
    int64_t value;

    switch (args[0].kind) {
    case DV_CEL_INT:
        *out = args[0];
        break;
    case DV_CEL_UINT:
        *out = args[0].u > INT64_MAX ? dv_cel_error(DV_STR("integer overflow"))
                                     : dv_cel_int((int64_t)args[0].u);
        break;
    case DV_CEL_DOUBLE:
        *out = double_to_int(args[0].d);
        break;
    case DV_CEL_TIMESTAMP:
    case DV_CEL_DURATION:
        *out = dv_cel_int(args[0].i);
        break;
    case DV_CEL_STRING:
        if (text.n > 1 && text.p[0] == '+' && text.p[1] != '-')
            text = dv_str_slice(text, 1, text.n);
        *out =
            dv_str_to_i64(text, &value) ? dv_cel_int(value) : no_conversion(run, &args[0], "int");
        break;
    default:
        *out = dv_cel_no_overload(DV_STR("int"));
        break;
    }
}

static void fn_uint(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    struct dv_cel_val overflow = dv_cel_error(DV_STR("unsigned integer overflow"));
    uint64_t value;

    switch (args[0].kind) {
    case DV_CEL_UINT:
        *out = args[0];
        break;
    case DV_CEL_INT:
        *out = args[0].i < 0 ? overflow : dv_cel_uint((uint64_t)args[0].i);
        break;
    case DV_CEL_DOUBLE:
        *out = args[0].d >= 0 && args[0].d < 0x1p64 ? dv_cel_uint((uint64_t)args[0].d) : overflow;
        break;
    case DV_CEL_STRING:
        *out = dv_str_to_u64(args[0].s, &value) ? dv_cel_uint(value)
                                                : no_conversion(run, &args[0], "uint");
        break;
    default:
        *out = dv_cel_no_overload(DV_STR("uint"));
        break;
    }
}

static void fn_double(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    double value;

    switch (args[0].kind) {
    case DV_CEL_DOUBLE:
        *out = args[0];
        break;
    case DV_CEL_INT:
        *out = dv_cel_double((double)args[0].i);
        break;
    case DV_CEL_UINT:
        *out = dv_cel_double((double)args[0].u);
        break;
    case DV_CEL_STRING:
        *out = dv_cel_parse_double(args[0].s, &value) ? dv_cel_double(value)
                                                      : no_conversion(run, &args[0], "double");
        break;
    default:
        *out = dv_cel_no_overload(DV_STR("double"));
        break;
    }
}

/* -- Text ------------------------------------------------------------------------------------ */

static void fn_string(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    char text[DV_CEL_NUMBER_BYTES];

    if (args[0].kind == DV_CEL_BYTES) {
        *out = dv_str_is_utf8(args[0].s) ? dv_cel_string(args[0].s)
                                         : dv_cel_error(DV_STR("invalid UTF-8 in bytes, cannot "
                                                               "convert to string"));
        return;
    }
    dv_cel_val_print_short(&args[0], text);
    *out = dv_cel_string(dv_str_copy(dv_str_from_c(text), run->arena));
}

static void fn_bytes(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_bytes(args[0].s);
}

static void fn_bool(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    static const char *const words[2][6] = {
        {"0", "f", "F", "false", "FALSE", "False"},
        {"1", "t", "T", "true",  "TRUE",  "True" },
    };

    for (size_t i = 0; i < 2 * DV_COUNT(words[0]); i++) {
        if (dv_str_eq(args[0].s, dv_str_from_c(words[i % 2][i / 2]))) {
            *out = dv_cel_bool(i % 2 == 1);
            return;
        }
    }
    *out = no_conversion(run, &args[0], "bool");
}

static void fn_duration(struct dv_cel_run *run, const struct dv_cel_val *args,
                        struct dv_cel_val *out)
{
    /* The reference declares the conversion for int as well, and then does not do it. */
    *out = args[0].kind == DV_CEL_INT ? no_conversion(run, &args[0], "google.protobuf.Duration")
                                      : dv_cel_duration_parse(args[0].s);
}

static void fn_timestamp(struct dv_cel_run *run, const struct dv_cel_val *args,
                         struct dv_cel_val *out)
{
    (void)run;
    *out = args[0].kind == DV_CEL_INT ? dv_cel_time_from_seconds(args[0].i)
                                      : dv_cel_time_parse(args[0].s);
}

static void fn_type(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_type_val(dv_cel_val_type(&args[0]));
}

#define ONE DV_CEL_COST_ONE
#define SELF DV_CEL_FN_SELF_CHECKED

static const struct dv_cel_overload rows[] = {
    {"bool",      "b>b",  fn_same,      ONE,                0   },
    {"bool",      "s>b",  fn_bool,      ONE,                0   },
    {"bytes",     "y>y",  fn_same,      ONE,                0   },
    {"bytes",     "s>y",  fn_bytes,     DV_CEL_COST_ENCODE, 0   },
    {"double",    "d>d",  fn_double,    ONE,                SELF},
    {"double",    "i>d",  fn_double,    ONE,                SELF},
    {"double",    "s>d",  fn_double,    ONE,                SELF},
    {"double",    "u>d",  fn_double,    ONE,                SELF},
    {"duration",  "D>D",  fn_same,      ONE,                0   },
    {"duration",  "i>D",  fn_duration,  ONE,                0   },
    {"duration",  "s>D",  fn_duration,  ONE,                0   },
    {"dyn",       "A>?",  fn_same,      ONE,                SELF},
    {"int",       "i>i",  fn_int,       ONE,                SELF},
    {"int",       "d>i",  fn_int,       ONE,                SELF},
    {"int",       "D>i",  fn_int,       ONE,                SELF},
    {"int",       "s>i",  fn_int,       ONE,                SELF},
    {"int",       "T>i",  fn_int,       ONE,                SELF},
    {"int",       "u>i",  fn_int,       ONE,                SELF},
    {"string",    "s>s",  fn_same,      ONE,                0   },
    {"string",    "b>s",  fn_string,    ONE,                0   },
    {"string",    "y>s",  fn_string,    DV_CEL_COST_DECODE, 0   },
    {"string",    "d>s",  fn_string,    ONE,                0   },
    {"string",    "D>s",  fn_string,    ONE,                0   },
    {"string",    "i>s",  fn_string,    ONE,                0   },
    {"string",    "T>s",  fn_string,    ONE,                0   },
    {"string",    "u>s",  fn_string,    ONE,                0   },
    {"timestamp", "T>T",  fn_same,      ONE,                0   },
    {"timestamp", "i>T",  fn_timestamp, ONE,                0   },
    {"timestamp", "s>T",  fn_timestamp, ONE,                0   },
    {"type",      "A>tA", fn_type,      ONE,                SELF},
    {"uint",      "u>u",  fn_uint,      ONE,                SELF},
    {"uint",      "d>u",  fn_uint,      ONE,                SELF},
    {"uint",      "i>u",  fn_uint,      ONE,                SELF},
    {"uint",      "s>u",  fn_uint,      ONE,                SELF},
};
const struct dv_cel_lib dv_cel_lib_conversions = {rows, DV_COUNT(rows)};
