/* cel_net.h - IP addresses and ranges of them. */
#ifndef DV_CEL_NET_H
#define DV_CEL_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_cel_val;

struct dv_cel_ip {
    uint8_t bytes[16];
    uint8_t n; /* 4 or 16 */
};
struct dv_cel_cidr {
    struct dv_cel_ip ip;
    uint8_t bits;
};

/* Parses an address; zones, and IPv4 inside of IPv6, are refused. */
DV_CHECKED bool dv_cel_ip_parse(dv_str text, struct dv_cel_ip *ip);
bool dv_cel_ip_is_v6(dv_str text); /* also with IPv4 inside of it */
DV_CHECKED bool dv_cel_cidr_parse(dv_str text, struct dv_cel_cidr *cidr);
#define DV_CEL_NET_BYTES 64
void dv_cel_ip_print(const struct dv_cel_ip *ip, char text[DV_CEL_NET_BYTES]);
void dv_cel_cidr_print(const struct dv_cel_cidr *cidr, char text[DV_CEL_NET_BYTES]);

bool dv_cel_ip_eq(const struct dv_cel_ip *a, const struct dv_cel_ip *b);
bool dv_cel_cidr_eq(const struct dv_cel_cidr *a, const struct dv_cel_cidr *b);
uint64_t dv_cel_ip_size(const struct dv_cel_ip *ip);
uint64_t dv_cel_cidr_size(const struct dv_cel_cidr *cidr);

#endif
