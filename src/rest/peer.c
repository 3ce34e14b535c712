/* peer.c - finds where a connection comes from, as far as that tells clients apart. That is its
 * address, or for IPv6 the network that one client has all of. On the loopback all users of the
 * machine have the same address, so there it is the user: the kernel knows who owns the other
 * end. */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/types.h>

#include "rest/rest_server.h"

/* The part of an IPv6 address that a network gives to one client. */
#define NETWORK_BYTES 8u

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage storage;
};

struct question {
    struct nlmsghdr head;
    struct inet_diag_req_v2 ask;
};

/* ---- whose the other end is ---- */

/* Makes the question for the kernel: the other end's socket has our peer's address as its
 * source. */
static struct question ask_for(const union address *theirs, const union address *ours)
{
    struct question question = {
        .head = {.nlmsg_len = sizeof(question),
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST},
        .ask = {.sdiag_family = (uint8_t)theirs->any.sa_family,
                 .sdiag_protocol = IPPROTO_TCP,
                 .idiag_states = UINT32_MAX  },
    };
    struct inet_diag_sockid *id = &question.ask.id;

    id->idiag_cookie[0] = id->idiag_cookie[1] = (uint32_t)INET_DIAG_NOCOOKIE;
    if (theirs->any.sa_family == AF_INET) {
        id->idiag_sport = theirs->v4.sin_port;
        id->idiag_dport = ours->v4.sin_port;
        memcpy(id->idiag_src, &theirs->v4.sin_addr, sizeof(theirs->v4.sin_addr));
        memcpy(id->idiag_dst, &ours->v4.sin_addr, sizeof(ours->v4.sin_addr));
    } else {
        id->idiag_sport = theirs->v6.sin6_port;
        id->idiag_dport = ours->v6.sin6_port;
        memcpy(id->idiag_src, &theirs->v6.sin6_addr, sizeof(theirs->v6.sin6_addr));
        memcpy(id->idiag_dst, &ours->v6.sin6_addr, sizeof(ours->v6.sin6_addr));
    }
    return question;
}

/* Asks the kernel who owns the other end. It answers before send() has returned, so this does not
 * wait. False: the socket is gone, or the kernel does not tell (a sandbox without netlink). */
static bool find_owner(int *diag_fd, const union address *theirs, const union address *ours,
                       uid_t *uid)
{
    struct question question = ask_for(theirs, ours);
    union {
        struct nlmsghdr head;
        char bytes[512];
    } answer;
    struct inet_diag_msg found;
    ssize_t n;

    if (*diag_fd < 0)
        *diag_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
    if (*diag_fd < 0 || send(*diag_fd, &question, sizeof(question), 0) < 0)
        return false;
    n = recv(*diag_fd, &answer, sizeof(answer), 0);
    if (n < (ssize_t)(NLMSG_HDRLEN + sizeof(found)) ||
        answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
        return false;
    memcpy(&found, answer.bytes + NLMSG_HDRLEN, sizeof(found));
    *uid = found.idiag_uid;
    /* A socket that is closed already has no owner, and would be taken for root's. */
    return found.idiag_inode != 0;
}

static bool find_unix_owner(int fd, uid_t *uid)
{
    struct ucred creds;
    socklen_t n = sizeof(creds);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &creds, &n) != 0)
        return false;
    *uid = creds.uid;
    return true;
}

/* ---- the key ---- */

static bool is_loopback(const union address *address)
{
    if (address->any.sa_family == AF_INET)
        return ntohl(address->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return address->any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
}

static void set_key(struct dv_rest_origin *origin, char kind, const void *bytes, size_t n)
{
    origin->key[0] = kind;
    memcpy(origin->key + 1, bytes, n);
    origin->n_key = n + 1;
}

void dv_rest_origin_find(int *diag_fd, int fd, const struct sockaddr *peer,
                         struct dv_rest_origin *origin)
{
    union address theirs = {0};
    union address ours = {0};
    socklen_t n = sizeof(ours);
    uid_t uid = 0;

    memcpy(&theirs, peer,
           peer->sa_family == AF_INET    ? sizeof(theirs.v4)
           : peer->sa_family == AF_INET6 ? sizeof(theirs.v6)
                                         : sizeof(theirs.any));
    if (peer->sa_family != AF_INET && peer->sa_family != AF_INET6) {
        origin->is_local = true;
        if (find_unix_owner(fd, &uid))
            set_key(origin, 'u', &uid, sizeof(uid));
        else
            set_key(origin, 'l', "", 0);
    } else if (is_loopback(&theirs)) {
        origin->is_local = true;
        if (getsockname(fd, &ours.any, &n) == 0 && find_owner(diag_fd, &theirs, &ours, &uid))
            set_key(origin, 'u', &uid, sizeof(uid));
        else
            set_key(origin, 'l', "", 0);
    } else if (peer->sa_family == AF_INET) {
        set_key(origin, '4', &theirs.v4.sin_addr, sizeof(theirs.v4.sin_addr));
    } else {
        set_key(origin, '6', &theirs.v6.sin6_addr, NETWORK_BYTES);
    }
}
