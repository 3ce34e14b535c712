/* fuzz_jwt.c - what is read from any text, printed and read again, says the same; and what is read
 * is what the signature would be of. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"
#include "serve/auth/jwt.h"

#define TEXT_BYTES_MAX (4u * DV_JWT_BYTES_MAX)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_object(const struct dv_jwt_object *a, const struct dv_jwt_object *b)
{
    assert(dv_str_eq(a->name, b->name) && dv_str_eq(a->uid, b->uid));
}

static void check_equal(const struct dv_jwt_claims *a, const struct dv_jwt_claims *b)
{
    assert(dv_str_eq(a->issuer, b->issuer) && dv_str_eq(a->subject, b->subject));
    assert(dv_str_eq(a->id, b->id) && dv_str_eq(a->namespace, b->namespace));
    assert(a->expires_s == b->expires_s && a->not_before_s == b->not_before_s);
    assert(a->issued_s == b->issued_s && a->warn_after_s == b->warn_after_s);
    assert(a->audiences.n == b->audiences.n);
    for (size_t i = 0; i < a->audiences.n; i++)
        assert(dv_str_eq(a->audiences.v[i], b->audiences.v[i]));
    check_object(&a->account, &b->account);
    check_object(&a->pod, &b->pod);
    check_object(&a->secret, &b->secret);
    check_object(&a->node, &b->node);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    dv_str text = {(const char *)data, size};
    struct dv_jwt jwt, again;
    struct dv_err err;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    if (!dv_jwt_read(text, arena, &jwt, &err))
        return 0;
    assert(jwt.signed_text.p == text.p && jwt.signed_text.n < size);
    assert(text.p[jwt.signed_text.n] == '.');
    dv_jwt_print(jwt.algorithm, jwt.key_id, &jwt.claims, &buf);
    dv_buf_add_c(&buf, ".");
    /* Escapes may take more room than what was read, and then it is too long. */
    if (buf.n > DV_JWT_BYTES_MAX)
        return 0;
    assert(dv_jwt_read(dv_buf_str(&buf), arena, &again, &err));
    assert(dv_str_eq(jwt.algorithm, again.algorithm) && dv_str_eq(jwt.key_id, again.key_id));
    check_equal(&jwt.claims, &again.claims);
    check_equal(&jwt.claims, dv_jwt_copy_claims(&jwt.claims, arena));
    return 0;
}
