/* test_model_checks.c - what must hold, worked out anew from nothing but what is stored. */
#include "support/dvtest.h"

#include <stdbool.h>

#include "base/map.h"
#include "daemon/tests/test_daemon_model.h"
#include "daemon/tests/test_model_world.h"
#include "number/number.h"
#include "resource/resource.h"

#define MODELS "abs"
#define N_MODELS 3u

static const struct dv_api_resource_claim *look_claim(const struct story *story, dv_str name)
{
    const struct dv_object *object = name.n > 0 ? look(story->world, DV_KIND_CLAIM, name) : NULL;

    return object ? object->value : NULL;
}

static bool is_generated(const struct dv_api_object_meta *claim)
{
    return claim->n_owner_references > 0;
}

/* ---- at any time ---- */

/* Two schedulers made one each for a pod's extended resources, and one of them was killed: it goes
 * with the pod. */
static bool is_left_over(const struct dv_object *a, const struct dv_object *b)
{
    dv_str mark = DV_STR("resource.kubernetes.io/extended-resource-claim");

    return dv_entry_find(a->meta->annotations, a->meta->n_annotations, mark) &&
           dv_entry_find(b->meta->annotations, b->meta->n_annotations, mark) &&
           dv_str_eq(a->meta->owner_references[0].uid, b->meta->owner_references[0].uid);
}

static void no_device_is_given_twice(struct story *story)
{
    struct world *world = story->world;
    struct dv_object **claims;
    struct dv_map held;

    dv_map_init(&held);
    for (size_t i = 0, n = list(world, DV_KIND_CLAIM, &claims); i < n; i++) {
        const struct dv_api_resource_claim *claim = claims[i]->value;
        const struct dv_api_allocation_result *allocation = claim->status.allocation;

        for (size_t j = 0; allocation && j < allocation->devices.n_results; j++) {
            const struct dv_api_device_request_allocation_result *result =
                &allocation->devices.results[j];
            dv_str key = NAME(world, "%.*s/%.*s/%.*s", DV_FMT(result->pool), DV_FMT(result->device),
                              DV_FMT(result->share_id));
            const struct dv_object *other = dv_map_set(&held, key, claims[i]);

            if (other && !is_left_over(other, claims[i]))
                fail_msg("%.*s is given to %.*s and to %.*s", DV_FMT(key),
                         DV_FMT(other->meta->name), DV_FMT(claims[i]->meta->name));
        }
    }
    dv_map_fini(&held);
}

bool is_for_node(const struct dv_api_resource_claim *claim, dv_str node)
{
    const struct dv_api_allocation_result *allocation = claim->status.allocation;

    for (size_t i = 0; i < allocation->devices.n_results; i++)
        if (!dv_str_eq(allocation->devices.results[i].pool, node))
            return false;
    return true;
}

/* What is wrong with a claim of a pod that is bound; NULL: nothing. */
static const char *find_fault(const struct dv_api_pod *pod,
                              const struct dv_api_resource_claim *claim)
{
    if (!claim)
        return "not there";
    if (!claim->status.allocation)
        return "not allocated";
    if (!is_for_node(claim, pod->spec.node_name))
        return "for another node";
    return is_reserved_for(claim, pod) ? NULL : "not reserved for it";
}

/* The claim of a bound pod that is not as it should be; empty: none. */
static dv_str find_faulty(const struct story *story, const struct dv_api_pod *pod,
                          const char **fault)
{
    *fault = NULL;
    if (pod->spec.node_name.n == 0 || is_over(pod) || is_preset(pod) || is_meddled(&pod->metadata))
        return DV_STR_NONE;
    for (size_t i = 0; i < n_claims_of(pod); i++) {
        dv_str name = claim_of(pod, i);

        if (name.n > 0) /* else its status was lost a moment ago */
            *fault = find_fault(pod, look_claim(story, name));
        if (*fault)
            return name;
    }
    return DV_STR_NONE;
}

void check_always(struct story *story)
{
    struct dv_object **pods;

    if (story->had_rivals)
        return;
    no_device_is_given_twice(story);
    for (size_t i = 0, n = list(story->world, DV_KIND_POD, &pods); i < n; i++) {
        const char *fault;
        dv_str claim = find_faulty(story, pods[i]->value, &fault);

        if (fault)
            fail_msg("pod %.*s is bound, and its claim %.*s is %s", DV_FMT(pods[i]->meta->name),
                     DV_FMT(claim), fault);
    }
}

bool delete_broken(struct story *story)
{
    struct dv_object **pods;

    no_device_is_given_twice(story);
    for (size_t i = 0, n = list(story->world, DV_KIND_POD, &pods); i < n; i++) {
        const char *fault;

        (void)find_faulty(story, pods[i]->value, &fault);
        if (fault) {
            (void)destroy(story->world, DV_KIND_POD,
                          dv_str_copy(pods[i]->meta->name, story->world->api.arena), 0);
            return true;
        }
    }
    return false;
}

/* ---- whether a pod fits on a node ---- */

/* What it needs that it does not have, by the model of the devices. */
struct need {
    int64_t n[N_MODELS];
    bool is_hopeless;
};

static bool has_class(const struct story *story, dv_str name)
{
    return look(story->world, DV_KIND_CLASS, name) != NULL;
}

static void add_need(const struct story *story, struct need *need, dv_str class, int64_t n)
{
    for (size_t i = 0; i < N_MODELS; i++)
        if (class.n == 1 && class.p[0] == MODELS[i])
            need->n[i] += n;
    need->is_hopeless |= !has_class(story, class);
}

/* Nobody else uses it: it can be allocated anew. */
static bool is_movable(const struct dv_api_resource_claim *claim, const struct dv_api_pod *pod)
{
    size_t n = claim->status.n_reserved_for;

    return n == 0 || (n == 1 && is_reserved_for(claim, pod));
}

/* It holds nothing that the pod could not have. */
static bool is_own(const struct dv_api_resource_claim *claim, const struct dv_api_pod *pod)
{
    bool is_listed = is_generated(&claim->metadata) &&
                     dv_str_eq(claim->metadata.owner_references[0].uid, pod->metadata.uid);

    for (size_t i = 0; i < n_claims_of(pod); i++)
        is_listed |= dv_str_eq(claim_of(pod, i), claim->metadata.name);
    return is_listed && is_movable(claim, pod);
}

/* An entry before it names the same claim. */
static bool is_repeated(const struct dv_api_pod *pod, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (dv_str_eq(claim_of(pod, j), claim_of(pod, i)))
            return true;
    return false;
}

static void read_claims(const struct story *story, const struct dv_api_pod *pod, dv_str node,
                        struct need *need)
{
    for (size_t i = 0; i < pod->spec.n_resource_claims; i++) {
        const struct dv_api_resource_claim *claim = look_claim(story, claim_of(pod, i));

        if (claim && is_repeated(pod, i))
            continue;
        if (!claim || claim->metadata.deletion_timestamp.is_set) {
            need->is_hopeless = true;
            return;
        }
        if (claim->status.allocation && !is_movable(claim, pod))
            need->is_hopeless |= !is_for_node(claim, node);
        else
            add_need(story, need, claim->spec.devices.requests[0].exactly->device_class_name,
                     claim->spec.devices.requests[0].exactly->count);
    }
}

static int64_t amount_of(const struct dv_api_pod *pod, const char *resource)
{
    const struct dv_api_resource_requirements *resources = &pod->spec.containers[0].resources;
    int64_t n = 0;

    for (size_t i = 0; i < resources->n_requests; i++)
        if (dv_str_eq(resources->requests[i].key, dv_str_from_c(resource)))
            assert_true(dv_quantity_to_i64(&resources->requests[i].value, &n));
    return n;
}

static bool matches(const struct dv_api_device_taint_selector *selector, dv_str pool, dv_str device)
{
    return (selector->pool.n == 0 || dv_str_eq(selector->pool, pool)) &&
           (selector->device.n == 0 || dv_str_eq(selector->device, device));
}

/* `effect` NULL: any. */
static bool has_taint(struct story *story, dv_str pool, const struct dv_api_device *device,
                      const char *effect)
{
    struct dv_object **rules;

    for (size_t i = 0; i < device->n_taints; i++)
        if (!effect || dv_str_eq(device->taints[i].effect, dv_str_from_c(effect)))
            return true;
    for (size_t i = 0, n = list(story->world, DV_KIND_TAINT_RULE, &rules); i < n; i++) {
        const struct dv_api_device_taint_rule *rule = rules[i]->value;

        if ((!effect || dv_str_eq(rule->spec.taint.effect, dv_str_from_c(effect))) &&
            matches(rule->spec.device_selector, pool, device->name))
            return true;
    }
    return false;
}

static bool is_held(struct story *story, const struct dv_api_pod *pod, dv_str pool, dv_str device)
{
    struct dv_object **claims;

    for (size_t i = 0, n = list(story->world, DV_KIND_CLAIM, &claims); i < n; i++) {
        const struct dv_api_resource_claim *claim = claims[i]->value;
        const struct dv_api_allocation_result *allocation = claim->status.allocation;

        for (size_t j = 0; allocation && j < allocation->devices.n_results; j++)
            if (dv_str_eq(allocation->devices.results[j].pool, pool) &&
                dv_str_eq(allocation->devices.results[j].device, device) && !is_own(claim, pod))
                return true;
    }
    return false;
}

static bool has_devices(struct story *story, const struct dv_api_pod *pod, dv_str node,
                        const struct need *need)
{
    const struct dv_object *object = look(story->world, DV_KIND_SLICE, node);
    const struct dv_api_resource_slice *slice = object ? object->value : NULL;
    bool is_whole = slice && slice->spec.pool.resource_slice_count == 1;
    int64_t n[N_MODELS] = {0};

    for (size_t i = 0; is_whole && i < slice->spec.n_devices; i++) {
        const struct dv_api_device *device = &slice->spec.devices[i];

        for (size_t j = 0; j < N_MODELS; j++)
            n[j] += device->name.p[0] == MODELS[j] && !has_taint(story, node, device, NULL) &&
                    (MODELS[j] == 's' || !is_held(story, pod, node, device->name));
    }
    /* any number of claims can share one */
    return n[0] >= need->n[0] && n[1] >= need->n[1] && (need->n[2] == 0 || n[2] > 0);
}

static bool has_cpus(struct story *story, const struct dv_api_pod *pod, dv_str node)
{
    int64_t n_taken = amount_of(pod, "cpu");
    struct dv_object **pods;

    for (size_t i = 0, n = list(story->world, DV_KIND_POD, &pods); i < n; i++) {
        const struct dv_api_pod *other = pods[i]->value;

        if (dv_str_eq(other->spec.node_name, node) && !is_over(other))
            n_taken += amount_of(other, "cpu");
    }
    return amount_of(pod, "cpu") == 0 || n_taken <= NODE_CPUS;
}

static bool fits(struct story *story, const struct dv_api_pod *pod, dv_str node)
{
    const struct dv_object *object = look(story->world, DV_KIND_NODE, node);
    int64_t n_extended = amount_of(pod, "m.example/a");
    struct need need = {0};

    if (!object || ((const struct dv_api_node *)object->value)->spec.unschedulable ||
        pod->spec.n_node_selector > 0 || !has_cpus(story, pod, node))
        return false;
    if (n_extended > 0)
        add_need(story, &need, DV_STR("a"), n_extended);
    read_claims(story, pod, node, &need);
    return !need.is_hopeless && has_devices(story, pod, node, &need);
}

/* ---- at rest ---- */

static dv_str said_of(const struct dv_api_pod *pod)
{
    for (size_t i = 0; i < pod->status.n_conditions; i++) {
        const struct dv_api_pod_condition *condition = &pod->status.conditions[i];

        if (dv_str_eq(condition->type, DV_STR("PodScheduled")) &&
            dv_str_eq(condition->status, DV_STR("False")))
            return condition->message;
    }
    return DV_STR_NONE;
}

static void a_waiting_pod_has_a_reason(struct story *story, const struct dv_api_pod *pod)
{
    dv_str said = said_of(pod);

    for (unsigned i = 0; i < N_NODES; i++)
        if (fits(story, pod, NAME(story->world, "n%u", i)))
            fail_msg("pod %.*s could be on n%u, but says: %.*s", DV_FMT(pod->metadata.name), i,
                     DV_FMT(said));
    if (said.n == 0)
        fail_msg("pod %.*s waits, and does not say why", DV_FMT(pod->metadata.name));
}

/* One template that is not there holds up the other entries, as in the reference. */
static bool has_templates(const struct story *story, const struct dv_api_pod *pod)
{
    for (size_t i = 0; i < pod->spec.n_resource_claims; i++) {
        dv_str template = pod->spec.resource_claims[i].resource_claim_template_name;

        if (template.n > 0 && !look(story->world, DV_KIND_TEMPLATE, template))
            return false;
    }
    return true;
}

static void claims_are_made(struct story *story, const struct dv_api_pod *pod)
{
    for (size_t i = 0; i < pod->spec.n_resource_claims; i++) {
        if (pod->spec.resource_claims[i].resource_claim_template_name.n > 0 &&
            has_templates(story, pod) && !look_claim(story, claim_of(pod, i)))
            fail_msg("pod %.*s has no claim for %.*s, but the name \"%.*s\"",
                     DV_FMT(pod->metadata.name), DV_FMT(pod->spec.resource_claims[i].name),
                     DV_FMT(claim_of(pod, i)));
    }
}

static void is_not_evicted(struct story *story, const struct dv_api_pod *pod,
                           const struct dv_api_device_request_allocation_result *result)
{
    const struct dv_object *object = look(story->world, DV_KIND_SLICE, result->pool);
    const struct dv_api_resource_slice *slice = object ? object->value : NULL;

    for (size_t i = 0; slice && i < slice->spec.n_devices; i++)
        if (slice->spec.pool.resource_slice_count == 1 &&
            dv_str_eq(slice->spec.devices[i].name, result->device) &&
            has_taint(story, result->pool, &slice->spec.devices[i], "NoExecute"))
            fail_msg("pod %.*s still has %.*s/%.*s, which is tainted", DV_FMT(pod->metadata.name),
                     DV_FMT(result->pool), DV_FMT(result->device));
}

static void devices_are_untainted(struct story *story, const struct dv_api_pod *pod)
{
    /* that for extended resources is not looked at, as in the reference */
    for (size_t i = 0; i < pod->spec.n_resource_claims; i++) {
        const struct dv_api_resource_claim *claim = look_claim(story, claim_of(pod, i));
        const struct dv_api_allocation_result *allocation = claim ? claim->status.allocation : NULL;

        for (size_t j = 0; allocation && j < allocation->devices.n_results; j++)
            if (is_reserved_for(claim, pod))
                is_not_evicted(story, pod, &allocation->devices.results[j]);
    }
}

static void check_pod(struct story *story, const struct dv_api_pod *pod)
{
    if (is_over(pod))
        return;
    if (pod->metadata.deletion_timestamp.is_set)
        fail_msg("pod %.*s is deleted, and does not go", DV_FMT(pod->metadata.name));
    claims_are_made(story, pod);
    if (pod->spec.node_name.n > 0)
        devices_are_untainted(story, pod);
    else
        a_waiting_pod_has_a_reason(story, pod);
}

static const struct dv_api_pod *pod_of(const struct story *story, dv_str name, dv_str uid)
{
    const struct dv_object *object = look(story->world, DV_KIND_POD, name);

    return object && dv_str_eq(object->meta->uid, uid) ? object->value : NULL;
}

static void check_claim(struct story *story, const struct dv_api_resource_claim *claim)
{
    const struct dv_api_object_meta *meta = &claim->metadata;

    for (size_t i = 0; i < claim->status.n_reserved_for; i++) {
        dv_str name = claim->status.reserved_for[i].name;
        const struct dv_api_pod *pod = pod_of(story, name, claim->status.reserved_for[i].uid);

        if (!pod || is_over(pod))
            fail_msg("claim %.*s is reserved for %.*s, which is gone", DV_FMT(meta->name),
                     DV_FMT(name));
    }
    if (is_generated(meta)) {
        const struct dv_api_pod *pod =
            pod_of(story, meta->owner_references[0].name, meta->owner_references[0].uid);

        if (!pod || is_over(pod))
            fail_msg("claim %.*s is left of pod %.*s", DV_FMT(meta->name),
                     DV_FMT(meta->owner_references[0].name));
    }
    if (meta->n_finalizers > 0 && !claim->status.allocation)
        fail_msg("claim %.*s has a finalizer, and nothing to keep it for", DV_FMT(meta->name));
    if (meta->deletion_timestamp.is_set && claim->status.n_reserved_for == 0)
        fail_msg("claim %.*s is deleted, and does not go", DV_FMT(meta->name));
}

void check_rest(struct story *story)
{
    struct dv_object **objects;

    assert_true(is_at_rest(story->world));
    check_always(story);
    for (size_t i = 0, n = list(story->world, DV_KIND_POD, &objects); i < n; i++)
        check_pod(story, objects[i]->value);
    for (size_t i = 0, n = list(story->world, DV_KIND_CLAIM, &objects); i < n; i++)
        check_claim(story, objects[i]->value);
}

void check_empty(struct story *story)
{
    struct dv_object **claims;

    check_rest(story);
    assert_int_equal(list(story->world, DV_KIND_POD, &claims), 0);
    for (size_t i = 0, n = list(story->world, DV_KIND_CLAIM, &claims); i < n; i++) {
        const struct dv_api_resource_claim *claim = claims[i]->value;

        if (is_generated(&claim->metadata) || claim->status.n_reserved_for > 0 ||
            (claim->status.allocation && !is_meddled(&claim->metadata)))
            fail_msg("claim %.*s is left as it was", DV_FMT(claim->metadata.name));
    }
    assert_int_equal(story->prepared.n, 0);
}
