#include "serve/auth/jwt.h"

#include <stddef.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "json/json.h"

/* Claims of ours are flat; whoever nests deeper does not mean us. */
#define DEPTH_MAX 16u
#define PRIVATE_CLAIMS "kubernetes.io"
/* The end of the year 9999: a later time is a mistake, and none overflows that is added to. */
#define TIME_S_MAX INT64_C(253402300799)

/* ---- the parts of the text ---- */

static bool split(dv_str text, dv_str *header, dv_str *claims, struct dv_jwt *jwt,
                  dv_str *signature, struct dv_err *err)
{
    size_t first = dv_str_find_char(text, '.');
    size_t second = first < text.n
                        ? first + 1 + dv_str_find_char(dv_str_slice(text, first + 1, text.n), '.')
                        : text.n;

    if (text.n > DV_JWT_BYTES_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "a token of %zu bytes, up to %u are read", text.n,
                       DV_JWT_BYTES_MAX);
    if (second >= text.n)
        return dv_fail(err, DV_INVALID_ARGUMENT, "not a token in three parts");
    *header = dv_str_slice(text, 0, first);
    *claims = dv_str_slice(text, first + 1, second);
    *signature = dv_str_slice(text, second + 1, text.n);
    jwt->signed_text = dv_str_slice(text, 0, second);
    return true;
}

/* Decodes a part whose text is a JSON object. */
static struct dv_json *read_object(dv_str part, struct dv_arena *arena, struct dv_err *err)
{
    static const struct dv_json_opts opts = {.depth_max = DEPTH_MAX, .refuse_duplicates = true};
    struct dv_json *doc;
    dv_str text = DV_STR_NONE;

    if (!dv_base64url_decode(part, arena, &text)) {
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "it is not base64url");
        return NULL;
    }
    doc = dv_json_parse(text, &opts, arena, err);
    return doc && dv_json_expect(doc, DV_JSON_OBJECT, err) ? doc : NULL;
}

/* ---- claims: each may be absent ---- */

static bool read_text(const struct dv_json *object, const char *key, dv_str *text,
                      struct dv_err *err)
{
    const struct dv_json *node = dv_json_get(object, dv_str_from_c(key));

    return !node || dv_json_as_str(node, text, err);
}

/* Reads a time. RFC 7519 allows fractions, which nobody writes. */
static bool read_time(const struct dv_json *object, const char *key, int64_t *seconds,
                      struct dv_err *err)
{
    const struct dv_json *node = dv_json_get(object, dv_str_from_c(key));

    if (!node)
        return true;
    if (!dv_json_as_i64(node, seconds, err))
        return false;
    return (*seconds >= 0 && *seconds <= TIME_S_MAX) ||
           dv_fail(err, DV_INVALID_ARGUMENT, "%s: %lld is no time from 1970 to 9999", key,
                   (long long)*seconds);
}

/* Reads the audiences: a list or, as RFC 7519 allows, one text. */
static bool read_audiences(const struct dv_json *object, struct dv_arena *arena,
                           struct dv_strs *audiences, struct dv_err *err)
{
    const struct dv_json *node = dv_json_get(object, DV_STR("aud"));

    if (!node)
        return true;
    if (dv_json_is(node, DV_JSON_STRING)) {
        audiences->v = DV_NEW(arena, dv_str);
        audiences->n = 1;
        return dv_json_as_str(node, audiences->v, err);
    }
    if (!dv_json_expect(node, DV_JSON_ARRAY, err))
        return false;
    audiences->v = DV_NEW_ARRAY(arena, dv_str, dv_json_n(node));
    for (const struct dv_json *at = dv_json_first(node); at; at = dv_json_next(at))
        if (!dv_json_as_str(at, &audiences->v[audiences->n++], err))
            return false;
    return true;
}

static bool read_named(const struct dv_json *object, const char *key, struct dv_jwt_object *named,
                       struct dv_err *err)
{
    const struct dv_json *node = dv_json_get(object, dv_str_from_c(key));

    if (!node)
        return true;
    return dv_json_expect(node, DV_JSON_OBJECT, err) &&
           read_text(node, "name", &named->name, err) && read_text(node, "uid", &named->uid, err);
}

static bool read_private(const struct dv_json *doc, struct dv_jwt_claims *claims,
                         struct dv_err *err)
{
    const struct dv_json *node = dv_json_get(doc, DV_STR(PRIVATE_CLAIMS));

    if (!node)
        return true;
    return dv_json_expect(node, DV_JSON_OBJECT, err) &&
           read_text(node, "namespace", &claims->namespace, err) &&
           read_named(node, "serviceaccount", &claims->account, err) &&
           read_named(node, "pod", &claims->pod, err) &&
           read_named(node, "secret", &claims->secret, err) &&
           read_named(node, "node", &claims->node, err) &&
           read_time(node, "warnafter", &claims->warn_after_s, err);
}

static bool read_claims(const struct dv_json *doc, struct dv_arena *arena,
                        struct dv_jwt_claims *claims, struct dv_err *err)
{
    return read_text(doc, "iss", &claims->issuer, err) &&
           read_text(doc, "sub", &claims->subject, err) &&
           read_text(doc, "jti", &claims->id, err) &&
           read_audiences(doc, arena, &claims->audiences, err) &&
           read_time(doc, "exp", &claims->expires_s, err) &&
           read_time(doc, "nbf", &claims->not_before_s, err) &&
           read_time(doc, "iat", &claims->issued_s, err) && read_private(doc, claims, err);
}

bool dv_jwt_read(dv_str text, struct dv_arena *arena, struct dv_jwt *jwt, struct dv_err *err)
{
    dv_str header_part, claims_part, signature_part;
    const struct dv_json *header, *claims;

    *jwt = (struct dv_jwt){0};
    if (!split(text, &header_part, &claims_part, jwt, &signature_part, err))
        return false;
    header = read_object(header_part, arena, err);
    if (!header || !read_text(header, "alg", &jwt->algorithm, err) ||
        !read_text(header, "kid", &jwt->key_id, err))
        return dv_wrap(err, "the token's header");
    if (dv_json_get(header, DV_STR("crit"))) /* RFC 7515: who does not know it refuses */
        return dv_fail(err, DV_INVALID_ARGUMENT, "the token's header: crit is not known");
    claims = read_object(claims_part, arena, err);
    if (!claims || !read_claims(claims, arena, &jwt->claims, err))
        return dv_wrap(err, "the token's claims");
    return dv_base64url_decode(signature_part, arena, &jwt->signature) ||
           dv_fail(err, DV_INVALID_ARGUMENT, "the token's signature: it is not base64url");
}

/* ---- printing ---- */

static void set_text(struct dv_json *object, const char *key, dv_str text, struct dv_arena *arena)
{
    if (text.n > 0)
        dv_json_set(object, dv_str_from_c(key), dv_json_new_str(text, arena), arena);
}

static void set_time(struct dv_json *object, const char *key, int64_t seconds,
                     struct dv_arena *arena)
{
    if (seconds > 0)
        dv_json_set(object, dv_str_from_c(key), dv_json_new_i64(seconds, arena), arena);
}

static void set_named(struct dv_json *object, const char *key, const struct dv_jwt_object *named,
                      struct dv_arena *arena)
{
    struct dv_json *node;

    if (!named->name.n && !named->uid.n)
        return;
    node = dv_json_new_object(arena);
    set_text(node, "name", named->name, arena);
    set_text(node, "uid", named->uid, arena);
    dv_json_set(object, dv_str_from_c(key), node, arena);
}

static struct dv_json *private_claims(const struct dv_jwt_claims *claims, struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);

    set_text(object, "namespace", claims->namespace, arena);
    set_named(object, "node", &claims->node, arena);
    set_named(object, "pod", &claims->pod, arena);
    set_named(object, "secret", &claims->secret, arena);
    set_named(object, "serviceaccount", &claims->account, arena);
    set_time(object, "warnafter", claims->warn_after_s, arena);
    return object;
}

static void print_part(const struct dv_json *doc, struct dv_buf *buf)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;

    dv_buf_init(&text, DV_JWT_BYTES_MAX);
    dv_json_print(doc, NULL, &text);
    dv_base64url_encode(dv_buf_str(&text), buf);
}

void dv_jwt_print(dv_str algorithm, dv_str key_id, const struct dv_jwt_claims *claims,
                  struct dv_buf *buf)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_json *header = dv_json_new_object(arena);
    struct dv_json *doc = dv_json_new_object(arena);

    set_text(header, "alg", algorithm, arena);
    set_text(header, "kid", key_id, arena);
    print_part(header, buf);
    dv_json_set(doc, DV_STR("aud"),
                dv_json_new_strs(claims->audiences.v, claims->audiences.n, arena), arena);
    set_time(doc, "exp", claims->expires_s, arena);
    set_time(doc, "iat", claims->issued_s, arena);
    set_text(doc, "iss", claims->issuer, arena);
    set_text(doc, "jti", claims->id, arena);
    dv_json_set(doc, DV_STR(PRIVATE_CLAIMS), private_claims(claims, arena), arena);
    set_time(doc, "nbf", claims->not_before_s, arena);
    set_text(doc, "sub", claims->subject, arena);
    dv_buf_add_char(buf, '.');
    print_part(doc, buf);
}

/* ---- copies ---- */

static void copy_text(dv_str *text, struct dv_arena *arena)
{
    *text = dv_str_copy(*text, arena);
}

struct dv_jwt_claims *dv_jwt_copy_claims(const struct dv_jwt_claims *claims, struct dv_arena *arena)
{
    struct dv_jwt_claims *copy = DV_NEW(arena, struct dv_jwt_claims);
    dv_str *audiences = DV_NEW_ARRAY(arena, dv_str, claims->audiences.n);
    struct dv_jwt_object *named[] = {&copy->account, &copy->pod, &copy->secret, &copy->node};

    *copy = *claims;
    for (size_t i = 0; i < claims->audiences.n; i++)
        audiences[i] = dv_str_copy(claims->audiences.v[i], arena);
    copy->audiences.v = audiences;
    copy_text(&copy->issuer, arena);
    copy_text(&copy->subject, arena);
    copy_text(&copy->id, arena);
    copy_text(&copy->namespace, arena);
    for (size_t i = 0; i < DV_COUNT(named); i++) {
        copy_text(&named[i]->name, arena);
        copy_text(&named[i]->uid, arena);
    }
    return copy;
}
