/* A server's session behind real sockets, and clients on other stacks: curl, nghttp2's load
 * generator. A client that is not installed is passed over. */
#include "support/dvtest.h"
#include "support/spawn.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/num.h"
#include "http2/http2_server.h"

#define READ_BYTES 65536u
#define PIECE_BYTES 10000u
#define POLLED_MAX 64u
#define OUTPUT_BYTES_MAX (16u << 20)

/* ---- a server ---- */

struct house {
    int fd;
    unsigned port;
    struct dv_list visits;
    size_t n_answers;
};

struct visit {
    struct dv_link link;
    struct house *house;
    struct dv_h2_server_handler handler;
    struct dv_h2_server *server;
    int fd;
    dv_str unsent; /* what the kernel has not taken yet */
};

/* What a stream is about. */
struct errand {
    struct dv_buf body;
    bool is_echo;
    size_t left; /* bytes of a long answer */
};

static const char zeros[PIECE_BYTES];

static void on_request(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream,
                       const struct dv_h2_http_request *request)
{
    struct errand *errand = DV_ALLOC(struct errand);

    (void)handler;
    dv_buf_init(&errand->body, OUTPUT_BYTES_MAX);
    errand->is_echo = dv_str_eq(request->target, DV_STR("/echo"));
    if (dv_str_starts_with(request->target, DV_STR("/long?")))
        assert_true(
            dv_str_to_size(dv_str_slice(request->target, 6, request->target.n), &errand->left));
    dv_h2_stream_set_ctx(stream, errand);
}

static void on_body(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream, dv_str part)
{
    struct errand *errand = dv_h2_stream_ctx(stream);

    (void)handler;
    dv_buf_add(&errand->body, part);
}

static void on_complete(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream)
{
    static const struct dv_h2_field plain = {DV_STR_INIT("Content-Type"),
                                             DV_STR_INIT("text/plain")};
    struct errand *errand = dv_h2_stream_ctx(stream);
    struct dv_h2_answer answer = {.status = 200, .fields = &plain, .n_fields = 1};

    (void)handler;
    answer.has_more = errand->left > 0;
    if (!answer.has_more)
        answer.body.bytes = errand->is_echo ? dv_buf_str(&errand->body) : DV_STR("hello\n");
    dv_h2_stream_answer(stream, &answer);
}

static void on_drained(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream)
{
    struct errand *errand = dv_h2_stream_ctx(stream);
    struct dv_h2_bytes piece = {
        {zeros, dv_size_min(errand->left, PIECE_BYTES)},
        NULL, NULL
    };
    struct dv_err err;

    (void)handler;
    errand->left -= piece.bytes.n;
    if (piece.bytes.n == 0)
        dv_h2_stream_finish(stream);
    else
        assert_ok(dv_h2_stream_send(stream, &piece, &err), &err);
}

static void on_ended(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream,
                     const struct dv_err *err)
{
    struct visit *visit = DV_CONTAINER(handler, struct visit, handler);
    struct errand *errand = dv_h2_stream_ctx(stream);

    visit->house->n_answers += err == NULL;
    dv_buf_fini(&errand->body);
    free(errand);
}

static void house_open(struct house *house)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t n = sizeof(address);

    *house = (struct house){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    dv_list_init(&house->visits);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(house->fd, (struct sockaddr *)&address, n), 0);
    assert_int_equal(listen(house->fd, 128), 0);
    assert_int_equal(getsockname(house->fd, (struct sockaddr *)&address, &n), 0);
    house->port = ntohs(address.sin_port);
}

static void admit(struct house *house)
{
    static const struct dv_h2_server_options options;
    struct visit *visit = DV_ALLOC(struct visit);

    visit->house = house;
    visit->fd = accept4(house->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert_true(visit->fd >= 0);
    visit->handler = (struct dv_h2_server_handler){.request = on_request,
                                                   .body = on_body,
                                                   .complete = on_complete,
                                                   .drained = on_drained,
                                                   .ended = on_ended};
    visit->server = dv_h2_server_new(&options, &visit->handler);
    dv_list_push(&house->visits, &visit->link);
}

static void leave(struct visit *visit)
{
    struct dv_err gone;

    (void)dv_fail(&gone, DV_UNAVAILABLE, "closed");
    dv_h2_server_lose(visit->server, &gone);
    dv_h2_server_free(visit->server);
    (void)close(visit->fd);
    dv_link_remove(&visit->link);
    free(visit);
}

/* Writes until the kernel takes no more. False: the connection is gone. */
static bool write_out(struct visit *visit)
{
    while (visit->unsent.n > 0 || dv_h2_server_pull(visit->server, &visit->unsent)) {
        ssize_t n = send(visit->fd, visit->unsent.p, visit->unsent.n, MSG_NOSIGNAL);

        if (n < 0)
            return errno == EAGAIN;
        visit->unsent = dv_str_slice(visit->unsent, (size_t)n, visit->unsent.n);
    }
    return !dv_h2_server_is_over(visit->server);
}

static bool read_in(struct visit *visit)
{
    static char bytes[READ_BYTES];
    struct dv_err err;
    ssize_t n = read(visit->fd, bytes, sizeof(bytes));

    if (n < 0)
        return errno == EAGAIN;
    return n > 0 && dv_h2_server_receive(visit->server, (dv_str){bytes, (size_t)n}, 0, &err);
}

static void serve(struct house *house)
{
    struct pollfd polled[POLLED_MAX] = {
        {.fd = house->fd, .events = POLLIN}
    };
    struct visit *visits[POLLED_MAX] = {0};
    struct dv_link *link;
    nfds_t n = 1;

    DV_LIST_EACH (&house->visits, link) {
        struct visit *visit = DV_CONTAINER(link, struct visit, link);

        assert_true(n < POLLED_MAX);
        /* What was pulled is borrowed until the session is next used: it goes out first. */
        polled[n] =
            (struct pollfd){.fd = visit->fd, .events = visit->unsent.n > 0 ? POLLOUT : POLLIN};
        visits[n++] = visit;
    }
    if (poll(polled, n, 20) < 0)
        return;
    for (nfds_t i = 1; i < n; i++) {
        bool is_fine = true;

        if (visits[i]->unsent.n == 0 && polled[i].revents)
            is_fine = read_in(visits[i]);
        if (!write_out(visits[i]) || !is_fine)
            leave(visits[i]);
    }
    if (polled[0].revents)
        admit(house);
}

static void house_close(struct house *house)
{
    while (!dv_list_is_empty(&house->visits))
        leave(DV_CONTAINER(dv_list_first(&house->visits), struct visit, link));
    (void)close(house->fd);
}

/* ---- clients ---- */

/* Runs a program against the house, and gathers its output. Skips the test when there is none. */
static void run(struct house *house, const char *command, struct dv_buf *output)
{
    char text[1024];
    const char *argv[] = {"sh", "-c", text, NULL};
    FILE *out = tmpfile();
    char bytes[4096];
    int status;
    size_t n;
    pid_t pid;

    assert_non_null(out);
    (void)snprintf(text, sizeof(text), "U=http://127.0.0.1:%u; %s", house->port, command);
    pid = spawn_program(argv, (int[3]){-1, fileno(out), fileno(out)});
    assert_true(pid > 0);
    while (waitpid(pid, &status, WNOHANG) == 0)
        serve(house);
    dv_buf_init(output, OUTPUT_BYTES_MAX);
    rewind(out);
    while ((n = fread(bytes, 1, sizeof(bytes), out)) > 0)
        dv_buf_add(output, (dv_str){bytes, n});
    (void)fclose(out);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        skip();
    if (status != 0)
        fail_msg("%s: status %d: %s", command, status, dv_buf_c(output));
}

/* One request a connection: curl 7.88 breaks its own second one without TLS. */
static void curl_gets_and_posts(void **state)
{
    static const struct {
        const char *command;
        const char *output;
    } rows[] = {
        {"curl -sS --http2-prior-knowledge $U/hello",                                         "hello\n"   },
        {"curl -sS --http2-prior-knowledge -d some=text $U/echo",                             "some=text" },
        {"curl -sS --http2-prior-knowledge -I $U/hello | grep -c 'content-length: 6'",        "1\n"       },
        {"curl -sS --http2-prior-knowledge -w '%{http_version} %{http_code}' $U/hello",
         "hello\n2 200"                                                                                   },
        {"curl -sS --http2-prior-knowledge $U/long?12345678 | wc -c",                         "12345678\n"},
        {"head -c 5000000 /dev/zero | curl -sS --http2-prior-knowledge -T - $U/echo | wc -c",
         "5000000\n"                                                                                      },
        {"head -c 3000000 /dev/zero | curl -sS --http2-prior-knowledge -H 'Expect: 100-continue' "
         "--data-binary @- $U/echo | wc -c",                                         "3000000\n" },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_buf output;
        struct house house;

        house_open(&house);
        run(&house, rows[i].command, &output);
        assert_string_equal(dv_buf_c(&output), rows[i].output);
        assert_true(house.n_answers >= 1);
        dv_buf_fini(&output);
        house_close(&house);
    }
}

static void the_load_generator_gets_all_its_answers(void **state)
{
    static const char *const commands[] = {
        "h2load -n 3000 -c 4 -m 50 $U/hello", "h2load -n 40 -c 2 -m 20 $U/long?300000",
        "h2load -n 500 -c 2 -m 100 -d /etc/passwd $U/echo",
        "h2load -n 10 -c 2 -m 100 -w 10 -W 10 $U/long?20000", /* windows of a kilobyte */
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(commands); i++) {
        struct dv_buf output;
        struct house house;

        house_open(&house);
        run(&house, commands[i], &output);
        assert_non_null(strstr(dv_buf_c(&output), " 0 failed, 0 errored, 0 timeout"));
        dv_buf_fini(&output);
        house_close(&house);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(curl_gets_and_posts),
        cmocka_unit_test(the_load_generator_gets_all_its_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
