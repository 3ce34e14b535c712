/* affinity_wants.c - what a pod wants of the pods around it, and what that says of a node. Nothing
 * here looks at pods: tallies know how many there are. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "affinity/affinity.h"
#include "affinity/affinity_index.h"
#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"

/* A node with more labels for topologies than this does not exist: a pod that wants others near by
 * more of them fits nowhere. Each of them needs a tally with all terms of the pod. */
#define N_KEYS_MAX 32u
/* What a question costs for each tally, in units of ten nanoseconds. */
#define COST_TALLY 2u
#define FIXED_POINT 1024

struct wish {
    struct dv_affinity_tally *tally;
    int64_t weight;
};

struct constraint {
    struct dv_affinity_tally *tally;
    int64_t max_skew;
    size_t min_domains;
    bool is_hard;
    bool is_self; /* the pod itself will be one of those that are counted */
};

struct dv_affinity_wants {
    DV_VEC(struct dv_affinity_tally *) near; /* by topology key; each of pods that meet all terms */
    DV_VEC(struct dv_affinity_tally *) apart;
    DV_VEC(struct wish) wishes;
    DV_VEC(struct constraint) spread;
    bool is_near_itself;
    bool is_too_much;                          /* it has more terms than are looked at */
    DV_VEC(struct dv_affinity_tally *) others; /* of pods on nodes, that mean this pod */
};

static bool is_hard(const struct dv_api_topology_spread_constraint *constraint)
{
    return !dv_str_eq(constraint->when_unsatisfiable, DV_STR("ScheduleAnyway"));
}

bool dv_affinity_has_terms(const struct dv_api_pod_spec *pod)
{
    return pod->n_topology_spread_constraints > 0 ||
           (pod->affinity && (pod->affinity->pod_affinity || pod->affinity->pod_anti_affinity));
}

/* ---- reading ---- */

static struct dv_affinity_tally *use(struct dv_affinity *index, struct dv_affinity_tally *tally)
{
    dv_affinity_use(index, tally);
    return tally;
}

static bool is_known_key(const struct dv_affinity_wants *wants, dv_str key)
{
    for (size_t i = 0; i < wants->near.n; i++)
        if (dv_str_eq(wants->near.v[i]->topology->key, key))
            return true;
    return false;
}

static void read_near(struct dv_affinity *index, struct dv_affinity_wants *wants,
                      const struct dv_api_pod *pod, const struct dv_api_pod_affinity_term *terms,
                      size_t n)
{
    wants->is_too_much |= n > N_TERMS_MAX;
    for (size_t i = 0; i < n && !wants->is_too_much; i++) {
        if (is_known_key(wants, terms[i].topology_key))
            continue;
        wants->is_too_much = wants->near.n == N_KEYS_MAX;
        *dv_vec_add(&wants->near) =
            use(index, dv_affinity_tally(index, pod, terms, n, terms[i].topology_key));
    }
}

static void read_apart(struct dv_affinity *index, struct dv_affinity_wants *wants,
                       const struct dv_api_pod *pod, const struct dv_api_pod_affinity_term *terms,
                       size_t n)
{
    wants->is_too_much |= n > N_TERMS_MAX;
    for (size_t i = 0; i < n && !wants->is_too_much; i++)
        *dv_vec_add(&wants->apart) =
            use(index, dv_affinity_tally(index, pod, &terms[i], 1, terms[i].topology_key));
}

static void read_wishes(struct dv_affinity *index, struct dv_affinity_wants *wants,
                        const struct dv_api_pod *pod,
                        const struct dv_api_weighted_pod_affinity_term *terms, size_t n,
                        int64_t sign)
{
    wants->is_too_much |= n > N_TERMS_MAX;
    for (size_t i = 0; i < n && !wants->is_too_much; i++) {
        const struct dv_api_pod_affinity_term *term = &terms[i].pod_affinity_term;

        *dv_vec_add(&wants->wishes) = (struct wish){
            .tally = use(index, dv_affinity_tally(index, pod, term, 1, term->topology_key)),
            .weight = sign * terms[i].weight};
    }
}

static void read_spread(struct dv_affinity *index, struct dv_affinity_wants *wants,
                        const struct dv_api_pod *pod)
{
    size_t n = pod->spec.n_topology_spread_constraints;

    wants->is_too_much |= n > N_KEYS_MAX; /* each has the keys of all */
    for (size_t i = 0; i < n && !wants->is_too_much; i++) {
        const struct dv_api_topology_spread_constraint *from =
            &pod->spec.topology_spread_constraints[i];
        struct dv_affinity_tally *tally = use(index, dv_affinity_spread_tally(index, pod, from));

        *dv_vec_add(&wants->spread) = (struct constraint){
            .tally = tally,
            .max_skew = from->max_skew,
            .min_domains =
                from->min_domains && *from->min_domains > 1 ? (size_t)*from->min_domains : 1,
            .is_hard = is_hard(from),
            .is_self = dv_affinity_means_labels(index, tally, pod->metadata.namespace,
                                                pod->metadata.labels, pod->metadata.n_labels)};
    }
}

struct dv_affinity_wants *dv_affinity_wants_new(struct dv_affinity *index,
                                                const struct dv_api_pod *pod)
{
    struct dv_affinity_wants *wants = DV_ALLOC(struct dv_affinity_wants);
    const struct dv_api_affinity *affinity = pod->spec.affinity;
    const struct dv_api_pod_affinity *near = affinity ? affinity->pod_affinity : NULL;
    const struct dv_api_pod_anti_affinity *apart = affinity ? affinity->pod_anti_affinity : NULL;

    if (near) {
        read_near(index, wants, pod, near->required_during_scheduling_ignored_during_execution,
                  near->n_required_during_scheduling_ignored_during_execution);
        read_wishes(index, wants, pod, near->preferred_during_scheduling_ignored_during_execution,
                    near->n_preferred_during_scheduling_ignored_during_execution, 1);
    }
    if (apart) {
        read_apart(index, wants, pod, apart->required_during_scheduling_ignored_during_execution,
                   apart->n_required_during_scheduling_ignored_during_execution);
        read_wishes(index, wants, pod, apart->preferred_during_scheduling_ignored_during_execution,
                    apart->n_preferred_during_scheduling_ignored_during_execution, -1);
    }
    read_spread(index, wants, pod);
    return wants;
}

static size_t n_own(const struct dv_affinity_wants *wants)
{
    return wants->near.n + wants->apart.n + wants->wishes.n + wants->spread.n;
}

/* Of all tallies of its own terms, the one of this number. */
static struct dv_affinity_tally *own(const struct dv_affinity_wants *wants, size_t i)
{
    if (i < wants->near.n)
        return wants->near.v[i];
    i -= wants->near.n;
    if (i < wants->apart.n)
        return wants->apart.v[i];
    i -= wants->apart.n;
    return i < wants->wishes.n ? wants->wishes.v[i].tally
                               : wants->spread.v[i - wants->wishes.n].tally;
}

bool dv_affinity_count(struct dv_affinity *index, struct dv_affinity_wants *wants,
                       uint64_t cost_max, uint64_t *cost)
{
    uint64_t begun = *cost;

    for (size_t i = 0; i < n_own(wants); i++) {
        struct dv_affinity_tally *tally = own(wants, i);

        while (tally->n_counted < index->nodes.n) {
            if (*cost - begun >= cost_max)
                return false;
            *cost += dv_affinity_count_next(index, tally);
        }
    }
    return true;
}

/* ---- others ---- */

/* Gathers the tallies that pods on nodes have as terms and that mean this pod; without `wants` it
 * only says whether there is one. */
static bool gather_others(struct dv_affinity *index, const struct dv_api_pod *pod,
                          struct dv_affinity_wants *wants)
{
    const struct dv_api_object_meta *meta = &pod->metadata;
    const struct dv_affinity_bucket *bucket;
    bool is_any = false;

    for (size_t at = 0; index->n_held > 0 && (bucket = dv_affinity_next_bucket(
                                                  index, meta->labels, meta->n_labels, &at));)
        for (size_t i = 0; i < bucket->tallies.n; i++) {
            struct dv_affinity_tally *tally = bucket->tallies.v[i];

            if (tally->n_holders == 0 || !dv_affinity_means_labels(index, tally, meta->namespace,
                                                                   meta->labels, meta->n_labels))
                continue;
            is_any = true;
            if (!wants)
                return true;
            tally->n_watchers++;
            *dv_vec_add(&wants->others) = tally;
        }
    return is_any;
}

bool dv_affinity_is_meant(struct dv_affinity *index, const struct dv_api_pod *pod)
{
    return index->n_held > 0 && gather_others(index, pod, NULL);
}

static void drop_others(struct dv_affinity *index, struct dv_affinity_wants *wants)
{
    for (size_t i = 0; i < wants->others.n; i++) {
        wants->others.v[i]->n_watchers--;
        dv_affinity_tally_drop(index, wants->others.v[i]);
    }
    dv_vec_clear(&wants->others);
}

void dv_affinity_wants_free(struct dv_affinity *index, struct dv_affinity_wants *wants)
{
    if (!wants)
        return;
    drop_others(index, wants);
    for (size_t i = 0; i < n_own(wants); i++)
        dv_affinity_unuse(index, own(wants, i));
    dv_vec_fini(&wants->near);
    dv_vec_fini(&wants->apart);
    dv_vec_fini(&wants->wishes);
    dv_vec_fini(&wants->spread);
    dv_vec_fini(&wants->others);
    free(wants);
}

void dv_affinity_look_around(struct dv_affinity *index, struct dv_affinity_wants *wants,
                             const struct dv_api_pod *pod)
{
    drop_others(index, wants);
    /* Not once and for all: the labels of its namespace may change. */
    wants->is_near_itself =
        wants->near.n > 0 &&
        dv_affinity_means_labels(index, wants->near.v[0], pod->metadata.namespace,
                                 pod->metadata.labels, pod->metadata.n_labels);
    (void)gather_others(index, pod, wants);
}

uint64_t dv_affinity_changed(const struct dv_affinity_wants *wants)
{
    uint64_t changed = 0;

    for (size_t i = 0; i < n_own(wants); i++)
        changed = dv_u64_max(changed, own(wants, i)->changed);
    for (size_t i = 0; i < wants->others.n; i++)
        changed = dv_u64_max(changed, wants->others.v[i]->changed);
    return changed;
}

uint64_t dv_affinity_cost(const struct dv_affinity_wants *wants)
{
    return (n_own(wants) + wants->others.n) * COST_TALLY;
}

/* ---- answers ---- */

static uint32_t n_matching(const struct dv_affinity_tally *tally, uint32_t domain)
{
    return domain < tally->matching.n ? tally->matching.v[domain] : 0;
}

static enum dv_affinity_verdict check_spread(const struct dv_affinity_wants *wants,
                                             const struct dv_affinity_node *node)
{
    for (size_t i = 0; i < wants->spread.n; i++) {
        const struct constraint *constraint = &wants->spread.v[i];
        const struct dv_affinity_tally *tally = constraint->tally;
        uint32_t domain;
        int64_t least;

        if (!constraint->is_hard)
            continue;
        domain = dv_affinity_domain(tally->topology, node);
        if (domain == DOMAIN_NONE)
            return DV_AFFINITY_NO_KEY;
        least = tally->n_domains < constraint->min_domains ? 0 : (int64_t)tally->least;
        if ((int64_t)n_matching(tally, domain) + constraint->is_self - least > constraint->max_skew)
            return DV_AFFINITY_SKEWED;
    }
    return DV_AFFINITY_FITS;
}

/* Each domain has a pod that is wanted near; or no node has one, and the pod is the first of pods
 * that want to be near each other. */
static bool is_in_company(const struct dv_affinity_wants *wants,
                          const struct dv_affinity_node *node)
{
    bool is_found = true;
    uint64_t total = 0;

    for (size_t i = 0; i < wants->near.n; i++) {
        const struct dv_affinity_tally *tally = wants->near.v[i];
        uint32_t domain = dv_affinity_domain(tally->topology, node);

        if (domain == DOMAIN_NONE)
            return false;
        is_found &= n_matching(tally, domain) > 0;
        total += tally->total;
    }
    return is_found || (total == 0 && wants->is_near_itself);
}

static bool is_apart(const struct dv_affinity_wants *wants, const struct dv_affinity_node *node)
{
    for (size_t i = 0; i < wants->apart.n; i++) {
        const struct dv_affinity_tally *tally = wants->apart.v[i];
        uint32_t domain = dv_affinity_domain(tally->topology, node);

        if (domain != DOMAIN_NONE && n_matching(tally, domain) > 0)
            return false;
    }
    return true;
}

static bool is_bearable(const struct dv_affinity_wants *wants, const struct dv_affinity_node *node)
{
    for (size_t i = 0; i < wants->others.n; i++) {
        const struct dv_affinity_tally *tally = wants->others.v[i];
        uint32_t domain =
            tally->repelling.n > 0 ? dv_affinity_domain(tally->topology, node) : DOMAIN_NONE;

        if (domain < tally->repelling.n && tally->repelling.v[domain] > 0)
            return false;
    }
    return true;
}

enum dv_affinity_verdict dv_affinity_check(const struct dv_affinity_wants *wants,
                                           const struct dv_affinity_node *node)
{
    enum dv_affinity_verdict verdict = check_spread(wants, node);

    if (wants->is_too_much)
        return DV_AFFINITY_TOO_MUCH;
    if (verdict != DV_AFFINITY_FITS)
        return verdict;
    if (wants->near.n > 0 && !is_in_company(wants, node))
        return DV_AFFINITY_LONELY;
    if (!is_apart(wants, node))
        return DV_AFFINITY_TOO_NEAR;
    return is_bearable(wants, node) ? DV_AFFINITY_FITS : DV_AFFINITY_UNWANTED;
}

static const dv_str verdicts[] = {
    [DV_AFFINITY_FITS] = DV_STR_INIT(""),
    [DV_AFFINITY_NO_KEY] = DV_STR_INIT("node(s) didn't match pod topology spread constraints "
                                       "(missing required label)"),
    [DV_AFFINITY_SKEWED] = DV_STR_INIT("node(s) didn't match pod topology spread constraints"),
    [DV_AFFINITY_LONELY] = DV_STR_INIT("node(s) didn't match pod affinity rules"),
    [DV_AFFINITY_TOO_NEAR] = DV_STR_INIT("node(s) didn't match pod anti-affinity rules"),
    [DV_AFFINITY_UNWANTED] = DV_STR_INIT("node(s) didn't satisfy existing pods anti-affinity "
                                         "rules"),
    [DV_AFFINITY_TOO_MUCH] = DV_STR_INIT("pods with more than 1000 affinity terms of a kind, or "
                                         "32 topology keys, are not scheduled"),
};

dv_str dv_affinity_reason(enum dv_affinity_verdict verdict)
{
    return verdicts[verdict];
}

bool dv_affinity_is_resolvable(enum dv_affinity_verdict verdict)
{
    return verdict != DV_AFFINITY_NO_KEY && verdict != DV_AFFINITY_LONELY &&
           verdict != DV_AFFINITY_TOO_MUCH;
}

/* ---- scores ---- */

int64_t dv_affinity_attraction(const struct dv_affinity_wants *wants,
                               const struct dv_affinity_node *node)
{
    int64_t sum = 0;

    for (size_t i = 0; i < wants->wishes.n; i++) {
        const struct wish *wish = &wants->wishes.v[i];
        uint32_t domain = dv_affinity_domain(wish->tally->topology, node);

        if (domain != DOMAIN_NONE)
            sum += wish->weight * (int64_t)n_matching(wish->tally, domain);
    }
    for (size_t i = 0; i < wants->others.n; i++) {
        const struct dv_affinity_tally *tally = wants->others.v[i];
        uint32_t domain =
            tally->attracting.n > 0 ? dv_affinity_domain(tally->topology, node) : DOMAIN_NONE;

        if (domain < tally->attracting.n)
            sum += tally->attracting.v[domain];
    }
    return sum;
}

/* ln(n) in 1/1024, near enough for a weight: by halving to between 1 and 2, where it is nearly
 * straight. */
static int64_t logarithm(uint64_t n)
{
    int64_t halvings = 63 - __builtin_clzll(n);
    int64_t rest = (int64_t)((n << 10) >> halvings) - FIXED_POINT;

    return (halvings * FIXED_POINT + rest) * 710 / FIXED_POINT; /* ln 2 is 710/1024 */
}

int64_t dv_affinity_crowding(const struct dv_affinity_wants *wants,
                             const struct dv_affinity_node *node)
{
    int64_t sum = 0;

    for (size_t i = 0; i < wants->spread.n; i++) {
        const struct constraint *constraint = &wants->spread.v[i];
        const struct dv_affinity_tally *tally = constraint->tally;
        uint32_t domain;

        if (constraint->is_hard)
            continue;
        domain = dv_affinity_domain(tally->topology, node);
        if (domain == DOMAIN_NONE)
            return -1;
        /* With more domains each pod weighs more, so that constraints over many hosts and few zones
         * count alike. */
        sum += (int64_t)n_matching(tally, domain) * logarithm(tally->n_domains + 2) +
               (constraint->max_skew - 1) * FIXED_POINT;
    }
    return (sum + FIXED_POINT / 2) / FIXED_POINT;
}
