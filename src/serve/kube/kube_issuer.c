/* kube_issuer.c - what others need to verify tokens of service accounts without asking the API:
 * who signs them, and the public keys (OpenID Connect Discovery). */
#include <stddef.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/str.h"
#include "resource/status.h"
#include "rest/rest.h"
#include "serve/kube/kube_call.h"
#include "serve/tokens.h"
#include "json/json.h"

#define TEXT_BYTES_MAX (256u << 10)
#define KEYS_TYPE "application/jwk-set+json"

static bool is_read(struct dv_kube_call *call)
{
    if (dv_str_eq(call->request->method, DV_STR("GET")))
        return true;
    dv_kube_reply_status(call, dv_status_method_not_allowed(call->arena));
    return false;
}

/* The keys are where the client has reached this API. */
static void print_address(const struct dv_kube_call *call, struct dv_buf *buf)
{
    dv_str host = dv_rest_request_field(call->request, DV_STR("Host"));
    dv_str address = dv_str_printf(call->arena, "https://%.*s/openid/v1/jwks",
                                   DV_FMT(host.n > 0 ? host : DV_STR("kubernetes.default.svc")));

    dv_json_print(dv_json_new_str(address, call->arena), NULL, buf);
}

void dv_kube_serve_issuer(struct dv_kube_call *call)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf body = {0};

    if (!is_read(call))
        return;
    dv_buf_init(&body, TEXT_BYTES_MAX);
    dv_buf_add_c(&body, "{\"issuer\":\"" DV_TOKEN_ISSUER "\",\"jwks_uri\":");
    print_address(call, &body);
    dv_buf_add_c(&body, ",\"response_types_supported\":[\"id_token\"],\"subject_types_supported\":"
                        "[\"public\"],\"id_token_signing_alg_values_supported\":");
    dv_tokens_print_algorithms(call->kube->options.tokens, &body);
    dv_buf_add_char(&body, '}');
    dv_kube_reply_document(call, DV_STR("application/json"), dv_buf_str(&body));
}

/* Whether the client takes the type of key sets, which is their only one. */
static bool accepts_keys(const struct dv_kube_call *call)
{
    dv_str accept = dv_rest_request_field(call->request, DV_STR("Accept"));

    return !accept.n || dv_str_find(accept, DV_STR(KEYS_TYPE)) < accept.n ||
           dv_str_find(accept, DV_STR("*/*")) < accept.n ||
           dv_str_find(accept, DV_STR("application/*")) < accept.n;
}

void dv_kube_serve_keys(struct dv_kube_call *call)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf body = {0};

    if (!is_read(call))
        return;
    if (!accepts_keys(call)) {
        dv_kube_reply_status(
            call, dv_status_new(406, DV_STR("NotAcceptable"), call->arena,
                                "only the following media types are accepted: " KEYS_TYPE));
        return;
    }
    dv_buf_init(&body, TEXT_BYTES_MAX);
    dv_tokens_print_keys(call->kube->options.tokens, &body);
    dv_kube_reply_document(call, DV_STR(KEYS_TYPE), dv_buf_str(&body));
}
