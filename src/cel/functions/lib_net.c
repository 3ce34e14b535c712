/* lib_net.c - IP addresses and CIDR ranges. */

#include "base/arena.h"
#include "base/str.h"
#include "cel/check/decls.h"
#include "cel/value/cel_net.h"
#include "cel/value/cel_run.h"
#include "cel/value/cel_value.h"

static struct dv_cel_val from_ip(struct dv_cel_run *run, const struct dv_cel_ip *ip)
{
    struct dv_cel_ip *copy = DV_NEW(run->arena, struct dv_cel_ip);

    *copy = *ip;
    return (struct dv_cel_val){.kind = DV_CEL_IP, .ip = copy};
}

static struct dv_cel_val from_cidr(struct dv_cel_run *run, const struct dv_cel_cidr *cidr)
{
    struct dv_cel_cidr *copy = DV_NEW(run->arena, struct dv_cel_cidr);

    *copy = *cidr;
    return (struct dv_cel_val){.kind = DV_CEL_CIDR, .cidr = copy};
}

static struct dv_cel_val not_a(struct dv_cel_run *run, const char *what, dv_str text)
{
    return dv_cel_error_printf(run->arena, "%s \"%.*s\" parse error during conversion from string",
                               what, DV_FMT(text));
}

static void fn_ip(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    struct dv_cel_ip ip;

    *out =
        dv_cel_ip_parse(args[0].s, &ip) ? from_ip(run, &ip) : not_a(run, "IP Address", args[0].s);
}

static void fn_is_ip(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    struct dv_cel_ip ip;

    (void)run;
    *out = dv_cel_bool(dv_cel_ip_parse(args[0].s, &ip));
}

static void fn_is_canonical(struct dv_cel_run *run, const struct dv_cel_val *args,
                            struct dv_cel_val *out)
{
    char text[DV_CEL_NET_BYTES];
    struct dv_cel_ip ip;

    if (!dv_cel_ip_parse(args[0].s, &ip)) {
        *out = not_a(run, "IP Address", args[0].s);
        return;
    }
    dv_cel_ip_print(&ip, text);
    *out = dv_cel_bool(dv_str_eq(args[0].s, dv_str_from_c(text)));
}

static void fn_ip_string(struct dv_cel_run *run, const struct dv_cel_val *args,
                         struct dv_cel_val *out)
{
    char text[DV_CEL_NET_BYTES];

    dv_cel_ip_print(args[0].ip, text);
    *out = dv_cel_string(dv_str_copy(dv_str_from_c(text), run->arena));
}

static void fn_family(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_int(args[0].ip->n == 4 ? 4 : 6);
}

/* -- What an address is for ------------------------------------------------------------------ */

static bool has_prefix(const struct dv_cel_ip *ip, const char *prefix)
{
    struct dv_cel_cidr cidr;

    /* Cannot fail: the prefixes are ours. */
    if (!dv_cel_cidr_parse(dv_str_from_c(prefix), &cidr) || cidr.ip.n != ip->n)
        return false;
    for (unsigned bit = 0; bit < cidr.bits; bit++)
        if ((ip->bytes[bit / 8] ^ cidr.ip.bytes[bit / 8]) >> (7 - bit % 8) & 1)
            return false;
    return true;
}

static bool is_unspecified(const struct dv_cel_ip *ip)
{
    return has_prefix(ip, "0.0.0.0/32") || has_prefix(ip, "::/128");
}

static bool is_loopback(const struct dv_cel_ip *ip)
{
    return has_prefix(ip, "127.0.0.0/8") || has_prefix(ip, "::1/128");
}

static bool is_link_local(const struct dv_cel_ip *ip)
{
    return has_prefix(ip, "169.254.0.0/16") || has_prefix(ip, "fe80::/10");
}

static bool is_global(const struct dv_cel_ip *ip)
{
    return !is_unspecified(ip) && !is_loopback(ip) && !is_link_local(ip) &&
           !has_prefix(ip, "224.0.0.0/4") && !has_prefix(ip, "ff00::/8") &&
           !has_prefix(ip, "255.255.255.255/32");
}

static void fn_is_unspecified(struct dv_cel_run *run, const struct dv_cel_val *args,
                              struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_bool(is_unspecified(args[0].ip));
}

static void fn_is_loopback(struct dv_cel_run *run, const struct dv_cel_val *args,
                           struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_bool(is_loopback(args[0].ip));
}

static void fn_is_link_local_multicast(struct dv_cel_run *run, const struct dv_cel_val *args,
                                       struct dv_cel_val *out)
{
    (void)run;
    *out =
        dv_cel_bool(has_prefix(args[0].ip, "224.0.0.0/24") || has_prefix(args[0].ip, "ff02::/16"));
}

static void fn_is_link_local_unicast(struct dv_cel_run *run, const struct dv_cel_val *args,
                                     struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_bool(is_link_local(args[0].ip));
}

static void fn_is_global_unicast(struct dv_cel_run *run, const struct dv_cel_val *args,
                                 struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_bool(is_global(args[0].ip));
}

/* -- Ranges ---------------------------------------------------------------------------------- */

static struct dv_cel_cidr masked(const struct dv_cel_cidr *cidr, unsigned bits)
{
    struct dv_cel_cidr result = *cidr;

    result.bits = (uint8_t)bits;
    for (unsigned bit = bits; bit < result.ip.n * 8u; bit++)
        result.ip.bytes[bit / 8] &= (uint8_t) ~(0x80u >> bit % 8);
    return result;
}

static bool contains(const struct dv_cel_cidr *cidr, const struct dv_cel_cidr *other)
{
    struct dv_cel_cidr a;
    struct dv_cel_cidr b;

    if (cidr->ip.n != other->ip.n || cidr->bits > other->bits)
        return false;
    a = masked(cidr, cidr->bits);
    b = masked(other, cidr->bits);
    return dv_cel_cidr_eq(&a, &b);
}

static void fn_cidr(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    struct dv_cel_cidr cidr;

    *out = dv_cel_cidr_parse(args[0].s, &cidr) ? from_cidr(run, &cidr)
                                               : not_a(run, "network address", args[0].s);
}

static void fn_is_cidr(struct dv_cel_run *run, const struct dv_cel_val *args,
                       struct dv_cel_val *out)
{
    struct dv_cel_cidr cidr;

    (void)run;
    *out = dv_cel_bool(dv_cel_cidr_parse(args[0].s, &cidr));
}

static void fn_contains_ip(struct dv_cel_run *run, const struct dv_cel_val *args,
                           struct dv_cel_val *out)
{
    struct dv_cel_cidr other = {0};

    if (args[1].kind == DV_CEL_IP) {
        other.ip = *args[1].ip;
    } else if (!dv_cel_ip_parse(args[1].s, &other.ip)) {
        *out = not_a(run, "IP Address", args[1].s);
        return;
    }
    other.bits = (uint8_t)(other.ip.n * 8);
    *out = dv_cel_bool(contains(args[0].cidr, &other));
}

static void fn_contains_cidr(struct dv_cel_run *run, const struct dv_cel_val *args,
                             struct dv_cel_val *out)
{
    struct dv_cel_cidr other;

    if (args[1].kind == DV_CEL_CIDR) {
        other = *args[1].cidr;
    } else if (!dv_cel_cidr_parse(args[1].s, &other)) {
        *out = not_a(run, "network address", args[1].s);
        return;
    }
    *out = dv_cel_bool(contains(args[0].cidr, &other));
}

static void fn_cidr_ip(struct dv_cel_run *run, const struct dv_cel_val *args,
                       struct dv_cel_val *out)
{
    *out = from_ip(run, &args[0].cidr->ip);
}

static void fn_masked(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    struct dv_cel_cidr result = masked(args[0].cidr, args[0].cidr->bits);

    *out = from_cidr(run, &result);
}

static void fn_prefix_length(struct dv_cel_run *run, const struct dv_cel_val *args,
                             struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_int(args[0].cidr->bits);
}

static void fn_cidr_string(struct dv_cel_run *run, const struct dv_cel_val *args,
                           struct dv_cel_val *out)
{
    char text[DV_CEL_NET_BYTES];

    dv_cel_cidr_print(args[0].cidr, text);
    *out = dv_cel_string(dv_str_copy(dv_str_from_c(text), run->arena));
}

#define PARSE DV_CEL_COST_PARSE
#define MEMBER DV_CEL_COST_MEMBER

static const struct dv_cel_overload rows[] = {
    {"ip",                   "s>I",   fn_ip,                      PARSE,                            0},
    {"ip",                   ".C>I",  fn_cidr_ip,                 MEMBER,                           0},
    {"isIP",                 "s>b",   fn_is_ip,                   PARSE,                            0},
    {"ip.isCanonical",       "s>b",   fn_is_canonical,            DV_CEL_COST_CANONICAL,            0},
    {"string",               "I>s",   fn_ip_string,               DV_CEL_COST_ONE,                  0},
    {"family",               ".I>i",  fn_family,                  MEMBER,                           0},
    {"isUnspecified",        ".I>b",  fn_is_unspecified,          MEMBER,                           0},
    {"isLoopback",           ".I>b",  fn_is_loopback,             MEMBER,                           0},
    {"isLinkLocalMulticast", ".I>b",  fn_is_link_local_multicast, MEMBER,                           0},
    {"isLinkLocalUnicast",   ".I>b",  fn_is_link_local_unicast,   MEMBER,                           0},
    {"isGlobalUnicast",      ".I>b",  fn_is_global_unicast,       MEMBER,                           0},
    {"cidr",                 "s>C",   fn_cidr,                    PARSE,                            0},
    {"isCIDR",               "s>b",   fn_is_cidr,                 PARSE,                            0},
    {"containsIP",           ".CI>b", fn_contains_ip,             DV_CEL_COST_CONTAINS_IP,          0},
    {"containsIP",           ".Cs>b", fn_contains_ip,             DV_CEL_COST_CONTAINS_IP_STRING,   0},
    {"containsCIDR",         ".CC>b", fn_contains_cidr,           DV_CEL_COST_CONTAINS_CIDR,        0},
    {"containsCIDR",         ".Cs>b", fn_contains_cidr,           DV_CEL_COST_CONTAINS_CIDR_STRING, 0},
    {"masked",               ".C>C",  fn_masked,                  MEMBER,                           0},
    {"prefixLength",         ".C>i",  fn_prefix_length,           MEMBER,                           0},
    {"string",               "C>s",   fn_cidr_string,             DV_CEL_COST_ONE,                  0},
};
const struct dv_cel_lib dv_cel_lib_net = {rows, DV_COUNT(rows)};
