#include "support/dvtest.h"

#include <string.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "rest/rest.h"
#include "support/arena.h"

#define NOW_S 1700000000ull
#define NOW_NS (NOW_S * 1000000000ull)
#define DAY_S 86400ull
#define A16 "aaaaaaaaaaaaaaaa"
#define A64 A16 A16 A16 A16

static const dv_str hosts[] = {
    DV_STR_INIT("kubernetes.default.svc"),
    DV_STR_INIT("*.example.com"),
    DV_STR_INIT("10.96.0.1"),
    DV_STR_INIT("fd00::1"),
};
static const dv_str groups[] = {
    DV_STR_INIT("system:nodes"),
    DV_STR_INIT("system:masters"),
    DV_STR_INIT("\xc3\xa4ltere Gr\xc3\xbc\xc3\x9f"
                "e"),
};

static struct dv_rest_cert make_ca(struct dv_arena *arena)
{
    struct dv_rest_cert_request request = {
        .name = DV_STR("davit-ca"), .now_ns = NOW_NS, .valid_days = 3650};
    struct dv_rest_cert ca;
    struct dv_err err;

    assert_ok(dv_rest_cert_make_ca(&request, arena, &ca, &err), &err);
    return ca;
}

static gnutls_x509_crt_t parse(dv_str pem)
{
    gnutls_datum_t text = {(unsigned char *)(uintptr_t)pem.p, (unsigned)pem.n};
    gnutls_x509_crt_t cert;

    assert_int_equal(gnutls_x509_crt_init(&cert), 0);
    assert_int_equal(gnutls_x509_crt_import(cert, &text, GNUTLS_X509_FMT_PEM), 0);
    return cert;
}

/* The flaws of `pem`, at a time, for a purpose; 0: none. */
static unsigned flaws_of(dv_str pem, dv_str ca_pem, const char *purpose)
{
    gnutls_typed_vdata_st wanted = {GNUTLS_DT_KEY_PURPOSE_OID, (unsigned char *)(uintptr_t)purpose,
                                    0};
    gnutls_x509_crt_t cert = parse(pem);
    gnutls_x509_crt_t ca = parse(ca_pem);
    gnutls_x509_trust_list_t list;
    unsigned flaws = 0;

    assert_int_equal(gnutls_x509_trust_list_init(&list, 0), 0);
    assert_int_equal(gnutls_x509_trust_list_add_cas(list, &ca, 1, 0), 1);
    assert_int_equal(gnutls_x509_trust_list_verify_crt2(list, &cert, 1, &wanted, 1,
                                                        GNUTLS_VERIFY_DISABLE_TIME_CHECKS, &flaws,
                                                        NULL),
                     0);
    gnutls_x509_trust_list_deinit(list, 1);
    gnutls_x509_crt_deinit(cert);
    return flaws;
}

static void a_ca_vouches_for_what_it_has_signed(void **state)
{
    struct dv_rest_cert_request request = {.name = DV_STR("davit"),
                                           .hosts = hosts,
                                           .n_hosts = DV_COUNT(hosts),
                                           .now_ns = NOW_NS,
                                           .valid_days = 365};
    struct dv_rest_cert ca = make_ca(*state);
    struct dv_rest_cert other_ca = make_ca(*state);
    struct dv_rest_cert server;
    struct dv_rest_cert client;
    struct dv_err err;

    assert_ok(dv_rest_cert_make_server(&ca, &request, *state, &server, &err), &err);
    assert_ok(dv_rest_cert_make_client(&ca, &request, *state, &client, &err), &err);
    assert_int_equal(flaws_of(server.cert, ca.cert, GNUTLS_KP_TLS_WWW_SERVER), 0);
    assert_int_equal(flaws_of(client.cert, ca.cert, GNUTLS_KP_TLS_WWW_CLIENT), 0);
    assert_int_not_equal(flaws_of(server.cert, ca.cert, GNUTLS_KP_TLS_WWW_CLIENT), 0);
    assert_int_not_equal(flaws_of(client.cert, ca.cert, GNUTLS_KP_TLS_WWW_SERVER), 0);
    assert_int_not_equal(flaws_of(server.cert, other_ca.cert, GNUTLS_KP_TLS_WWW_SERVER), 0);
    /* Keys are told apart, and no certificate but a CA's signs others. */
    assert_false(dv_str_eq(server.key, client.key));
    assert_false(dv_rest_cert_make_client(&server, &request, *state, &client, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "not one of a CA");
}

static void a_certificate_is_for_its_hosts(void **state)
{
    static const struct {
        const char *host;
        bool is_covered;
    } cases[] = {
        {"kubernetes.default.svc", true },
        {"a.example.com",          true },
        {"10.96.0.1",              true },
        {"fd00::1",                true },
        {"kubernetes.default",     false},
        {"a.b.example.com",        false},
        {"10.96.0.2",              false},
        {"davit",                  false}, /* the name counts only where there are no hosts */
    };
    struct dv_rest_cert_request request = {.name = DV_STR("davit"),
                                           .hosts = hosts,
                                           .n_hosts = DV_COUNT(hosts),
                                           .now_ns = NOW_NS,
                                           .valid_days = 1};
    struct dv_rest_cert ca = make_ca(*state);
    struct dv_rest_cert server;
    gnutls_x509_crt_t cert;
    struct dv_err err;

    assert_ok(dv_rest_cert_make_server(&ca, &request, *state, &server, &err), &err);
    cert = parse(server.cert);
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_int_equal(!!gnutls_x509_crt_check_hostname(cert, cases[i].host),
                         cases[i].is_covered);
    assert_int_equal(gnutls_x509_crt_get_activation_time(cert), NOW_S - 300);
    assert_int_equal(gnutls_x509_crt_get_expiration_time(cert), NOW_S + DAY_S);
    assert_int_equal(gnutls_x509_crt_get_pk_ecc_raw(cert, NULL, NULL, NULL), 0);
    gnutls_x509_crt_deinit(cert);
}

static void a_certificate_names_its_subject_in_full(void **state)
{
    struct dv_rest_cert_request request = {.name = DV_STR("system:node:n1"),
                                           .groups = groups,
                                           .n_groups = DV_COUNT(groups),
                                           .now_ns = NOW_NS,
                                           .valid_days = 1};
    struct dv_rest_cert ca = make_ca(*state);
    struct dv_rest_cert client;
    gnutls_x509_crt_t cert;
    struct dv_err err;

    assert_ok(dv_rest_cert_make_client(&ca, &request, *state, &client, &err), &err);
    cert = parse(client.cert);
    for (unsigned i = 0; i <= DV_COUNT(groups); i++) {
        char text[100];
        size_t n = sizeof(text);
        int status =
            gnutls_x509_crt_get_dn_by_oid(cert, GNUTLS_OID_X520_ORGANIZATION_NAME, i, 0, text, &n);

        assert_int_equal(status, i < DV_COUNT(groups) ? 0 : GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE);
        if (i < DV_COUNT(groups))
            assert_true(dv_str_eq((dv_str){text, n}, groups[i]));
    }
    gnutls_x509_crt_deinit(cert);
}

static void what_cannot_be_in_a_certificate_is_refused(void **state)
{
    static const struct {
        const char *name;
        dv_str group;
        dv_str host;
        uint64_t valid_days;
        const char *text;
    } cases[] = {
        {"",      DV_STR_INIT("g"),    DV_STR_INIT("h"),             1,     "name \"\""           },
        {"a\nb",  DV_STR_INIT("g"),    DV_STR_INIT("h"),             1,     "name"                },
        {"\xff",  DV_STR_INIT("g"),    DV_STR_INIT("h"),             1,     "name"                },
        {A64 "a", DV_STR_INIT("g"),    DV_STR_INIT("h"),             1,     "name"                },
        {"n",     DV_STR_INIT(""),     DV_STR_INIT("h"),             1,     "group"               },
        {"n",     DV_STR_INIT("a\0b"), DV_STR_INIT("h"),             1,     "group"               },
        {"n",     DV_STR_INIT("g"),    DV_STR_INIT(""),              1,     "host \"\""           },
        {"n",     DV_STR_INIT("g"),    DV_STR_INIT("a b"),           1,     "host \"a b\""        },
        {"n",     DV_STR_INIT("g"),    DV_STR_INIT("1.2.3.4\0"),     1,     "host"                },
        {"n",     DV_STR_INIT("g"),    DV_STR_INIT("fd00::g"),       1,     "host"                },
        {"n",     DV_STR_INIT("g"),    DV_STR_INIT(A64 A64 A64 A64), 1,     "host"                },
        {"n",     DV_STR_INIT("g"),    DV_STR_INIT("h"),             0,     "valid for 0 days"    },
        {"n",     DV_STR_INIT("g"),    DV_STR_INIT("h"),             36501, "valid for 36501 days"},
    };
    struct dv_rest_cert ca = make_ca(*state);

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_rest_cert_request request = {.name = dv_str_from_c(cases[i].name),
                                               .groups = &cases[i].group,
                                               .n_groups = 1,
                                               .hosts = &cases[i].host,
                                               .n_hosts = 1,
                                               .now_ns = NOW_NS,
                                               .valid_days = cases[i].valid_days};
        struct dv_rest_cert cert;
        struct dv_err err;

        assert_false(dv_rest_cert_make_client(&ca, &request, *state, &cert, &err));
        assert_err(&err, DV_INVALID_ARGUMENT, cases[i].text);
        assert_err(&err, DV_INVALID_ARGUMENT, "certificate for ");
    }
}

static void a_ca_that_is_none_is_refused(void **state)
{
    struct dv_rest_cert_request request = {.name = DV_STR("n"), .now_ns = NOW_NS, .valid_days = 1};
    struct dv_rest_cert ca = make_ca(*state);
    struct dv_rest_cert other = make_ca(*state);
    const struct {
        struct dv_rest_cert ca;
        const char *text;
    } cases[] = {
        {{DV_STR(""), ca.key},                              "CA certificate"},
        {{DV_STR("-----BEGIN CERTIFICATE-----\n"), ca.key}, "CA certificate"},
        {{ca.key, ca.key},                                  "CA certificate"},
        {{ca.cert, DV_STR("")},                             "CA key"        },
        {{ca.cert, ca.cert},                                "CA key"        },
        {{ca.cert, dv_str_slice(ca.key, 0, ca.key.n / 2)},  "CA key"        },
        {{ca.cert, other.key},                              "do not match"  },
    };

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_rest_cert cert;
        struct dv_err err;

        assert_false(dv_rest_cert_make_server(&cases[i].ca, &request, *state, &cert, &err));
        assert_err(&err, DV_INVALID_ARGUMENT, cases[i].text);
    }
}

static void the_end_of_a_certificate_is_told(void **state)
{
    struct dv_rest_cert ca = make_ca(*state);
    uint64_t end_ns = 0;
    struct dv_err err;

    assert_ok(dv_rest_cert_end(ca.cert, &end_ns, &err), &err);
    assert_true(end_ns == (NOW_S + 3650 * DAY_S) * 1000000000ull);
    assert_false(dv_rest_cert_end(ca.key, &end_ns, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "certificate");
    assert_false(dv_rest_cert_end(DV_STR(""), &end_ns, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "certificate");
}

static void the_key_of_a_certificate_has_a_pin(void **state)
{
    struct dv_rest_cert ca = make_ca(*state);
    struct dv_rest_cert other = make_ca(*state);
    dv_str pin, same, another;
    struct dv_err err;

    assert_ok(dv_rest_cert_pin(ca.cert, *state, &pin, &err), &err);
    assert_ok(dv_rest_cert_pin(ca.cert, *state, &same, &err), &err);
    assert_ok(dv_rest_cert_pin(other.cert, *state, &another, &err), &err);
    assert_true(dv_rest_is_pin(pin) && dv_str_eq(pin, same) && !dv_str_eq(pin, another));
    assert_false(dv_rest_cert_pin(ca.key, *state, &pin, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "certificate");
}

static void hashes_are_those_of_the_standard(void **state)
{
    static const struct {
        const char *text;
        const char *want;
    } cases[] = {
        {"",                                                         "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc",                                                      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"                                                            },
    };

    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_str(dv_rest_sha256_hex(dv_str_from_c(cases[i].text), *state), cases[i].want);
}

static void tokens_are_long_and_differ(void **state)
{
    dv_str tokens[100];
    unsigned seen[256] = {0};
    unsigned n_seen = 0;

    for (size_t i = 0; i < DV_COUNT(tokens); i++) {
        tokens[i] = dv_rest_random_token(*state);
        assert_int_equal(tokens[i].n, 43);
        for (size_t k = 0; k < tokens[i].n; k++)
            seen[(unsigned char)tokens[i].p[k]]++;
        /* The last one holds four bits. */
        assert_non_null(strchr("AEIMQUYcgkosw048", tokens[i].p[42]));
        for (size_t k = 0; k < i; k++)
            assert_false(dv_str_eq(tokens[i], tokens[k]));
    }
    for (size_t c = 0; c < DV_COUNT(seen); c++)
        n_seen += seen[c] > 0;
    assert_int_equal(n_seen, 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        arena_test(a_ca_vouches_for_what_it_has_signed),
        arena_test(a_certificate_is_for_its_hosts),
        arena_test(a_certificate_names_its_subject_in_full),
        arena_test(what_cannot_be_in_a_certificate_is_refused),
        arena_test(a_ca_that_is_none_is_refused),
        arena_test(the_end_of_a_certificate_is_told),
        arena_test(the_key_of_a_certificate_has_a_pin),
        arena_test(hashes_are_those_of_the_standard),
        arena_test(tokens_are_long_and_differ),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
