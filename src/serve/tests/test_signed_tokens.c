#include "support/dvtest.h"

#include <string.h>

#include "base/buf.h"
#include "base/defs.h"
#include "resource/resource.h"
#include "rest/rest.h"
#include "rest/signing_key.h"
#include "serve/auth.h"
#include "serve/auth/jwt.h"
#include "serve/auth/signed_tokens.h"
#include "serve/tokens.h"
#include "support/arena.h"

#define NOW_S 1000000
#define TEXT_BYTES_MAX 65536u

static dv_str new_pem(struct dv_arena *arena)
{
    struct dv_err err;
    dv_str pem;

    assert_ok(dv_signing_key_make(arena, &pem, &err), &err);
    return pem;
}

static struct dv_signed_tokens *open_tokens(const dv_str *pems, size_t n)
{
    struct dv_err err;
    struct dv_signed_tokens *tokens = dv_signed_tokens_new(pems, n, &err);

    assert_ok(tokens != NULL, &err);
    return tokens;
}

static struct dv_jwt_claims good_claims(void)
{
    static dv_str audiences[] = {DV_STR_INIT(DV_TOKEN_ISSUER)};

    return (struct dv_jwt_claims){
        .issuer = DV_STR(DV_TOKEN_ISSUER),
        .subject = DV_STR("system:serviceaccount:ns:sa"),
        .audiences = {audiences,    1               },
        .expires_s = NOW_S + 600,
        .not_before_s = NOW_S,
        .issued_s = NOW_S,
        .id = DV_STR("id-1"),
        .namespace = DV_STR("ns"),
        .account = {DV_STR("sa"), DV_STR("sa-uid")},
        .pod = {DV_STR("p"),  DV_STR("p-uid") },
        .node = {DV_STR("n1"), DV_STR("n1-uid")},
    };
}

static dv_str sign(const struct dv_signed_tokens *tokens, const struct dv_jwt_claims *claims,
                   struct dv_arena *arena)
{
    struct dv_err err;
    dv_str text;

    assert_ok(dv_signed_tokens_sign(tokens, claims, arena, &text, &err), &err);
    return text;
}

static const struct dv_token *find(struct dv_signed_tokens *tokens, dv_str text, int64_t now_s,
                                   struct dv_arena *arena, struct dv_err *err)
{
    return dv_signed_tokens_find(tokens, text, dv_rest_sha256_hex(text, arena), now_s, err);
}

static void check_extra(const struct dv_api_user_info *user, const char *key, const char *value)
{
    struct dv_strs values = dv_auth_extra(user, dv_str_from_c(key));

    assert_int_equal(values.n, 1);
    assert_str(values.v[0], value);
}

static void a_token_says_whose_it_is(void **state)
{
    struct dv_signed_tokens *tokens = open_tokens(NULL, 0);
    struct dv_jwt_claims claims = good_claims();
    dv_str text = sign(tokens, &claims, *state);
    struct dv_err err;
    const struct dv_token *token = find(tokens, text, NOW_S, *state, &err);

    assert_ok(token != NULL, &err);
    assert_str(token->user.username, "system:serviceaccount:ns:sa");
    assert_str(token->user.uid, "sa-uid");
    assert_int_equal(token->user.n_groups, 3);
    assert_str(token->user.groups[0], "system:serviceaccounts");
    assert_str(token->user.groups[1], "system:serviceaccounts:ns");
    assert_str(token->user.groups[2], "system:authenticated");
    assert_int_equal(token->user.n_extra, 5);
    check_extra(&token->user, "authentication.kubernetes.io/credential-id", "JTI=id-1");
    check_extra(&token->user, "authentication.kubernetes.io/node-name", "n1");
    check_extra(&token->user, "authentication.kubernetes.io/node-uid", "n1-uid");
    check_extra(&token->user, "authentication.kubernetes.io/pod-name", "p");
    check_extra(&token->user, "authentication.kubernetes.io/pod-uid", "p-uid");
    assert_int_equal(token->audiences.n, 1);
    assert_str(token->claims->pod.uid, "p-uid");
    dv_signed_tokens_free(tokens);
}

/* The second time nothing is verified: the text is not even looked at. */
static void what_was_verified_is_remembered_until_it_expires(void **state)
{
    struct dv_signed_tokens *tokens = open_tokens(NULL, 0);
    struct dv_jwt_claims claims = good_claims();
    dv_str text = sign(tokens, &claims, *state);
    dv_str hash = dv_rest_sha256_hex(text, *state);
    struct dv_err err;

    assert_null(dv_signed_tokens_get(tokens, hash, NOW_S));
    assert_non_null(find(tokens, text, NOW_S, *state, &err));
    assert_non_null(dv_signed_tokens_get(tokens, hash, NOW_S));
    assert_non_null(dv_signed_tokens_find(tokens, DV_STR("x"), hash, NOW_S + 660, &err));
    assert_null(dv_signed_tokens_get(tokens, hash, NOW_S + 661));
    assert_null(find(tokens, text, NOW_S + 661, *state, &err));
    assert_err(&err, DV_UNAUTHENTICATED, "service account token has expired");
    assert_null(dv_signed_tokens_get(tokens, hash, NOW_S)); /* it is forgotten */
    dv_signed_tokens_free(tokens);
}

static void the_oldest_are_forgotten_when_there_are_many(void **state)
{
    struct dv_signed_tokens *tokens = open_tokens(NULL, 0);
    struct dv_jwt_claims claims = good_claims();
    dv_str first = DV_STR_NONE, second = DV_STR_NONE;
    struct dv_err err;

    for (int i = 0; i < 2049; i++) {
        dv_str text;

        claims.id = dv_str_printf(*state, "id-%d", i);
        text = sign(tokens, &claims, *state);
        assert_non_null(find(tokens, text, NOW_S, *state, &err));
        if (i == 0)
            first = dv_rest_sha256_hex(text, *state);
        else if (i == 1)
            second = dv_rest_sha256_hex(text, *state);
        else /* the first one is in use all the time */
            assert_non_null(dv_signed_tokens_find(tokens, DV_STR("x"), first, NOW_S, &err));
    }
    assert_non_null(dv_signed_tokens_get(tokens, first, NOW_S));
    assert_null(dv_signed_tokens_get(tokens, second, NOW_S));
    dv_signed_tokens_free(tokens);
}

static void refuses_tokens_that_are_not_good(void **state)
{
    struct dv_signed_tokens *tokens = open_tokens(NULL, 0);
    struct dv_jwt_claims rows[10];
    static const char *const why[] = {
        "it is no token of this issuer",
        "it is no token of this issuer",
        "service account token has expired",
        "service account token has expired",
        "service account token is not valid yet",
        "service account token is not valid yet",
        "could not be validated",
        "could not be validated",
        "could not be validated",
        "could not be validated",
    };

    for (size_t i = 0; i < DV_COUNT(rows); i++)
        rows[i] = good_claims();
    rows[0].issuer = DV_STR("https://example.com");
    rows[1].issuer = DV_STR_NONE;
    rows[2].expires_s = NOW_S - 61;
    rows[3].expires_s = 0;
    rows[4].not_before_s = NOW_S + 61;
    rows[5].issued_s = NOW_S + 61;
    rows[6].subject = DV_STR("system:serviceaccount:ns:other");
    rows[7].subject = DV_STR("system:admin");
    rows[8].account.uid = DV_STR_NONE;
    rows[9].namespace = DV_STR("other");
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_err err;

        assert_null(find(tokens, sign(tokens, &rows[i], *state), NOW_S, *state, &err));
        assert_int_equal(err.code, i < 2 ? DV_NOT_FOUND : DV_UNAUTHENTICATED);
        assert_non_null(strstr(err.msg, why[i]));
    }
    dv_signed_tokens_free(tokens);
}

/* Takes the claims of one token and the signature of another. */
static void refuses_a_signature_of_something_else(void **state)
{
    struct dv_signed_tokens *tokens = open_tokens(NULL, 0);
    struct dv_signed_tokens *others = open_tokens(NULL, 0);
    struct dv_jwt_claims claims = good_claims();
    dv_str ours = sign(tokens, &claims, *state);
    dv_str body = dv_str_slice(ours, 0, ours.n - 86);
    DV_CLEANUP(dv_buf_fini) struct dv_buf unsigned_text;
    struct dv_err err;
    dv_str theirs, forged;

    assert_null(find(tokens, sign(others, &claims, *state), NOW_S, *state, &err));
    assert_err(&err, DV_UNAUTHENTICATED, "go-jose/go-jose: error in cryptographic primitive");
    claims.id = DV_STR("id-2");
    theirs = sign(tokens, &claims, *state);
    forged = dv_str_printf(*state, "%.*s%.*s", DV_FMT(body),
                           DV_FMT(dv_str_slice(theirs, theirs.n - 86, theirs.n)));
    assert_null(find(tokens, forged, NOW_S, *state, &err));
    assert_null(find(tokens, body, NOW_S, *state, &err)); /* with an empty signature */
    assert_err(&err, DV_UNAUTHENTICATED, "cryptographic");
    dv_buf_init(&unsigned_text, TEXT_BYTES_MAX);
    dv_jwt_print(DV_STR("none"), DV_STR_NONE, &claims, &unsigned_text);
    dv_buf_add_char(&unsigned_text, '.');
    assert_null(find(tokens, dv_buf_str(&unsigned_text), NOW_S, *state, &err));
    assert_err(&err, DV_UNAUTHENTICATED, "cryptographic");
    dv_signed_tokens_free(others);
    dv_signed_tokens_free(tokens);
}

static void older_keys_verify_and_the_first_one_signs(void **state)
{
    dv_str pems[] = {new_pem(*state), new_pem(*state)};
    struct dv_signed_tokens *before = open_tokens(&pems[1], 1);
    struct dv_signed_tokens *now = open_tokens(pems, 2);
    struct dv_jwt_claims claims = good_claims();
    DV_CLEANUP(dv_buf_fini) struct dv_buf keys;
    struct dv_err err;

    assert_non_null(find(now, sign(before, &claims, *state), NOW_S, *state, &err));
    assert_null(find(before, sign(now, &claims, *state), NOW_S, *state, &err));
    dv_buf_init(&keys, TEXT_BYTES_MAX);
    dv_signed_tokens_print_keys(now, &keys);
    assert_true(dv_str_starts_with(dv_buf_str(&keys), DV_STR("{\"keys\":[{\"use\":\"sig\"")));
    dv_buf_clear(&keys);
    dv_signed_tokens_print_algorithms(now, &keys);
    assert_str(dv_buf_str(&keys), "[\"ES256\"]");
    dv_signed_tokens_free(now);
    dv_signed_tokens_free(before);
}

static void refuses_keys_that_cannot_be_used(void **state)
{
    dv_str pems[] = {new_pem(*state), DV_STR("no key")};
    struct dv_err err;

    assert_null(dv_signed_tokens_new(pems, 2, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "key for tokens: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        arena_test(a_token_says_whose_it_is),
        arena_test(what_was_verified_is_remembered_until_it_expires),
        arena_test(the_oldest_are_forgotten_when_there_are_many),
        arena_test(refuses_tokens_that_are_not_good),
        arena_test(refuses_a_signature_of_something_else),
        arena_test(older_keys_verify_and_the_first_one_signs),
        arena_test(refuses_keys_that_cannot_be_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
