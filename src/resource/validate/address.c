/* address.c - addresses of interfaces: "192.0.2.5/24", "2001:db8::5/64". */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "resource/validate/checks.h"

#define V4_BYTES 4u
#define V6_BYTES 16u
/* "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255/128" */
#define TEXT_BYTES_MAX 64u

struct address {
    uint8_t bytes[V6_BYTES];
    bool is_v4;
    unsigned prefix;
};

/* Parses four numbers. Leading zeros are read, so that the caller can say that the address is not
 * canonical. */
static bool parse_v4(dv_str text, uint8_t *bytes)
{
    size_t n_parts = 0;
    dv_str part;

    while (dv_str_split(&text, '.', &part)) {
        unsigned value = 0;

        if (n_parts == V4_BYTES || part.n == 0)
            return false;
        for (size_t i = 0; i < part.n; i++) {
            if (part.p[i] < '0' || part.p[i] > '9')
                return false;
            value = value * 10 + (unsigned)(part.p[i] - '0');
            if (value > UINT8_MAX)
                return false;
        }
        bytes[n_parts++] = (uint8_t)value;
    }
    return n_parts == V4_BYTES;
}

static bool parse_v6(dv_str text, uint8_t *bytes)
{
    char c[TEXT_BYTES_MAX];

    if (text.n >= sizeof(c) || memchr(text.p, '\0', text.n))
        return false;
    memcpy(c, text.p, text.n);
    c[text.n] = '\0';
    return inet_pton(AF_INET6, c, bytes) == 1;
}

static bool parse_address(dv_str text, struct address *address)
{
    size_t slash = dv_str_find_char(text, '/');
    dv_str host = dv_str_slice(text, 0, slash);
    dv_str prefix = dv_str_slice(text, slash + 1, text.n);
    unsigned max;

    if (slash == text.n || host.n == 0 || prefix.n == 0)
        return false;
    address->is_v4 = dv_str_find_char(host, ':') == host.n;
    if (!(address->is_v4 ? parse_v4(host, address->bytes) : parse_v6(host, address->bytes)))
        return false;
    max = address->is_v4 ? 8 * V4_BYTES : 8 * V6_BYTES;
    address->prefix = 0;
    for (size_t i = 0; i < prefix.n; i++) {
        if (prefix.p[i] < '0' || prefix.p[i] > '9')
            return false;
        address->prefix = address->prefix * 10 + (unsigned)(prefix.p[i] - '0');
        if (address->prefix > max)
            return false;
    }
    return true;
}

/* Whether it is an IPv4 address that is written as IPv6. */
static bool is_mapped(const uint8_t *bytes)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(bytes, mapped, sizeof(mapped)) == 0;
}

/* Finds the first group of the longest run of zeros, the leftmost of equals; 8 when no run
 * has two. */
static size_t longest_zeros(const uint8_t *bytes, size_t *length)
{
    size_t best = 8;

    *length = 1;
    for (size_t i = 0; i < 8; i++) {
        size_t n = 0;

        while (i + n < 8 && bytes[2 * (i + n)] == 0 && bytes[2 * (i + n) + 1] == 0)
            n++;
        if (n > *length) {
            *length = n;
            best = i;
        }
    }
    return best;
}

static size_t print_v4(const uint8_t *bytes, char *text)
{
    return (size_t)snprintf(text, TEXT_BYTES_MAX, "%u.%u.%u.%u", bytes[0], bytes[1], bytes[2],
                            bytes[3]);
}

static size_t print_v6(const uint8_t *bytes, char *text)
{
    size_t length;
    size_t zeros = longest_zeros(bytes, &length);
    size_t n = 0;

    for (size_t i = 0; i < 8; i++) {
        unsigned group = (unsigned)bytes[2 * i] << 8 | bytes[2 * i + 1];

        if (i == zeros) {
            n += (size_t)snprintf(text + n, TEXT_BYTES_MAX - n, "::");
            i += length - 1;
            continue;
        }
        n += (size_t)snprintf(text + n, TEXT_BYTES_MAX - n, "%s%x",
                              n > 0 && text[n - 1] != ':' ? ":" : "", group);
    }
    return n;
}

void dv_check_interface_address(struct dv_problems *problems, const struct dv_field_path *path,
                                const char *name, dv_str value)
{
    struct address address;
    char text[TEXT_BYTES_MAX];
    size_t n;

    if (!parse_address(value, &address)) {
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, name, dv_bad_str(value),
                       "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or "
                       "2001:db8::1/64)");
        return;
    }
    if (address.is_v4)
        n = print_v4(address.bytes, text);
    else if (is_mapped(address.bytes))
        n = print_v4(address.bytes + 12, text);
    else
        n = print_v6(address.bytes, text);
    n += (size_t)snprintf(text + n, sizeof(text) - n, "/%u", address.prefix);
    if (!dv_str_eq(value, (dv_str){text, n}))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, name, dv_bad_str(value),
                       "must be in canonical form (\"%s\")", text);
}
