/* fuzz_review.c - the answer of a webhook, as it comes from outside: what is taken as one keeps
 * within its limits, is taken again when it is printed anew, and its patch leaves an object what it
 * was named. The first byte says who is asked, and in which version. */
#include "webhook/webhook.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"
#include "json/json.h"

#define BYTES_MAX 65536u
#define WARNINGS_MAX 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_patch(const struct dv_json *patch, struct dv_arena *arena)
{
    const struct dv_kind *kind = dv_kind(DV_KIND_CONFIG_MAP);
    const struct dv_api_config_map value = {
        .metadata = {.name = DV_STR("m"), .namespace = DV_STR("ns"), .uid = DV_STR("u")}
    };
    struct dv_err err;
    const struct dv_api_config_map *patched = dv_review_patch(
        kind, kind->versions, &value, patch, (struct dv_time){.is_set = true}, arena, &err);

    if (!patched)
        return;
    assert(dv_str_eq(patched->metadata.name, DV_STR("m")));
    assert(dv_str_eq(patched->metadata.namespace, DV_STR("ns")));
    assert(dv_str_eq(patched->metadata.uid, DV_STR("u")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_webhook_answer answer;
    struct dv_webhook_answer again;
    enum dv_review_version review;
    enum dv_webhook_phase phase;
    struct dv_err err;
    struct dv_buf buf;
    dv_str text;

    if (size == 0 || size > BYTES_MAX)
        return 0;
    review = data[0] & 1 ? DV_REVIEW_V1BETA1 : DV_REVIEW_V1;
    phase = data[0] & 2 ? DV_WEBHOOK_VALIDATES : DV_WEBHOOK_MUTATES;
    text = (dv_str){(const char *)data + 1, size - 1};
    if (!dv_review_read(text, review, DV_STR("7"), phase, arena, &answer, &err)) {
        assert(err.code == DV_INVALID_ARGUMENT);
        return 0;
    }
    assert(answer.n_warnings <= WARNINGS_MAX);
    assert(phase == DV_WEBHOOK_MUTATES || !answer.patch);
    assert(dv_review_refusal(DV_STR("w"), answer.status, arena)->code >= 400);
    if (answer.patch)
        check_patch(answer.patch, arena);
    dv_buf_init(&buf, 8 * BYTES_MAX);
    dv_json_print(dv_json_parse(text, NULL, arena, &err), NULL, &buf);
    if (!buf.is_over) {
        assert(dv_review_read(dv_buf_str(&buf), review, DV_STR("7"), phase, arena, &again, &err));
        assert(again.is_allowed == answer.is_allowed && again.n_warnings == answer.n_warnings);
        assert(!again.patch == !answer.patch);
    }
    dv_buf_fini(&buf);
    return 0;
}
