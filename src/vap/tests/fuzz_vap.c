/* fuzz_vap.c - a policy, a binding and a write: judged on the loop and on a worker, the verdict is
 * the same; and a policy without its binding refuses nothing.
 *
 *     YAML: {policy: {...}, binding: {...}, object: {...}, old: {...}} */
#include "vap/vap.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"
#include "vap/tests/test_vap_world.h"
#include "json/json.h"

#define BYTES_MAX 8192u
#define STEPS_MAX 1000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add(struct world *world, enum dv_kind_id id, const struct dv_json *doc)
{
    const struct dv_kind *kind = dv_kind(id);
    const void *value = doc ? world_read(world, kind, kind->versions, doc) : NULL;
    struct dv_object *object;

    if (!value)
        return;
    object = dv_object_new(kind, value);
    dv_vap_changed(world->vap, NULL, object);
    dv_object_unref(object);
}

/* Runs to the end; the verdict as a text. */
static dv_str judge(struct world *world, const struct dv_vap_write *write, enum dv_vap_place place)
{
    struct dv_vap_world seam = world_seam(world);
    struct dv_vap_judgement *judgement = dv_vap_judge(world->vap, write, &seam);
    const struct dv_vap_verdict *verdict;
    enum dv_vap_step step;
    dv_str text;
    int n = 0;

    if (!judgement)
        return DV_STR("");
    while ((step = dv_vap_run(judgement, place)) != DV_VAP_DONE) {
        assert(n++ < STEPS_MAX);
        assert(step == DV_VAP_NEEDS_WORKER ? place == DV_VAP_ON_LOOP : place == DV_VAP_ON_WORKER);
        if (step == DV_VAP_NEEDS_DECISION)
            dv_vap_decide(judgement);
        place = DV_VAP_ON_WORKER;
    }
    verdict = dv_vap_verdict(judgement);
    text = dv_str_printf(world->arena, "%d %.*s %zu", verdict->code, DV_FMT(verdict->message),
                         verdict->n_warnings);
    dv_vap_judgement_free(judgement);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct dv_kind *kind = dv_kind(DV_KIND_CONFIG_MAP);
    struct dv_api_user_info user = {.username = DV_STR("u")};
    struct dv_vap_write write = {.kind = kind,
                                 .version = kind->versions,
                                 .namespace = DV_STR("ns"),
                                 .name = DV_STR("x"),
                                 .user = &user};
    struct world world;
    struct dv_err err;
    const struct dv_json *doc;
    const struct dv_json *part;

    if (size > BYTES_MAX)
        return 0;
    world_init(&world);
    doc = dv_yaml_parse((dv_str){(const char *)data, size}, NULL, world.arena, &err);
    part = dv_json_get(doc, DV_STR("object"));
    write.object = part ? world_read(&world, kind, kind->versions, part) : NULL;
    part = dv_json_get(doc, DV_STR("old"));
    write.old = part ? world_read(&world, kind, kind->versions, part) : NULL;
    write.operation = !write.object ? DV_VAP_DELETE : write.old ? DV_VAP_UPDATE : DV_VAP_CREATE;
    add(&world, DV_KIND_VALIDATING_POLICY, dv_json_get(doc, DV_STR("policy")));
    assert(judge(&world, &write, DV_VAP_ON_LOOP).n == 0);
    add(&world, DV_KIND_VALIDATING_POLICY_BINDING, dv_json_get(doc, DV_STR("binding")));
    assert(
        dv_str_eq(judge(&world, &write, DV_VAP_ON_LOOP), judge(&world, &write, DV_VAP_ON_WORKER)));
    world_fini(&world);
    return 0;
}
