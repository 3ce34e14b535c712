#include "cel/value/cel_net.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/num.h"

static bool parse_family(dv_str text, int family, uint8_t bytes[16])
{
    char copy[INET6_ADDRSTRLEN];

    if (text.n == 0 || text.n >= sizeof(copy) || memchr(text.p, '\0', text.n))
        return false;
    memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    return inet_pton(family, copy, bytes) == 1;
}

bool dv_cel_ip_parse(dv_str text, struct dv_cel_ip *ip)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

    memset(ip, 0, sizeof(*ip));
    if (parse_family(text, AF_INET, ip->bytes)) {
        ip->n = 4;
        return true;
    }
    ip->n = 16;
    return parse_family(text, AF_INET6, ip->bytes) &&
           memcmp(ip->bytes, mapped, sizeof(mapped)) != 0;
}

bool dv_cel_ip_is_v6(dv_str text)
{
    uint8_t bytes[16];

    return parse_family(text, AF_INET6, bytes);
}

bool dv_cel_cidr_parse(dv_str text, struct dv_cel_cidr *cidr)
{
    size_t slash = dv_str_find_char(text, '/');
    dv_str bits = dv_str_slice(text, slash + 1, text.n);
    uint32_t n;

    if (slash >= text.n || !dv_cel_ip_parse(dv_str_slice(text, 0, slash), &cidr->ip))
        return false;
    if (bits.n > 3 || (bits.n > 1 && bits.p[0] == '0') || !dv_str_to_u32(bits, &n) ||
        n > cidr->ip.n * 8u)
        return false;
    cidr->bits = (uint8_t)n;
    return true;
}

/* Finds the longest run of two or more zero groups, which :: stands for. */
static void find_zeros(const unsigned *groups, int *from, int *to)
{
    *from = *to = -1;
    for (int i = 0; i < 8; i++) {
        int end = i;

        while (end < 8 && groups[end] == 0)
            end++;
        if (end - i >= 2 && end - i > *to - *from) {
            *from = i;
            *to = end;
        }
        if (end > i)
            i = end - 1;
    }
}

void dv_cel_ip_print(const struct dv_cel_ip *ip, char text[DV_CEL_NET_BYTES])
{
    unsigned groups[8];
    int from;
    int to;
    int n = 0;

    if (ip->n == 4) {
        (void)snprintf(text, DV_CEL_NET_BYTES, "%u.%u.%u.%u", ip->bytes[0], ip->bytes[1],
                       ip->bytes[2], ip->bytes[3]);
        return;
    }
    for (int i = 0; i < 8; i++)
        groups[i] = (unsigned)ip->bytes[2 * i] << 8 | ip->bytes[2 * i + 1];
    find_zeros(groups, &from, &to);
    text[0] = '\0';
    for (int i = 0; i < 8; i++) {
        if (i == from) {
            n += snprintf(text + n, (size_t)(DV_CEL_NET_BYTES - n), "::");
            i = to - 1;
            continue;
        }
        n += snprintf(text + n, (size_t)(DV_CEL_NET_BYTES - n), "%s%x", i > 0 && i != to ? ":" : "",
                      groups[i]);
    }
}

void dv_cel_cidr_print(const struct dv_cel_cidr *cidr, char text[DV_CEL_NET_BYTES])
{
    size_t n;

    dv_cel_ip_print(&cidr->ip, text);
    n = strlen(text);
    (void)snprintf(text + n, DV_CEL_NET_BYTES - n, "/%u", cidr->bits);
}

bool dv_cel_ip_eq(const struct dv_cel_ip *a, const struct dv_cel_ip *b)
{
    return a->n == b->n && memcmp(a->bytes, b->bytes, a->n) == 0;
}

bool dv_cel_cidr_eq(const struct dv_cel_cidr *a, const struct dv_cel_cidr *b)
{
    return a->bits == b->bits && dv_cel_ip_eq(&a->ip, &b->ip);
}

uint64_t dv_cel_ip_size(const struct dv_cel_ip *ip)
{
    return ip->n;
}

uint64_t dv_cel_cidr_size(const struct dv_cel_cidr *cidr)
{
    return (cidr->bits + 7u) / 8;
}
