/* pingpong.c - a bare Unix socket that carries as many bytes as gRPC calls would: the floor that
 * the RPC benchmark compares with. No HTTP/2, no protobuf; one thread, epoll, non-blocking.
 *
 *   pingpong server SOCKET
 *   pingpong bench SOCKET --mode MODE --calls N [--size-request BYTES] [--size-reply BYTES]
 *                         [--connections N]
 *
 * A request is `struct request` and filling up to its `bytes`. The server answers with `n_replies`
 * replies of `reply_bytes` each; a reply to SEEN begins with `struct seen`. */
#include "measure.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>

/* What frames, HPACK on a warm connection and protobuf add to a payload, about. */
#define OVERHEAD_BYTES 60u
#define IN_FLIGHT 64u
#define BUFFER_BYTES (256u * 1024u)

enum request_kind { PING, SEEN };

struct request {
    uint32_t bytes;
    uint32_t kind;
    uint32_t reply_bytes;
    uint32_t n_replies;
};

struct seen {
    uint64_t cpu_us;
    uint64_t rss_bytes;
};

static char filling[BUFFER_BYTES]; /* sent where the content does not matter */
static char incoming[BUFFER_BYTES];

static void die(const char *what)
{
    (void)fprintf(stderr, "pingpong: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int open_socket(const char *path, struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        die("socket");
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof address->sun_path) {
        errno = ENAMETOOLONG;
        die(path);
    }
    memcpy(address->sun_path, path, strlen(path));
    return fd;
}

static void watch(int epoll_fd, int op, int fd, uint32_t events, void *who)
{
    struct epoll_event event = {.events = events, .data.ptr = who};

    if (epoll_ctl(epoll_fd, op, fd, &event) != 0)
        die("epoll_ctl");
}

/* ---------------------------------------------------------------------------------------- server
 */

struct peer {
    int fd;
    bool wants_out;
    size_t n_in;          /* bytes of the request that is arriving */
    struct request asked; /* valid once n_in covers it */
    uint64_t n_out;       /* filling still to send */
    struct seen seen;     /* sent before it, if n_seen > 0 */
    size_t n_seen;
};

static void close_peer(struct peer *peer)
{
    (void)close(peer->fd);
    free(peer);
}

/* Sends what the socket takes. False when the connection is gone. */
static bool flush_peer(int epoll_fd, struct peer *peer)
{
    while (peer->n_seen + peer->n_out > 0) {
        const char *from =
            peer->n_seen ? (const char *)&peer->seen + sizeof peer->seen - peer->n_seen : filling;
        size_t n = peer->n_seen                   ? peer->n_seen
                   : peer->n_out < sizeof filling ? (size_t)peer->n_out
                                                  : sizeof filling;
        ssize_t sent = send(peer->fd, from, n, MSG_NOSIGNAL);

        if (sent < 0 && errno != EAGAIN)
            return false;
        if (sent < 0)
            break;
        if (peer->n_seen)
            peer->n_seen -= (size_t)sent;
        else
            peer->n_out -= (uint64_t)sent;
    }
    bool wants_out = peer->n_seen + peer->n_out > 0;
    if (wants_out != peer->wants_out) {
        peer->wants_out = wants_out;
        watch(epoll_fd, EPOLL_CTL_MOD, peer->fd, EPOLLIN | (wants_out ? EPOLLOUT : 0), peer);
    }
    return true;
}

/* Takes the bytes that have come; each request that they complete adds to the output. */
static bool take(struct peer *peer, const char *bytes, size_t n)
{
    while (n > 0) {
        size_t want = sizeof peer->asked;
        size_t part;

        if (peer->n_in >= want)
            want = peer->asked.bytes;
        part = want - peer->n_in < n ? want - peer->n_in : n;
        if (peer->n_in < sizeof peer->asked)
            memcpy((char *)&peer->asked + peer->n_in, bytes, part);
        peer->n_in += part;
        bytes += part;
        n -= part;
        if (peer->n_in < sizeof peer->asked)
            return true;
        if (peer->asked.bytes < sizeof peer->asked || peer->asked.reply_bytes < sizeof peer->seen)
            return false;
        if (peer->n_in < peer->asked.bytes)
            continue;
        peer->n_in = 0;
        peer->n_out += (uint64_t)peer->asked.reply_bytes * peer->asked.n_replies;
        if (peer->asked.kind == SEEN) {
            peer->seen = (struct seen){measure_cpu_us(), measure_rss_bytes()};
            peer->n_seen = sizeof peer->seen;
            peer->n_out -= sizeof peer->seen;
        }
    }
    return true;
}

static bool serve_peer(int epoll_fd, struct peer *peer, uint32_t events)
{
    if (events & EPOLLIN) {
        ssize_t n = recv(peer->fd, incoming, sizeof incoming, 0);

        if (n == 0 || (n < 0 && errno != EAGAIN) || (n > 0 && !take(peer, incoming, (size_t)n)))
            return false;
    }
    return !(events & EPOLLERR) && flush_peer(epoll_fd, peer);
}

static void accept_peer(int epoll_fd, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct peer *peer;

    if (fd < 0)
        return; /* it went away, or was seen before */
    peer = calloc(1, sizeof *peer);
    if (!peer)
        die("calloc");
    peer->fd = fd;
    watch(epoll_fd, EPOLL_CTL_ADD, fd, EPOLLIN, peer);
}

static int run_server(const char *path)
{
    struct sockaddr_un address;
    int listener = open_socket(path, &address);
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    sigset_t stop;
    int signals;

    (void)unlink(path); /* stale from an earlier run; gone is what we want */
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 1024))
        die(path);
    (void)sigemptyset(&stop);
    (void)sigaddset(&stop, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &stop, NULL);
    signals = signalfd(-1, &stop, SFD_CLOEXEC);
    watch(epoll_fd, EPOLL_CTL_ADD, listener, EPOLLIN, &listener);
    watch(epoll_fd, EPOLL_CTL_ADD, signals, EPOLLIN, &signals);
    (void)puts("ready");
    (void)fflush(stdout);

    for (;;) {
        struct epoll_event events[64];
        int n = epoll_wait(epoll_fd, events, 64, -1);

        if (n < 0 && errno != EINTR)
            die("epoll_wait");
        for (int i = 0; i < n; i++) {
            void *who = events[i].data.ptr;

            if (who == &signals)
                return 0;
            if (who == &listener)
                accept_peer(epoll_fd, listener);
            else if (!serve_peer(epoll_fd, who, events[i].events))
                close_peer(who);
        }
    }
}

/* ---------------------------------------------------------------------------------------- client
 */

struct bench {
    const char *path;
    const char *mode;
    size_t n_calls;
    size_t n_connections;
    uint32_t request_bytes; /* on the wire */
    uint32_t reply_bytes;
};

struct conn {
    int fd;
    int epoll_fd;
};

static struct conn connect_to(const char *path)
{
    struct sockaddr_un address;
    struct conn conn = {open_socket(path, &address), epoll_create1(EPOLL_CLOEXEC)};

    if (connect(conn.fd, (struct sockaddr *)&address, sizeof address) != 0)
        die(path);
    watch(conn.epoll_fd, EPOLL_CTL_ADD, conn.fd, EPOLLIN, NULL);
    return conn;
}

static void disconnect(struct conn *conn)
{
    (void)close(conn->fd);
    (void)close(conn->epoll_fd);
}

static void send_all(struct conn *conn, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(conn->fd, bytes, n, MSG_NOSIGNAL);

        if (sent < 0 && errno == EAGAIN) {
            struct pollfd writable = {conn->fd, POLLOUT, 0};

            (void)poll(&writable, 1, -1);
            continue;
        }
        if (sent < 0)
            die("send");
        bytes += sent;
        n -= (size_t)sent;
    }
}

/* Waits for something to read; the bytes are in `incoming`. */
static size_t receive(struct conn *conn, size_t n_max)
{
    for (;;) {
        struct epoll_event event;
        ssize_t n;

        if (epoll_wait(conn->epoll_fd, &event, 1, -1) < 0 && errno != EINTR)
            die("epoll_wait");
        n = recv(conn->fd, incoming, n_max < sizeof incoming ? n_max : sizeof incoming, 0);
        if (n > 0)
            return (size_t)n;
        if (n == 0 || errno != EAGAIN)
            die("the server closed the connection");
    }
}

static void receive_all(struct conn *conn, uint64_t n)
{
    while (n > 0)
        n -= receive(conn, n < sizeof incoming ? (size_t)n : sizeof incoming);
}

/* IN_FLIGHT equal requests in a row, so that several can go out in one write. */
static char *make_requests(const struct bench *bench, uint32_t n_replies)
{
    struct request request = {bench->request_bytes, PING, bench->reply_bytes, n_replies};
    char *requests = calloc(IN_FLIGHT, request.bytes);

    if (!requests)
        die("calloc");
    for (size_t i = 0; i < IN_FLIGHT; i++)
        memcpy(requests + i * request.bytes, &request, sizeof request);
    return requests;
}

static struct seen ask_seen(struct conn *conn)
{
    struct request request = {sizeof request, SEEN, sizeof(struct seen), 1};
    struct seen seen;

    send_all(conn, (const char *)&request, sizeof request);
    for (size_t n = 0; n < sizeof seen;) {
        size_t got = receive(conn, sizeof seen - n);

        memcpy((char *)&seen + n, incoming, got);
        n += got;
    }
    return seen;
}

/* `window` requests are kept in flight; times[i] is what the i-th took. */
static void run_calls(const struct bench *bench, struct conn *conn, const char *requests,
                      size_t window, size_t n_calls, uint64_t *times)
{
    size_t n_sent = 0, n_done = 0;
    uint64_t n_bytes = 0; /* of the reply that is arriving */

    while (n_done < n_calls) {
        size_t n_new = window - (n_sent - n_done);
        uint64_t now = measure_now_ns();

        n_new = n_new < n_calls - n_sent ? n_new : n_calls - n_sent;
        for (size_t i = 0; i < n_new; i++)
            times[n_sent + i] = now;
        n_sent += n_new;
        send_all(conn, requests, n_new * bench->request_bytes);

        n_bytes += receive(conn, sizeof incoming);
        now = measure_now_ns();
        for (; n_bytes >= bench->reply_bytes; n_bytes -= bench->reply_bytes, n_done++)
            times[n_done] = now - times[n_done];
    }
}

static void bench_unary(const struct bench *bench, size_t window)
{
    struct conn conn = connect_to(bench->path);
    char *requests = make_requests(bench, 1);
    size_t n_warm = bench->n_calls / 10 + 200;
    uint64_t *times = calloc(bench->n_calls + n_warm, sizeof *times);
    struct seen before, after;
    uint64_t cpu_us, took_ns;

    if (!times)
        die("calloc");
    run_calls(bench, &conn, requests, window, n_warm, times);
    before = ask_seen(&conn);
    cpu_us = measure_cpu_us();
    took_ns = measure_now_ns();
    run_calls(bench, &conn, requests, window, bench->n_calls, times);
    took_ns = measure_now_ns() - took_ns;
    cpu_us = measure_cpu_us() - cpu_us;
    after = ask_seen(&conn);
    measure_sort(times, bench->n_calls);
    (void)printf("{\"p50_us\": %.2f, \"p99_us\": %.2f, \"calls_per_s\": %.0f, "
                 "\"client_cpu_us_per_call\": %.3f, \"server_cpu_us_per_call\": %.3f}\n",
                 measure_percentile_us(times, bench->n_calls, 500),
                 measure_percentile_us(times, bench->n_calls, 990),
                 (double)bench->n_calls * 1e9 / (double)took_ns,
                 (double)cpu_us / (double)bench->n_calls,
                 (double)(after.cpu_us - before.cpu_us) / (double)bench->n_calls);
    free(times);
    free(requests);
    disconnect(&conn);
}

static void run_stream(const struct bench *bench, struct conn *conn, size_t n_messages)
{
    char *request = make_requests(bench, (uint32_t)n_messages);

    send_all(conn, request, bench->request_bytes);
    receive_all(conn, (uint64_t)bench->reply_bytes * n_messages);
    free(request);
}

static void bench_stream(const struct bench *bench)
{
    struct conn conn = connect_to(bench->path);
    struct seen before, after;
    uint64_t cpu_us, took_ns;

    run_stream(bench, &conn, bench->n_calls / 10 + 5);
    before = ask_seen(&conn);
    cpu_us = measure_cpu_us();
    took_ns = measure_now_ns();
    run_stream(bench, &conn, bench->n_calls);
    took_ns = measure_now_ns() - took_ns;
    cpu_us = measure_cpu_us() - cpu_us;
    after = ask_seen(&conn);
    (void)printf("{\"ms_per_message\": %.4f, \"client_cpu_us_per_message\": %.2f, "
                 "\"server_cpu_us_per_message\": %.2f}\n",
                 (double)took_ns / 1e6 / (double)bench->n_calls,
                 (double)cpu_us / (double)bench->n_calls,
                 (double)(after.cpu_us - before.cpu_us) / (double)bench->n_calls);
    disconnect(&conn);
}

static void bench_connect(const struct bench *bench)
{
    char *request = make_requests(bench, 1);
    size_t n_warm = bench->n_calls / 10 + 20;
    uint64_t *times = calloc(n_warm + bench->n_calls, sizeof *times);

    if (!times)
        die("calloc");
    for (size_t i = 0; i < n_warm + bench->n_calls; i++) {
        uint64_t started = measure_now_ns();
        struct conn conn = connect_to(bench->path);

        send_all(&conn, request, bench->request_bytes);
        receive_all(&conn, bench->reply_bytes);
        disconnect(&conn);
        times[i] = measure_now_ns() - started;
    }
    measure_sort(times + n_warm, bench->n_calls);
    (void)printf("{\"p50_us\": %.2f, \"p99_us\": %.2f}\n",
                 measure_percentile_us(times + n_warm, bench->n_calls, 500),
                 measure_percentile_us(times + n_warm, bench->n_calls, 990));
    free(times);
    free(request);
}

static void bench_idle(const struct bench *bench)
{
    struct conn *conns = calloc(bench->n_connections, sizeof *conns);
    struct seen seen = {0};

    if (!conns)
        die("calloc");
    for (size_t i = 0; i < bench->n_connections; i++) {
        conns[i] = connect_to(bench->path);
        seen = ask_seen(&conns[i]);
    }
    (void)printf("{\"client_rss_bytes\": %llu, \"server_rss_bytes\": %llu}\n",
                 (unsigned long long)measure_rss_bytes(), (unsigned long long)seen.rss_bytes);
    for (size_t i = 0; i < bench->n_connections; i++)
        disconnect(&conns[i]);
    free(conns);
}

static int usage(void)
{
    (void)fputs("usage: pingpong server SOCKET\n"
                "       pingpong bench SOCKET --mode seq|inflight|stream500k|connect|idle --calls N"
                " [--size-request BYTES] [--size-reply BYTES] [--connections N]\n",
                stderr);
    return 2;
}

static int run_bench(const char *path, int argc, char **argv)
{
    static const struct option options[] = {
        {"mode",         required_argument, NULL, 'm'},
        {"calls",        required_argument, NULL, 'n'},
        {"size-request", required_argument, NULL, 'q'},
        {"size-reply",   required_argument, NULL, 'r'},
        {"connections",  required_argument, NULL, 'c'},
        {NULL,           0,                 NULL, 0  },
    };
    struct bench bench = {path, "seq", 1000, 1, 339, 0};
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        unsigned long number = option == 'm' || option == '?' ? 0 : strtoul(optarg, NULL, 10);

        if (option == 'm')
            bench.mode = optarg;
        else if (option == 'n')
            bench.n_calls = number;
        else if (option == 'q')
            bench.request_bytes = (uint32_t)number;
        else if (option == 'r')
            bench.reply_bytes = (uint32_t)number;
        else if (option == 'c')
            bench.n_connections = number;
        else
            return usage();
    }
    if (bench.n_calls == 0 || bench.n_connections == 0)
        return usage();
    if (bench.reply_bytes == 0)
        bench.reply_bytes = strcmp(bench.mode, "stream500k") == 0 ? 500000 : 1603;
    bench.request_bytes += OVERHEAD_BYTES;
    bench.reply_bytes += OVERHEAD_BYTES;

    if (strcmp(bench.mode, "seq") == 0)
        bench_unary(&bench, 1);
    else if (strcmp(bench.mode, "inflight") == 0)
        bench_unary(&bench, IN_FLIGHT);
    else if (strcmp(bench.mode, "stream500k") == 0)
        bench_stream(&bench);
    else if (strcmp(bench.mode, "connect") == 0)
        bench_connect(&bench);
    else if (strcmp(bench.mode, "idle") == 0)
        bench_idle(&bench);
    else
        return usage();
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "server") == 0)
        return run_server(argv[2]);
    if (argc > 3 && strcmp(argv[1], "bench") == 0)
        return run_bench(argv[2], argc - 2, argv + 2);
    return usage();
}
