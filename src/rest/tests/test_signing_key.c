#include "support/dvtest.h"

#include <string.h>

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "rest/signing_key.h"
#include "support/arena.h"

#define TEXT_BYTES_MAX 4096u

/* Makes a private key of another kind than dv_signing_key_make, as PEM. */
static dv_str make_pem(gnutls_pk_algorithm_t algorithm, unsigned bits, bool is_public,
                       struct dv_arena *arena)
{
    gnutls_x509_privkey_t key;
    gnutls_pubkey_t public_key;
    gnutls_datum_t text = {0};
    dv_str pem;

    assert_int_equal(gnutls_x509_privkey_init(&key), 0);
    assert_int_equal(gnutls_x509_privkey_generate(key, algorithm, bits, 0), 0);
    if (is_public) {
        gnutls_privkey_t abstract;

        assert_int_equal(gnutls_privkey_init(&abstract), 0);
        assert_int_equal(gnutls_privkey_import_x509(abstract, key, 0), 0);
        assert_int_equal(gnutls_pubkey_init(&public_key), 0);
        assert_int_equal(gnutls_pubkey_import_privkey(public_key, abstract, 0, 0), 0);
        assert_int_equal(gnutls_pubkey_export2(public_key, GNUTLS_X509_FMT_PEM, &text), 0);
        gnutls_pubkey_deinit(public_key);
        gnutls_privkey_deinit(abstract);
    } else {
        assert_int_equal(gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &text), 0);
    }
    pem = dv_str_copy((dv_str){(const char *)text.data, text.size}, arena);
    gnutls_free(text.data);
    gnutls_x509_privkey_deinit(key);
    return pem;
}

static struct dv_signing_key *load(dv_str pem)
{
    struct dv_err err;
    struct dv_signing_key *key = dv_signing_key_new(pem, &err);

    assert_ok(key != NULL, &err);
    return key;
}

static dv_str new_pem(struct dv_arena *arena)
{
    struct dv_err err;
    dv_str pem;

    assert_ok(dv_signing_key_make(arena, &pem, &err), &err);
    return pem;
}

static void check_signatures(dv_str pem, const char *algorithm, size_t n_bytes,
                             struct dv_arena *arena)
{
    struct dv_signing_key *key = load(pem);
    struct dv_signing_key *other = load(new_pem(arena));
    struct dv_err err;
    dv_str signature;
    char *changed;

    assert_true(dv_signing_key_can_sign(key));
    assert_str(dv_signing_key_algorithm(key), algorithm);
    assert_int_equal(dv_signing_key_id(key).n, 43);
    assert_false(dv_str_eq(dv_signing_key_id(key), dv_signing_key_id(other)));
    /* Numbers of a signature that begin with zeros come once in a hundred times. */
    for (unsigned i = 0; i < (n_bytes == 64 ? 600 : 2); i++) {
        assert_ok(dv_signing_key_sign(key, DV_STR("some text"), arena, &signature, &err), &err);
        assert_int_equal(signature.n, n_bytes);
        assert_true(dv_signing_key_verify(key, DV_STR("some text"), signature));
    }
    assert_false(dv_signing_key_verify(key, DV_STR("some texT"), signature));
    assert_false(dv_signing_key_verify(other, DV_STR("some text"), signature));
    assert_false(dv_signing_key_verify(key, DV_STR("some text"), DV_STR("")));
    assert_false(dv_signing_key_verify(key, DV_STR("some text"),
                                       dv_str_slice(signature, 0, signature.n - 1)));
    changed = dv_arena_alloc(arena, signature.n, 1);
    memcpy(changed, signature.p, signature.n);
    changed[signature.n - 1] ^= 1;
    assert_false(dv_signing_key_verify(key, DV_STR("some text"), (dv_str){changed, signature.n}));
    dv_signing_key_free(other);
    dv_signing_key_free(key);
}

static void a_key_on_p256_signs_and_verifies(void **state)
{
    check_signatures(new_pem(*state), "ES256", 64, *state);
}

static void an_rsa_key_signs_and_verifies(void **state)
{
    check_signatures(make_pem(GNUTLS_PK_RSA, 2048, false, *state), "RS256", 256, *state);
}

static void a_public_key_only_verifies(void **state)
{
    struct dv_signing_key *key = load(make_pem(GNUTLS_PK_RSA, 2048, true, *state));
    struct dv_err err;
    dv_str signature;

    assert_false(dv_signing_key_can_sign(key));
    assert_false(dv_signing_key_sign(key, DV_STR("text"), *state, &signature, &err));
    assert_int_equal(err.code, DV_INTERNAL);
    dv_signing_key_free(key);
}

static void refuses_what_is_no_key_for_tokens(void **state)
{
    unsigned p384 = (unsigned)GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP384R1);
    dv_str short_pem = make_pem(GNUTLS_PK_RSA, 1024, false, *state);
    dv_str other_curve = make_pem(GNUTLS_PK_ECDSA, p384, false, *state);
    dv_str edwards = make_pem(GNUTLS_PK_EDDSA_ED25519, 0, false, *state);
    const struct {
        dv_str pem;
        const char *text;
    } rows[] = {
        {DV_STR(""),      "key for tokens: "          },
        {DV_STR("hello"), "key for tokens: "          },
        {short_pem,       "from 2048 to 8192 bits"    },
        {other_curve,     "neither an RSA key nor one"},
        {edwards,         "key for tokens: "          },
    };

    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_err err;

        assert_null(dv_signing_key_new(rows[i].pem, &err));
        assert_int_equal(err.code, DV_INVALID_ARGUMENT);
        assert_non_null(strstr(err.msg, rows[i].text));
    }
}

static void prints_the_public_part_as_a_web_key(void **state)
{
    for (unsigned i = 0; i < 300; i++) { /* numbers that begin with zeros are of the same length */
        struct dv_signing_key *key = load(new_pem(*state));
        DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

        dv_buf_init(&buf, TEXT_BYTES_MAX);
        dv_signing_key_print(key, &buf);
        assert_int_equal(buf.n, strlen("{'use':'sig','kty':'EC','kid':'','alg':'ES256',"
                                       "'crv':'P-256','x':'','y':''}") +
                                    3 * 43);
        dv_signing_key_free(key);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        arena_test(a_key_on_p256_signs_and_verifies),
        arena_test(an_rsa_key_signs_and_verifies),
        arena_test(a_public_key_only_verifies),
        arena_test(refuses_what_is_no_key_for_tokens),
        arena_test(prints_the_public_part_as_a_web_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
