/* lib_formats.c - format.dns1123Label().validate(s) and its like. */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/ascii.h"
#include "base/calendar.h"
#include "base/err.h"
#include "base/name.h"
#include "base/str.h"
#include "cel/cel_pattern.h"
#include "cel/check/decls.h"
#include "cel/value/cel_net.h"
#include "cel/value/cel_run.h"
#include "cel/value/cel_time.h"
#include "cel/value/cel_value.h"
#include "cel/value/format.h"
#include "cel/value/url.h"

struct dv_cel_format {
    dv_str name;
    bool (*is_valid)(dv_str s, struct dv_arena *arena);
    const char *problem;
    uint64_t regex_size;
};

uint64_t dv_cel_format_regex_size(const struct dv_cel_format *format)
{
    return format->regex_size;
}

static bool is_label(dv_str s, struct dv_arena *arena)
{
    (void)arena;
    return dv_is_dns_label(s);
}

static bool is_1035_label(dv_str s, struct dv_arena *arena)
{
    (void)arena;
    return dv_is_dns1035_label(s);
}

static bool is_subdomain(dv_str s, struct dv_arena *arena)
{
    (void)arena;
    return dv_is_dns_subdomain(s);
}

/* The prefix without a dash at its end: the generated text behind it makes the name valid. */
static dv_str without_dash(dv_str s)
{
    return s.n > 1 && s.p[s.n - 1] == '-' ? dv_str_slice(s, 0, s.n - 1) : s;
}

/* Checks the prefix as if an `a` stood where the dash is. */
static bool is_prefix(dv_str s, struct dv_arena *arena, bool (*is_valid)(dv_str, struct dv_arena *))
{
    if (s.n > 1 && s.p[s.n - 1] == '-')
        s = dv_str_printf(arena, "%.*sa", DV_FMT(without_dash(s)));
    return is_valid(s, arena);
}

static bool is_label_prefix(dv_str s, struct dv_arena *arena)
{
    return is_prefix(s, arena, is_label);
}

static bool is_subdomain_prefix(dv_str s, struct dv_arena *arena)
{
    return is_prefix(s, arena, is_subdomain);
}

static bool is_1035_label_prefix(dv_str s, struct dv_arena *arena)
{
    return is_prefix(s, arena, is_1035_label);
}

static bool is_label_value(dv_str s, struct dv_arena *arena)
{
    (void)arena;
    return dv_is_label_value(s);
}

static bool is_qualified_name(dv_str s, struct dv_arena *arena)
{
    (void)arena;
    return dv_is_label_name(s);
}

static bool is_uri(dv_str s, struct dv_arena *arena)
{
    struct dv_cel_url url;

    return dv_cel_url_parse(s, arena, &url);
}

/* Whether it has 8-4-4-4-12 hexadecimal digits, with or without each of the dashes. */
static bool is_uuid(dv_str s, struct dv_arena *arena)
{
    static const size_t groups[] = {8, 4, 4, 4, 12};
    size_t at = 0;

    (void)arena;
    for (size_t i = 0; i < DV_COUNT(groups); i++) {
        if (i > 0 && at < s.n && s.p[at] == '-')
            at++;
        for (size_t k = 0; k < groups[i]; k++, at++)
            if (at >= s.n || !dv_is_hex(s.p[at]))
                return false;
    }
    return at == s.n;
}

static bool is_base64(dv_str s, struct dv_arena *arena)
{
    size_t n_pads = 0;

    (void)arena;
    while (n_pads < 2 && n_pads < s.n && s.p[s.n - 1 - n_pads] == '=')
        n_pads++;
    for (size_t i = 0; i + n_pads < s.n; i++)
        if (!dv_is_alphanumeric(s.p[i]) && s.p[i] != '+' && s.p[i] != '/')
            return false;
    return s.n > 0 && s.n % 4 == 0;
}

static bool is_date(dv_str s, struct dv_arena *arena)
{
    struct dv_cel_val time;

    if (s.n != sizeof("2024-02-29") - 1)
        return false;
    time = dv_cel_time_parse(dv_str_printf(arena, "%.*sT00:00:00Z", DV_FMT(s)));
    /* A date may have the year 0, though a timestamp may not. */
    return !dv_cel_is_error(&time) || dv_str_starts_with(s, DV_STR("0000-"));
}

static bool is_datetime(dv_str s, struct dv_arena *arena)
{
    size_t t = s.n > 10 && (s.p[10] == 't' || s.p[10] == 'T') ? 10 : s.n;
    struct dv_cel_val time;
    dv_str rest;

    if (t >= s.n || !is_date(dv_str_slice(s, 0, t), arena))
        return false;
    rest = dv_str_slice(s, t + 1, s.n);
    if (rest.n > 0 && rest.p[rest.n - 1] == 'z')
        rest = dv_str_printf(arena, "%.*sZ", DV_FMT(dv_str_slice(rest, 0, rest.n - 1)));
    if (dv_str_find_char(rest, ':') != 2)
        return false; /* a timestamp may have an hour of one digit, a date-time not */
    time = dv_cel_time_parse(dv_str_printf(arena, "2000-01-01T%.*s", DV_FMT(rest)));
    return !dv_cel_is_error(&time);
}

#define NAME(s) DV_STR_INIT(s)

static const struct dv_cel_format formats[] = {
    {NAME("dns1123Label"),           is_label,             "not a DNS label",                30  },
    {NAME("dns1123Subdomain"),       is_subdomain,         "not a DNS subdomain",            60  },
    {NAME("dns1035Label"),           is_1035_label,        "not a DNS-1035 label",           30  },
    {NAME("qualifiedName"),          is_qualified_name,    "not a qualified name",           60  },
    {NAME("dns1123LabelPrefix"),     is_label_prefix,      "not a DNS label prefix",         30  },
    {NAME("dns1123SubdomainPrefix"), is_subdomain_prefix,  "not a DNS subdomain prefix",     60  },
    {NAME("dns1035LabelPrefix"),     is_1035_label_prefix, "not a DNS-1035 label prefix",    30  },
    {NAME("labelValue"),             is_label_value,       "not a label value",              40  },
    {NAME("uri"),                    is_uri,               "not a URI",                      1104},
    {NAME("uuid"),                   is_uuid,              "does not match the UUID format", 72  },
    {NAME("byte"),                   is_base64,            "invalid base64",                 84  },
    {NAME("date"),                   is_date,              "invalid date",                   72  },
    {NAME("datetime"),               is_datetime,          "invalid datetime",               72  },
};

/* ---- formats of schemas ---- */

static bool is_ip(dv_str s, bool is_v6)
{
    struct dv_cel_ip ip;

    return dv_cel_ip_parse(s, &ip) && (ip.n == 16) == is_v6;
}

static bool is_ipv4(dv_str s, struct dv_arena *arena)
{
    (void)arena;
    return is_ip(s, false);
}

static bool is_ipv6(dv_str s, struct dv_arena *arena)
{
    (void)arena;
    return is_ip(s, true);
}

static bool is_cidr(dv_str s, struct dv_arena *arena)
{
    struct dv_cel_cidr cidr;

    (void)arena;
    return dv_cel_cidr_parse(s, &cidr);
}

static bool is_duration(dv_str s, struct dv_arena *arena)
{
    struct dv_err err;
    int64_t ns;

    (void)arena;
    return dv_duration_parse(s, &ns, &err);
}

/* Six pairs of digits between colons or dashes. */
static bool is_mac(dv_str s, struct dv_arena *arena)
{
    (void)arena;
    if (s.n != sizeof("00:00:00:00:00:00") - 1)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (i % 3 == 2 ? s.p[i] != s.p[2] || (s.p[i] != ':' && s.p[i] != '-') : !dv_is_hex(s.p[i]))
            return false;
    return true;
}

bool dv_cel_has_format(dv_str format, dv_str text, struct dv_arena *scratch)
{
    static const struct {
        dv_str name;
        bool (*has)(dv_str text, struct dv_arena *arena);
    } known[] = {
        {DV_STR_INIT("date-time"), is_datetime},
        {DV_STR_INIT("datetime"),  is_datetime},
        {DV_STR_INIT("date"),      is_date    },
        {DV_STR_INIT("duration"),  is_duration},
        {DV_STR_INIT("uuid"),      is_uuid    },
        {DV_STR_INIT("ipv4"),      is_ipv4    },
        {DV_STR_INIT("ipv6"),      is_ipv6    },
        {DV_STR_INIT("cidr"),      is_cidr    },
        {DV_STR_INIT("mac"),       is_mac     },
        {DV_STR_INIT("uri"),       is_uri     },
        {DV_STR_INIT("byte"),      is_base64  },
    };

    for (size_t i = 0; i < DV_COUNT(known); i++)
        if (dv_str_eq(known[i].name, format))
            return known[i].has(text, scratch);
    return true;
}

/* ---- formats of expressions ---- */

static void fn_named(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    *out = dv_cel_none();
    for (size_t i = 0; i < DV_COUNT(formats); i++) {
        if (dv_str_eq(args[0].s, formats[i].name)) {
            struct dv_cel_val format = {.kind = DV_CEL_FORMAT, .format = &formats[i]};

            *out = dv_cel_optional(&format, run->arena);
            return;
        }
    }
}

static void fn_validate(struct dv_cel_run *run, const struct dv_cel_val *args,
                        struct dv_cel_val *out)
{
    struct dv_cel_val *element;
    struct dv_cel_val problems;

    if (args[0].format->is_valid(args[1].s, run->arena)) {
        *out = dv_cel_none();
        return;
    }
    problems = dv_cel_list_new(1, run->arena, &element);
    *element = dv_cel_string(dv_str_from_c(args[0].format->problem));
    *out = dv_cel_optional(&problems, run->arena);
}

#define CONSTANT(NAME, INDEX)                                                                      \
    static void fn_##NAME(struct dv_cel_run *run, const struct dv_cel_val *args,                   \
                          struct dv_cel_val *out)                                                  \
    {                                                                                              \
        (void)run;                                                                                 \
        (void)args;                                                                                \
        *out = (struct dv_cel_val){.kind = DV_CEL_FORMAT, .format = &formats[INDEX]};              \
    }

CONSTANT(label, 0)
CONSTANT(subdomain, 1)
CONSTANT(label_1035, 2)
CONSTANT(qualified_name, 3)
CONSTANT(label_prefix, 4)
CONSTANT(subdomain_prefix, 5)
CONSTANT(label_1035_prefix, 6)
CONSTANT(label_value, 7)
CONSTANT(uri, 8)
CONSTANT(uuid, 9)
CONSTANT(byte, 10)
CONSTANT(date, 11)
CONSTANT(datetime, 12)

#define ONE DV_CEL_COST_ONE

static const struct dv_cel_overload rows[] = {
    {"format.named",                  "s>OF",    fn_named,             DV_CEL_COST_MEMBER,   0},
    {"validate",                      ".Fs>OLs", fn_validate,          DV_CEL_COST_VALIDATE, 0},
    {"format.dns1123Label",           ">F",      fn_label,             ONE,                  0},
    {"format.dns1123Subdomain",       ">F",      fn_subdomain,         ONE,                  0},
    {"format.dns1035Label",           ">F",      fn_label_1035,        ONE,                  0},
    {"format.qualifiedName",          ">F",      fn_qualified_name,    ONE,                  0},
    {"format.dns1123LabelPrefix",     ">F",      fn_label_prefix,      ONE,                  0},
    {"format.dns1123SubdomainPrefix", ">F",      fn_subdomain_prefix,  ONE,                  0},
    {"format.dns1035LabelPrefix",     ">F",      fn_label_1035_prefix, ONE,                  0},
    {"format.labelValue",             ">F",      fn_label_value,       ONE,                  0},
    {"format.uri",                    ">F",      fn_uri,               ONE,                  0},
    {"format.uuid",                   ">F",      fn_uuid,              ONE,                  0},
    {"format.byte",                   ">F",      fn_byte,              ONE,                  0},
    {"format.date",                   ">F",      fn_date,              ONE,                  0},
    {"format.datetime",               ">F",      fn_datetime,          ONE,                  0},
};
const struct dv_cel_lib dv_cel_lib_formats = {rows, DV_COUNT(rows)};
