/* listen.c - parses addresses, and opens sockets that listen on them. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "rest/rest_server.h"

/* So many connections wait while the loop is busy; the kernel has a limit of its own. */
#define BACKLOG 1024

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage storage;
};

static bool parse_port(dv_str text, in_port_t *port)
{
    uint32_t number;

    if (!dv_str_to_u32(text, &number) || number > UINT16_MAX)
        return false;
    *port = htons((uint16_t)number);
    return true;
}

/* Parses a host, which must be a number: a name would have to be looked up, which takes time and
 * may answer anything. */
static bool parse_host(dv_str host, union address *address)
{
    char text[INET6_ADDRSTRLEN];
    bool is_v6 = host.n >= 2 && host.p[0] == '[' && host.p[host.n - 1] == ']';

    if (is_v6)
        host = dv_str_slice(host, 1, host.n - 1);
    else if (host.n == 0 || dv_str_eq(host, DV_STR("localhost")))
        host = DV_STR("127.0.0.1");
    if (host.n >= sizeof(text))
        return false;
    memcpy(text, host.p, host.n);
    text[host.n] = '\0';
    address->any.sa_family = is_v6 ? AF_INET6 : AF_INET;
    return inet_pton(address->any.sa_family, text,
                     is_v6 ? (void *)&address->v6.sin6_addr : (void *)&address->v4.sin_addr) == 1;
}

static bool parse_address(dv_str text, union address *address, struct dv_err *err)
{
    size_t colon = text.n;
    in_port_t port;

    while (colon > 0 && text.p[colon - 1] != ':')
        colon--;
    memset(address, 0, sizeof(*address));
    if (colon == 0 || !parse_port(dv_str_slice(text, colon, text.n), &port) ||
        !parse_host(dv_str_slice(text, 0, colon - 1), address))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "listen on \"%.*s\": want ADDRESS:PORT, in numbers", DV_FMT(text));
    if (address->any.sa_family == AF_INET6)
        address->v6.sin6_port = port;
    else
        address->v4.sin_port = port;
    return true;
}

static bool is_loopback(const union address *address)
{
    if (address->any.sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
    return ntohl(address->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

bool dv_rest_address_check(dv_str text, bool *is_local, struct dv_err *err)
{
    union address address;

    if (!parse_address(text, &address, err))
        return false;
    *is_local = is_loopback(&address);
    return true;
}

bool dv_rest_listen(dv_str text, int *fd, struct dv_err *err)
{
    union address address;
    bool is_v6;
    int one = 1;

    if (!parse_address(text, &address, err))
        return false;
    is_v6 = address.any.sa_family == AF_INET6;
    *fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd < 0)
        return dv_fail_errno(err, errno, "listen on %.*s", DV_FMT(text));
    /* With this, a restart need not wait until the kernel has forgotten old connections. */
    (void)setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (is_v6) /* [::] must not listen on 0.0.0.0 as well: only what was asked for */
        (void)setsockopt(*fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
    if (bind(*fd, &address.any, is_v6 ? sizeof(address.v6) : sizeof(address.v4)) != 0 ||
        listen(*fd, BACKLOG) != 0) {
        int errnum = errno;

        (void)close(*fd); /* nothing was sent on it */
        (void)dv_fail_errno(err, errnum, "listen on %.*s", DV_FMT(text));
        if (errnum == EADDRINUSE)
            err->code = DV_ALREADY_EXISTS;
        return false;
    }
    return true;
}

bool dv_rest_listen_check(int fd, struct dv_err *err)
{
    int is_listening = 0;
    socklen_t n = sizeof(is_listening);

    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &n) != 0)
        return dv_fail_errno(err, errno, "listen on descriptor %d", fd);
    if (!is_listening)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "listen on descriptor %d: it is not a listening socket", fd);
    return true;
}

uint16_t dv_rest_listen_port(int fd)
{
    union address address = {0};
    socklen_t n = sizeof(address);

    if (getsockname(fd, &address.any, &n) != 0)
        return 0; /* cannot happen, because the socket listens */
    if (address.any.sa_family == AF_INET)
        return ntohs(address.v4.sin_port);
    return address.any.sa_family == AF_INET6 ? ntohs(address.v6.sin6_port) : 0;
}

void dv_rest_address_print(const struct sockaddr *address, char text[DV_REST_PEER_BYTES])
{
    char host[INET6_ADDRSTRLEN];
    union address copy;

    if (address->sa_family == AF_INET) {
        memcpy(&copy.v4, address, sizeof(copy.v4));
        (void)inet_ntop(AF_INET, &copy.v4.sin_addr, host, sizeof(host)); /* large enough */
        (void)snprintf(text, DV_REST_PEER_BYTES, "%s:%u", host, ntohs(copy.v4.sin_port));
    } else if (address->sa_family == AF_INET6) {
        memcpy(&copy.v6, address, sizeof(copy.v6));
        (void)inet_ntop(AF_INET6, &copy.v6.sin6_addr, host, sizeof(host)); /* large enough */
        (void)snprintf(text, DV_REST_PEER_BYTES, "[%s]:%u", host, ntohs(copy.v6.sin6_port));
    } else {
        (void)snprintf(text, DV_REST_PEER_BYTES, "unix");
    }
}
