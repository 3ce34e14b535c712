/* bench_client.c - fetches a second, plain and under TLS, on kept connections and on new ones, and
 * the speed of a long stream. Beside them stands what the same costs without us: a bare socket that
 * sends as many bytes and looks at nothing, and GnuTLS shaking hands with itself in memory.
 *
 * The server is a process of its own, on another core where there is one. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/gnutls.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "loop/loop.h"
#include "rest/rest.h"

#define PARALLEL_MAX 64u
#define SECONDS 1u
#define STREAM_BYTES (256u << 20)
#define BLOCK_BYTES 65536u
#define HANDSHAKES 300

#define REQUEST                                                                                    \
    "GET /now HTTP/1.1\r\nHost: 127.0.0.1:64430\r\nUser-Agent: davit/0.1.0\r\n"                    \
    "Accept: application/json\r\n\r\n"

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_client: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now_ns(void)
{
    return dv_clock_now_ns(dv_clock_real());
}

static uint64_t cpu_ns(pid_t pid)
{
    struct timespec ts;
    clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;

    if ((pid != 0 && clock_getcpuclockid(pid, &clock) != 0) || clock_gettime(clock, &ts) != 0)
        die("a process's clock");
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- the server ---- */

struct flow {
    struct dv_rest_stream stream;
    size_t n_left;
};

static void on_room(struct dv_rest_stream *stream)
{
    static const char block[BLOCK_BYTES];
    struct flow *flow = DV_CONTAINER(stream, struct flow, stream);
    struct dv_err err;

    if (flow->n_left == 0)
        dv_rest_stream_finish(stream);
    else if (dv_rest_stream_send(stream, (dv_str){block, sizeof(block)}, &err))
        flow->n_left -= sizeof(block);
}

static void on_ended(struct dv_rest_stream *stream, const struct dv_err *err)
{
    (void)err;
    free(DV_CONTAINER(stream, struct flow, stream));
}

static void on_request(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request)
{
    (void)ctx;
    if (dv_str_eq(request->path, DV_STR("/flow"))) {
        struct flow *flow = DV_ALLOC(struct flow);

        flow->n_left = STREAM_BYTES;
        flow->stream.room = on_room;
        flow->stream.ended = on_ended;
        dv_rest_stream_start(&flow->stream, call, 200);
        on_room(&flow->stream);
        return;
    }
    dv_rest_call_add_field(call, DV_STR("Content-Type"), DV_STR("application/json"));
    dv_rest_call_reply(call, 200, DV_STR("{}"));
}

static pid_t serve(const struct dv_rest_tls *tls, uint16_t *port)
{
    struct dv_rest_server_options options = {.handle = on_request, .tls = tls};
    struct dv_loop *loop;
    struct dv_rest_server *server;
    struct dv_err err;
    int fds[2];
    pid_t pid;

    if (pipe(fds) != 0)
        die("pipe");
    pid = fork();
    if (pid < 0)
        die("fork");
    if (pid > 0) {
        if (read(fds[0], port, sizeof(*port)) != sizeof(*port))
            die("the server's port");
        return pid;
    }
    loop = dv_loop_new(dv_clock_real(), &err);
    server = loop ? dv_rest_server_open(loop, DV_STR(":0"), &options, &err) : NULL;
    if (!server)
        die(err.msg);
    *port = dv_rest_server_port(server);
    if (write(fds[1], port, sizeof(*port)) != sizeof(*port))
        die("the server's port");
    dv_loop_run(loop);
    _exit(0);
}

/* ---- the bare client ---- */

static int connect_to(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        die("connect");
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

static void ask_bare(int fd)
{
    char bytes[4096];

    if (send(fd, REQUEST, sizeof(REQUEST) - 1, MSG_NOSIGNAL) < 0 ||
        recv(fd, bytes, sizeof(bytes), 0) <= 0)
        die("send");
}

static void report(const char *what, size_t n, uint64_t took_ns, uint64_t own_ns,
                   uint64_t server_ns)
{
    (void)printf("%-44s %8.0f/s   client %6.1f us   server %6.1f us of CPU each\n", what,
                 (double)n * 1e9 / (double)took_ns, (double)own_ns / 1e3 / (double)n,
                 (double)server_ns / 1e3 / (double)n);
}

static void run_bare(uint16_t port, pid_t server, bool is_kept, const char *what)
{
    int fd = connect_to(port);
    uint64_t start_ns = now_ns();
    uint64_t own_ns = cpu_ns(0);
    uint64_t server_ns = cpu_ns(server);
    size_t n = 0;

    for (; now_ns() - start_ns < SECONDS * 1000000000ull; n++) {
        if (!is_kept) {
            (void)close(fd);
            fd = connect_to(port);
        }
        ask_bare(fd);
    }
    report(what, n, now_ns() - start_ns, cpu_ns(0) - own_ns, cpu_ns(server) - server_ns);
    (void)close(fd);
}

/* ---- ours ---- */

struct load;

struct one {
    struct load *load;
    struct dv_rest_fetch fetch;
};

struct load {
    struct dv_loop *loop;
    struct dv_rest_client *client;
    struct one ones[PARALLEL_MAX];
    size_t n_running;
    size_t n_done;
    size_t n_bytes;
    uint64_t end_ns;
};

static void on_done(struct dv_rest_fetch *fetch, const struct dv_err *err)
{
    struct one *one = DV_CONTAINER(fetch, struct one, fetch);
    struct load *load = one->load;

    if (err || fetch->status != 200)
        die(err ? err->msg : "status");
    load->n_done++;
    if (now_ns() < load->end_ns) {
        fetch->deadline_ms = dv_loop_now_ms(load->loop) + 60000;
        dv_rest_fetch_start(load->client, fetch);
    } else if (--load->n_running == 0) {
        dv_loop_stop(load->loop);
    }
}

static void on_body(struct dv_rest_fetch *fetch, dv_str part)
{
    DV_CONTAINER(fetch, struct one, fetch)->load->n_bytes += part.n;
}

static void open_load(struct load *load, uint16_t port, dv_str ca)
{
    struct dv_rest_client_options options = {.ca = ca};
    struct dv_arena *arena = dv_arena_new();
    struct dv_err err;

    memset(load, 0, sizeof(*load));
    options.base_url = dv_str_printf(arena, "%s://127.0.0.1:%u", ca.n > 0 ? "https" : "http", port);
    load->loop = dv_loop_new(dv_clock_real(), &err);
    load->client = load->loop ? dv_rest_client_open(load->loop, &options, &err) : NULL;
    if (!load->client)
        die(err.msg);
    dv_arena_free(arena);
}

static void on_closed(void *ctx)
{
    dv_loop_stop(ctx);
}

static void close_load(struct load *load)
{
    dv_rest_client_close(load->client, on_closed, load->loop);
    dv_loop_run(load->loop);
    dv_loop_free(load->loop);
}

static void start(struct load *load, size_t n_parallel, const struct dv_rest_fetch *like)
{
    load->n_running = n_parallel;
    for (size_t i = 0; i < n_parallel; i++) {
        load->ones[i] = (struct one){load, *like};
        load->ones[i].fetch.deadline_ms = dv_loop_now_ms(load->loop) + 60000;
        load->ones[i].fetch.done = on_done;
        dv_rest_fetch_start(load->client, &load->ones[i].fetch);
    }
    dv_loop_run(load->loop);
}

static void run_ours(uint16_t port, pid_t server, dv_str ca, size_t n_parallel, bool is_kept,
                     const char *what)
{
    static const struct dv_rest_field fields[] = {
        {DV_STR_INIT("Accept"),     DV_STR_INIT("application/json")},
        {DV_STR_INIT("Connection"), DV_STR_INIT("close")           },
    };
    const struct dv_rest_fetch like = {.method = DV_STR("GET"),
                                       .target = DV_STR("/now"),
                                       .fields = fields,
                                       .n_fields = is_kept ? 1 : 2};
    static struct load load;
    uint64_t start_ns;
    uint64_t own_ns;
    uint64_t server_ns;

    open_load(&load, port, ca);
    start_ns = now_ns();
    own_ns = cpu_ns(0);
    server_ns = cpu_ns(server);
    load.end_ns = start_ns + SECONDS * 1000000000ull;
    start(&load, n_parallel, &like);
    report(what, load.n_done, now_ns() - start_ns, cpu_ns(0) - own_ns, cpu_ns(server) - server_ns);
    close_load(&load);
}

/* ---- streams ---- */

static void report_flow(const char *what, size_t n_bytes, uint64_t took_ns)
{
    (void)printf("%-44s %8.0f MB/s\n", what, (double)n_bytes * 1e3 / (double)took_ns);
}

static void flow_bare(uint16_t port)
{
    static char bytes[BLOCK_BYTES * 4];
    static const char request[] = "GET /flow HTTP/1.1\r\nHost: h\r\n\r\n";
    int fd = connect_to(port);
    uint64_t start_ns = now_ns();
    size_t n_got = 0;

    if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) < 0)
        die("send");
    while (n_got < STREAM_BYTES) {
        ssize_t n = recv(fd, bytes, sizeof(bytes), 0);

        if (n <= 0)
            die("recv");
        n_got += (size_t)n;
    }
    report_flow("stream: bare socket, plain", n_got, now_ns() - start_ns);
    (void)close(fd);
}

static void flow_ours(uint16_t port, dv_str ca, const char *what)
{
    const struct dv_rest_fetch like = {
        .method = DV_STR("GET"), .target = DV_STR("/flow"), .on_body = on_body};
    static struct load load;
    uint64_t start_ns;

    open_load(&load, port, ca);
    start_ns = now_ns();
    start(&load, 1, &like);
    report_flow(what, load.n_bytes, now_ns() - start_ns);
    close_load(&load);
}

/* ---- GnuTLS alone ---- */

struct pipe_end {
    char bytes[65536];
    size_t n;
    struct pipe_end *other;
};

static ssize_t push(gnutls_transport_ptr_t ctx, const void *bytes, size_t n)
{
    struct pipe_end *to = ((struct pipe_end *)ctx)->other;

    memcpy(to->bytes + to->n, bytes, n);
    to->n += n;
    return (ssize_t)n;
}

static ssize_t pull(gnutls_transport_ptr_t ctx, void *to, size_t n)
{
    struct pipe_end *end = ctx;

    if (end->n == 0) {
        errno = EAGAIN;
        return -1;
    }
    n = n < end->n ? n : end->n;
    memcpy(to, end->bytes, n);
    memmove(end->bytes, end->bytes + n, end->n - n);
    end->n -= n;
    return (ssize_t)n;
}

static gnutls_session_t new_session(unsigned flags, gnutls_certificate_credentials_t creds,
                                    struct pipe_end *end)
{
    gnutls_session_t session;

    if (gnutls_init(&session, flags | GNUTLS_NONBLOCK) != 0 ||
        gnutls_set_default_priority(session) != 0 ||
        gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, creds) != 0)
        die("gnutls");
    gnutls_transport_set_ptr(session, end);
    gnutls_transport_set_push_function(session, push);
    gnutls_transport_set_pull_function(session, pull);
    return session;
}

static void shake(gnutls_certificate_credentials_t server, gnutls_certificate_credentials_t client)
{
    static struct pipe_end ends[2];
    gnutls_session_t sessions[2];
    unsigned flaws = 0;
    int results[2] = {GNUTLS_E_AGAIN, GNUTLS_E_AGAIN};

    memset(ends, 0, sizeof(ends));
    ends[0].other = &ends[1];
    ends[1].other = &ends[0];
    sessions[0] = new_session(GNUTLS_SERVER, server, &ends[0]);
    sessions[1] = new_session(GNUTLS_CLIENT, client, &ends[1]);
    while (results[0] != 0 || results[1] != 0)
        for (int i = 1; i >= 0; i--)
            if (results[i] != 0 && (results[i] = gnutls_handshake(sessions[i])) != 0 &&
                gnutls_error_is_fatal(results[i]))
                die(gnutls_strerror(results[i]));
    if (gnutls_certificate_verify_peers2(sessions[1], &flaws) != 0 || flaws != 0)
        die("verify");
    gnutls_deinit(sessions[0]);
    gnutls_deinit(sessions[1]);
}

static void run_handshakes(const struct dv_rest_tls *tls, dv_str ca)
{
    gnutls_certificate_credentials_t creds[2];
    gnutls_datum_t cert = {(unsigned char *)(uintptr_t)tls->cert.p, (unsigned)tls->cert.n};
    gnutls_datum_t key = {(unsigned char *)(uintptr_t)tls->key.p, (unsigned)tls->key.n};
    gnutls_datum_t trust = {(unsigned char *)(uintptr_t)ca.p, (unsigned)ca.n};
    uint64_t start_ns;

    if (gnutls_certificate_allocate_credentials(&creds[0]) != 0 ||
        gnutls_certificate_allocate_credentials(&creds[1]) != 0 ||
        gnutls_certificate_set_x509_key_mem(creds[0], &cert, &key, GNUTLS_X509_FMT_PEM) != 0 ||
        gnutls_certificate_set_x509_trust_mem(creds[1], &trust, GNUTLS_X509_FMT_PEM) != 1)
        die("credentials");
    start_ns = now_ns();
    for (int i = 0; i < HANDSHAKES; i++)
        shake(creds[0], creds[1]);
    (void)printf("%-44s %8.0f/s   both ends %.1f us of CPU each\n", "handshake: GnuTLS in memory",
                 HANDSHAKES * 1e9 / (double)(now_ns() - start_ns),
                 (double)(now_ns() - start_ns) / 1e3 / HANDSHAKES);
    gnutls_certificate_free_credentials(creds[0]);
    gnutls_certificate_free_credentials(creds[1]);
}

static void make_certs(struct dv_arena *arena, struct dv_rest_cert *ca, struct dv_rest_tls *tls)
{
    static const dv_str host = DV_STR_INIT("127.0.0.1");
    struct dv_rest_cert_request request = {.name = DV_STR("bench"),
                                           .hosts = &host,
                                           .n_hosts = 1,
                                           .now_ns = dv_clock_wall_ns(dv_clock_real()),
                                           .valid_days = 1};
    struct dv_rest_cert cert;
    struct dv_err err;

    if (!dv_rest_cert_make_ca(&request, arena, ca, &err) ||
        !dv_rest_cert_make_server(ca, &request, arena, &cert, &err))
        die(err.msg);
    *tls = (struct dv_rest_tls){cert.cert, cert.key, DV_STR("")};
}

int main(void)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_rest_cert ca;
    struct dv_rest_tls tls;
    uint16_t ports[2];
    pid_t pids[2];
    dv_str none = DV_STR("");

    make_certs(arena, &ca, &tls);
    pids[0] = serve(NULL, &ports[0]);
    pids[1] = serve(&tls, &ports[1]);
    run_bare(ports[0], pids[0], true, "kept: bare socket, plain, 1 at a time");
    run_ours(ports[0], pids[0], none, 1, true, "kept: fetch, plain, 1 at a time");
    run_ours(ports[1], pids[1], ca.cert, 1, true, "kept: fetch, TLS, 1 at a time");
    run_ours(ports[0], pids[0], none, PARALLEL_MAX, true, "kept: fetch, plain, 64 at a time");
    run_ours(ports[1], pids[1], ca.cert, PARALLEL_MAX, true, "kept: fetch, TLS, 64 at a time");
    run_bare(ports[0], pids[0], false, "new: bare socket, plain, 1 at a time");
    run_ours(ports[0], pids[0], none, 1, false, "new: fetch, plain, 1 at a time");
    run_handshakes(&tls, ca.cert);
    run_ours(ports[1], pids[1], ca.cert, 1, false, "new: fetch, TLS, 1 at a time");
    flow_bare(ports[0]);
    flow_ours(ports[0], none, "stream: fetch, plain");
    flow_ours(ports[1], ca.cert, "stream: fetch, TLS");
    for (int i = 0; i < 2; i++) {
        (void)kill(pids[i], SIGKILL);
        (void)waitpid(pids[i], NULL, 0);
    }
    dv_arena_free(arena);
    return 0;
}
