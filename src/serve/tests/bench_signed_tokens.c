/* bench_signed_tokens.c - what a service account's token costs: to sign it, to verify it for the
 * first time, and to find it again, which is what a request costs. */
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "rest/rest.h"
#include "serve/auth/jwt.h"
#include "serve/auth/signed_tokens.h"
#include "serve/tokens.h"

#define N_TOKENS 500u
#define N_FINDS 200000u
#define NOW_S 1000000

static double us_since(uint64_t start_ns, unsigned n)
{
    return (double)(dv_clock_now_ns(dv_clock_real()) - start_ns) / 1000.0 / n;
}

static void check(bool is_good, const struct dv_err *err)
{
    if (is_good)
        return;
    (void)fprintf(stderr, "bench_signed_tokens: %s\n", err->msg);
    exit(1);
}

int main(void)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str audience = DV_STR(DV_TOKEN_ISSUER);
    struct dv_jwt_claims claims = {
        .issuer = DV_STR(DV_TOKEN_ISSUER),
        .subject = DV_STR("system:serviceaccount:default:driver"),
        .audiences = {&audience,              1                                             },
        .expires_s = NOW_S + 3607,
        .namespace = DV_STR("default"),
        .account = {DV_STR("driver"),       DV_STR("7d7d3c9e-1d0b-4f64-9a43-0d6bb5a3a3a1")},
        .pod = {DV_STR("driver-abcde"), DV_STR("7d7d3c9e-1d0b-4f64-9a43-0d6bb5a3a3a2")},
        .node = {DV_STR("n1"),           DV_STR("7d7d3c9e-1d0b-4f64-9a43-0d6bb5a3a3a3")},
    };
    dv_str *texts = DV_NEW_ARRAY(arena, dv_str, N_TOKENS);
    struct dv_err err;
    struct dv_signed_tokens *tokens = dv_signed_tokens_new(NULL, 0, &err);
    uint64_t start_ns;

    check(tokens != NULL, &err);
    start_ns = dv_clock_now_ns(dv_clock_real());
    for (unsigned i = 0; i < N_TOKENS; i++) {
        claims.id = dv_str_printf(arena, "token-%u", i);
        check(dv_signed_tokens_sign(tokens, &claims, arena, &texts[i], &err), &err);
    }
    (void)printf("sign            %8.1f us, %zu bytes\n", us_since(start_ns, N_TOKENS), texts[0].n);
    start_ns = dv_clock_now_ns(dv_clock_real());
    for (unsigned i = 0; i < N_TOKENS; i++)
        check(dv_signed_tokens_find(tokens, texts[i], dv_rest_sha256_hex(texts[i], arena), NOW_S,
                                    &err) != NULL,
              &err);
    (void)printf("find, the first %8.1f us\n", us_since(start_ns, N_TOKENS));
    start_ns = dv_clock_now_ns(dv_clock_real());
    for (unsigned i = 0; i < N_FINDS; i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
        dv_str text = texts[i % N_TOKENS];

        check(dv_signed_tokens_find(tokens, text, dv_rest_sha256_hex(text, scratch), NOW_S, &err) !=
                  NULL,
              &err);
    }
    (void)printf("find, again     %8.1f us\n", us_since(start_ns, N_FINDS));
    dv_signed_tokens_free(tokens);
    return 0;
}
