/* lib_urls.c - URLs and their parts. */
#include "base/arena.h"
#include "base/str.h"
#include "cel/check/decls.h"
#include "cel/value/cel_map.h"
#include "cel/value/cel_run.h"
#include "cel/value/cel_value.h"
#include "cel/value/url.h"

static void fn_url(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    struct dv_cel_url *url = DV_NEW(run->arena, struct dv_cel_url);

    if (dv_cel_url_parse(args[0].s, run->arena, url))
        *out = (struct dv_cel_val){.kind = DV_CEL_URL, .url = url};
    else
        *out = dv_cel_error_printf(run->arena,
                                   "URL parse error during conversion from string: parse \"%.*s\"",
                                   DV_FMT(args[0].s));
}

static void fn_is_url(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    *out = dv_cel_bool(dv_cel_url_check(args[0].s, run->arena));
}

static void fn_scheme(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_string(args[0].url->scheme);
}

static void fn_host(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_string(args[0].url->host);
}

static void fn_hostname(struct dv_cel_run *run, const struct dv_cel_val *args,
                        struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_string(dv_cel_url_hostname(args[0].url));
}

static void fn_port(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_string(dv_cel_url_port(args[0].url));
}

static void fn_path(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    *out = dv_cel_string(dv_cel_url_escaped_path(args[0].url, run->arena));
}

/* Adds a value to the list under its key. A pair with a wrong escape is left out. */
static void add_pair(struct dv_cel_run *run, dv_str pair, struct dv_cel_map *map)
{
    size_t equals = dv_str_find_char(pair, '=');
    const struct dv_cel_val *known;
    struct dv_cel_val *element;
    struct dv_cel_val key = {.kind = DV_CEL_STRING};
    struct dv_cel_val one;
    dv_str value;

    if (dv_str_find_char(pair, ';') < pair.n ||
        !dv_cel_url_unescape(dv_str_slice(pair, 0, equals), true, run->arena, &key.s) ||
        !dv_cel_url_unescape(dv_str_slice(pair, equals + 1, pair.n), true, run->arena, &value))
        return;
    one = dv_cel_list_new(1, run->arena, &element);
    *element = dv_cel_string(value);
    known = dv_cel_map_find(map, &key);
    if (known)
        one = dv_cel_list_concat(known->list, one.list, run->arena);
    dv_cel_map_set(map, &key, &one, run->arena);
}

static void fn_query(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    struct dv_cel_map *map = dv_cel_map_new(0, run->arena);
    dv_str rest = args[0].url->query;
    dv_str pair;

    while (rest.n > 0 && dv_str_split(&rest, '&', &pair))
        if (pair.n > 0)
            add_pair(run, pair, map);
    *out = (struct dv_cel_val){.kind = DV_CEL_MAP, .map = map};
}

#define MEMBER DV_CEL_COST_MEMBER

static const struct dv_cel_overload rows[] = {
    {"url",            "s>W",     fn_url,      DV_CEL_COST_URL, 0},
    {"isURL",          "s>b",     fn_is_url,   DV_CEL_COST_ONE, 0},
    {"getScheme",      ".W>s",    fn_scheme,   MEMBER,          0},
    {"getHost",        ".W>s",    fn_host,     MEMBER,          0},
    {"getHostname",    ".W>s",    fn_hostname, MEMBER,          0},
    {"getPort",        ".W>s",    fn_port,     MEMBER,          0},
    {"getEscapedPath", ".W>s",    fn_path,     MEMBER,          0},
    {"getQuery",       ".W>MsLs", fn_query,    MEMBER,          0},
};
const struct dv_cel_lib dv_cel_lib_urls = {rows, DV_COUNT(rows)};
