#include "cel/value/url.h"

#include <string.h>

#include "base/arena.h"
#include "base/ascii.h"
#include "base/num.h"
#include "cel/value/cel_net.h"

static bool is_unreserved(char c)
{
    return dv_is_letter(c) || dv_is_digit(c) || (c != '\0' && strchr("-_.~", c) != NULL);
}

static bool is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

bool dv_cel_url_unescape(dv_str text, bool plus, struct dv_arena *arena, dv_str *out)
{
    char *copy = dv_arena_alloc_raw(arena, text.n, 1);
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        if (c == '%') {
            int byte = dv_percent_byte(text, i);

            if (byte < 0)
                return false;
            c = (char)byte;
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        copy[n++] = c;
    }
    *out = (dv_str){copy, n};
    return true;
}

static bool has_control(dv_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return true;
    return false;
}

/* Takes "scheme:" off *rest. False: there is a colon, and nothing before it. */
static bool take_scheme(dv_str *rest, struct dv_arena *arena, dv_str *scheme)
{
    char *lower;
    size_t n = 0;

    *scheme = DV_STR_NONE;
    while (n < rest->n && (dv_is_letter(rest->p[n]) ||
                           (n > 0 && (dv_is_digit(rest->p[n]) || is_one_of(rest->p[n], "+-.")))))
        n++;
    if (n >= rest->n || rest->p[n] != ':')
        return true;
    if (n == 0)
        return false;
    lower = dv_arena_alloc_raw(arena, n, 1);
    for (size_t i = 0; i < n; i++)
        lower[i] = (char)(rest->p[i] >= 'A' && rest->p[i] <= 'Z' ? rest->p[i] | 0x20 : rest->p[i]);
    *scheme = (dv_str){lower, n};
    *rest = dv_str_slice(*rest, n + 1, rest->n);
    return true;
}

static bool is_port(dv_str s)
{
    if (s.n == 0)
        return true;
    if (s.p[0] != ':')
        return false;
    for (size_t i = 1; i < s.n; i++)
        if (!dv_is_digit(s.p[i]))
            return false;
    return true;
}

static size_t find_last(dv_str s, char c)
{
    for (size_t i = s.n; i-- > 0;)
        if (s.p[i] == c)
            return i;
    return s.n;
}

/* Whether only bytes beyond ASCII are escaped, and the percent sign of a zone: more is not allowed
 * in a host. */
static bool is_host_text(dv_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (c == '%') {
            int byte = dv_percent_byte(s, i);

            if (byte < 0 || (byte < 0x80 && byte != '%'))
                return false;
            i += 2;
        } else if ((unsigned char)c < 0x80 && !is_unreserved(c) &&
                   !is_one_of(c, "!$&'()*+,;=:[]<>\"")) {
            return false;
        }
    }
    return true;
}

static bool is_user_text(dv_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_unreserved(s.p[i]) && !is_one_of(s.p[i], ":!$&'()*+,;=%@"))
            return false;
    return true;
}

/* Parses "[2001:db8::1%25eth0]:80": only such an address may be in brackets. */
static bool parse_bracketed(dv_str host, struct dv_arena *arena, struct dv_cel_url *url)
{
    size_t close = find_last(host, ']');
    dv_str port = dv_str_slice(host, close + 1, host.n);
    dv_str inside = dv_str_slice(host, 1, close);
    dv_str address;
    dv_str name;
    size_t zone;

    if (host.p[0] != '[' || close >= host.n || !is_port(port))
        return false;
    zone = dv_str_find(inside, DV_STR("%25"));
    if (!is_host_text(dv_str_slice(inside, 0, zone)) ||
        !dv_cel_url_unescape(inside, false, arena, &name))
        return false;
    address = dv_str_slice(name, 0, dv_str_find_char(name, '%'));
    if (zone < inside.n && address.n + 1 >= name.n) /* a zone without a name */
        return false;
    if (!dv_cel_ip_is_v6(address))
        return false;
    url->host = dv_str_printf(arena, "[%.*s]%.*s", DV_FMT(name), DV_FMT(port));
    return true;
}

static bool parse_host(dv_str host, struct dv_arena *arena, struct dv_cel_url *url)
{
    size_t colon;

    if (dv_str_find_char(host, '[') < host.n)
        return parse_bracketed(host, arena, url);
    colon = find_last(host, ':');
    if (colon < host.n && !is_port(dv_str_slice(host, colon, host.n)))
        return false;
    return is_host_text(host) && dv_cel_url_unescape(host, false, arena, &url->host);
}

static bool parse_authority(dv_str authority, struct dv_arena *arena, struct dv_cel_url *url)
{
    size_t at = find_last(authority, '@');
    dv_str user;

    url->has_host = true;
    if (at >= authority.n)
        return parse_host(authority, arena, url);
    url->user = dv_str_slice(authority, 0, at);
    return is_user_text(url->user) && dv_cel_url_unescape(url->user, false, arena, &user) &&
           parse_host(dv_str_slice(authority, at + 1, authority.n), arena, url);
}

/* Parses as for the line of a request, or as any URL. */
static bool parse(dv_str text, bool is_request, struct dv_arena *arena, struct dv_cel_url *url)
{
    dv_str unescaped;
    size_t mark;

    *url = (struct dv_cel_url){0};
    if (text.n == 0 || has_control(text))
        return false;
    if (dv_str_eq(text, DV_STR("*"))) {
        url->path = text;
        return true;
    }
    if (!take_scheme(&text, arena, &url->scheme))
        return false;
    mark = dv_str_find_char(text, '?');
    url->has_mark = mark + 1 == text.n;
    url->query = dv_str_slice(text, mark + 1, text.n);
    text = dv_str_slice(text, 0, mark);
    if (text.n == 0 || text.p[0] != '/') {
        url->opaque = text;
        return url->scheme.n > 0;
    }
    if (dv_str_starts_with(text, DV_STR("//")) &&
        (url->scheme.n > 0 || (!is_request && !dv_str_starts_with(text, DV_STR("///"))))) {
        dv_str rest = dv_str_slice(text, 2, text.n);
        size_t slash = dv_str_find_char(rest, '/');

        if (!parse_authority(dv_str_slice(rest, 0, slash), arena, url))
            return false;
        text = dv_str_slice(rest, slash, rest.n);
    }
    url->path = text;
    return dv_cel_url_unescape(text, false, arena, &unescaped);
}

bool dv_cel_url_check(dv_str text, struct dv_arena *arena)
{
    struct dv_cel_url url;

    return parse(text, true, arena, &url);
}

bool dv_cel_url_parse(dv_str text, struct dv_arena *arena, struct dv_cel_url *url)
{
    size_t hash = dv_str_find_char(text, '#');

    return dv_cel_url_check(text, arena) && parse(dv_str_slice(text, 0, hash), false, arena, url) &&
           dv_cel_url_unescape(dv_str_slice(text, hash + 1, text.n), false, arena, &url->fragment);
}

dv_str dv_cel_url_hostname(const struct dv_cel_url *url)
{
    dv_str host = url->host;
    size_t close;

    if (host.n > 0 && host.p[0] == '[' && (close = dv_str_find_char(host, ']')) < host.n)
        return dv_str_slice(host, 1, close);
    return dv_str_slice(host, 0, dv_str_find_char(host, ':'));
}

dv_str dv_cel_url_port(const struct dv_cel_url *url)
{
    dv_str host = url->host;
    size_t colon = find_last(host, ':');
    size_t close = find_last(host, ']');

    if (colon >= host.n || (close < host.n && close > colon))
        return DV_STR_NONE;
    return dv_str_slice(host, colon + 1, host.n);
}

dv_str dv_cel_url_escaped_path(const struct dv_cel_url *url, struct dv_arena *arena)
{
    static const char digits[] = "0123456789ABCDEF";
    bool is_escaped = true;
    dv_str raw;
    char *out;
    size_t n = 0;

    for (size_t i = 0; i < url->path.n; i++)
        is_escaped &=
            is_unreserved(url->path.p[i]) || is_one_of(url->path.p[i], "!$&'()*+,;=:@[]/%");
    if (is_escaped || !dv_cel_url_unescape(url->path, false, arena, &raw))
        return url->path;
    out = dv_arena_alloc_raw(arena, raw.n * 3, 1);
    for (size_t i = 0; i < raw.n; i++) {
        char c = raw.p[i];

        if (is_unreserved(c) || is_one_of(c, "$&+,/:;=@")) {
            out[n++] = c;
            continue;
        }
        out[n++] = '%';
        out[n++] = digits[(unsigned char)c >> 4];
        out[n++] = digits[(unsigned char)c & 15];
    }
    return (dv_str){out, n};
}

bool dv_cel_url_eq(const struct dv_cel_url *a, const struct dv_cel_url *b)
{
    return dv_str_eq(a->scheme, b->scheme) && dv_str_eq(a->opaque, b->opaque) &&
           dv_str_eq(a->user, b->user) && dv_str_eq(a->host, b->host) &&
           dv_str_eq(a->path, b->path) && dv_str_eq(a->query, b->query) &&
           dv_str_eq(a->fragment, b->fragment) && a->has_mark == b->has_mark;
}
