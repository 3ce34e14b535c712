/* refuse.c - the end of an attempt that found no node: what the pod says about it, which claim is
 * deallocated because it is in the way, and what the pod waits for. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "sched/attempt.h"
#include "sched/crowd.h"
#include "sched/fit.h"
#include "sched/sched.h"
#include "sched/sched_state.h"

/* The ceiling of a condition's text. `davit explain` tells all of it, device by device. */
#define TEXT_BYTES_MAX 4096u
/* How often the cost of a search is doubled at most (COST_NODE in offer.c): from 25 ms to 0.8 s. */
#define N_DOUBLED_MAX 5u
/* The longest pause between two attempts whose searches were given up; the first is a second, and
 * each is twice the last. */
#define SEARCH_PAUSE_MAX_MS 60000u

static void on_deallocated(struct dv_sched_pod_claim *use, const struct dv_err *err)
{
    struct dv_sched_pod *pod = use->pod;

    /* A claim that could not be deallocated is in the way of the next attempt, which tries
     * again. */
    (void)err;
    pod->n_writes--;
    if (pod->is_gone)
        dv_sched_pod_release(pod);
    else
        dv_sched_pod_reconsider(pod);
}

static void write_claim(struct dv_sched_pod_claim *use, enum dv_sched_claim_change change)
{
    use->change = change;
    use->written = on_deallocated;
    use->pod->n_writes++;
    dv_sched_write(use);
}

/* Whether the claim is allocated and used by no other pod. Deallocated, it can be allocated on a
 * node where the pod fits. */
static bool is_in_the_way(const struct dv_sched_attempt *attempt,
                          const struct dv_sched_pod_claim *use)
{
    const struct dv_api_resource_claim *claim = dv_sched_claim_value(use->claim);
    size_t n = claim->status.n_reserved_for;

    return claim->status.allocation &&
           (n == 0 || (n == 1 && dv_claim_is_reserved_for(claim, attempt->value->metadata.uid)));
}

static struct dv_sched_pod_claim *choose_in_the_way(const struct dv_sched_attempt *attempt)
{
    const struct dv_sched_crowd_reason *reason =
        dv_map_get(&attempt->crowd->reasons, DV_STR(DV_SCHED_UNAVAILABLE));
    struct dv_sched_pod_claim *chosen = NULL;
    uint64_t n = 0;

    if (!reason || reason->n_nodes == 0)
        return NULL;
    /* One of them at random, as the reference does: which of several claims is in the way is not
     * known, and the same choice each time could go on for ever. */
    for (size_t i = 0; i < attempt->pod->n_claims; i++)
        if (is_in_the_way(attempt, &attempt->pod->claims[i]) && dv_random_u64() % ++n == 0)
            chosen = &attempt->pod->claims[i];
    return chosen;
}

bool dv_sched_attempt_may_clear(const struct dv_sched_attempt *attempt)
{
    return choose_in_the_way(attempt) != NULL;
}

struct lines {
    DV_VEC(struct dv_sched_reason) all;
    struct dv_map places; /* by the text: its place in `all` */
};

static void add_line(struct lines *lines, dv_str text, size_t n_nodes, struct dv_arena *arena)
{
    size_t *place = dv_map_get(&lines->places, text);

    if (place) {
        lines->all.v[*place].n_nodes += n_nodes;
        return;
    }
    place = DV_NEW(arena, size_t);
    *place = lines->all.n;
    *dv_vec_add_in(&lines->all, arena) = (struct dv_sched_reason){.text = text, .n_nodes = n_nodes};
    dv_map_set(&lines->places, text, place);
}

/* What is said behind the reasons: which claims stand in the way, and whether others could make
 * room. Of that nothing when they do, as in the reference. */
static dv_str afterword(const struct dv_sched_attempt *attempt)
{
    const struct dv_sched_pod *pod = attempt->pod;
    bool has_claims = pod->n_claims > 0 || pod->is_extended;
    dv_str claims = has_claims ? DV_STR(DV_SCHED_STILL) : DV_STR(DV_SCHED_NO_CLAIMS);

    if (attempt->preempts)
        return DV_STR_NONE;
    return attempt->preemption.n > 0 ? dv_str_printf(attempt->sched->scratch, "%.*s, %.*s",
                                                     DV_FMT(claims), DV_FMT(attempt->preemption))
                                     : claims;
}

/* Says why no node fits: how many nodes there are for each reason, or `before`, a reason that is
 * not about single nodes. */
static void say(struct dv_sched_attempt *attempt, dv_str before)
{
    struct dv_sched *sched = attempt->sched;
    struct dv_sched_pod *pod = attempt->pod;
    struct lines lines = {0};
    struct dv_buf text;
    dv_str miss;

    dv_map_init(&lines.places);
    for (size_t i = 0; attempt->crowd && i < attempt->crowd->all.n; i++) {
        const struct dv_sched_crowd_reason *reason = attempt->crowd->all.v[i];
        dv_str rest = reason->text;
        dv_str piece;

        while (reason->n_nodes > 0 && dv_str_split(&rest, '\n', &piece))
            add_line(&lines, piece, reason->n_nodes, sched->scratch);
    }
    if (attempt->is_pinned && attempt->n_nodes < sched->nodes.n)
        add_line(&lines, DV_STR("node(s) didn't satisfy plugin(s) [NodeAffinity]"),
                 sched->nodes.n - attempt->n_nodes, sched->scratch);
    dv_map_fini(&lines.places);
    dv_buf_init(&text, TEXT_BYTES_MAX);
    if (attempt->fatal)
        dv_buf_printf(&text, "running \"DynamicResources\" filter plugin: %.*s",
                      DV_FMT(attempt->fatal->text));
    else
        dv_sched_summary(pod->is_preset ? 1 : sched->nodes.n, lines.all.v, lines.all.n, before,
                         afterword(attempt), &text);
    miss = attempt->preempts || attempt->fatal || before.n > 0 ? DV_STR_NONE
                                                               : dv_sched_attempt_miss(attempt);
    if (miss.n > 0)
        dv_buf_printf(&text, "%s%.*s", attempt->preemption.n > 0 ? " " : ". ", DV_FMT(miss));
    dv_sched_say(pod, attempt->is_error ? "SchedulerError" : "Unschedulable", dv_buf_str(&text));
    dv_buf_fini(&text);
}

void dv_sched_attempt_give_up(struct dv_sched_attempt *attempt, dv_str before)
{
    struct dv_sched *sched = attempt->sched;
    struct dv_sched_pod *pod = attempt->pod;

    pod->n_attempts++;
    pod->backoff_until_ms = dv_loop_now_ms(sched->loop) + dv_sched_backoff_ms(pod->n_attempts);
    say(attempt, before);
    dv_sched_count_attempt(sched, attempt->is_error ? DV_SCHED_ERROR : DV_SCHED_UNSCHEDULABLE,
                           dv_loop_now_ns(sched->loop) - attempt->begin_ns);
}

/* All nodes were searched, and the search on some of them was given up. They are searched again
 * after a pause, at twice the cost; besides, the inventory remembers more and more results of
 * selectors, so that each search gets further. One pod does this for its whole crowd: the others
 * would find the same. False: nothing was given up, or another pod does it. */
static bool search_longer(const struct dv_sched_attempt *attempt)
{
    struct dv_sched_pod *pod = attempt->pod;
    struct dv_sched_crowd *crowd = attempt->crowd;
    uint64_t pause_ms = 1000;
    bool is_any = false;

    for (size_t i = 0; i < crowd->all.n; i++)
        is_any |= crowd->all.v[i]->is_spent && crowd->all.v[i]->n_nodes > 0;
    if (!is_any || (crowd->searcher && crowd->searcher != pod))
        return false;
    crowd->searcher = pod;
    if (crowd->n_doubled < N_DOUBLED_MAX)
        crowd->n_doubled++;
    crowd->improved = ++attempt->sched->tick;
    for (unsigned i = 1; i < pod->n_attempts && pause_ms < SEARCH_PAUSE_MAX_MS; i++)
        pause_ms *= 2;
    pod->backoff_until_ms =
        dv_loop_now_ms(pod->sched->loop) + dv_u64_min(pause_ms, SEARCH_PAUSE_MAX_MS);
    return true;
}

/* Whether something got better while the attempt was put aside. The pod was not waiting then, so
 * nobody has woken it: without this question it would miss that event. */
static bool may_fit_now(const struct dv_sched_attempt *attempt)
{
    return attempt->is_paused && attempt->tick != attempt->sched->tick;
}

/* A reason that is not about single nodes; mostly there is none. */
static dv_str general_reason(const struct dv_sched_attempt *attempt)
{
    if (attempt->is_nowhere)
        return DV_STR("the node of the pod is not there");
    return attempt->is_contradiction ? DV_STR("pod affinity terms conflict") : DV_STR_NONE;
}

void dv_sched_attempt_fail(struct dv_sched_attempt *attempt)
{
    struct dv_sched_pod *pod = attempt->pod;
    struct dv_sched_pod_claim *use = pod->is_preset ? NULL : choose_in_the_way(attempt);

    dv_sched_set_state(pod, DV_SCHED_POD_WAITING);
    dv_sched_attempt_give_up(attempt, general_reason(attempt));
    pod->is_late = attempt->is_spent || (!use && search_longer(attempt));
    if (use) {
        write_claim(use, DV_SCHED_CHANGE_DEALLOCATE);
    } else if (pod->is_late || may_fit_now(attempt)) {
        dv_sched_queue(pod);
    } else {
        if (attempt->crowd->searcher == pod)
            attempt->crowd->searcher = NULL;
        dv_sched_crowd_wait(attempt->sched, pod);
        pod->is_woken = false;
    }
}

/* An earlier attempt has left a claim for extended resources, whose requests may be those of
 * another node. It is deleted, and the pod is tried again when it is gone (wake_owner in
 * sched_claims.c). */
bool dv_sched_attempt_clear(struct dv_sched_attempt *attempt)
{
    struct dv_sched_pod *pod = attempt->pod;
    struct dv_sched_claim *claim =
        dv_map_get(&attempt->sched->extended, attempt->value->metadata.uid);

    if (!claim || pod->is_preset)
        return false;
    dv_sched_set_state(pod, DV_SCHED_POD_WAITING);
    if (pod->extended.claim != claim) {
        dv_link_remove(&pod->extended.user);
        pod->extended = (struct dv_sched_pod_claim){.pod = pod, .claim = claim};
        dv_list_push(&claim->users, &pod->extended.user);
    }
    write_claim(&pod->extended, DV_SCHED_CHANGE_DELETE);
    return true;
}
