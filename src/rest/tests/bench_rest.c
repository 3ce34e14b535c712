/* bench_rest.c - requests a second on kept connections, beside a bare socket loop that reads as
 * many bytes and writes the same answer without looking at anything.
 *
 * Servers are processes of their own; the client is this one, on another core where there is one.
 * Each connection has one request on its way at a time. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "loop/loop.h"
#include "rest/rest.h"

#define CONNECTIONS_MAX 64u
#define SECONDS 1u
#define ROUNDS 3

#define FIELDS                                                                                     \
    "Host: 127.0.0.1:6443\r\nUser-Agent: bench/1.0 (linux/amd64)\r\n"                              \
    "Accept: application/json\r\nAuthorization: Bearer 0123456789abcdef0123456789abcdef\r\n\r\n"

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_rest: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int listen_anywhere(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t n = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(fd, 1024) != 0 || getsockname(fd, (struct sockaddr *)&address, &n) != 0)
        die("listen");
    *port = ntohs(address.sin_port);
    return fd;
}

/* ---- our server ---- */

struct ours {
    struct dv_loop *loop;
    struct dv_task task;
    struct dv_rest_call *waiting[CONNECTIONS_MAX];
    size_t n_waiting;
};

static void answer(struct dv_rest_call *call)
{
    dv_rest_call_add_field(call, DV_STR("Content-Type"), DV_STR("text/plain; charset=utf-8"));
    dv_rest_call_reply(call, 200, DV_STR("ok"));
}

static void answer_waiting(struct dv_task *task)
{
    struct ours *ours = DV_CONTAINER(task, struct ours, task);

    while (ours->n_waiting > 0)
        answer(ours->waiting[--ours->n_waiting]);
}

static void on_request(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request)
{
    struct ours *ours = ctx;

    if (dv_str_eq(request->path, DV_STR("/now"))) {
        answer(call);
        return;
    }
    ours->waiting[ours->n_waiting++] = call;
    dv_task_post(&ours->task, ours->loop, answer_waiting);
}

static void run_ours(int fd)
{
    struct ours ours = {0};
    struct dv_rest_server_options options = {.handle = on_request, .ctx = &ours};
    struct dv_err err;

    ours.loop = dv_loop_new(dv_clock_real(), &err);
    if (!ours.loop || !dv_rest_server_open_fd(ours.loop, fd, &options, &err))
        die(err.msg);
    dv_loop_run(ours.loop);
}

/* ---- the bare socket loop ---- */

static void serve_bare(int epoll_fd, int listen_fd, int fd, dv_str reply)
{
    char bytes[16384];

    if (fd == listen_fd) {
        struct epoll_event event = {.events = EPOLLIN};
        int one = 1;

        event.data.fd = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        (void)setsockopt(event.data.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, event.data.fd, &event) != 0)
            die("epoll_ctl");
    } else if (recv(fd, bytes, sizeof(bytes), 0) <= 0) {
        (void)close(fd);
    } else if (send(fd, reply.p, reply.n, MSG_NOSIGNAL) < 0) {
        die("send");
    }
}

static void run_bare(int listen_fd, dv_str reply)
{
    struct epoll_event events[64] = {
        {.events = EPOLLIN, .data.fd = listen_fd}
    };
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listen_fd, &events[0]) != 0)
        die("epoll_ctl");
    for (;;) {
        int n = epoll_wait(epoll_fd, events, 64, -1);

        for (int i = 0; i < n; i++)
            serve_bare(epoll_fd, listen_fd, events[i].data.fd, reply);
    }
}

/* ---- the client ---- */

struct load {
    uint16_t port;
    pid_t pid;
    const char *request;
    size_t n_conns;
    size_t answer_bytes;
    size_t n_answers;
    uint64_t *times_ns;
    size_t times_max;
};

struct conn {
    int fd;
    size_t n_got;
    uint64_t sent_ns;
};

static uint64_t now_ns(void)
{
    return dv_clock_now_ns(dv_clock_real());
}

static uint64_t cpu_ns(pid_t pid)
{
    struct timespec ts;
    clockid_t clock;

    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &ts) != 0)
        die("the server's clock");
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

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

static void ask(struct conn *conn, const char *request)
{
    conn->n_got = 0;
    conn->sent_ns = now_ns();
    if (send(conn->fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request))
        die("send");
}

static void take(struct load *load, struct conn *conn)
{
    char bytes[4096];
    ssize_t n = recv(conn->fd, bytes, sizeof(bytes), 0);

    if (n <= 0)
        die("recv");
    conn->n_got += (size_t)n;
    if (conn->n_got < load->answer_bytes)
        return;
    if (load->n_answers < load->times_max)
        load->times_ns[load->n_answers] = now_ns() - conn->sent_ns;
    load->n_answers++;
    ask(conn, load->request);
}

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;

    return (*x > *y) - (*x < *y);
}

static void report(struct load *load, const char *what, uint64_t took_ns, uint64_t server_ns)
{
    size_t n = load->n_answers < load->times_max ? load->n_answers : load->times_max;
    size_t middle = n / 2;
    size_t last = n * 99 / 100;

    qsort(load->times_ns, n, sizeof(load->times_ns[0]), compare);
    (void)printf("%-26s %3zu connections %8.0f/s   p50 %6.1f us   p99 %7.1f us   server %5.2f us "
                 "of CPU each\n",
                 what, load->n_conns, (double)load->n_answers * 1e9 / (double)took_ns,
                 (double)load->times_ns[middle] / 1e3, (double)load->times_ns[last] / 1e3,
                 (double)server_ns / 1e3 / (double)load->n_answers);
}

static void run_load(struct load *load, const char *what)
{
    struct conn conns[CONNECTIONS_MAX];
    struct epoll_event events[CONNECTIONS_MAX];
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    uint64_t start_ns = now_ns();
    uint64_t server_ns = cpu_ns(load->pid);
    uint64_t took_ns = 0;

    load->n_answers = 0;
    for (size_t i = 0; i < load->n_conns; i++) {
        events[0] = (struct epoll_event){.events = EPOLLIN, .data.ptr = &conns[i]};
        conns[i] = (struct conn){.fd = connect_to(load->port)};
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, conns[i].fd, &events[0]) != 0)
            die("epoll_ctl");
        ask(&conns[i], load->request);
    }
    while (took_ns < SECONDS * 1000000000ull) {
        int n = epoll_wait(epoll_fd, events, (int)load->n_conns, -1);

        for (int i = 0; i < n; i++)
            take(load, events[i].data.ptr);
        took_ns = now_ns() - start_ns;
    }
    report(load, what, took_ns, cpu_ns(load->pid) - server_ns);
    for (size_t i = 0; i < load->n_conns; i++)
        (void)close(conns[i].fd);
    (void)close(epoll_fd);
}

static pid_t start(uint16_t *port, const char *reply, size_t n)
{
    int fd = listen_anywhere(port);
    pid_t pid = fork();

    if (pid < 0)
        die("fork");
    if (pid == 0) {
        if (reply)
            run_bare(fd, (dv_str){reply, n});
        else
            run_ours(fd);
        _exit(0);
    }
    (void)close(fd);
    return pid;
}

int main(void)
{
    static const struct {
        const char *name;
        const char *request;
        bool is_bare;
    } kinds[] = {
        {"bare socket loop",    "GET /now HTTP/1.1\r\n" FIELDS,   true },
        {"answered at once",    "GET /now HTTP/1.1\r\n" FIELDS,   false},
        {"answered in a while", "GET /later HTTP/1.1\r\n" FIELDS, false},
    };
    static const size_t n_conns[] = {1, CONNECTIONS_MAX};
    struct load load = {.times_max = 4000000};
    uint16_t ports[2];
    pid_t ours = start(&ports[0], NULL, 0);
    char reply[1000];
    struct conn first;
    ssize_t n;
    pid_t bare;

    first.fd = connect_to(ports[0]);
    ask(&first, kinds[0].request);
    n = recv(first.fd, reply, sizeof(reply), 0);
    if (n <= 0)
        die("recv");
    (void)close(first.fd);
    bare = start(&ports[1], reply, (size_t)n);
    load.answer_bytes = (size_t)n;
    load.times_ns = calloc(load.times_max, sizeof(load.times_ns[0]));
    (void)printf("requests of %zu bytes, answers of %zd\n", strlen(kinds[0].request), n);
    for (size_t i = 0; i < DV_COUNT(n_conns); i++) {
        for (int round = 0; round < ROUNDS; round++) {
            for (size_t k = 0; k < DV_COUNT(kinds); k++) {
                load.n_conns = n_conns[i];
                load.port = ports[kinds[k].is_bare];
                load.pid = kinds[k].is_bare ? bare : ours;
                load.request = kinds[k].request;
                run_load(&load, kinds[k].name);
            }
        }
    }
    free(load.times_ns);
    (void)kill(ours, SIGKILL);
    (void)kill(bare, SIGKILL);
    (void)waitpid(ours, NULL, 0);
    (void)waitpid(bare, NULL, 0);
    return 0;
}
