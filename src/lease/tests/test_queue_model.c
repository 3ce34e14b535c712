#include "test_queue_model.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/str.h"
#include "lease/state/lease_queue.h"

#define N_POOLS 5u
#define N_ASKED 3u /* the first pools are asked for, the others counted */
#define N_REQUESTS 48u
#define WANTS_MAX 3u

struct request {
    struct dv_lease_item item;
    struct dv_lease_want wants[WANTS_MAX];
    enum { NOWHERE, WAITS, HOLDS } state;
    bool went; /* in the last walk */
};

struct model {
    struct dv_lease_queue queue;
    struct dv_lease_pool *pools[N_POOLS];
    uint64_t n_free[N_POOLS];
    struct request requests[N_REQUESTS];
    uint64_t n_arrivals;
    size_t n_went;
};

static uint64_t wanted(const struct request *request, const struct dv_lease_pool *pool)
{
    for (size_t i = 0; i < request->item.n_wants; i++)
        if (request->wants[i].pool == pool)
            return request->wants[i].n;
    return 0;
}

static bool is_ahead(const struct request *a, const struct request *b)
{
    return a->item.priority != b->item.priority ? a->item.priority > b->item.priority
                                                : a->item.order < b->item.order;
}

/* What is left in a pool for `request`, when those ahead of it have what they want: `all` is what
 * was free before the walk. */
static uint64_t left_for(const struct model *model, const struct request *request, size_t i_pool,
                         uint64_t all, bool counts_waiting)
{
    for (size_t i = 0; i < N_REQUESTS; i++) {
        const struct request *other = &model->requests[i];
        uint64_t n = wanted(other, model->pools[i_pool]);

        if (other == request || !is_ahead(other, request) ||
            !((other->state == WAITS && counts_waiting) || other->went))
            continue;
        all -= n < all ? n : all;
    }
    return all;
}

/* What the request wants of the pool, or of asked ones that have a device in common with it: the
 * first two have. */
static uint64_t wanted_of_rivals(const struct model *model, const struct request *request, size_t p)
{
    return p < 2 ? wanted(request, model->pools[0]) + wanted(request, model->pools[1])
                 : wanted(request, model->pools[p]);
}

static void check_not_delayed(const struct model *model, const struct request *request,
                              const uint64_t *before)
{
    for (size_t p = 0; p < N_POOLS; p++) {
        uint64_t n = wanted(request, model->pools[p]);
        uint64_t due = left_for(model, request, p, before[p], true);

        if (n == 0)
            continue;
        if (p >= N_ASKED)
            assert(model->n_free[p] >= (n < due ? n : due));
        for (size_t i = 0; p < N_ASKED && i < N_REQUESTS; i++)
            assert(!model->requests[i].went || is_ahead(&model->requests[i], request) ||
                   wanted_of_rivals(model, &model->requests[i], p) == 0);
    }
}

/* Nobody waits without a reason. */
static void check_has_to_wait(const struct model *model, const struct request *request)
{
    bool has_to = false;

    for (size_t p = 0; p < N_POOLS; p++) {
        uint64_t n = wanted(request, model->pools[p]);

        if (n == 0)
            continue;
        has_to |= model->n_free[p] < n;
        for (size_t i = 0; i < N_REQUESTS; i++) {
            const struct request *other = &model->requests[i];

            has_to |= p < N_ASKED && other->state == WAITS && is_ahead(other, request) &&
                      wanted_of_rivals(model, other, p) > 0;
        }
        has_to |= p >= N_ASKED && left_for(model, request, p, model->n_free[p], true) < n;
    }
    assert(has_to);
}

static bool tries(struct model *model, struct request *request)
{
    for (size_t p = 0; p < N_POOLS; p++)
        if (wanted(request, model->pools[p]) > model->n_free[p])
            return false;
    for (size_t p = 0; p < N_POOLS; p++)
        model->n_free[p] -= wanted(request, model->pools[p]);
    return true;
}

static void walk(struct model *model)
{
    struct dv_lease_walk walking;
    struct dv_lease_item *item;
    uint64_t before[N_POOLS];

    memcpy(before, model->n_free, sizeof(before));
    for (size_t i = 0; i < N_REQUESTS; i++)
        model->requests[i].went = false;
    for (size_t p = N_ASKED; p < N_POOLS; p++)
        model->pools[p]->n_free = model->n_free[p];
    dv_lease_walk_begin(&walking, &model->queue);
    while ((item = dv_lease_walk_next(&walking))) {
        struct request *request = DV_CONTAINER(item, struct request, item);
        bool goes = tries(model, request);

        dv_lease_walk_tell(&walking, item, goes);
        request->went = goes;
        request->state = goes ? HOLDS : WAITS;
        model->n_went += goes;
    }
    for (size_t p = N_ASKED; p < N_POOLS; p++)
        assert(model->pools[p]->n_free == model->n_free[p]); /* never more than was free */
    for (size_t i = 0; i < N_REQUESTS; i++)
        if (model->requests[i].state == WAITS) {
            check_not_delayed(model, &model->requests[i], before);
            check_has_to_wait(model, &model->requests[i]);
        }
}

static void add(struct model *model, struct request *request, const uint8_t *bytes)
{
    request->item = (struct dv_lease_item){.priority = (int32_t)(bytes[0] % 3) - 1,
                                           .order = ++model->n_arrivals,
                                           .wants = request->wants};
    for (size_t p = 0; p < N_POOLS && request->item.n_wants < WANTS_MAX; p++)
        if (bytes[1] >> p & 1)
            request->wants[request->item.n_wants++] =
                (struct dv_lease_want){model->pools[p], 1 + (bytes[2] >> (2 * p) & 3)};
    if (request->item.n_wants == 0)
        return;
    request->state = WAITS;
    dv_lease_queue_add(&model->queue, &request->item);
}

static void give_back(struct model *model, struct request *request)
{
    for (size_t p = 0; p < N_POOLS; p++)
        model->n_free[p] += wanted(request, model->pools[p]);
    request->state = NOWHERE;
}

static void check_order(const struct model *model)
{
    const struct dv_lease_queue *queue = &model->queue;

    for (size_t i = 0; i < queue->items.n; i++) {
        assert(dv_lease_queue_place(queue, queue->items.v[i]) == i + 1);
        assert(i == 0 || is_ahead(DV_CONTAINER(queue->items.v[i - 1], struct request, item),
                                  DV_CONTAINER(queue->items.v[i], struct request, item)));
    }
}

size_t dv_test_queue_run(const uint8_t *script, size_t n)
{
    static const char *const names[N_POOLS] = {"gpu.example.com", "large-gpu.example.com",
                                               "nic.example.com", "example.com/gpu",
                                               "example.com/nic"};
    static const uint64_t members[N_ASKED][2] = {
        {1, 2},
        {2, 3},
        {4, 5}
    };
    struct model model = {0};

    for (size_t p = 0; p < N_POOLS; p++) {
        model.pools[p] = dv_lease_queue_pool(&model.queue, p < N_ASKED, dv_str_from_c(names[p]));
        model.n_free[p] = 4 + p;
        if (p < N_ASKED)
            dv_lease_pool_set_members(&model.queue, model.pools[p], members[p], 2);
    }
    for (size_t at = 0; at + 4 <= n; at += 4) {
        struct request *request = &model.requests[script[at] % N_REQUESTS];

        if (request->state == NOWHERE)
            add(&model, request, script + at + 1);
        else if (request->state == HOLDS)
            give_back(&model, request);
        else if (script[at + 1] % 4 == 0) {
            dv_lease_queue_remove(&model.queue, &request->item);
            request->state = NOWHERE;
        }
        walk(&model);
        check_order(&model);
    }
    dv_lease_queue_fini(&model.queue);
    return model.n_went;
}
