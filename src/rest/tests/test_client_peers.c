#include "support/dvtest.h"

#include <stdlib.h>
#include <string.h>

#include "loop/loop.h"
#include "rest/tests/test_fetch.h"
#include "rest/tests/test_program.h"
#include "rest/tests/test_rest_fixture.h"

/* Python's HTTP server, which also does what none should: prints its port, serves until its input
 * ends. Arguments: the files of a certificate and its key, for TLS. */
static const char server_script[] =
    "import sys, ssl, time, threading, http.server\n"
    "class Handler(http.server.BaseHTTPRequestHandler):\n"
    "    protocol_version = 'HTTP/1.1'\n"
    "    def log_message(self, *args): pass\n"
    "    def raw(self, text, keep=False):\n"
    "        self.wfile.write(text)\n"
    "        self.wfile.flush()\n"
    "        self.close_connection = not keep\n"
    "    def do_GET(self):\n"
    "        name = self.path.split('?')[0].strip('/').replace('-', '_')\n"
    "        getattr(self, 'get_' + name)()\n"
    "    def do_POST(self):\n"
    "        body = self.rfile.read(int(self.headers['Content-Length']))\n"
    "        self.get_nothing() if self.path == '/nothing' else self.answer(body)\n"
    "    def answer(self, body, status=200, **fields):\n"
    "        self.send_response(status)\n"
    "        self.send_header('Content-Length', str(len(body)))\n"
    "        for name, value in fields.items():\n"
    "            self.send_header(name.replace('_', '-'), value)\n"
    "        self.end_headers()\n"
    "        self.wfile.write(body)\n"
    "    def get_plain(self): self.answer(b'plain')\n"
    "    def get_busy(self):\n"
    "        self.answer(b'busy', 429, Retry_After='7', Warning='299 - \"later\"',\n"
    "                    Content_Type='application/json')\n"
    "    def get_redirect(self): self.answer(b'', 302, Location='/plain')\n"
    "    def get_chunked(self):\n"
    "        self.send_response(200)\n"
    "        self.send_header('Transfer-Encoding', 'chunked')\n"
    "        self.end_headers()\n"
    "        for part in (b'5\\r\\nhello\\r', b'\\n1;x=y\\r\\n \\r\\n5\\r\\nwo', "
    "b'rld\\r\\n0\\r\\n',\n"
    "                     b'X-T: r\\r\\n\\r\\n'):\n"
    "            self.wfile.write(part)\n"
    "            self.wfile.flush()\n"
    "            time.sleep(0.01)\n"
    "    def get_slow(self):\n"
    "        for c in b'HTTP/1.1 200 OK\\r\\nContent-Length: 4\\r\\n\\r\\nslow':\n"
    "            self.raw(bytes([c]), keep=True)\n"
    "            time.sleep(0.001)\n"
    "    def get_until_closed(self): self.raw(b'HTTP/1.0 200 OK\\r\\n\\r\\nuntil closed')\n"
    "    def get_continue(self):\n"
    "        self.raw(b'HTTP/1.1 100 Continue\\r\\nX-Not: this\\r\\n\\r\\n', keep=True)\n"
    "        self.get_plain()\n"
    "    def get_nothing(self): self.raw(b'')\n"
    "    def get_midway(self): self.raw(b'HTTP/1.1 200 OK\\r\\nContent-Length: "
    "99\\r\\n\\r\\nsome')\n"
    "    def get_midheader(self): self.raw(b'HTTP/1.1 200 OK\\r\\nContent-Le')\n"
    "    def get_midchunk(self):\n"
    "        self.raw(b'HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n9\\r\\nsome')\n"
    "    def get_badchunk(self):\n"
    "        self.raw(b'HTTP/1.1 200 OK\\r\\nTransfer-Encoding: "
    "chunked\\r\\n\\r\\nxyz\\r\\nsome')\n"
    "    def get_badlength(self):\n"
    "        self.raw(b'HTTP/1.1 200 OK\\r\\nContent-Length: -5\\r\\n\\r\\nsome')\n"
    "    def get_garbage(self): self.raw(b'\\x00\\xff\\xfe garbage\\n\\n' * 100)\n"
    "    def get_badstatus(self): self.raw(b'HTTP/1.1 abc OK\\r\\n\\r\\n')\n"
    "    def get_other_protocol(self): self.raw(b'SSH-2.0-OpenSSH_9.2\\r\\n')\n"
    "    def get_large_header(self):\n"
    "        self.raw(b'HTTP/1.1 200 OK\\r\\n' + b'X-A: b\\r\\n' * 10000 + b'\\r\\n')\n"
    "    def get_long_line(self):\n"
    "        self.raw(b'HTTP/1.1 200 OK\\r\\nX-A: ' + b'b' * 200000 + b'\\r\\n\\r\\n')\n"
    "    def get_endless(self):\n"
    "        self.raw(b'HTTP/1.1 200 OK\\r\\n\\r\\n', keep=True)\n"
    "        try:\n"
    "            while True: self.raw(b'x' * 65536)\n"
    "        except OSError: pass\n"
    "    def get_hang(self):\n"
    "        print('hanging')\n"
    "        try: self.connection.recv(1)\n"
    "        except OSError: pass\n"
    "        print('hung up')\n"
    "        self.close_connection = True\n"
    "    def get_quiet(self):\n"
    "        self.raw(b'HTTP/1.1 200 OK\\r\\nContent-Length: 9\\r\\n\\r\\nsome', keep=True)\n"
    "        self.get_hang()\n"
    "class Server(http.server.ThreadingHTTPServer):\n"
    "    daemon_threads = True\n"
    "    def handle_error(self, *args): pass\n"
    "server = Server(('127.0.0.1', 0), Handler)\n"
    "if len(sys.argv) > 1:\n"
    "    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\n"
    "    context.load_cert_chain(sys.argv[1], sys.argv[2])\n"
    "    server.socket = context.wrap_socket(server.socket, server_side=True,\n"
    "                                        do_handshake_on_connect=False)\n"
    "threading.Thread(target=server.serve_forever, daemon=True).start()\n"
    "print('port %d.' % server.server_address[1])\n"
    "sys.stdin.read()\n";

struct peer {
    struct fixture *fixture;
    struct program program;
    struct asker asker;
};

/* With `cert`: under TLS. */
static void start_peer(struct peer *peer, struct fixture *fixture, const struct dv_rest_cert *cert)
{
    const char *args[3] = {cert ? text_file(fixture, cert->cert) : NULL,
                           cert ? text_file(fixture, cert->key) : NULL, NULL};
    struct program *program = &peer->program;

    peer->fixture = fixture;
    program_start_python(program, fixture, server_script, args);
    program_expect(program, ".\n");
    peer->asker = (struct asker){0};
    peer->asker.options.base_url =
        dv_str_printf(fixture->arena, "%s://127.0.0.1:%d", cert ? "https" : "http",
                      atoi(strstr(dv_buf_c(&program->output), "port ") + 5));
    if (cert)
        peer->asker.options.ca = fixture->ca.cert;
    asker_open(&peer->asker, fixture);
}

static void end_peer(struct peer *peer)
{
    asker_close(&peer->asker);
    program_end(&peer->program);
}

static const struct dv_rest_cert *cert_of(struct fixture *fixture, struct dv_rest_cert *cert)
{
    if (!fixture->options.tls)
        return NULL;
    *cert = (struct dv_rest_cert){fixture->tls.cert, fixture->tls.key};
    return cert;
}

static int start_tls(void **state)
{
    int status = fixture_start(state);

    fixture_certify(*state);
    return status;
}

static void every_good_answer_is_taken(void **state)
{
    static const struct {
        const char *target;
        unsigned status;
        const char *body;
        const char *fields;
    } cases[] = {
        {"/plain",        200, "plain",        "Content-Length: 5\n"         },
        {"/chunked",      200, "hello world",  "Transfer-Encoding: chunked\n"},
        {"/slow",         200, "slow",         ""                            },
        {"/until-closed", 200, "until closed", ""                            },
        {"/continue",     200, "plain",        "Content-Length: 5\n"         },
        {"/redirect",     302, "",             "Location: /plain\n"          },
        {"/busy",         429, "busy",
         "Retry-After: 7\nWarning: 299 - \"later\"\n"
         "Content-Type: application/json\n"                                  },
    };
    struct fixture *fixture = *state;
    struct dv_rest_cert cert;
    struct peer peer;

    start_peer(&peer, fixture, cert_of(fixture, &cert));
    for (int is_streamed = 0; is_streamed < 2; is_streamed++) {
        for (size_t i = 0; i < DV_COUNT(cases); i++) {
            struct ask ask;

            ask_init(&ask, &peer.asker, "GET", cases[i].target);
            if (is_streamed)
                ask_stream(&ask);
            ask_start(&ask);
            ask_wait(&ask);
            /* Python closes TLS connections without a word, so the end of this one is not sure. */
            if (fixture->options.tls && strcmp(cases[i].target, "/until-closed") == 0) {
                assert_int_equal(ask.err.code, DV_UNAVAILABLE);
            } else {
                if (ask.err.code != DV_OK || ask.status != cases[i].status)
                    fail_msg("%s: %u %s", cases[i].target, ask.status, ask.err.msg);
                assert_str(dv_buf_str(&ask.body), cases[i].body);
                if (!strstr(dv_buf_c(&ask.fields), cases[i].fields))
                    fail_msg("%s: %s", cases[i].target, dv_buf_c(&ask.fields));
            }
            assert_null(strstr(dv_buf_c(&ask.fields), "X-Not"));
            assert_null(strstr(dv_buf_c(&ask.fields), "X-T"));
            ask_fini(&ask);
        }
    }
    end_peer(&peer);
}

static void every_bad_answer_is_an_error(void **state)
{
    static const struct {
        const char *target;
        enum dv_code code;
        const char *text;
    } cases[] = {
        {"/nothing",        DV_UNAVAILABLE,        "closed without an answer"           },
        {"/midway",         DV_UNAVAILABLE,        "closed in the middle"               },
        {"/midheader",      DV_UNAVAILABLE,        "closed"                             },
        {"/midchunk",       DV_UNAVAILABLE,        "closed in the middle"               },
        {"/badchunk",       DV_UNAVAILABLE,        "chunk"                              },
        {"/badlength",      DV_INTERNAL,           "Content-Length"                     },
        {"/garbage",        DV_INTERNAL,           "not HTTP"                           },
        {"/badstatus",      DV_INTERNAL,           "not HTTP"                           },
        {"/other-protocol", DV_INTERNAL,           "not HTTP"                           },
        {"/large-header",   DV_RESOURCE_EXHAUSTED, "header is "                         },
        {"/long-line",      DV_RESOURCE_EXHAUSTED, "header is too long"                 },
        {"/endless",        DV_RESOURCE_EXHAUSTED, "answer is larger than 1000000 bytes"},
    };
    struct fixture *fixture = *state;
    struct dv_rest_cert cert;
    struct peer peer;

    start_peer(&peer, fixture, cert_of(fixture, &cert));
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct ask ask;

        ask_init(&ask, &peer.asker, "GET", cases[i].target);
        ask.fetch.body_bytes_max = 1000000;
        ask_start(&ask);
        ask_wait(&ask);
        if (!fixture->options.tls || cases[i].code != DV_UNAVAILABLE)
            assert_err(&ask.err, cases[i].code, cases[i].text);
        assert_int_equal(ask.err.code, cases[i].code);
        assert_non_null(strstr(ask.err.msg, "GET http"));
        assert_non_null(strstr(ask.err.msg, cases[i].target));
        assert_int_equal(ask.body.n, 0);
        ask_fini(&ask);
        ask_expect(&peer.asker, "GET", "/plain", "", 200, "plain"); /* the client goes on */
    }
    end_peer(&peer);
}

static void a_silent_server_costs_no_more_than_the_time_given(void **state)
{
    static const struct {
        const char *target;
        uint64_t deadline_ms;
        uint64_t idle_ms;
        const char *text;
    } cases[] = {
        {"/hang",  3000, 0,    "no complete answer before the deadline"},
        {"/quiet", 3000, 0,    "no complete answer before the deadline"},
        {"/hang",  0,    3000, "nothing has come for 3000 ms"          },
        {"/quiet", 0,    3000, "nothing has come for 3000 ms"          },
        {"/quiet", 3000, 5000, "no complete answer before the deadline"},
        {"/quiet", 5000, 3000, "nothing has come for 3000 ms"          },
    };
    struct fixture *fixture = *state;
    struct dv_rest_cert cert;
    struct peer peer;

    start_peer(&peer, fixture, cert_of(fixture, &cert));
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct ask ask;
        uint64_t now_ms = dv_loop_now_ms(fixture->loop);

        dv_buf_clear(&peer.program.output);
        ask_init(&ask, &peer.asker, "GET", cases[i].target);
        ask_stream(&ask);
        ask.fetch.deadline_ms = cases[i].deadline_ms ? now_ms + cases[i].deadline_ms : 0;
        ask.fetch.idle_ms = cases[i].idle_ms;
        ask_start(&ask);
        program_expect(&peer.program, "hanging");
        if (strcmp(cases[i].target, "/quiet") == 0)
            ask_wait_for(&ask, "some");
        advance(fixture, 2999);
        assert_int_equal(ask.n_done, 0);
        advance(fixture, 1);
        ask_wait(&ask);
        assert_err(&ask.err, DV_DEADLINE_EXCEEDED, cases[i].text);
        program_expect(&peer.program, "hung up"); /* the connection is not kept */
        ask_fini(&ask);
    }
    end_peer(&peer);
}

static void a_connection_that_the_server_has_closed_is_made_anew(void **state)
{
    struct fixture *fixture = *state;
    struct dv_rest_cert cert;
    struct peer peer;

    start_peer(&peer, fixture, cert_of(fixture, &cert));
    for (int i = 0; i < 5; i++) {
        struct ask ask;

        ask_expect(&peer.asker, "POST", "/", "posted", 200, "posted");
        /* On the kept connection it gets nothing, is sent again, and gets nothing: then it ends. */
        ask_init(&ask, &peer.asker, "POST", "/nothing");
        ask.fetch.body = DV_STR("lost");
        ask_start(&ask);
        ask_wait(&ask);
        assert_int_equal(ask.err.code, DV_UNAVAILABLE);
        ask_fini(&ask);
    }
    end_peer(&peer);
}

/* ---- who the server is ---- */

static void a_server_must_prove_who_it_is(void **state)
{
    struct fixture *fixture = *state;
    struct dv_rest_cert other_ca = fixture_cert(fixture, NULL, "ca", NULL, 0);
    const struct {
        struct dv_rest_cert cert;
        const char *text;
    } cases[] = {
        {fixture_cert(fixture, &other_ca,    "server", NULL, 0),  "The certificate issuer is unknown."},
        {fixture_cert(fixture, &fixture->ca, "server", NULL, 40), "uses expired certificate"          },
    };

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct peer peer;
        struct ask ask;

        start_peer(&peer, fixture, &cases[i].cert);
        ask_init(&ask, &peer.asker, "GET", "/plain");
        ask_start(&ask);
        ask_wait(&ask);
        assert_err(&ask.err, DV_UNAUTHENTICATED, cases[i].text);
        assert_err(&ask.err, DV_UNAUTHENTICATED, "/plain: the server's certificate: ");
        assert_int_equal(ask.status, 0);
        ask_fini(&ask);
        end_peer(&peer);
    }
}

static void a_server_for_another_host_is_refused(void **state)
{
    static const dv_str host = DV_STR_INIT("other.example.com");
    struct fixture *fixture = *state;
    struct dv_rest_cert_request request = {.name = DV_STR("other"),
                                           .hosts = &host,
                                           .n_hosts = 1,
                                           .now_ns = dv_clock_wall_ns(dv_clock_real()),
                                           .valid_days = 30};
    struct dv_rest_cert cert;
    struct dv_err err;
    struct peer peer;
    struct ask ask;

    assert_ok(dv_rest_cert_make_server(&fixture->ca, &request, fixture->arena, &cert, &err), &err);
    start_peer(&peer, fixture, &cert);
    ask_init(&ask, &peer.asker, "GET", "/plain");
    ask_start(&ask);
    ask_wait(&ask);
    assert_err(&ask.err, DV_UNAUTHENTICATED, "does not match");
    ask_fini(&ask);
    end_peer(&peer);
}

static void without_a_ca_of_ones_own_the_systems_count(void **state)
{
    struct fixture *fixture = *state;
    struct dv_rest_cert cert;
    struct peer peer;
    struct ask ask;
    bool has_cas;

    start_peer(&peer, fixture, cert_of(fixture, &cert));
    asker_close(&peer.asker);
    peer.asker.options.ca = DV_STR("");
    fixture->ca.cert = DV_STR(""); /* no default either */
    asker_open(&peer.asker, fixture);
    ask_init(&ask, &peer.asker, "GET", "/plain");
    ask_start(&ask);
    ask_wait(&ask);
    has_cas = ask.err.code != DV_INVALID_ARGUMENT;
    if (has_cas)
        assert_err(&ask.err, DV_UNAUTHENTICATED, "issuer is unknown");
    else
        assert_err(&ask.err, DV_INVALID_ARGUMENT, "CA cert");
    ask_fini(&ask);
    end_peer(&peer);
    if (!has_cas)
        skip(); /* ca-certificates is not installed */
}

static void tls_and_plain_do_not_mix(void **state)
{
    struct fixture *fixture = *state;
    bool is_tls = fixture->options.tls != NULL;
    struct dv_rest_cert cert;
    struct peer peer;
    struct ask ask;
    dv_str url;

    start_peer(&peer, fixture, cert_of(fixture, &cert));
    asker_close(&peer.asker);
    url = peer.asker.options.base_url;
    peer.asker.options.base_url =
        dv_str_printf(fixture->arena, "%s://%.*s", is_tls ? "http" : "https",
                      DV_FMT(dv_str_slice(url, is_tls ? 8 : 7, url.n)));
    peer.asker.options.ca = /* any: the system may have none */
        is_tls ? DV_STR("") : fixture_cert(fixture, NULL, "ca", NULL, 0).cert;
    asker_open(&peer.asker, fixture);
    ask_init(&ask, &peer.asker, "GET", "/plain");
    ask_start(&ask);
    ask_wait(&ask);
    assert_int_equal(ask.err.code, DV_UNAVAILABLE);
    ask_fini(&ask);
    end_peer(&peer);
}

#define TLS_TEST(name)                                                                             \
    {                                                                                              \
#name "_under_tls", name, start_tls, fixture_end, NULL                                     \
    }
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_start, fixture_end), TLS_TEST(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_good_answer_is_taken),
        TEST(every_bad_answer_is_an_error),
        TEST(a_silent_server_costs_no_more_than_the_time_given),
        TEST(a_connection_that_the_server_has_closed_is_made_anew),
        TEST(tls_and_plain_do_not_mix),
        TLS_TEST(a_server_must_prove_who_it_is),
        TLS_TEST(a_server_for_another_host_is_refused),
        TLS_TEST(without_a_ca_of_ones_own_the_systems_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
