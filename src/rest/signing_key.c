#include "rest/signing_key.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/err.h"
#include "rest/rest.h"

/* RFC 7518 demands at least so many bits of an RSA key. */
#define RSA_BITS_MIN 2048u
/* Longer RSA keys take the loop's time: verifying with one takes a fraction of a millisecond. */
#define RSA_BITS_MAX 8192u
/* The length of each of the two numbers in a signature of ES256. */
#define P256_BYTES 32u
/* The length of a SHA-256 in base64url. */
#define ID_BYTES 43u
#define ID_TEXT_BYTES_MAX 64u

struct dv_signing_key {
    gnutls_privkey_t private_key; /* NULL: it is only for verifying */
    gnutls_pubkey_t public_key;
    gnutls_sign_algorithm_t algorithm;
    char id[ID_BYTES];
};

static gnutls_datum_t datum_of(dv_str text)
{
    return (gnutls_datum_t){(unsigned char *)(uintptr_t)text.p, (unsigned)text.n};
}

static dv_str text_of(gnutls_datum_t datum)
{
    return (dv_str){(const char *)datum.data, datum.size};
}

static bool fail_gnutls(struct dv_err *err, int status, const char *what)
{
    return dv_fail(err, DV_INTERNAL, "%s: %s", what, gnutls_strerror(status));
}

/* ---- making one ---- */

static void free_x509_key(gnutls_x509_privkey_t *key)
{
    gnutls_x509_privkey_deinit(*key);
}

bool dv_signing_key_make(struct dv_arena *arena, dv_str *pem, struct dv_err *err)
{
    DV_CLEANUP(free_x509_key) gnutls_x509_privkey_t key = NULL;
    gnutls_datum_t text = {0};
    int status = gnutls_x509_privkey_init(&key);

    if (status == 0)
        status = gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
                                              GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
    if (status == 0)
        status = gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &text);
    if (status != 0)
        return fail_gnutls(err, status, "make a key for tokens");
    *pem = dv_str_copy(text_of(text), arena);
    gnutls_memset(text.data, 0, text.size);
    gnutls_free(text.data);
    return true;
}

/* ---- reading one ---- */

/* Reads the text as a private key, and if it is none as a public one. */
static int import(struct dv_signing_key *key, dv_str pem)
{
    gnutls_datum_t text = datum_of(pem);
    gnutls_privkey_t private_key = NULL;
    int status = gnutls_pubkey_init(&key->public_key);

    if (status == 0)
        status = gnutls_privkey_init(&private_key);
    if (status != 0)
        return status;
    if (gnutls_privkey_import_x509_raw(private_key, &text, GNUTLS_X509_FMT_PEM, NULL, 0) == 0) {
        key->private_key = private_key;
        return gnutls_pubkey_import_privkey(key->public_key, private_key, 0, 0);
    }
    gnutls_privkey_deinit(private_key);
    return gnutls_pubkey_import(key->public_key, &text, GNUTLS_X509_FMT_PEM);
}

static bool find_algorithm(struct dv_signing_key *key, struct dv_err *err)
{
    unsigned n_bits = 0;
    int algorithm = gnutls_pubkey_get_pk_algorithm(key->public_key, &n_bits);
    gnutls_ecc_curve_t curve = GNUTLS_ECC_CURVE_INVALID;

    if (algorithm == GNUTLS_PK_RSA && n_bits >= RSA_BITS_MIN && n_bits <= RSA_BITS_MAX) {
        key->algorithm = GNUTLS_SIGN_RSA_SHA256;
        return true;
    }
    if (algorithm == GNUTLS_PK_RSA)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "key for tokens: an RSA key has from %u to %u bits, not %u", RSA_BITS_MIN,
                       RSA_BITS_MAX, n_bits);
    if (algorithm == GNUTLS_PK_ECDSA)
        (void)gnutls_pubkey_export_ecc_raw2(key->public_key, &curve, NULL, NULL, 0);
    if (curve != GNUTLS_ECC_CURVE_SECP256R1)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "key for tokens: it is neither an RSA key nor one on P-256");
    key->algorithm = GNUTLS_SIGN_ECDSA_SHA256;
    return true;
}

static bool make_id(struct dv_signing_key *key, struct dv_err *err)
{
    unsigned char digest[DV_REST_SHA256_BYTES];
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    gnutls_datum_t bytes = {0};
    int status = gnutls_pubkey_export2(key->public_key, GNUTLS_X509_FMT_DER, &bytes);

    dv_buf_init(&text, ID_TEXT_BYTES_MAX);
    if (status != 0)
        return fail_gnutls(err, status, "key for tokens");
    dv_rest_sha256(text_of(bytes), digest);
    gnutls_free(bytes.data);
    dv_base64url_encode((dv_str){(const char *)digest, sizeof(digest)}, &text);
    memcpy(key->id, dv_buf_str(&text).p, ID_BYTES);
    return true;
}

struct dv_signing_key *dv_signing_key_new(dv_str pem, struct dv_err *err)
{
    struct dv_signing_key *key = DV_ALLOC(struct dv_signing_key);
    int status = pem.n > INT_MAX ? GNUTLS_E_LARGE_PACKET : import(key, pem);

    if (status != 0)
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "key for tokens: %s", gnutls_strerror(status));
    else if (find_algorithm(key, err) && make_id(key, err))
        return key;
    dv_signing_key_free(key);
    return NULL;
}

void dv_signing_key_free(struct dv_signing_key *key)
{
    if (!key)
        return;
    gnutls_privkey_deinit(key->private_key);
    gnutls_pubkey_deinit(key->public_key);
    free(key);
}

/* ---- what it is ---- */

bool dv_signing_key_can_sign(const struct dv_signing_key *key)
{
    return key->private_key != NULL;
}

static bool is_rsa(const struct dv_signing_key *key)
{
    return key->algorithm == GNUTLS_SIGN_RSA_SHA256;
}

dv_str dv_signing_key_algorithm(const struct dv_signing_key *key)
{
    return is_rsa(key) ? DV_STR("RS256") : DV_STR("ES256");
}

dv_str dv_signing_key_id(const struct dv_signing_key *key)
{
    return (dv_str){key->id, sizeof(key->id)};
}

/* Copies a number so that it ends where it should. GnuTLS writes a zero before one whose first bit
 * is set, and leaves out the zeros that a short one begins with. */
static bool put_number(gnutls_datum_t number, unsigned char *to)
{
    while (number.size > P256_BYTES && number.data[0] == 0) {
        number.data++;
        number.size--;
    }
    if (number.size > P256_BYTES)
        return false;
    memset(to, 0, P256_BYTES);
    memcpy(to + P256_BYTES - number.size, number.data, number.size);
    return true;
}

/* Prints a number; those of P-256 are always of the same length. */
static void print_number(const char *name, gnutls_datum_t number, bool is_of_curve,
                         struct dv_buf *buf)
{
    unsigned char bytes[P256_BYTES];

    if (is_of_curve && put_number(number, bytes))
        number = (gnutls_datum_t){bytes, sizeof(bytes)};
    dv_buf_printf(buf, ",\"%s\":\"", name);
    dv_base64url_encode(text_of(number), buf);
    dv_buf_add_char(buf, '"');
}

void dv_signing_key_print(const struct dv_signing_key *key, struct dv_buf *buf)
{
    gnutls_datum_t first = {0};
    gnutls_datum_t second = {0};
    gnutls_ecc_curve_t curve;
    int status = is_rsa(key)
                     ? gnutls_pubkey_export_rsa_raw2(key->public_key, &first, &second,
                                                     GNUTLS_EXPORT_FLAG_NO_LZ)
                     : gnutls_pubkey_export_ecc_raw2(key->public_key, &curve, &first, &second, 0);

    if (status != 0)
        abort(); /* out of memory: the key was read */
    dv_buf_printf(buf, "{\"use\":\"sig\",\"kty\":\"%s\",\"kid\":\"%.*s\",\"alg\":\"%.*s\"",
                  is_rsa(key) ? "RSA" : "EC", DV_FMT(dv_signing_key_id(key)),
                  DV_FMT(dv_signing_key_algorithm(key)));
    if (!is_rsa(key))
        dv_buf_add_c(buf, ",\"crv\":\"P-256\"");
    print_number(is_rsa(key) ? "n" : "x", first, !is_rsa(key), buf);
    print_number(is_rsa(key) ? "e" : "y", second, !is_rsa(key), buf);
    dv_buf_add_char(buf, '}');
    gnutls_free(first.data);
    gnutls_free(second.data);
}

/* ---- signatures: GnuTLS has those of ECDSA as two numbers in DER, tokens side by side ---- */

static bool join_numbers(gnutls_datum_t der, struct dv_arena *arena, dv_str *signature)
{
    unsigned char *bytes = dv_arena_alloc(arena, (size_t)P256_BYTES * 2, 1);
    gnutls_datum_t r = {0};
    gnutls_datum_t s = {0};
    bool is_good = gnutls_decode_rs_value(&der, &r, &s) == 0 && put_number(r, bytes) &&
                   put_number(s, bytes + P256_BYTES);

    gnutls_free(r.data);
    gnutls_free(s.data);
    *signature = (dv_str){(const char *)bytes, (size_t)P256_BYTES * 2};
    return is_good;
}

bool dv_signing_key_sign(const struct dv_signing_key *key, dv_str text, struct dv_arena *arena,
                         dv_str *signature, struct dv_err *err)
{
    gnutls_datum_t bytes = datum_of(text);
    gnutls_datum_t made = {0};
    bool is_good = true;
    int status = key->private_key && text.n <= INT_MAX
                     ? gnutls_privkey_sign_data2(key->private_key, key->algorithm, 0, &bytes, &made)
                     : GNUTLS_E_INVALID_REQUEST;

    if (status != 0)
        return fail_gnutls(err, status, "sign a token");
    if (is_rsa(key))
        *signature = dv_str_copy(text_of(made), arena);
    else
        is_good = join_numbers(made, arena, signature);
    gnutls_free(made.data);
    return is_good || dv_fail(err, DV_INTERNAL, "sign a token: the signature cannot be read");
}

static bool verify_der(const struct dv_signing_key *key, dv_str text, gnutls_datum_t signature)
{
    gnutls_datum_t bytes = datum_of(text);

    return gnutls_pubkey_verify_data2(key->public_key, key->algorithm, 0, &bytes, &signature) >= 0;
}

bool dv_signing_key_verify(const struct dv_signing_key *key, dv_str text, dv_str signature)
{
    gnutls_datum_t r, s;
    gnutls_datum_t der = {0};
    bool is_good;

    if (text.n > INT_MAX || signature.n > INT_MAX)
        return false;
    if (is_rsa(key))
        return verify_der(key, text, datum_of(signature));
    if (signature.n != (size_t)P256_BYTES * 2)
        return false;
    r = datum_of(dv_str_slice(signature, 0, P256_BYTES));
    s = datum_of(dv_str_slice(signature, P256_BYTES, signature.n));
    if (gnutls_encode_rs_value(&der, &r, &s) != 0)
        return false;
    is_good = verify_der(key, text, der);
    gnutls_free(der.data);
    return is_good;
}
