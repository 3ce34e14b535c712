/* cert.c - makes certificates for our own CA, servers and clients; hashes and random tokens. */
#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "rest/rest.h"

#define DAY_S 86400u
/* A certificate is valid from this long ago, for clients whose clock is a little late. */
#define EARLY_S 300u
/* RFC 5280 allows 20 bytes, and the first bit must not be set. */
#define SERIAL_BYTES 16u
/* The longest DNS name, and RFC 5280's limits of CN and O. */
#define HOST_BYTES_MAX 253u
#define NAME_BYTES_MAX 64u
/* The limit of a certificate's life, far below what GeneralizedTime can express (the year 9999). */
#define DAYS_MAX 36500u
#define PIN_PREFIX "sha256//"
#define PIN_BYTES_MAX 64u

enum kind {
    FOR_CA,
    FOR_SERVER,
    FOR_CLIENT,
};

/* What one certificate is made with; free_making frees it, also when it is incomplete. */
struct making {
    gnutls_x509_crt_t cert;
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t ca_cert;
    gnutls_x509_privkey_t ca_key;
};

static void free_making(struct making *making)
{
    gnutls_x509_crt_deinit(making->cert);
    gnutls_x509_privkey_deinit(making->key);
    gnutls_x509_crt_deinit(making->ca_cert);
    gnutls_x509_privkey_deinit(making->ca_key);
}

static bool fail_gnutls(struct dv_err *err, int status, const char *what)
{
    return dv_fail(err, DV_INTERNAL, "%s: %s", what, gnutls_strerror(status));
}

static gnutls_datum_t datum_of(dv_str text)
{
    return (gnutls_datum_t){(unsigned char *)(uintptr_t)text.p, (unsigned)text.n};
}

/* ---- what goes into it ---- */

static bool is_name(dv_str text)
{
    if (text.n == 0 || text.n > NAME_BYTES_MAX || !dv_str_is_utf8(text))
        return false;
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f)
            return false;
    return true;
}

static bool is_host(dv_str text)
{
    if (text.n == 0 || text.n > HOST_BYTES_MAX)
        return false;
    for (size_t i = 0; i < text.n; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-*_",
                    text.p[i]) ||
            text.p[i] == '\0')
            return false;
    return true;
}

static bool set_name(gnutls_x509_crt_t cert, const char *oid, dv_str name, const char *what,
                     struct dv_err *err)
{
    int status;

    if (!is_name(name))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "%s \"%.*s\": want 1 to %u characters of printable UTF-8", what,
                       DV_FMT(dv_str_slice(name, 0, NAME_BYTES_MAX)), NAME_BYTES_MAX);
    status = gnutls_x509_crt_set_dn_by_oid(cert, oid, 0, name.p, (unsigned)name.n);
    return status == 0 || fail_gnutls(err, status, what);
}

static bool add_host(gnutls_x509_crt_t cert, dv_str host, struct dv_err *err)
{
    unsigned char address[sizeof(struct in6_addr)];
    char text[HOST_BYTES_MAX + 1] = "";
    int status;

    if (host.n > 0 && host.n < sizeof(text) && !memchr(host.p, '\0', host.n))
        memcpy(text, host.p, host.n);
    if (inet_pton(AF_INET, text, address) == 1)
        status = gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_IPADDRESS, address,
                                                      sizeof(struct in_addr), GNUTLS_FSAN_APPEND);
    else if (inet_pton(AF_INET6, text, address) == 1)
        status = gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_IPADDRESS, address,
                                                      sizeof(struct in6_addr), GNUTLS_FSAN_APPEND);
    else if (is_host(host))
        status = gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_DNSNAME, host.p,
                                                      (unsigned)host.n, GNUTLS_FSAN_APPEND);
    else
        return dv_fail(err, DV_INVALID_ARGUMENT, "host \"%.*s\": want a DNS name or an IP address",
                       DV_FMT(dv_str_slice(host, 0, NAME_BYTES_MAX)));
    return status == 0 || fail_gnutls(err, status, "host");
}

static bool set_subject(gnutls_x509_crt_t cert, const struct dv_rest_cert_request *request,
                        struct dv_err *err)
{
    if (!set_name(cert, GNUTLS_OID_X520_COMMON_NAME, request->name, "name", err))
        return false;
    for (size_t i = 0; i < request->n_groups; i++)
        if (!set_name(cert, GNUTLS_OID_X520_ORGANIZATION_NAME, request->groups[i], "group", err))
            return false;
    for (size_t i = 0; i < request->n_hosts; i++)
        if (!add_host(cert, request->hosts[i], err))
            return false;
    return true;
}

static bool set_times(gnutls_x509_crt_t cert, const struct dv_rest_cert_request *request,
                      struct dv_err *err)
{
    uint64_t now_s = request->now_ns / DV_NS_PER_S;
    uint64_t start_s = now_s > EARLY_S ? now_s - EARLY_S : 0;
    int status;

    if (request->valid_days == 0 || request->valid_days > DAYS_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "valid for %llu days: want 1 to %u",
                       (unsigned long long)request->valid_days, DAYS_MAX);
    status = gnutls_x509_crt_set_activation_time(cert, (time_t)start_s);
    if (status == 0)
        status = gnutls_x509_crt_set_expiration_time(cert,
                                                     (time_t)(now_s + request->valid_days * DAY_S));
    return status == 0 || fail_gnutls(err, status, "validity");
}

static int set_purpose(gnutls_x509_crt_t cert, enum kind kind)
{
    int status;

    if (kind == FOR_CA) {
        status = gnutls_x509_crt_set_basic_constraints(cert, 1, -1);
        return status != 0 ? status
                           : gnutls_x509_crt_set_key_usage(cert, GNUTLS_KEY_KEY_CERT_SIGN |
                                                                     GNUTLS_KEY_CRL_SIGN |
                                                                     GNUTLS_KEY_DIGITAL_SIGNATURE);
    }
    status = gnutls_x509_crt_set_basic_constraints(cert, 0, -1);
    if (status == 0)
        status = gnutls_x509_crt_set_key_usage(cert, GNUTLS_KEY_DIGITAL_SIGNATURE);
    if (status == 0)
        status = gnutls_x509_crt_set_key_purpose_oid(
            cert, kind == FOR_SERVER ? GNUTLS_KP_TLS_WWW_SERVER : GNUTLS_KP_TLS_WWW_CLIENT, 0);
    return status;
}

static int set_serial(gnutls_x509_crt_t cert)
{
    unsigned char serial[SERIAL_BYTES];
    int status = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial));

    serial[0] = (serial[0] & 0x7f) | 0x40; /* positive, and always of the same length */
    return status != 0 ? status : gnutls_x509_crt_set_serial(cert, serial, sizeof(serial));
}

static int set_key_ids(const struct making *making)
{
    unsigned char id[64]; /* room for a hash */
    size_t n = sizeof(id);
    int status = gnutls_x509_crt_get_key_id(making->cert, GNUTLS_KEYID_USE_SHA1, id, &n);

    if (status == 0)
        status = gnutls_x509_crt_set_subject_key_id(making->cert, id, n);
    n = sizeof(id);
    if (status == 0 && making->ca_cert)
        status = gnutls_x509_crt_get_subject_key_id(making->ca_cert, id, &n, NULL);
    if (status == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
        return 0; /* a CA that somebody else made may be without one */
    return status != 0 || !making->ca_cert
               ? status
               : gnutls_x509_crt_set_authority_key_id(making->cert, id, n);
}

/* ---- making it ---- */

static bool load_ca(const struct dv_rest_cert *ca, struct making *making, struct dv_err *err)
{
    gnutls_datum_t cert = datum_of(ca->cert);
    gnutls_datum_t key = datum_of(ca->key);
    int status = gnutls_x509_crt_init(&making->ca_cert);

    if (ca->cert.n > INT_MAX || ca->key.n > INT_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "CA: of more than 2 GiB");
    if (status == 0)
        status = gnutls_x509_privkey_init(&making->ca_key);
    if (status != 0)
        return fail_gnutls(err, status, "CA");
    status = gnutls_x509_crt_import(making->ca_cert, &cert, GNUTLS_X509_FMT_PEM);
    if (status != 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "CA certificate: %s", gnutls_strerror(status));
    status = gnutls_x509_privkey_import(making->ca_key, &key, GNUTLS_X509_FMT_PEM);
    if (status != 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "CA key: %s", gnutls_strerror(status));
    if (gnutls_x509_crt_get_ca_status(making->ca_cert, NULL) != 1)
        return dv_fail(err, DV_INVALID_ARGUMENT, "CA certificate: it is not one of a CA");
    return dv_rest_tls_check_key(ca->cert, ca->key, err);
}

static bool export(const struct making *making, struct dv_arena *arena, struct dv_rest_cert *out,
                   struct dv_err *err)
{
    gnutls_datum_t cert = {0};
    gnutls_datum_t key = {0};
    int status = gnutls_x509_crt_export2(making->cert, GNUTLS_X509_FMT_PEM, &cert);

    if (status >= 0)
        status = gnutls_x509_privkey_export2(making->key, GNUTLS_X509_FMT_PEM, &key);
    if (status >= 0) {
        out->cert = dv_str_copy((dv_str){(const char *)cert.data, cert.size}, arena);
        out->key = dv_str_copy((dv_str){(const char *)key.data, key.size}, arena);
    }
    gnutls_free(cert.data);
    if (key.data)
        gnutls_memset(key.data, 0, key.size);
    gnutls_free(key.data);
    return status >= 0 || fail_gnutls(err, status, "print a certificate");
}

static bool make_key(struct making *making, struct dv_err *err)
{
    int status = gnutls_x509_privkey_init(&making->key);

    if (status == 0)
        status = gnutls_x509_privkey_generate(making->key, GNUTLS_PK_ECDSA,
                                              GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
    if (status == 0)
        status = gnutls_x509_crt_init(&making->cert);
    if (status == 0)
        status = gnutls_x509_crt_set_key(making->cert, making->key);
    if (status == 0)
        status = gnutls_x509_crt_set_version(making->cert, 3);
    return status == 0 || fail_gnutls(err, status, "make a key");
}

/* Signs the certificate; without a CA it signs itself. */
static bool sign(struct making *making, enum kind kind, struct dv_err *err)
{
    int status = set_purpose(making->cert, kind);

    if (status == 0)
        status = set_serial(making->cert);
    if (status == 0)
        status = set_key_ids(making);
    if (status == 0)
        status = gnutls_x509_crt_sign2(
            making->cert, making->ca_cert ? making->ca_cert : making->cert,
            making->ca_key ? making->ca_key : making->key, GNUTLS_DIG_SHA256, 0);
    return status == 0 || fail_gnutls(err, status, "sign a certificate");
}

static bool make(const struct dv_rest_cert *ca, enum kind kind,
                 const struct dv_rest_cert_request *request, struct dv_arena *arena,
                 struct dv_rest_cert *out, struct dv_err *err)
{
    DV_CLEANUP(free_making) struct making making = {0};

    if ((!ca || load_ca(ca, &making, err)) && make_key(&making, err) &&
        set_subject(making.cert, request, err) && set_times(making.cert, request, err) &&
        sign(&making, kind, err) && export(&making, arena, out, err))
        return true;
    return dv_wrap(err, "certificate for \"%.*s\"",
                   DV_FMT(dv_str_slice(request->name, 0, NAME_BYTES_MAX)));
}

bool dv_rest_cert_make_ca(const struct dv_rest_cert_request *request, struct dv_arena *arena,
                          struct dv_rest_cert *ca, struct dv_err *err)
{
    return make(NULL, FOR_CA, request, arena, ca, err);
}

bool dv_rest_cert_make_server(const struct dv_rest_cert *ca,
                              const struct dv_rest_cert_request *request, struct dv_arena *arena,
                              struct dv_rest_cert *cert, struct dv_err *err)
{
    return make(ca, FOR_SERVER, request, arena, cert, err);
}

bool dv_rest_cert_make_client(const struct dv_rest_cert *ca,
                              const struct dv_rest_cert_request *request, struct dv_arena *arena,
                              struct dv_rest_cert *cert, struct dv_err *err)
{
    return make(ca, FOR_CLIENT, request, arena, cert, err);
}

/* ---- looking at one ---- */

static void free_cert(gnutls_x509_crt_t *cert)
{
    gnutls_x509_crt_deinit(*cert);
}

/* Reads the first certificate of a PEM text. */
static bool import(dv_str pem, gnutls_x509_crt_t *cert, struct dv_err *err)
{
    gnutls_datum_t text = datum_of(pem);
    int status = gnutls_x509_crt_init(cert);

    if (status != 0)
        return fail_gnutls(err, status, "certificate");
    status = pem.n > INT_MAX ? GNUTLS_E_LARGE_PACKET
                             : gnutls_x509_crt_import(*cert, &text, GNUTLS_X509_FMT_PEM);
    return status == 0 ||
           dv_fail(err, DV_INVALID_ARGUMENT, "certificate: %s", gnutls_strerror(status));
}

bool dv_rest_cert_end(dv_str pem, uint64_t *end_ns, struct dv_err *err)
{
    DV_CLEANUP(free_cert) gnutls_x509_crt_t cert = NULL;
    time_t end_s;

    if (!import(pem, &cert, err))
        return false;
    end_s = gnutls_x509_crt_get_expiration_time(cert);
    if (end_s < 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "certificate: it does not say when it ends");
    *end_ns =
        (uint64_t)end_s > UINT64_MAX / DV_NS_PER_S ? UINT64_MAX : (uint64_t)end_s * DV_NS_PER_S;
    return true;
}

static void free_pubkey(gnutls_pubkey_t *key)
{
    gnutls_pubkey_deinit(*key);
}

bool dv_rest_cert_pin(dv_str pem, struct dv_arena *arena, dv_str *pin, struct dv_err *err)
{
    DV_CLEANUP(free_cert) gnutls_x509_crt_t cert = NULL;
    DV_CLEANUP(free_pubkey) gnutls_pubkey_t key = NULL;
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    unsigned char digest[DV_REST_SHA256_BYTES];
    gnutls_datum_t bytes = {0};
    int status;

    dv_buf_init(&text, PIN_BYTES_MAX);
    if (!import(pem, &cert, err))
        return false;
    status = gnutls_pubkey_init(&key);
    if (status == 0)
        status = gnutls_pubkey_import_x509(key, cert, 0);
    if (status == 0)
        status = gnutls_pubkey_export2(key, GNUTLS_X509_FMT_DER, &bytes);
    if (status != 0)
        return fail_gnutls(err, status, "the certificate's key");
    dv_rest_sha256((dv_str){(const char *)bytes.data, bytes.size}, digest);
    gnutls_free(bytes.data);
    dv_buf_add_c(&text, PIN_PREFIX);
    dv_base64_encode((dv_str){(const char *)digest, sizeof(digest)}, &text);
    *pin = dv_str_copy(dv_buf_str(&text), arena);
    return true;
}

bool dv_rest_is_pin(dv_str text)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const dv_str prefix = DV_STR(PIN_PREFIX);
    dv_str digest;

    return text.n < PIN_BYTES_MAX && dv_str_starts_with(text, prefix) &&
           dv_base64_decode(dv_str_slice(text, prefix.n, text.n), arena, &digest) &&
           digest.n == DV_REST_SHA256_BYTES;
}

/* ---- secrets ---- */

void dv_rest_sha256(dv_str text, unsigned char digest[DV_REST_SHA256_BYTES])
{
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, text.p ? text.p : "", text.n, digest) != 0)
        abort(); /* fails only out of memory, or in a GnuTLS that was built without it */
}

dv_str dv_rest_sha256_hex(dv_str text, struct dv_arena *arena)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[DV_REST_SHA256_BYTES];
    char *hex = dv_arena_alloc_raw(arena, 2 * sizeof(digest), 1);

    dv_rest_sha256(text, digest);
    for (size_t i = 0; i < sizeof(digest); i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    return (dv_str){hex, 2 * sizeof(digest)};
}

dv_str dv_rest_random_token(struct dv_arena *arena)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned char bytes[32 + 1] = {0}; /* one byte more, so that the last digit finds its bits */
    char text[43];

    if (gnutls_rnd(GNUTLS_RND_KEY, bytes, 32) != 0)
        abort(); /* without random numbers there can be no secrets */
    for (size_t i = 0; i < sizeof(text); i++) {
        size_t bit = i * 6;
        unsigned pair = (unsigned)bytes[bit / 8] << 8 | bytes[bit / 8 + 1];

        text[i] = digits[pair >> (10 - bit % 8) & 63];
    }
    gnutls_memset(bytes, 0, sizeof(bytes));
    return dv_str_copy((dv_str){text, sizeof(text)}, arena);
}
