/* remote_review.c - reviews by a real API server: TokenReview and SubjectAccessReview, posted and
 * answered in one exchange. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/remote/remote_engine.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "rest/rest.h"
#include "json/json.h"

#define TIMEOUT_MS 10000u
/* A user with thousands of groups is printed in less. */
#define BODY_BYTES_MAX (1u << 20)

struct remote_review {
    struct dv_remote *remote;
    struct dv_user_review *review;
    struct dv_arena *arena;
    struct dv_rest_fetch fetch;
    struct dv_buf body;
    struct dv_task task; /* tells of a failure that was known at the start */
    bool is_fetching;
    struct dv_err failure;
};

static const struct dv_api_version token_version = {DV_STR_INIT("authentication.k8s.io"),
                                                    DV_STR_INIT("v1"), &dv_message_token_review};
static const struct dv_api_version access_version = {
    DV_STR_INIT("authorization.k8s.io"), DV_STR_INIT("v1"), &dv_message_subject_access_review};

static void finish(struct remote_review *own, const struct dv_err *err)
{
    struct dv_user_review *review = own->review;

    review->priv = NULL;
    review->done(review, err); /* may free the review: nothing of it is touched afterwards */
    dv_buf_fini(&own->body);
    dv_arena_free(own->arena);
    free(own);
}

static bool read_answer(struct remote_review *own, struct dv_err *err)
{
    struct dv_user_review *review = own->review;
    const struct dv_json *doc = dv_json_parse(own->fetch.answer, NULL, own->arena, err);

    if (doc && review->token) {
        struct dv_api_token_review *answer = DV_NEW(own->arena, struct dv_api_token_review);

        review->token_status = &answer->status;
        if (dv_decode_json(token_version.message, doc, DV_UNKNOWN_DROP, own->arena, answer, NULL,
                           err))
            return true;
    } else if (doc) {
        struct dv_api_subject_access_review *answer =
            DV_NEW(own->arena, struct dv_api_subject_access_review);

        review->access_status = &answer->status;
        if (dv_decode_json(access_version.message, doc, DV_UNKNOWN_DROP, own->arena, answer, NULL,
                           err))
            return true;
    }
    err->code = DV_INTERNAL; /* the server's fault, not that of who asked */
    return dv_wrap(err, "the server's answer");
}

static void on_fetched(struct dv_rest_fetch *fetch, const struct dv_err *failed)
{
    struct remote_review *own = DV_CONTAINER(fetch, struct remote_review, fetch);
    struct dv_err err;

    own->is_fetching = false;
    if (failed) {
        finish(own, failed);
    } else if (fetch->status / 100 != 2) {
        if (fetch->status == 401)
            dv_remote_token_doubt(own->remote->token);
        dv_status_to_err(dv_remote_status(fetch->status, fetch->answer, own->arena), &err);
        finish(own, &err);
    } else {
        finish(own, read_answer(own, &err) ? NULL : &err);
    }
}

static void print_body(struct remote_review *own)
{
    const struct dv_user_review *review = own->review;

    if (review->token) {
        const struct dv_api_token_review value = {.spec = *review->token};

        dv_encode_json_text(token_version.message, &value, &token_version, DV_STR("TokenReview"),
                            &own->body);
    } else {
        const struct dv_api_subject_access_review value = {.spec = *review->access};

        dv_encode_json_text(access_version.message, &value, &access_version,
                            DV_STR("SubjectAccessReview"), &own->body);
    }
}

static void on_task(struct dv_task *task)
{
    struct remote_review *own = DV_CONTAINER(task, struct remote_review, task);

    finish(own, &own->failure);
}

void dv_remote_review_start(struct dv_cluster *cluster, struct dv_user_review *review)
{
    static const struct dv_rest_field fields[] = {
        {DV_STR_INIT("Accept"),       DV_STR_INIT("application/json")},
        {DV_STR_INIT("Content-Type"), DV_STR_INIT("application/json")},
    };
    struct dv_remote *remote = DV_CONTAINER(cluster, struct dv_remote, cluster);
    struct remote_review *own = DV_ALLOC(struct remote_review);
    uint64_t timeout_ms = review->timeout_ms ? review->timeout_ms : TIMEOUT_MS;

    own->remote = remote;
    own->review = review;
    own->arena = dv_arena_new();
    dv_buf_init(&own->body, BODY_BYTES_MAX);
    review->priv = own;
    print_body(own);
    if (remote->is_closing ? !dv_fail(&own->failure, DV_CANCELLED, "the client is being closed")
                           : !dv_buf_check(&own->body, "the review", &own->failure)) {
        dv_task_post(&own->task, cluster->loop, on_task);
        return;
    }
    own->fetch = (struct dv_rest_fetch){
        .method = DV_STR("POST"),
        .target = review->token ? DV_STR("/apis/authentication.k8s.io/v1/tokenreviews")
                                : DV_STR("/apis/authorization.k8s.io/v1/subjectaccessreviews"),
        .fields = fields,
        .n_fields = DV_COUNT(fields),
        .body = dv_buf_str(&own->body),
        .deadline_ms = dv_u64_add_clamped(dv_loop_now_ms(cluster->loop), timeout_ms),
        .body_bytes_max = BODY_BYTES_MAX,
        .done = on_fetched,
    };
    own->is_fetching = true;
    dv_rest_fetch_start(remote->client, &own->fetch);
}

void dv_remote_review_cancel(struct dv_cluster *cluster, struct dv_user_review *review)
{
    struct remote_review *own = review->priv;

    (void)cluster;
    if (own && own->is_fetching)
        dv_rest_fetch_cancel(&own->fetch);
}
