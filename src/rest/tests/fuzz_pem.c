/* fuzz_pem.c - a PEM text, as a certificate, a key and a CA.
 *
 * A certificate and a key that belong together make a server's credentials, and nothing else does;
 * a certificate that can be used has an end; what stands behind it does not change that. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "rest/rest.h"
#include "rest/tls.h"

#define BYTES_MAX 16384u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* GnuTLS 3.7.9 forgets the first certificates of a text in which a later one is bad. That happens
 * with files of our own, at a start or when they change. By module: its frames cannot be followed
 * up to the function that forgets them. */
const char *__lsan_default_suppressions(void); /* NOLINT(bugprone-reserved-identifier) */

const char *__lsan_default_suppressions(void) /* NOLINT(bugprone-reserved-identifier) */
{
    return "leak:libgnutls.so\nleak:libtasn1.so\n";
}

/* What fails says why. */
static bool told(bool is_good, const struct dv_err *err)
{
    assert(is_good || (err->code != DV_OK && err->msg[0] != '\0'));
    return is_good;
}

static void check_server(dv_str pem, dv_str client_ca, bool is_good)
{
    struct dv_rest_tls tls = {.cert = pem, .key = pem, .client_ca = client_ca};
    struct dv_err err;
    struct dv_rest_creds *creds = dv_rest_creds_new(&tls, &err);

    assert(told(creds != NULL, &err) == is_good);
    dv_rest_creds_unref(creds);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str pem = {(const char *)data, size};
    struct dv_err err;
    uint64_t end_ns = 0;
    uint64_t again_ns = 0;
    bool has_end, is_ca, is_pair;

    if (size > BYTES_MAX)
        return 0;
    has_end = told(dv_rest_cert_end(pem, &end_ns, &err), &err);
    is_ca = told(dv_rest_tls_check_ca(pem, &err), &err);
    is_pair = told(dv_rest_tls_check_key(pem, pem, &err), &err);
    assert(!is_pair || has_end);
    check_server(pem, DV_STR_NONE, is_pair);
    check_server(pem, pem, is_pair && (is_ca || pem.n == 0));
    if (has_end) {
        dv_str longer = dv_str_printf(arena, "%.*s\nmore", DV_FMT(pem));

        if (longer.n == pem.n + 5) /* without a zero byte */
            assert(dv_rest_cert_end(longer, &again_ns, &err) && again_ns == end_ns);
    }
    return 0;
}
