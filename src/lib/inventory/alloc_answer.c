/* alloc_answer.c - claims on a node: allocations, or why there are none. */

#include <assert.h>

#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "davit/alloc.h"
#include "lib/inventory/alloc_inventory.h"
#include "lib/inventory/alloc_text.h"
#include "resource/resource.h"

static_assert(DAVIT_ALLOCATED == (int)DV_ALLOC_DONE && DAVIT_GAVE_UP == (int)DV_ALLOC_GAVE_UP,
              "outcomes cross as numbers");

static const char *const outcomes[] = {
    [DV_ALLOC_DONE] = "allocated",     [DV_ALLOC_NONE] = "unallocatable",
    [DV_ALLOC_FAILED] = "claim-fault", [DV_ALLOC_NODE_FAILED] = "node-fault",
    [DV_ALLOC_GAVE_UP] = "gave-up",
};

/* ---- questions ---- */

struct question {
    struct dv_alloc_node node;
    const struct dv_api_resource_claim **claims;
};

static bool read_node(const char *text, struct dv_arena *arena, struct dv_alloc_node *node,
                      struct dv_err *err)
{
    const struct dv_json *json = dv_lib_parse(text, arena, err);
    const struct dv_api_node *api =
        json ? dv_lib_read(json, dv_kind(DV_KIND_NODE), arena, err) : NULL;

    if (!api)
        return dv_wrap(err, "the node");
    *node =
        (struct dv_alloc_node){api->metadata.name, api->metadata.labels, api->metadata.n_labels};
    return true;
}

static bool read_question(const char *node, const char *const *claims, size_t n_claims,
                          struct dv_arena *arena, struct question *question, struct dv_err *err)
{
    if (!read_node(node, arena, &question->node, err))
        return false;
    question->claims = DV_NEW_ARRAY(arena, const struct dv_api_resource_claim *, n_claims);
    for (size_t i = 0; i < n_claims; i++) {
        const struct dv_json *json = dv_lib_parse(claims[i], arena, err);

        if (json)
            question->claims[i] = dv_lib_read(json, dv_kind(DV_KIND_CLAIM), arena, err);
        if (!question->claims[i])
            return dv_wrap(err, "claim #%zu", i);
    }
    return true;
}

/* ---- allocating ---- */

static void name_share(void *ctx, char text[DV_UUID_BYTES])
{
    (void)ctx;
    (void)dv_random_uuid(text);
}

/* The callbacks is_cancelled and share_id, which share one ctx. */
struct callbacks {
    const struct davit_allocate_options *options;
};

static bool is_cancelled(void *ctx)
{
    const struct callbacks *callbacks = ctx;

    return callbacks->options->is_cancelled(callbacks->options->ctx);
}

static char *print_allocations(const struct dv_alloc_result *result, size_t n, struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, DV_LIB_ANSWER_BYTES_MAX);
    dv_buf_add_char(&buf, '[');
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            dv_buf_add_char(&buf, ',');
        dv_encode_json_text(&dv_message_allocation_result, &result->allocations[i], NULL,
                            DV_STR_NONE, &buf);
    }
    dv_buf_add_char(&buf, ']');
    return dv_lib_answer(&buf, err);
}

enum davit_outcome davit_allocate(struct davit_inventory *inventory, const char *node,
                                  const char *const *claims, size_t n_claims,
                                  const struct davit_allocate_options *options, char **allocations,
                                  struct davit_error *error)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct callbacks callbacks = {options};
    struct dv_alloc_options own = {.share_id = name_share, .ctx = &callbacks};
    struct dv_alloc_result result = {.outcome = DV_ALLOC_FAILED};
    struct question question;
    struct dv_err err = {0};

    *allocations = NULL;
    if (options) {
        own.n_steps_max = options->n_steps_max;
        own.is_cancelled = options->is_cancelled ? is_cancelled : NULL;
    }
    if (read_question(node, claims, n_claims, arena, &question, &err))
        dv_allocate(inventory->inventory, &question.node, question.claims, n_claims, &own, arena,
                    &result, &err);
    if (result.outcome == DV_ALLOC_NONE)
        (void)dv_fail(&err, DV_FAILED_PRECONDITION, "there is no solution on node %.*s",
                      DV_FMT(question.node.name));
    if (result.outcome == DV_ALLOC_DONE) {
        *allocations = print_allocations(&result, n_claims, &err);
        if (!*allocations)
            result.outcome = DV_ALLOC_FAILED;
    }
    if (result.outcome != DV_ALLOC_DONE)
        (void)dv_lib_tell(error, &err);
    return (enum davit_outcome)result.outcome;
}

/* ---- explaining ---- */

static void add_member(struct dv_buf *buf, const char *key, dv_str value)
{
    dv_buf_printf(buf, "\"%s\":", key);
    dv_buf_add_json(buf, value);
}

static void add_device(struct dv_buf *buf, const struct dv_why_device *device)
{
    dv_buf_add_char(buf, '{');
    add_member(buf, "driver", device->driver);
    dv_buf_add_char(buf, ',');
    add_member(buf, "pool", device->pool);
    if (device->device.n) {
        dv_buf_add_char(buf, ',');
        add_member(buf, "device", device->device);
    }
    dv_buf_printf(buf, ",\"why\":\"%s\",", dv_why_name(device->why));
    add_member(buf, "text", device->text);
    dv_buf_add_char(buf, '}');
}

static void add_request(struct dv_buf *buf, const struct dv_why_request *request)
{
    dv_buf_add_char(buf, '{');
    add_member(buf, "claim", request->claim);
    dv_buf_add_char(buf, ',');
    add_member(buf, "request", request->request);
    dv_buf_printf(buf, ",\"wanted\":%llu,\"fitting\":%zu,\"stuck\":%s,\"devices\":[",
                  (unsigned long long)request->n_wanted, request->n_fitting,
                  request->is_stuck ? "true" : "false");
    for (size_t i = 0; i < request->n_devices; i++) {
        if (i > 0)
            dv_buf_add_char(buf, ',');
        add_device(buf, &request->devices[i]);
    }
    dv_buf_add_c(buf, "]}");
}

char *davit_explain(struct davit_inventory *inventory, const char *node, const char *const *claims,
                    size_t n_claims, struct davit_error *error)
{
    const struct dv_alloc_options options = {0};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_explanation explanation;
    struct question question;
    struct dv_err err;
    char *text;

    dv_buf_init(&buf, DV_LIB_ANSWER_BYTES_MAX);
    if (!read_question(node, claims, n_claims, arena, &question, &err)) {
        (void)dv_lib_tell(error, &err);
        return NULL;
    }
    dv_alloc_explain(inventory->inventory, &question.node, question.claims, n_claims, &options,
                     arena, &explanation);
    dv_buf_printf(&buf, "{\"outcome\":\"%s\",", outcomes[explanation.outcome]);
    add_member(&buf, "summary", explanation.summary);
    dv_buf_add_c(&buf, ",\"requests\":[");
    for (size_t i = 0; i < explanation.n_requests; i++) {
        if (i > 0)
            dv_buf_add_char(&buf, ',');
        add_request(&buf, &explanation.requests[i]);
    }
    dv_buf_add_c(&buf, "]}");
    text = dv_lib_answer(&buf, &err);
    if (!text)
        (void)dv_lib_tell(error, &err);
    return text;
}
