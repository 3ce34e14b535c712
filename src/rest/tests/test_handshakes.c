#include "support/dvtest.h"

#include <unistd.h>

#include "rest/tests/test_program.h"
#include "rest/tests/test_rest_fixture.h"

static void a_slow_handshake_holds_nobody_else(void **state)
{
    struct fixture *fixture = *state;
    struct client slow[20];
    struct program program;

    fixture->options.timeout_ms = 5000;
    fixture_certify(fixture);
    fixture_serve(fixture);
    for (size_t i = 0; i < DV_COUNT(slow); i++) {
        client_open(&slow[i], fixture);
        if (i % 2) /* the beginning of a hello */
            client_send_n(&slow[i], DV_STR("\x16\x03\x01\x02\x00\x01\x00"));
    }
    wait_connections(fixture, DV_COUNT(slow));
    settle(fixture);
    assert_true(is_asleep(fixture)); /* nothing is tried again and again meanwhile */
    program_start_client(&program, fixture,
                         PYTHON_CONNECT
                         "sock = connect()\n"
                         "sock.sendall(b'GET /nowhere HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n')\n"
                         "read_to(sock, b'nothing here')\n");
    program_end_well(&program);
    wait_connections(fixture, DV_COUNT(slow));
    advance(fixture, 4999);
    wait_connections(fixture, DV_COUNT(slow));
    assert_int_equal(fixture->complaints.n, 0);
    advance(fixture, 1);
    wait_connections(fixture, 0);
    wait_complaint(fixture, "DEADLINE_EXCEEDED the TLS handshake was not done in time");
    for (size_t i = 0; i < DV_COUNT(slow); i++) {
        client_expect_closed(&slow[i]);
        client_close(&slow[i]);
    }
}

static void quiet_connections_leave_the_loop_asleep(void **state)
{
    struct fixture *fixture = *state;
    struct program program;

    fixture_certify(fixture);
    fixture_serve(fixture);
    program_start_client(
        &program, fixture,
        PYTHON_CONNECT "socks = [connect() for i in range(5)]\n"
                       "texts = [b'', b'GET /ec', b'POST /echo HTTP/1.1\\r\\nHost: h\\r\\n'\n"
                       "         b'Content-Length: 99\\r\\n\\r\\n12', b'GET /hold HTTP/1.1\\r\\n'\n"
                       "         b'Host: h\\r\\n\\r\\nGET', b'GET /stream HTTP/1.1\\r\\nHost: h'\n"
                       "         b'\\r\\n\\r\\nGET']\n"
                       "for sock, text in zip(socks, texts): sock.sendall(text)\n"
                       "print('sent')\n"
                       "sys.stdin.read(1)\n");
    program_expect(&program, "sent");
    wait_count(fixture, &fixture->n_held, 1);
    wait_count(fixture, &fixture->n_streams, 1);
    settle(fixture);
    assert_true(is_asleep(fixture));
    dv_rest_call_reply(fixture->held, 200, DV_STR("held"));
    fixture->held = NULL;
    (void)close(program.in);
    program.in = -1;
    program_end_well(&program);
    wait_count(fixture, &fixture->n_ended, 1);
}

static void a_probe_that_only_connects_is_not_worth_a_word(void **state)
{
    struct fixture *fixture = *state;
    struct client client;

    fixture_certify(fixture);
    fixture_serve(fixture);
    client_open(&client, fixture);
    wait_connections(fixture, 1);
    client_close(&client);
    advance(fixture, 1000);
    wait_connections(fixture, 0);
    assert_int_equal(fixture->complaints.n, 0);
}

static void a_server_closes_in_the_middle_of_handshakes(void **state)
{
    struct fixture *fixture = *state;
    struct client client;

    fixture_certify(fixture);
    fixture_serve(fixture);
    client_open(&client, fixture);
    client_send_n(&client, DV_STR("\x16\x03\x01\x02"));
    wait_connections(fixture, 1);
    fixture_close(fixture, 1000);
    wait_count(fixture, &fixture->n_closed, 1);
    client_expect_closed(&client);
    client_close(&client);
}

static void clients_that_break_off_cost_only_themselves(void **state)
{
    struct fixture *fixture = *state;
    struct program program;

    fixture_certify(fixture);
    fixture_serve(fixture);
    program_start_client(
        &program, fixture,
        PYTHON_CONNECT "import struct\n"
                       "incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()\n"
                       "tls = context.wrap_bio(incoming, outgoing, server_hostname='localhost')\n"
                       "try: tls.do_handshake()\n"
                       "except ssl.SSLWantReadError: pass\n"
                       "hello = outgoing.read()\n"
                       "def reset(sock):\n"
                       "    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,\n"
                       "                    struct.pack('ii', 1, 0))\n"
                       "    sock.close()\n"
                       "for i in range(0, len(hello), 7):\n"
                       "    sock = socket.create_connection(('127.0.0.1', port))\n"
                       "    sock.sendall(hello[:i])\n"
                       "    reset(sock) if i % 2 else sock.close()\n"
                       "for i in range(0, len(hello), 13):\n" /* one bit is wrong */
                       /* the server waits for more of some, on a clock that stands still */
                       "    sock = socket.create_connection(('127.0.0.1', port), timeout=1)\n"
                       "    sock.sendall(hello[:i] + bytes([hello[i] ^ 64]) + hello[i + 1:])\n"
                       "    sock.shutdown(socket.SHUT_WR)\n"
                       "    try:\n"
                       "        while sock.recv(1000): pass\n"
                       "    except OSError: pass\n"
                       "for i in range(20):\n" /* after the hello, after the handshake */
                       "    sock = connect()\n"
                       "    sock.sendall(b'GET /echo HT')\n"
                       "    if i % 2: socket.socket.send(sock, b'\\x17\\x03\\x03\\x00\\x05abcde')\n"
                       "    if i % 3: sock.unwrap\n"
                       "    sock.close()\n"
                       "sock = connect()\n"
                       "sock.sendall(b'GET /nowhere HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n')\n"
                       "read_to(sock, b'nothing here')\n"
                       "time.sleep(0.1)\n");
    program_wait(&program);
    advance(fixture, 1001); /* for those whose end came together with their last bytes */
    program_end_well(&program);
    advance(fixture, 1001);
    wait_connections(fixture, 0);
}

static void beyond_the_limit_connections_are_closed(void **state)
{
    struct fixture *fixture = *state;
    struct client clients[3];

    fixture->options.connections_max = 2;
    fixture_certify(fixture);
    fixture_serve(fixture);
    for (size_t i = 0; i < DV_COUNT(clients); i++) {
        client_open(&clients[i], fixture);
        wait_connections(fixture, i < 2 ? i + 1 : 2);
    }
    client_expect_closed(&clients[0]);     /* the oldest, for the newest */
    assert_int_equal(clients[0].got.n, 0); /* no word that is not TLS */
    wait_complaint(fixture, "RESOURCE_EXHAUSTED");
    for (size_t i = 0; i < DV_COUNT(clients); i++)
        client_close(&clients[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_start, fixture_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_slow_handshake_holds_nobody_else),
        TEST(quiet_connections_leave_the_loop_asleep),
        TEST(a_probe_that_only_connects_is_not_worth_a_word),
        TEST(a_server_closes_in_the_middle_of_handshakes),
        TEST(clients_that_break_off_cost_only_themselves),
        TEST(beyond_the_limit_connections_are_closed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
