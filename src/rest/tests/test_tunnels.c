#include "support/dvtest.h"

#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "loop/loop.h"
#include "rest/rest.h"
#include "rest/tests/test_guest2.h"
#include "rest/tests/test_program.h"
#include "rest/tests/test_rest_fixture.h"

#define HELLO                                                                                      \
    "POST /exec HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: SPDY/3.1\r\n"   \
    "Content-Length: 0\r\n\r\n"

/* What the server does with requests: all of them want to leave HTTP. */
struct door {
    struct fixture *fixture;
    struct dv_rest_tunnel tunnel; /* the latest */
    struct dv_buf got;
    uint64_t idle_ms;
    bool echoes;
    int n_tunnels;
    int n_refused;
    int n_rooms;
    int n_ended;
    struct dv_err ended; /* code DV_OK: success */
};

static void on_received(struct dv_rest_tunnel *tunnel, dv_str bytes)
{
    struct door *door = DV_CONTAINER(tunnel, struct door, tunnel);
    struct dv_err err;

    dv_buf_add(&door->got, bytes);
    if (door->echoes)
        assert_ok(dv_rest_tunnel_send(tunnel, bytes, &err), &err);
}

static void on_room(struct dv_rest_tunnel *tunnel)
{
    DV_CONTAINER(tunnel, struct door, tunnel)->n_rooms++;
}

static void on_ended(struct dv_rest_tunnel *tunnel, const struct dv_err *err)
{
    struct door *door = DV_CONTAINER(tunnel, struct door, tunnel);

    door->n_ended++;
    door->ended.code = DV_OK;
    if (err)
        door->ended = *err;
    dv_rest_tunnel_cancel(tunnel); /* too late: nothing happens */
    dv_rest_tunnel_pause(tunnel, false);
    dv_rest_tunnel_finish(tunnel);
    assert_int_equal(dv_rest_tunnel_unsent_bytes(tunnel), 0);
}

static struct door door;

static void on_request(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request)
{
    struct dv_err err;

    (void)request;
    assert_ptr_equal(ctx, door.fixture);
    door.tunnel = (struct dv_rest_tunnel){
        .received = on_received, .room = on_room, .ended = on_ended, .idle_ms = door.idle_ms};
    dv_rest_call_add_field(call, DV_STR("X-Stream-Protocol-Version"), DV_STR("v4.channel.k8s.io"));
    if (dv_rest_call_upgrade(call, DV_STR("SPDY/3.1"), &door.tunnel, &err)) {
        door.n_tunnels++;
        return;
    }
    assert_err(&err, DV_FAILED_PRECONDITION, "unable to upgrade");
    door.n_refused++;
    dv_rest_call_reply(call, 400, DV_STR("no"));
}

static int start(void **state)
{
    struct fixture *fixture;

    if (fixture_start(state) != 0)
        return -1;
    fixture = *state;
    memset(&door, 0, sizeof(door));
    door.fixture = fixture;
    dv_buf_init(&door.got, 64u << 20);
    fixture->options.handle = on_request;
    return 0;
}

static int end(void **state)
{
    int result = fixture_end(state);

    assert_int_equal(door.n_ended, door.n_tunnels);
    dv_buf_fini(&door.got);
    return result;
}

static void open_tunnel(struct client *client, struct fixture *fixture)
{
    int n_before = door.n_tunnels;

    client_open(client, fixture);
    client_send(client, HELLO);
    wait_count(fixture, &door.n_tunnels, n_before + 1);
    client_expect(client, "HTTP/1.1 101 Switching Protocols\r\n"
                          "X-Stream-Protocol-Version: v4.channel.k8s.io\r\n"
                          "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
    assert_int_equal(client->got.n, 0);
}

struct wait_got {
    size_t n;
};

static bool has_got(void *ctx)
{
    return door.got.n >= ((struct wait_got *)ctx)->n;
}

static void wait_got(struct fixture *fixture, const char *text)
{
    struct wait_got wait = {strlen(text)};

    assert_true(dv_loop_run_until(fixture->loop, has_got, &wait, 60000));
    assert_string_equal(dv_buf_c(&door.got), text);
    dv_buf_clear(&door.got);
}

static void send_text(const char *text)
{
    struct dv_err err;

    assert_ok(dv_rest_tunnel_send(&door.tunnel, dv_str_from_c(text), &err), &err);
}

static void bytes_go_both_ways(void **state)
{
    struct fixture *fixture = *state;
    struct client client;

    fixture_serve(fixture);
    open_tunnel(&client, fixture);
    for (int i = 0; i < 10; i++) {
        client_send(&client, "GET / HTTP/1.1\r\n\r\n"); /* means nothing any more */
        wait_got(fixture, "GET / HTTP/1.1\r\n\r\n");
        send_text("and back");
        client_expect(&client, "and back");
        advance(fixture, 3600 * 1000); /* without a limit it may be quiet */
    }
    send_text("the end");
    dv_rest_tunnel_finish(&door.tunnel);
    assert_int_equal(door.n_ended, 0);
    wait_count(fixture, &door.n_ended, 1);
    assert_int_equal(door.ended.code, DV_OK);
    client_expect(&client, "the end");
    client_expect_closed(&client);
    client_close(&client);
    wait_connections(fixture, 0);
    assert_int_equal(fixture->complaints.n, 0);
    assert_non_null(strstr(dv_buf_c(&fixture->log), " status=101 bytes=87 "));
}

static void what_came_behind_the_request_is_received(void **state)
{
    struct fixture *fixture = *state;
    struct client client;

    fixture_serve(fixture);
    client_open(&client, fixture);
    client_send(&client, HELLO "first bytes");
    wait_got(fixture, "first bytes");
    client_send(&client, "more");
    wait_got(fixture, "more");
    client_close(&client);
    wait_count(fixture, &door.n_ended, 1);
    assert_int_equal(door.ended.code, DV_CANCELLED);
}

static void who_has_not_asked_stays_in_http(void **state)
{
    static const char *const requests[] = {
        "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: SPDY/3.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nConnection: x-upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n",
        "GET / HTTP/1.0\r\nConnection: Upgrade, keep-alive\r\nUpgrade: SPDY/3.1\r\n\r\n",
    };
    struct fixture *fixture = *state;
    struct client client;

    fixture_serve(fixture);
    client_open(&client, fixture);
    for (size_t i = 0; i < DV_COUNT(requests); i++) {
        client_send(&client, requests[i]);
        client_expect_answer(&client, 400, "no");
    }
    assert_int_equal(door.n_refused, DV_COUNT(requests));
    client_send(&client, HELLO);
    wait_count(fixture, &door.n_tunnels, 1);
    client_close(&client);
}

static void there_is_no_way_out_of_http2(void **state)
{
    struct fixture *fixture = *state;
    struct guest guest;

    fixture_certify(fixture);
    fixture_serve(fixture);
    guest_open(&guest, fixture, true);
    guest_expect(&guest, guest_ask(&guest, "GET", "/exec", DV_STR("")), "400", "no");
    assert_int_equal(door.n_refused, 1);
    guest_close(&guest);
}

static char block[10000];

static void a_client_that_does_not_read_pushes_back(void **state)
{
    struct fixture *fixture = *state;
    struct client client;
    struct dv_err err;
    int n_rooms;

    fixture->options.unsent_bytes_max = 1000000;
    fixture->options.timeout_ms = 5000;
    fixture_serve(fixture);
    memset(block, 'x', sizeof(block));
    open_tunnel(&client, fixture);
    client_reads(&client, false);
    for (int i = 0; i < 100; i++) { /* until the kernel's buffers are full too */
        while (dv_rest_tunnel_send(&door.tunnel, (dv_str){block, sizeof(block)}, &err))
            ;
        assert_err(&err, DV_RESOURCE_EXHAUSTED, "has not read");
        settle(fixture);
    }
    client_send(&client, "I do send"); /* and is heard */
    wait_got(fixture, "I do send");
    n_rooms = door.n_rooms;
    client_reads(&client, true);
    wait_count(fixture, &door.n_rooms, n_rooms + 1);
    send_text("all of it");
    client_expect(&client, "all of it");
    client_reads(&client, false);
    for (int i = 0; i < 100; i++) {
        while (dv_rest_tunnel_send(&door.tunnel, (dv_str){block, sizeof(block)}, &err))
            ;
        settle(fixture);
    }
    advance(fixture, 4999);
    client_send(&client, "I do send"); /* does not help now */
    wait_got(fixture, "I do send");
    assert_int_equal(door.n_ended, 0);
    advance(fixture, 1);
    /* On a busy machine the kernel may take more bytes late; then the time begins anew. */
    for (int i = 0; i < 100 && door.n_ended == 0; i++) {
        while (dv_rest_tunnel_send(&door.tunnel, (dv_str){block, sizeof(block)}, &err))
            ;
        settle(fixture);
        advance(fixture, 5000);
    }
    wait_count(fixture, &door.n_ended, 1);
    assert_err(&door.ended, DV_DEADLINE_EXCEEDED, "did not take");
    client_close(&client);
    wait_connections(fixture, 0);
}

static bool is_blocked(struct client *client)
{
    return send(client->fd, block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL) < 0;
}

static void who_is_paused_pushes_back(void **state)
{
    struct fixture *fixture = *state;
    struct client client;
    size_t n_sent = 0;
    struct wait_got wait;

    fixture_serve(fixture);
    memset(block, 'y', sizeof(block));
    open_tunnel(&client, fixture);
    dv_rest_tunnel_pause(&door.tunnel, true);
    for (int n_blocked = 0; n_blocked < 3;) {
        if (is_blocked(&client)) {
            n_blocked++;
            settle(fixture);
        } else {
            n_sent += sizeof(block);
        }
        assert_true(n_sent < (64u << 20));
    }
    assert_int_equal(door.got.n, 0);
    dv_rest_tunnel_pause(&door.tunnel, false);
    wait = (struct wait_got){n_sent - sizeof(block)}; /* the last one may have gone in part */
    assert_true(dv_loop_run_until(fixture->loop, has_got, &wait, 60000));
    client_close(&client);
    wait_count(fixture, &door.n_ended, 1);
}

static void a_quiet_tunnel_ends_when_it_has_a_limit(void **state)
{
    struct fixture *fixture = *state;
    struct client client;

    door.idle_ms = 5000;
    fixture_serve(fixture);
    open_tunnel(&client, fixture);
    for (int i = 0; i < 3; i++) {
        advance(fixture, 4000);
        client_send(&client, "here");
        wait_got(fixture, "here");
        advance(fixture, 4000);
        send_text("there");
        client_expect(&client, "there");
    }
    advance(fixture, 4999);
    assert_int_equal(door.n_ended, 0);
    advance(fixture, 1);
    wait_count(fixture, &door.n_ended, 1);
    assert_err(&door.ended, DV_DEADLINE_EXCEEDED, "either way");
    client_expect_closed(&client);
    client_close(&client);
    assert_int_equal(fixture->complaints.n, 0);
}

static void its_limit_is_also_that_of_a_client_that_does_not_read(void **state)
{
    struct fixture *fixture = *state;
    struct client client;
    struct dv_err err;

    door.idle_ms = 50000;
    fixture->options.timeout_ms = 5000;
    fixture_serve(fixture);
    memset(block, 'x', sizeof(block));
    open_tunnel(&client, fixture);
    client_reads(&client, false);
    for (int i = 0; i < 100; i++) {
        while (dv_rest_tunnel_send(&door.tunnel, (dv_str){block, sizeof(block)}, &err))
            ;
        settle(fixture);
    }
    advance(fixture, 49999); /* somebody reads a long output by the page */
    assert_int_equal(door.n_ended, 0);
    advance(fixture, 1);
    wait_count(fixture, &door.n_ended, 1);
    client_close(&client);
}

static void who_is_paused_sees_that_the_client_hung_up(void **state)
{
    struct fixture *fixture = *state;
    struct client client;

    fixture_serve(fixture);
    open_tunnel(&client, fixture);
    dv_rest_tunnel_pause(&door.tunnel, true);
    client_send(&client, "nobody reads this");
    settle(fixture);
    assert_int_equal(door.n_ended, 0);
    client_close(&client);
    wait_count(fixture, &door.n_ended, 1);
    assert_err(&door.ended, DV_CANCELLED, "gone");
    assert_int_equal(door.got.n, 0);
}

static void a_tunnel_may_be_broken_off(void **state)
{
    struct fixture *fixture = *state;
    struct client client;
    struct dv_err err;

    fixture_serve(fixture);
    open_tunnel(&client, fixture);
    dv_rest_tunnel_cancel(&door.tunnel);
    dv_rest_tunnel_cancel(&door.tunnel); /* idempotent */
    assert_false(dv_rest_tunnel_send(&door.tunnel, DV_STR("late"), &err));
    assert_int_equal(err.code, DV_CANCELLED);
    assert_int_equal(door.n_ended, 0);
    wait_count(fixture, &door.n_ended, 1);
    assert_err(&door.ended, DV_CANCELLED, "broken off");
    client_expect_closed(&client);
    client_close(&client);
    open_tunnel(&client, fixture);
    fixture_close(fixture, 5000);
    advance(fixture, 4999);
    send_text("still here");
    client_expect(&client, "still here");
    advance(fixture, 1);
    wait_count(fixture, &door.n_ended, 2);
    assert_err(&door.ended, DV_CANCELLED, "closed");
    wait_count(fixture, &fixture->n_closed, 1);
    client_close(&client);
}

/* 20 MB go there and back, and are equal. */
static void a_tunnel_goes_on_under_tls(void **state)
{
    struct fixture *fixture = *state;
    struct program program;

    door.echoes = true;
    fixture->options.unsent_bytes_max = 64u << 20;
    fixture_certify(fixture);
    fixture_serve(fixture);
    program_start_client(
        &program, fixture,
        PYTHON_CONNECT "import hashlib\n"
                       "sock = connect()\n"
                       "sock.sendall(b'GET /exec HTTP/1.1\\r\\nHost: h\\r\\nConnection: Upgrade'\n"
                       "             b'\\r\\nUpgrade: SPDY/3.1\\r\\n\\r\\n')\n"
                       "read_to(sock, b'\\r\\n\\r\\n')\n"
                       "there, back = hashlib.sha256(), hashlib.sha256()\n"
                       "for i in range(20):\n"
                       "    part = bytes(range(i, i + 200)) * 5000\n"
                       "    sock.sendall(part)\n"
                       "    there.update(part)\n"
                       "    n = 0\n"
                       "    while n < len(part):\n"
                       "        got = sock.recv(1 << 20)\n"
                       "        back.update(got)\n"
                       "        n += len(got)\n"
                       "assert there.digest() == back.digest()\n"
                       "sock.unwrap()\n");
    program_end_well(&program);
    wait_count(fixture, &door.n_ended, 1);
    wait_connections(fixture, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bytes_go_both_ways),
        TEST(what_came_behind_the_request_is_received),
        TEST(who_has_not_asked_stays_in_http),
        TEST(there_is_no_way_out_of_http2),
        TEST(a_client_that_does_not_read_pushes_back),
        TEST(who_is_paused_pushes_back),
        TEST(a_quiet_tunnel_ends_when_it_has_a_limit),
        TEST(its_limit_is_also_that_of_a_client_that_does_not_read),
        TEST(who_is_paused_sees_that_the_client_hung_up),
        TEST(a_tunnel_may_be_broken_off),
        TEST(a_tunnel_goes_on_under_tls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
