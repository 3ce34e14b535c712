#include "support/dvtest.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rest/tests/test_program.h"
#include "rest/tests/test_rest_fixture.h"

/* Asks once, and prints the answer. */
#define CURL "curl", "-sS", "--max-time", "20"

static const dv_str groups[] = {DV_STR_INIT("system:masters"), DV_STR_INIT("others")};

static const char *url_of(struct fixture *fixture, const char *path)
{
    return dv_str_to_c(dv_str_printf(fixture->arena, "https://localhost:%u%s", fixture->port, path),
                       fixture->arena);
}

static void serve(struct fixture *fixture)
{
    fixture_certify(fixture);
    fixture_serve(fixture);
}

/* Runs curl to its end: its status, and the text that is in its output. */
static void expect_curl(struct fixture *fixture, const char *const *argv, int status,
                        const char *text)
{
    struct program program;

    program_start(&program, fixture, argv);
    program_wait(&program);
    if (program.status != status || !strstr(dv_buf_c(&program.output), text))
        fail_msg("curl: %d \"%.500s\", want %d \"%s\"; log: %s", program.status,
                 dv_buf_c(&program.output), status, text, dv_buf_c(&fixture->log));
    program_end(&program);
}

/* ---- curl ---- */

static void curl_is_served_under_tls(void **state)
{
    struct fixture *fixture = *state;
    const char *ca;

    serve(fixture);
    ca = text_file(fixture, fixture->ca.cert);
    {
        const char *argv[] = {CURL, "--cacert", ca, url_of(fixture, "/show?a=b"), NULL};

        expect_curl(fixture, argv, 0, "GET [show] a=b Host:localhost");
    }
    {
        const char *argv[] = {CURL,
                              "--cacert",
                              ca,
                              "--tlsv1.2",
                              "--tls-max",
                              "1.2",
                              "--http1.1",
                              "-dx",
                              "-w%{http_version} %{num_connects}",
                              url_of(fixture, "/echo"),
                              url_of(fixture, "/echo"),
                              NULL};

        expect_curl(fixture, argv, 0, "x1.1 1x1.1 0");
    }
    {
        const char *argv[] = {CURL,
                              "--cacert",
                              ca,
                              "-dx",
                              "-w%{http_version} %{num_connects}",
                              url_of(fixture, "/echo"),
                              url_of(fixture, "/echo"),
                              NULL};

        expect_curl(fixture, argv, 0, "x2 1x2 0");
    }
    assert_int_equal(fixture->complaints.n, 0);
}

static void who_does_not_trust_us_is_named(void **state)
{
    struct fixture *fixture = *state;

    serve(fixture);
    for (int i = 0; i < 2; i++) {
        const char *argv[] = {CURL, i ? "--tlsv1.3" : "--tls-max", i ? "-s" : "1.2",
                              url_of(fixture, "/echo"), NULL};

        expect_curl(fixture, argv, 60, "certificate");
        wait_complaint(fixture,
                       i ? "UNAUTHENTICATED TLS handshake: the client broke off"
                         : "UNAUTHENTICATED TLS handshake: the client says: CA is unknown");
        dv_buf_clear(&fixture->complaints);
        wait_connections(fixture, 0);
    }
}

static void old_tls_and_no_tls_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct client client;

    serve(fixture);
    {
        const char *old[] = {CURL,
                             "-k",
                             "--tls-max",
                             "1.1",
                             "--ciphers",
                             "DEFAULT@SECLEVEL=0",
                             url_of(fixture, "/echo"),
                             NULL};

        expect_curl(fixture, old, 35, "");
        wait_complaint(fixture, "INVALID_ARGUMENT TLS handshake: the client does not speak TLS");
        dv_buf_clear(&fixture->complaints);
    }
    client_open(&client, fixture);
    client_send(&client, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    client_expect_closed(&client);
    wait_complaint(fixture, "INVALID_ARGUMENT TLS handshake: the client does not speak TLS");
    client_close(&client);
}

/* ---- client certificates ---- */

static void expect_who(struct fixture *fixture, const struct dv_rest_cert *cert, const char *text)
{
    const char *ca = text_file(fixture, fixture->ca.cert);
    const char *argv[] = {CURL,
                          "--cacert",
                          ca,
                          url_of(fixture, "/who"),
                          cert ? "--cert" : NULL,
                          cert ? text_file(fixture, cert->cert) : NULL,
                          "--key",
                          cert ? text_file(fixture, cert->key) : NULL,
                          NULL};

    expect_curl(fixture, argv, 0, text);
}

static void a_client_is_who_its_certificate_names(void **state)
{
    struct fixture *fixture = *state;
    struct dv_rest_cert other_ca;
    struct dv_rest_cert cert;

    serve(fixture);
    cert = fixture_cert(fixture, &fixture->ca, "admin", groups, 0);
    expect_who(fixture, &cert, "admin [system:masters] [others]\n");
    expect_who(fixture, NULL, "NOT_FOUND no client certificate\n");
    other_ca = fixture_cert(fixture, NULL, "ca", NULL, 0);
    cert = fixture_cert(fixture, &other_ca, "admin", groups, 0);
    expect_who(fixture, &cert,
               "UNAUTHENTICATED client certificate: The certificate is NOT trusted");
    cert = fixture_cert(fixture, &fixture->ca, "admin", groups, 40);
    expect_who(fixture, &cert, "expired certificate");
    cert = fixture_cert(fixture, &fixture->ca, "server", NULL, 0);
    expect_who(fixture, &cert,
               "UNAUTHENTICATED client certificate: The certificate is NOT trusted");
}

static void a_server_without_a_client_ca_asks_for_none(void **state)
{
    struct fixture *fixture = *state;
    struct dv_rest_cert cert;

    fixture_certify(fixture);
    fixture->tls.client_ca = DV_STR("");
    fixture_serve(fixture);
    cert = fixture_cert(fixture, &fixture->ca, "admin", groups, 0);
    expect_who(fixture, &cert, "NOT_FOUND no client certificate\n");
}

/* ---- Python ---- */

static void pipelined_requests_are_answered_under_tls(void **state)
{
    struct fixture *fixture = *state;
    struct program program;

    serve(fixture);
    program_start_client(
        &program, fixture,
        PYTHON_CONNECT
        "sock = connect()\n"
        "put = b'PUT /echo HTTP/1.1\\r\\nHost: h\\r\\nContent-Length: 3\\r\\n\\r\\n'\n"
        /* In one write, of many records; and in records of one byte. */
        "sock.sendall(b''.join(put + b'%03d' % i for i in range(900)))\n"
        "got = read_to(sock, b'899')\n"
        "assert got.count(b'HTTP/1.1 200 OK') == 900\n"
        "for c in put: sock.send(bytes([c]))\n"
        "sock.sendall(b'abc')\n"
        "read_to(sock, b'abc')\n"
        /* Behind one that is held, in the same record. */
        "sock.sendall(b'GET /hold HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n' + put + b'end')\n"
        "print('sent')\n"
        "read_to(sock, b'end')\n"
        "sock.unwrap()\n");
    wait_count(fixture, &fixture->n_held, 1);
    program_expect(&program, "sent");
    settle(fixture);
    dv_rest_call_reply(fixture->held, 200, DV_STR("held"));
    fixture->held = NULL;
    program_end_well(&program);
    wait_connections(fixture, 0);
    assert_int_equal(fixture->complaints.n, 0);
}

static void a_client_that_closes_in_order_is_answered_in_order(void **state)
{
    struct fixture *fixture = *state;
    struct program program;

    serve(fixture);
    program_start_client(&program, fixture,
                         PYTHON_CONNECT
                         "raw = socket.create_connection(('127.0.0.1', port), timeout=20)\n"
                         "there, here = ssl.MemoryBIO(), ssl.MemoryBIO()\n"
                         "tls = context.wrap_bio(there, here, server_hostname='localhost')\n"
                         "def do(act):\n"
                         "    while True:\n"
                         "        try: return act()\n"
                         "        except ssl.SSLWantReadError:\n"
                         "            raw.sendall(here.read())\n"
                         "            part = raw.recv(65536)\n"
                         "            assert part, 'closed without a word'\n"
                         "            there.write(part)\n"
                         "do(tls.do_handshake)\n"
                         "tls.write(b'PUT /echo HTTP/1.1\\r\\nHost: h\\r\\n"
                         "Content-Length: 3\\r\\n\\r\\nabc')\n"
                         "got = b''\n"
                         "while not got.endswith(b'abc'): got += do(lambda: tls.read(65536))\n"
                         "do(tls.unwrap)\n");
    program_end_well(&program);
    wait_connections(fixture, 0);
    assert_int_equal(fixture->complaints.n, 0);
}

static void large_bodies_go_both_ways_under_tls(void **state)
{
    struct fixture *fixture = *state;
    struct program program;

    serve(fixture);
    program_start_client(
        &program, fixture,
        PYTHON_CONNECT "client = http.client.HTTPSConnection('localhost', port, context=context,\n"
                       "                                     timeout=20)\n"
                       "for n in (1, 16383, 16384, 16385, 100000, 3 << 20):\n"
                       "    body = bytes(i % 251 for i in range(n))\n"
                       "    client.request('PATCH', '/echo', body=body)\n"
                       "    answer = client.getresponse()\n"
                       "    assert (answer.status, answer.read()) == (200, body), n\n"
                       "client.request('POST', '/echo', body=b'x' * ((3 << 20) + 1))\n"
                       "answer = client.getresponse()\n"
                       "assert answer.status == 413, answer.status\n"
                       "answer.read()\n"
                       "client.request('GET', '/nowhere')\n"
                       "assert client.getresponse().status == 404\n");
    program_end_well(&program);
}

static void a_stream_goes_out_at_once_under_tls(void **state)
{
    struct fixture *fixture = *state;
    struct program program;
    char text[32];
    struct dv_err err;

    serve(fixture);
    program_start_client(&program, fixture,
                         PYTHON_CONNECT
                         "sock = connect()\n"
                         "sock.sendall(b'GET /stream HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n')\n"
                         "for i in range(50):\n"
                         "    read_to(sock, b'event %d\\n\\r\\n' % i)\n"
                         "    print('got %d.' % i)\n"
                         "print(read_to(sock, b'0\\r\\n\\r\\n'))\n"
                         "sock.sendall(b'GET /stream HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n')\n"
                         "print('again')\n"
                         "try:\n"
                         "    while sock.recv(1000): pass\n"
                         "except ssl.SSLError as error: print('cut off')\n");
    wait_count(fixture, &fixture->n_streams, 1);
    for (int i = 0; i < 50; i++) {
        (void)snprintf(text, sizeof(text), "event %d\n", i);
        assert_ok(dv_rest_stream_send(&fixture->stream, dv_str_from_c(text), &err), &err);
        (void)snprintf(text, sizeof(text), "got %d.", i);
        program_expect(&program, text);
    }
    dv_rest_stream_finish(&fixture->stream);
    wait_count(fixture, &fixture->n_ended, 1);
    assert_int_equal(fixture->ended.code, DV_OK);
    wait_count(fixture, &fixture->n_streams, 2);
    dv_rest_stream_cancel(&fixture->stream);
    wait_count(fixture, &fixture->n_ended, 2);
    program_end_well(&program);
    wait_connections(fixture, 0);
}

static char block[10000];

static void a_client_that_does_not_read_pushes_back_under_tls(void **state)
{
    struct fixture *fixture = *state;
    struct program program;
    struct dv_err err;

    fixture->options.unsent_bytes_max = 1000000;
    serve(fixture);
    program_start_client(&program, fixture,
                         PYTHON_CONNECT
                         "sock = connect()\n"
                         "sock.sendall(b'GET /stream HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n')\n"
                         "sys.stdin.read(1)\n"
                         "n = len(read_to(sock, b'the end\\r\\n0\\r\\n\\r\\n'))\n"
                         "print('read all')\n");
    wait_count(fixture, &fixture->n_streams, 1);
    memset(block, 'x', sizeof(block));
    for (int i = 0; i < 200; i++) {
        while (dv_rest_stream_send(&fixture->stream, (dv_str){block, sizeof(block)}, &err))
            ;
        assert_err(&err, DV_RESOURCE_EXHAUSTED, "has not read");
        settle(fixture);
    }
    (void)close(program.in);
    program.in = -1;
    wait_count(fixture, &fixture->n_rooms, fixture->n_rooms + 1);
    assert_ok(dv_rest_stream_send(&fixture->stream, DV_STR("the end"), &err), &err);
    dv_rest_stream_finish(&fixture->stream);
    wait_count(fixture, &fixture->n_ended, 1);
    assert_int_equal(fixture->ended.code, DV_OK);
    program_end_well(&program);
}

/* ---- another certificate ---- */

static void a_certificate_is_replaced_while_it_is_used(void **state)
{
    struct fixture *fixture = *state;
    struct dv_rest_cert other_ca;
    struct dv_rest_cert cert;
    struct dv_rest_tls tls;
    struct program program;
    struct dv_err err;

    serve(fixture);
    program_start_client(&program, fixture,
                         PYTHON_CONNECT
                         "def ask(sock):\n"
                         "    sock.sendall(b'GET /nowhere HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n')\n"
                         "    read_to(sock, b'nothing here')\n"
                         "    print(sock.getpeercert()['subject'][0][0][1], flush=True)\n"
                         "first = connect()\n"
                         "ask(first)\n"
                         "sys.stdin.read(1)\n"
                         "second = connect()\n"
                         "ask(second)\n"
                         "ask(first)\n"
                         "print('done')\n");
    program_expect(&program, "server\n");
    cert = fixture_cert(fixture, &fixture->ca, "renewed", NULL, 0);
    tls = (struct dv_rest_tls){cert.cert, fixture->tls.key, DV_STR("")};
    assert_false(dv_rest_server_set_tls(fixture->server, &tls, &err)); /* nothing changes */
    assert_err(&err, DV_INVALID_ARGUMENT, "TLS: certificate and key: ");
    other_ca = fixture_cert(fixture, NULL, "ca", NULL, 0);
    tls = (struct dv_rest_tls){cert.cert, cert.key, other_ca.cert};
    assert_ok(dv_rest_server_set_tls(fixture->server, &tls, &err), &err);
    (void)close(program.in);
    program.in = -1;
    program_expect(&program, "server\nrenewed\nserver\ndone\n");
    program_end_well(&program);
    cert = fixture_cert(fixture, &other_ca, "admin", groups, 0);
    expect_who(fixture, &cert, "admin [system:masters] [others]\n");
    assert_int_equal(fixture->complaints.n, 0);
}

static void bad_certificates_do_not_open(void **state)
{
    struct fixture *fixture = *state;
    struct dv_rest_cert other;

    fixture_certify(fixture);
    other = fixture_cert(fixture, &fixture->ca, "other", NULL, 0);
    {
        const struct {
            struct dv_rest_tls tls;
            const char *text;
        } cases[] = {
            {{DV_STR(""), fixture->tls.key, DV_STR("")},              "missing"       },
            {{fixture->tls.cert, DV_STR(""), DV_STR("")},             "missing"       },
            {{DV_STR("x"), fixture->tls.key, DV_STR("")},             "certificate"   },
            {{fixture->tls.cert, other.key, DV_STR("")},              "do not match"  },
            {{fixture->tls.cert, fixture->tls.key, DV_STR("no PEM")}, "CA certificate"},
            {{fixture->tls.cert, fixture->tls.key, fixture->tls.key}, "CA certificate"},
        };

        for (size_t i = 0; i < DV_COUNT(cases); i++) {
            struct dv_rest_server_options options = fixture->options;
            struct dv_err err;

            options.tls = &cases[i].tls;
            assert_null(dv_rest_server_open(fixture->loop, DV_STR(":0"), &options, &err));
            assert_err(&err, DV_INVALID_ARGUMENT, cases[i].text);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_start, fixture_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(curl_is_served_under_tls),
        TEST(who_does_not_trust_us_is_named),
        TEST(old_tls_and_no_tls_are_refused),
        TEST(a_client_is_who_its_certificate_names),
        TEST(a_server_without_a_client_ca_asks_for_none),
        TEST(pipelined_requests_are_answered_under_tls),
        TEST(a_client_that_closes_in_order_is_answered_in_order),
        TEST(large_bodies_go_both_ways_under_tls),
        TEST(a_stream_goes_out_at_once_under_tls),
        TEST(a_client_that_does_not_read_pushes_back_under_tls),
        TEST(a_certificate_is_replaced_while_it_is_used),
        TEST(bad_certificates_do_not_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
