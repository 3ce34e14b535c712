/* cluster_review.c - reviews by the embedded API. It knows no users: who serves it does, and is
 * asked at once. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/embedded/engine.h"
#include "loop/loop.h"

/* A review that is answered, and not told yet. */
struct told_review {
    struct dv_user_review *review;
    struct dv_arena *arena;
    struct dv_task task;
    struct dv_err err; /* code DV_OK: there is an answer */
};

void dv_embedded_set_reviewer(struct dv_embedded *embedded, dv_embedded_review *review, void *ctx)
{
    embedded->review = review;
    embedded->review_ctx = ctx;
}

static void on_task(struct dv_task *task)
{
    struct told_review *told = DV_CONTAINER(task, struct told_review, task);
    struct dv_user_review *review = told->review;

    review->priv = NULL;
    review->done(review, told->err.code == DV_OK ? NULL : &told->err);
    dv_arena_free(told->arena);
    free(told);
}

void dv_embedded_review_start(struct dv_cluster *cluster, struct dv_user_review *review)
{
    struct dv_embedded *embedded = DV_CONTAINER(cluster, struct dv_embedded, cluster);
    struct told_review *told = DV_ALLOC(struct told_review);

    told->review = review;
    told->arena = dv_arena_new();
    review->priv = told;
    if (!embedded->review)
        (void)dv_fail(&told->err, DV_UNAVAILABLE, "nobody knows users: the API is not served");
    else
        embedded->review(embedded->review_ctx, review, told->arena);
    dv_task_post(&told->task, cluster->loop, on_task);
}

void dv_embedded_review_cancel(struct dv_cluster *cluster, struct dv_user_review *review)
{
    struct told_review *told = review->priv;

    (void)cluster;
    if (told)
        (void)dv_fail(&told->err, DV_CANCELLED, "nobody waits for it any more");
}
