/* cluster_token.c - requests for tokens of service accounts. The embedded API keeps none: it hands
 * them to whoever serves it. */
#include <stddef.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/embedded/cluster_operation.h"
#include "cluster/embedded/engine.h"
#include "resource/resource.h"
#include "resource/status.h"

struct making {
    struct dv_embedded_token token;
    struct dv_cluster_operation *operation;
};

void dv_embedded_set_token_maker(struct dv_embedded *embedded, dv_embedded_make_token *make,
                                 void *ctx)
{
    embedded->make_token = make;
    embedded->make_token_ctx = ctx;
}

void dv_embedded_token_made(struct dv_embedded_token *token, const struct dv_api_status *failure)
{
    struct dv_cluster_operation *operation = DV_CONTAINER(token, struct making, token)->operation;

    if (failure) {
        (void)dv_cluster_operation_fail(operation, failure);
        return;
    }
    operation->token = token->request;
    (void)dv_cluster_operation_answer(operation, NULL);
}

/* What the maker needs is copied: who made the request may cancel and forget it. */
void dv_cluster_token_start(struct dv_cluster_operation *operation)
{
    struct dv_embedded *embedded = operation->embedded;
    const struct dv_request *request = operation->request;
    struct making *making = DV_NEW(operation->arena, struct making);

    if (!embedded->make_token) {
        (void)dv_cluster_operation_fail(
            operation, dv_status_new(503, DV_STR("ServiceUnavailable"), operation->arena,
                                     "nobody makes tokens: the API is not served"));
        return;
    }
    *making = (struct making){
        .token = {.namespace = dv_str_copy(request->namespace, operation->arena),
                  .name = dv_str_copy(request->name, operation->arena),
                  .request = DV_NEW(operation->arena, struct dv_api_token_request),
                  .arena = operation->arena},
        .operation = operation,
    };
    dv_message_copy(&dv_message_token_request, request->value, operation->arena,
                    making->token.request);
    embedded->make_token(embedded->make_token_ctx, &making->token);
}
