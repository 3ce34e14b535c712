/* The index against an evaluation that looks at every pod: random worlds in which nodes, pods and
 * namespaces come, change and go, and in which wants are kept all the while. */

#include "affinity/affinity.h"

#include "support/dvtest.h"

#include <stdbool.h>
#include <stdint.h>

#include "affinity/tests/affinity_world.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "resource/resource.h"
#include "resource/select.h"

#define N_WORLDS 60
#define N_STEPS 150
#define N_WANTS 4

/* ---- random objects ---- */

static uint64_t seed;

static unsigned any(unsigned n)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)((seed >> 33) % n);
}

static const char *one_of(const char *const *all, size_t n)
{
    return all[any((unsigned)n)];
}

#define NOT_X "{matchExpressions: [{key: app, operator: NotIn, values: [x]}]}"
#define OF_RED "namespaceSelector: {matchLabels: {team: red}}"
#define HAS_REV "{matchExpressions: [{key: rev, operator: Exists}]}"

static const char *const terms[] = {
    "{labelSelector: {matchLabels: {app: x}}, topologyKey: zone}",
    "{labelSelector: {matchLabels: {app: x}}, topologyKey: host}",
    "{labelSelector: {matchLabels: {app: w}}, topologyKey: zone, matchLabelKeys: [rev]}",
    "{labelSelector: " NOT_X ", topologyKey: rack}",
    "{labelSelector: {}, topologyKey: host, " OF_RED "}",
    "{labelSelector: {matchLabels: {rev: '1'}}, topologyKey: zone, namespaces: [other]}",
    "{labelSelector: " HAS_REV ", topologyKey: zone, mismatchLabelKeys: [rev]}",
    "{topologyKey: zone}",
};

static const char *const selections[] = {"", "nodeSelector: {zone: '1'}, ",
                                         "tolerations: [{key: gpu, operator: Exists}], "};

static void add_terms(struct dv_buf *yaml, const char *side)
{
    dv_buf_printf(yaml, "%s: {requiredDuringSchedulingIgnoredDuringExecution: [", side);
    for (unsigned i = any(3); i > 0; i--)
        dv_buf_printf(yaml, "%s, ", one_of(terms, DV_COUNT(terms)));
    dv_buf_add_c(yaml, "], preferredDuringSchedulingIgnoredDuringExecution: [");
    for (unsigned i = any(3); i > 0; i--)
        dv_buf_printf(yaml, "{weight: %u, podAffinityTerm: %s}, ", 1 + any(9),
                      one_of(terms, DV_COUNT(terms)));
    dv_buf_add_c(yaml, "]}, ");
}

static void add_spread(struct dv_buf *yaml)
{
    static const char *const keys[] = {"zone", "host", "rack"};
    static const char *const policies[] = {"Honor", "Ignore"};

    dv_buf_add_c(yaml, "topologySpreadConstraints: [");
    for (unsigned i = any(3); i > 0; i--)
        dv_buf_printf(yaml,
                      "{maxSkew: %u, topologyKey: %s, whenUnsatisfiable: %s, minDomains: %u, "
                      "nodeAffinityPolicy: %s, nodeTaintsPolicy: %s, labelSelector: {matchLabels: "
                      "{app: x}}, matchLabelKeys: [%s]}, ",
                      1 + any(2), one_of(keys, DV_COUNT(keys)),
                      any(3) > 0 ? "DoNotSchedule" : "ScheduleAnyway", 1 + any(3),
                      one_of(policies, 2), one_of(policies, 2), any(2) ? "rev" : "");
    dv_buf_add_c(yaml, "], ");
}

static struct dv_object *any_pod(struct affinity_world *world, bool has_terms)
{
    struct dv_buf yaml;
    struct dv_object *pod;

    dv_buf_init(&yaml, 1 << 16);
    dv_buf_printf(&yaml, "{metadata: {namespace: %s, %s labels: {%s%s}}, spec: {%s",
                  any(3) ? "default" : "other",
                  any(6) ? "" : "deletionTimestamp: '2026-01-01T00:00:00Z',",
                  any(2) ? "app: x, " : "app: w, ", any(2) ? "rev: '1'" : "rev: '2'",
                  one_of(selections, DV_COUNT(selections)));
    if (has_terms || any(3) == 0) {
        dv_buf_add_c(&yaml, "affinity: {");
        if (any(2))
            add_terms(&yaml, "podAffinity");
        if (any(2))
            add_terms(&yaml, "podAntiAffinity");
        dv_buf_add_c(&yaml, "}, ");
    }
    if (has_terms)
        add_spread(&yaml);
    dv_buf_add_c(&yaml, "}}");
    dv_buf_add_char(&yaml, '\0');
    pod = affinity_pod(world, dv_buf_str(&yaml).p);
    dv_buf_fini(&yaml);
    return pod;
}

static struct dv_object *any_node(struct affinity_world *world, size_t i)
{
    static const char *const zones[] = {"", "zone: '1',", "zone: '2',", "zone: '3',"};
    static const char *const racks[] = {"", "rack: r1,", "rack: r2,"};
    dv_str yaml = dv_str_printf(world->arena,
                                "{metadata: {name: n%zu, labels: {%s %s host: n%zu}}, spec: {%s}}",
                                i, one_of(zones, 4), one_of(racks, 3), i,
                                any(3) ? "" : "taints: [{key: gpu, effect: NoSchedule}]");

    return affinity_node(world, dv_str_to_c(yaml, world->arena));
}

/* ---- the evaluation that looks at every pod ---- */

struct model {
    struct affinity_world *world;
    struct dv_arena *arena;
    const char *team; /* of the namespace "other"; NULL: it is not there */
};

static const dv_str *value_of(const struct dv_str_entry *labels, size_t n, dv_str key)
{
    const struct dv_str_entry *label = dv_entry_find(labels, n, key);

    return label ? &label->value : NULL;
}

static const dv_str *domain_of(const struct dv_affinity_node *node, dv_str key)
{
    return value_of(node->value->metadata.labels, node->value->metadata.n_labels, key);
}

static bool are_keys_met(const struct dv_api_pod *owner, const struct dv_api_pod *pod,
                         const dv_str *keys, size_t n, bool is_equal)
{
    for (size_t i = 0; i < n; i++) {
        const dv_str *mine = value_of(owner->metadata.labels, owner->metadata.n_labels, keys[i]);
        const dv_str *other = value_of(pod->metadata.labels, pod->metadata.n_labels, keys[i]);

        if (mine && (other && dv_str_eq(*mine, *other)) != is_equal)
            return false;
    }
    return true;
}

static bool is_selected(struct model *model, const struct dv_api_label_selector *selector,
                        const struct dv_api_pod *pod)
{
    return selector && dv_label_selector_matches(dv_label_selector_of(selector, model->arena),
                                                 pod->metadata.labels, pod->metadata.n_labels);
}

static bool is_in_namespace(struct model *model, const struct dv_api_pod *owner,
                            const struct dv_api_pod_affinity_term *term,
                            const struct dv_api_pod *pod)
{
    if (term->n_namespaces == 0 && !term->namespace_selector)
        return dv_str_eq(owner->metadata.namespace, pod->metadata.namespace);
    for (size_t i = 0; i < term->n_namespaces; i++)
        if (dv_str_eq(term->namespaces[i], pod->metadata.namespace))
            return true;
    return term->namespace_selector && dv_str_eq(pod->metadata.namespace, DV_STR("other")) &&
           model->team && dv_str_eq(dv_str_from_c(model->team), DV_STR("red"));
}

static bool means(struct model *model, const struct dv_api_pod *owner,
                  const struct dv_api_pod_affinity_term *term, const struct dv_api_pod *pod)
{
    return is_selected(model, term->label_selector, pod) &&
           are_keys_met(owner, pod, term->match_label_keys, term->n_match_label_keys, true) &&
           are_keys_met(owner, pod, term->mismatch_label_keys, term->n_mismatch_label_keys,
                        false) &&
           is_in_namespace(model, owner, term, pod);
}

static bool means_all(struct model *model, const struct dv_api_pod *owner,
                      const struct dv_api_pod_affinity *near, const struct dv_api_pod *pod)
{
    for (size_t i = 0; i < near->n_required_during_scheduling_ignored_during_execution; i++)
        if (!means(model, owner, &near->required_during_scheduling_ignored_during_execution[i],
                   pod))
            return false;
    return true;
}

/* The pod of that number and its node, if that is there. */
static const struct dv_api_pod *pod_at(struct model *model, size_t i,
                                       const struct dv_affinity_node **node)
{
    *node = &model->world->nodes[model->world->placed[i].node];
    return (*node)->value ? model->world->placed[i].object->value : NULL;
}

static bool is_same_domain(const struct dv_affinity_node *a, const struct dv_affinity_node *b,
                           dv_str key)
{
    const dv_str *x = domain_of(a, key);
    const dv_str *y = domain_of(b, key);

    return x && y && dv_str_eq(*x, *y);
}

static bool is_eligible(const struct dv_api_pod *pod,
                        const struct dv_api_topology_spread_constraint *constraint,
                        const struct dv_affinity_node *node)
{
    const struct dv_api_pod_spec *spec = &pod->spec;

    for (size_t i = 0; i < spec->n_topology_spread_constraints; i++)
        if (dv_str_eq(spec->topology_spread_constraints[i].when_unsatisfiable,
                      constraint->when_unsatisfiable) &&
            !domain_of(node, spec->topology_spread_constraints[i].topology_key))
            return false;
    if (dv_str_eq(constraint->node_affinity_policy, DV_STR("Honor")) && spec->n_node_selector > 0) {
        const dv_str *zone = domain_of(node, DV_STR("zone"));

        if (!zone || !dv_str_eq(*zone, DV_STR("1")))
            return false;
    }
    return !dv_str_eq(constraint->node_taints_policy, DV_STR("Honor")) ||
           node->value->spec.n_taints == 0 || spec->n_tolerations > 0;
}

/* How many pods the constraint counts in the domain of `at`. */
static int64_t count_in(struct model *model, const struct dv_api_pod *pod,
                        const struct dv_api_topology_spread_constraint *constraint,
                        const struct dv_affinity_node *at)
{
    int64_t n = 0;

    for (size_t i = 0; i < model->world->n_placed; i++) {
        const struct dv_affinity_node *node;
        const struct dv_api_pod *other = pod_at(model, i, &node);

        n += other && !other->metadata.deletion_timestamp.is_set &&
             dv_str_eq(other->metadata.namespace, pod->metadata.namespace) &&
             is_selected(model, constraint->label_selector, other) &&
             are_keys_met(pod, other, constraint->match_label_keys, constraint->n_match_label_keys,
                          true) &&
             is_eligible(pod, constraint, node) &&
             is_same_domain(node, at, constraint->topology_key);
    }
    return n;
}

static enum dv_affinity_verdict check_spread(struct model *model, const struct dv_api_pod *pod,
                                             const struct dv_affinity_node *at)
{
    for (size_t i = 0; i < pod->spec.n_topology_spread_constraints; i++) {
        const struct dv_api_topology_spread_constraint *constraint =
            &pod->spec.topology_spread_constraints[i];
        int64_t least = INT64_MAX;
        int64_t n_domains = 0;
        bool is_self;

        if (dv_str_eq(constraint->when_unsatisfiable, DV_STR("ScheduleAnyway")))
            continue;
        if (!domain_of(at, constraint->topology_key))
            return DV_AFFINITY_NO_KEY;
        for (size_t j = 0; j < N_WORLD_NODES; j++) {
            const struct dv_affinity_node *node = &model->world->nodes[j];
            bool is_first = true;
            int64_t n;

            if (!node->value || !is_eligible(pod, constraint, node))
                continue;
            for (size_t k = 0; k < j; k++)
                is_first &=
                    !model->world->nodes[k].value ||
                    !is_eligible(pod, constraint, &model->world->nodes[k]) ||
                    !is_same_domain(&model->world->nodes[k], node, constraint->topology_key);
            n_domains += is_first;
            n = count_in(model, pod, constraint, node);
            least = n < least ? n : least;
        }
        if (n_domains < *constraint->min_domains || n_domains == 0)
            least = 0;
        is_self = is_selected(model, constraint->label_selector, pod);
        if (count_in(model, pod, constraint, at) + is_self - least > constraint->max_skew)
            return DV_AFFINITY_SKEWED;
    }
    return DV_AFFINITY_FITS;
}

static bool is_in_company(struct model *model, const struct dv_api_pod *pod,
                          const struct dv_api_pod_affinity *near, const struct dv_affinity_node *at)
{
    bool is_any = false;
    bool is_missing = false;

    for (size_t i = 0; i < near->n_required_during_scheduling_ignored_during_execution; i++) {
        dv_str key = near->required_during_scheduling_ignored_during_execution[i].topology_key;
        bool is_found = false;

        if (!domain_of(at, key))
            return false;
        for (size_t j = 0; j < model->world->n_placed; j++) {
            const struct dv_affinity_node *node;
            const struct dv_api_pod *other = pod_at(model, j, &node);

            if (!other || !means_all(model, pod, near, other) || !domain_of(node, key))
                continue;
            is_any = true;
            is_found |= is_same_domain(node, at, key);
        }
        is_missing |= !is_found;
    }
    return !is_missing || (!is_any && means_all(model, pod, near, pod));
}

/* Whether a required term of the one means the other and they would be in one domain. */
static bool is_repelled(struct model *model, const struct dv_api_pod *owner,
                        const struct dv_api_pod *meant, const struct dv_affinity_node *a,
                        const struct dv_affinity_node *b)
{
    const struct dv_api_pod_anti_affinity *apart =
        owner->spec.affinity ? owner->spec.affinity->pod_anti_affinity : NULL;

    for (size_t i = 0; apart && i < apart->n_required_during_scheduling_ignored_during_execution;
         i++) {
        const struct dv_api_pod_affinity_term *term =
            &apart->required_during_scheduling_ignored_during_execution[i];

        if (means(model, owner, term, meant) && is_same_domain(a, b, term->topology_key))
            return true;
    }
    return false;
}

static enum dv_affinity_verdict check(struct model *model, const struct dv_api_pod *pod,
                                      const struct dv_affinity_node *at)
{
    const struct dv_api_pod_affinity *near =
        pod->spec.affinity ? pod->spec.affinity->pod_affinity : NULL;
    enum dv_affinity_verdict verdict = check_spread(model, pod, at);
    bool is_unwanted = false;

    if (verdict != DV_AFFINITY_FITS)
        return verdict;
    if (near && near->n_required_during_scheduling_ignored_during_execution > 0 &&
        !is_in_company(model, pod, near, at))
        return DV_AFFINITY_LONELY;
    for (size_t i = 0; i < model->world->n_placed; i++) {
        const struct dv_affinity_node *node;
        const struct dv_api_pod *other = pod_at(model, i, &node);

        if (other && is_repelled(model, pod, other, node, at))
            return DV_AFFINITY_TOO_NEAR;
        is_unwanted |= other && is_repelled(model, other, pod, node, at);
    }
    return is_unwanted ? DV_AFFINITY_UNWANTED : DV_AFFINITY_FITS;
}

static int64_t weigh(struct model *model, const struct dv_api_pod *owner,
                     const struct dv_api_pod *meant, const struct dv_affinity_node *a,
                     const struct dv_affinity_node *b, bool is_there)
{
    const struct dv_api_affinity *affinity = owner->spec.affinity;
    const struct dv_api_pod_affinity *near = affinity ? affinity->pod_affinity : NULL;
    const struct dv_api_pod_anti_affinity *apart = affinity ? affinity->pod_anti_affinity : NULL;
    int64_t sum = 0;

    for (size_t i = 0; near && i < near->n_preferred_during_scheduling_ignored_during_execution;
         i++) {
        const struct dv_api_weighted_pod_affinity_term *term =
            &near->preferred_during_scheduling_ignored_during_execution[i];

        if (means(model, owner, &term->pod_affinity_term, meant) &&
            is_same_domain(a, b, term->pod_affinity_term.topology_key))
            sum += term->weight;
    }
    for (size_t i = 0;
         near && is_there && i < near->n_required_during_scheduling_ignored_during_execution; i++) {
        const struct dv_api_pod_affinity_term *term =
            &near->required_during_scheduling_ignored_during_execution[i];

        sum += means(model, owner, term, meant) && is_same_domain(a, b, term->topology_key);
    }
    for (size_t i = 0; apart && i < apart->n_preferred_during_scheduling_ignored_during_execution;
         i++) {
        const struct dv_api_weighted_pod_affinity_term *term =
            &apart->preferred_during_scheduling_ignored_during_execution[i];

        if (means(model, owner, &term->pod_affinity_term, meant) &&
            is_same_domain(a, b, term->pod_affinity_term.topology_key))
            sum -= term->weight;
    }
    return sum;
}

static int64_t attraction(struct model *model, const struct dv_api_pod *pod,
                          const struct dv_affinity_node *at)
{
    int64_t sum = 0;

    for (size_t i = 0; i < model->world->n_placed; i++) {
        const struct dv_affinity_node *node;
        const struct dv_api_pod *other = pod_at(model, i, &node);

        if (other)
            sum += weigh(model, pod, other, node, at, false) +
                   weigh(model, other, pod, node, at, true);
    }
    return sum;
}

/* ---- worlds ---- */

static void step(struct model *model)
{
    struct affinity_world *world = model->world;
    static const char *const teams[] = {"red", "blue", NULL};
    size_t i = any(N_WORLD_NODES);

    switch (any(10)) {
    case 0:
        if (world->nodes[i].value)
            dv_affinity_leave(world->index, &world->nodes[i]);
        else
            dv_affinity_enter(world->index, &world->nodes[i], any_node(world, i)->value);
        break;
    case 1:
        if (world->nodes[i].value) {
            dv_affinity_leave(world->index, &world->nodes[i]);
            dv_affinity_enter(world->index, &world->nodes[i], any_node(world, i)->value);
        }
        break;
    case 2:
        model->team = teams[any(3)];
        affinity_namespace(world, "other", model->team);
        break;
    case 3:
    case 4:
    case 5:
        if (world->n_placed > 0)
            affinity_unplace(world, any((unsigned)world->n_placed));
        break;
    default:
        if (world->n_placed < N_PLACED_MAX)
            affinity_place(world, (char)('a' + i), any_pod(world, false));
        break;
    }
}

struct kept {
    struct dv_object *pod;
    struct dv_affinity_wants *wants;
};

static void compare(struct model *model, struct kept *kept, int number)
{
    uint64_t cost = 0;

    if (!dv_affinity_count(model->world->index, kept->wants, any(200), &cost))
        return; /* asked again after the next step */
    dv_affinity_look_around(model->world->index, kept->wants, kept->pod->value);
    for (size_t i = 0; i < N_WORLD_NODES; i++) {
        const struct dv_affinity_node *node = &model->world->nodes[i];

        if (!node->value)
            continue;
        if (dv_affinity_check(kept->wants, node) != check(model, kept->pod->value, node))
            fail_msg("world %d: %d instead of %d on n%zu", number,
                     (int)dv_affinity_check(kept->wants, node),
                     (int)check(model, kept->pod->value, node), i);
        assert_int_equal(dv_affinity_attraction(kept->wants, node),
                         attraction(model, kept->pod->value, node));
    }
}

static void keep(struct model *model, struct kept *kept)
{
    dv_affinity_wants_free(model->world->index, kept->wants);
    kept->pod = any_pod(model->world, true);
    kept->wants = dv_affinity_wants_new(model->world->index, kept->pod->value);
}

static void the_index_says_what_all_pods_say(void **state)
{
    (void)state;
    for (int number = 0; number < N_WORLDS; number++) {
        struct model model = {.world = affinity_world_new(), .arena = dv_arena_new()};
        struct kept all[N_WANTS] = {0};

        seed = (uint64_t)number + 1;
        for (size_t i = 0; i < N_WANTS; i++)
            keep(&model, &all[i]);
        for (int i = 0; i < N_STEPS; i++) {
            step(&model);
            for (size_t j = 0; j < N_WANTS; j++)
                compare(&model, &all[j], number);
            if (any(10) == 0)
                keep(&model, &all[any(N_WANTS)]);
            dv_arena_reset(model.arena);
        }
        for (size_t i = 0; i < N_WANTS; i++)
            dv_affinity_wants_free(model.world->index, all[i].wants);
        dv_arena_free(model.arena);
        affinity_world_free(model.world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_index_says_what_all_pods_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
