#include "support/dvtest.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "loop/loop.h"

struct side {
    struct dv_stream_handler handler;
    struct dv_stream *stream;
    struct dv_buf got;
    int n_ends;
    int n_drained;
    enum dv_code end_code; /* DV_OK: the peer closed */
    bool echoes;
    bool closes_in_read;
};

struct fixture {
    struct dv_loop *loop;
    struct dv_listener *listener;
    struct dv_listener_handler listener_handler;
    char dir[64];
    char path[80];
    struct side client;
    struct side server;
    int n_closed;
};

static void count_closed(void *ctx)
{
    (*(int *)ctx)++;
}

static void on_read(struct dv_stream_handler *handler, dv_str bytes)
{
    struct side *side = DV_CONTAINER(handler, struct side, handler);

    dv_buf_add(&side->got, bytes);
    if (side->echoes)
        dv_stream_write(side->stream, bytes);
    if (side->closes_in_read) {
        dv_stream_close(side->stream, NULL, NULL);
        side->stream = NULL;
    }
}

static void on_end(struct dv_stream_handler *handler, const struct dv_err *err)
{
    struct side *side = DV_CONTAINER(handler, struct side, handler);

    side->n_ends++;
    side->end_code = err ? err->code : DV_OK;
}

static void on_drained(struct dv_stream_handler *handler)
{
    DV_CONTAINER(handler, struct side, handler)->n_drained++;
}

static void start_side(struct side *side, struct dv_stream *stream)
{
    side->handler = (struct dv_stream_handler){on_read, on_end, on_drained};
    side->stream = stream;
    dv_buf_init(&side->got, 64u << 20);
    dv_stream_start(stream, &side->handler);
}

static void end_side(struct side *side)
{
    if (side->stream)
        dv_stream_close(side->stream, NULL, NULL);
    dv_buf_fini(&side->got);
}

static void on_accept(struct dv_listener_handler *handler, struct dv_stream *stream)
{
    struct fixture *fixture = DV_CONTAINER(handler, struct fixture, listener_handler);

    end_side(&fixture->server); /* of a connection that only looked whether someone answers */
    start_side(&fixture->server, stream);
}

static int start(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct dv_err err;

    assert_non_null(fixture);
    fixture->loop = dv_loop_new(dv_clock_real(), &err);
    (void)snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/dv-stream-XXXXXX");
    assert_non_null(mkdtemp(fixture->dir));
    (void)snprintf(fixture->path, sizeof(fixture->path), "%s/s.sock", fixture->dir);
    fixture->listener_handler.accept = on_accept;
    fixture->listener = dv_listener_open(fixture->loop, dv_str_from_c(fixture->path), 0600,
                                         &fixture->listener_handler, &err);
    assert_non_null(fixture->listener);
    *state = fixture;
    return 0;
}

static int end(void **state)
{
    struct fixture *fixture = *state;

    end_side(&fixture->client);
    end_side(&fixture->server);
    if (fixture->listener)
        dv_listener_close(fixture->listener, count_closed, &fixture->n_closed);
    dv_loop_free(fixture->loop);
    assert_int_equal(fixture->n_closed, fixture->listener ? 1 : 0);
    (void)unlink(fixture->path); /* some tests leave it */
    assert_int_equal(rmdir(fixture->dir), 0);
    free(fixture);
    return 0;
}

static void connect_client(struct fixture *fixture)
{
    struct dv_err err;
    struct dv_stream *stream = dv_stream_connect(fixture->loop, dv_str_from_c(fixture->path), &err);

    assert_non_null(stream);
    start_side(&fixture->client, stream);
}

static bool is_accepted(void *ctx)
{
    return ((struct fixture *)ctx)->server.stream != NULL;
}

static bool has_echo(void *ctx)
{
    const struct fixture *fixture = ctx;

    return fixture->client.got.n == 5;
}

static void bytes_travel_both_ways_and_the_peer_is_known(void **state)
{
    struct fixture *fixture = *state;
    struct dv_peer peer;

    connect_client(fixture);
    fixture->server.echoes = true;
    dv_stream_write(fixture->client.stream, DV_STR("hello"));
    assert_true(dv_loop_run_until(fixture->loop, has_echo, fixture, 5000));
    assert_str(dv_buf_str(&fixture->client.got), "hello");
    peer = dv_stream_peer(fixture->server.stream);
    assert_int_equal(peer.pid, getpid());
    assert_int_equal(peer.uid, getuid());
    assert_int_equal(peer.gid, getgid());
}

static bool server_ended(void *ctx)
{
    return ((struct fixture *)ctx)->server.n_ends > 0;
}

static void a_peer_that_closes_ends_the_stream_once(void **state)
{
    struct fixture *fixture = *state;

    connect_client(fixture);
    assert_true(dv_loop_run_until(fixture->loop, is_accepted, fixture, 5000));
    dv_stream_close(fixture->client.stream, count_closed, &fixture->n_closed);
    fixture->client.stream = NULL;
    assert_int_equal(fixture->n_closed, 0);
    assert_true(dv_loop_run_until(fixture->loop, server_ended, fixture, 5000));
    assert_int_equal(fixture->n_closed, 1);
    fixture->n_closed = 0;
    assert_int_equal(fixture->server.n_ends, 1);
    assert_int_equal(fixture->server.end_code, DV_OK);
}

static bool got_all(void *ctx)
{
    const struct fixture *fixture = ctx;

    return fixture->server.got.n == 8u << 20 && fixture->client.n_drained > 0;
}

static void what_the_kernel_does_not_take_is_queued_and_drained(void **state)
{
    struct fixture *fixture = *state;
    char *big = malloc(8u << 20);

    assert_non_null(big);
    for (size_t i = 0; i < 8u << 20; i++)
        big[i] = (char)(i % 251);
    connect_client(fixture);
    dv_stream_write(fixture->client.stream, (dv_str){big, 8u << 20});
    assert_true(dv_stream_queued_bytes(fixture->client.stream) > 0);
    assert_true(dv_loop_run_until(fixture->loop, got_all, fixture, 10000));
    assert_memory_equal(fixture->server.got.p, big, 8u << 20);
    assert_int_equal(dv_stream_queued_bytes(fixture->client.stream), 0);
    free(big);
}

static bool client_ended(void *ctx)
{
    return ((struct fixture *)ctx)->client.n_ends > 0;
}

static void writing_to_a_closed_peer_ends_and_does_not_kill(void **state)
{
    struct fixture *fixture = *state;
    static char big[4 << 20];

    connect_client(fixture);
    fixture->server.closes_in_read = true;
    dv_stream_write(fixture->client.stream, (dv_str){big, sizeof(big)}); /* far from read whole */
    assert_true(dv_loop_run_until(fixture->loop, client_ended, fixture, 5000));
    dv_stream_write(fixture->client.stream, DV_STR("more"));
    assert_int_equal(fixture->client.n_ends, 1);
    /* Which of the two is seen first, the end or the broken write, is the kernel's business. */
    assert_true(fixture->client.end_code == DV_OK || fixture->client.end_code == DV_UNAVAILABLE);
}

static void connecting_says_why_it_cannot(void **state)
{
    struct fixture *fixture = *state;
    static const char long_path[] =
        "/tmp/0123456789012345678901234567890123456789012345678901234567890123456789012345678901234"
        "567890123456789012345";
    struct dv_err err;

    assert_null(dv_stream_connect(fixture->loop, DV_STR("/nonexistent/x.sock"), &err));
    assert_err(&err, DV_NOT_FOUND, "connect to /nonexistent/x.sock");
    assert_null(dv_stream_connect(fixture->loop, dv_str_from_c(long_path), &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "longer than 107");
    assert_null(dv_stream_connect(fixture->loop, DV_STR(""), &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "empty");
    assert_null(dv_stream_connect(fixture->loop, DV_STR("a\0b"), &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "NUL");
}

static void a_second_listener_on_a_live_path_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct dv_err err;

    assert_null(dv_listener_open(fixture->loop, dv_str_from_c(fixture->path), 0600,
                                 &fixture->listener_handler, &err));
    assert_err(&err, DV_ALREADY_EXISTS, fixture->path);
    assert_false(dv_socket_is_free(dv_str_from_c(fixture->path), &err));
    assert_err(&err, DV_ALREADY_EXISTS, fixture->path);
    connect_client(fixture); /* and the first one still serves */
    assert_true(dv_loop_run_until(fixture->loop, is_accepted, fixture, 5000));
}

static void a_stale_socket_is_replaced_and_a_file_is_not(void **state)
{
    struct fixture *fixture = *state;
    struct dv_listener *listener;
    struct dv_err err;
    struct stat info;
    char other[90];
    int fd;

    /* Moved away before the close, the first one's file stays behind and nobody answers on it. */
    (void)snprintf(other, sizeof(other), "%s.old", fixture->path);
    assert_int_equal(rename(fixture->path, other), 0);
    dv_listener_close(fixture->listener, NULL, NULL);
    fixture->listener = NULL;
    assert_true(dv_socket_is_free(dv_str_from_c(other), &err));
    assert_int_equal(stat(other, &info), 0); /* was only looked at */
    listener = dv_listener_open(fixture->loop, dv_str_from_c(other), 0666,
                                &fixture->listener_handler, &err);
    assert_non_null(listener);
    assert_int_equal(stat(other, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0666); /* as asked, whatever the umask */
    dv_listener_close(listener, NULL, NULL);
    assert_int_equal(stat(other, &info), -1); /* its own file goes with it */

    fd = open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    assert_null(dv_listener_open(fixture->loop, dv_str_from_c(other), 0600,
                                 &fixture->listener_handler, &err));
    assert_err(&err, DV_FAILED_PRECONDITION, "not a socket");
    assert_int_equal(unlink(other), 0);
}

static void closing_leaves_a_successors_socket_alone(void **state)
{
    struct fixture *fixture = *state;
    struct dv_listener *second;
    struct dv_err err;
    struct stat info;

    assert_int_equal(unlink(fixture->path), 0);
    second = dv_listener_open(fixture->loop, dv_str_from_c(fixture->path), 0600,
                              &fixture->listener_handler, &err);
    assert_non_null(second);
    dv_listener_close(fixture->listener, NULL, NULL);
    assert_int_equal(stat(fixture->path, &info), 0);
    fixture->listener = second;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_travel_both_ways_and_the_peer_is_known, start, end),
        cmocka_unit_test_setup_teardown(a_peer_that_closes_ends_the_stream_once, start, end),
        cmocka_unit_test_setup_teardown(what_the_kernel_does_not_take_is_queued_and_drained, start,
                                        end),
        cmocka_unit_test_setup_teardown(writing_to_a_closed_peer_ends_and_does_not_kill, start,
                                        end),
        cmocka_unit_test_setup_teardown(connecting_says_why_it_cannot, start, end),
        cmocka_unit_test_setup_teardown(a_second_listener_on_a_live_path_is_refused, start, end),
        cmocka_unit_test_setup_teardown(a_stale_socket_is_replaced_and_a_file_is_not, start, end),
        cmocka_unit_test_setup_teardown(closing_leaves_a_successors_socket_alone, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
