/* job_manage.c - as many pods of a Job as are wanted. A pod that is too many loses the finalizer
 * before it is deleted: it is not counted. So one that runs without the finalizer was on its way
 * out when somebody was interrupted, and is deleted. */
#include "apps/plan/apps_plan.h"
#include "apps/plan/job_state.h"
#include "apps/plan/pod_state.h"
#include "apps/plan/replica_set.h"
#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"

/* Prefixes of names are cut so that what is added at random fits. */
#define PREFIX_BYTES_MAX 58u
#define INDEX_ENV DV_STR("JOB_COMPLETION_INDEX")

typedef DV_VEC(const struct dv_api_pod *) pod_list;

/* ---- letting go and deleting ---- */

static bool remove_finalizer(const struct dv_action *action, void *value, struct dv_arena *arena)
{
    (void)action;
    dv_plan_set_finalizer(value, DV_STR(DV_JOB_FINALIZER), false, arena);
    return true;
}

void dv_job_let_go(struct dv_plan *plan, const struct dv_api_pod *pod)
{
    struct dv_action *action = dv_plan_change(plan, dv_kind(DV_KIND_POD), &pod->metadata);

    action->change = remove_finalizer;
}

void dv_job_delete_active(struct dv_job_state *state)
{
    size_t n = 0;

    for (size_t i = 0; i < state->pods.n && n < DV_JOB_BURST; i++)
        if (state->pods.v[i].is_active) {
            (void)dv_plan_delete(state->plan, dv_kind(DV_KIND_POD),
                                 &state->pods.v[i].pod->metadata);
            n++;
        }
}

static void delete_untracked(struct dv_job_state *state)
{
    size_t n = 0;

    for (size_t i = 0; i < state->pods.n && n < DV_JOB_BURST; i++)
        if (state->pods.v[i].is_active && !state->pods.v[i].is_tracked) {
            (void)dv_plan_delete(state->plan, dv_kind(DV_KIND_POD),
                                 &state->pods.v[i].pod->metadata);
            n++;
        }
}

/* ---- too many ---- */

/* Puts the pods that are missed least to the front. */
static void sort(const struct dv_job_state *state, const struct dv_api_pod **pods, size_t n)
{
    const struct dv_replica_input input = {.now = state->input->now};

    if (n > 1)
        dv_replica_sort(&input, pods, n, state->plan->arena);
}

/* Parts the active pods into those that an index has too many, or that have none, and the rest. */
static void part(struct dv_job_state *state, pod_list *out, pod_list *rest)
{
    struct dv_arena *arena = state->plan->arena;

    for (size_t from = 0, to; from < state->pods.n; from = to) {
        pod_list same = {0};

        for (to = from; to < state->pods.n &&
                        (to == from || state->pods.v[to].index == state->pods.v[from].index);
             to++)
            if (state->pods.v[to].is_active)
                *dv_vec_add_in(&same, arena) = state->pods.v[to].pod;
        if (state->pods.v[from].is_valid)
            sort(state, same.v, same.n);
        for (size_t i = 0; i < same.n; i++)
            *dv_vec_add_in(state->pods.v[from].is_valid && i + 1 == same.n ? rest : out, arena) =
                same.v[i];
    }
}

/* Plans that pods go which are too many, at least `n`. */
static void plan_fewer(struct dv_job_state *state, size_t n)
{
    struct dv_arena *arena = state->plan->arena;
    pod_list out = {0};
    pod_list rest = {0};

    if (state->is_indexed)
        part(state, &out, &rest);
    for (size_t i = 0; !state->is_indexed && i < state->pods.n; i++)
        if (state->pods.v[i].is_active)
            *dv_vec_add_in(&rest, arena) = state->pods.v[i].pod;
    if (out.n < n)
        sort(state, rest.v, rest.n);
    for (size_t i = 0; i < rest.n && out.n < n; i++)
        *dv_vec_add_in(&out, arena) = rest.v[i];
    for (size_t i = 0; i < out.n && i < DV_JOB_BURST; i++)
        dv_job_let_go(state->plan, out.v[i]);
}

/* ---- too few ---- */

static void add_index_env(struct dv_api_container *containers, size_t n, struct dv_arena *arena)
{
    for (size_t i = 0; i < n; i++) {
        struct dv_api_container *container = &containers[i];
        struct dv_api_env_var *all =
            DV_NEW_ARRAY(arena, struct dv_api_env_var, container->n_env + 1);
        bool is_there = false;

        for (size_t j = 0; j < container->n_env; j++) {
            all[j] = container->env[j];
            is_there |= dv_str_eq(all[j].name, INDEX_ENV);
        }
        if (is_there)
            continue;
        all[container->n_env].name = INDEX_ENV;
        all[container->n_env].value_from = DV_NEW(arena, struct dv_api_env_var_source);
        all[container->n_env].value_from->field_ref =
            DV_NEW(arena, struct dv_api_object_field_selector);
        /* The version is the API's default. */
        all[container->n_env].value_from->field_ref->api_version = DV_STR("v1");
        all[container->n_env].value_from->field_ref->field_path =
            DV_STR("metadata.labels['" DV_JOB_INDEX_LABEL "']");
        container->env = all;
        container->n_env++;
    }
}

static struct dv_api_container *copy_of(const struct dv_api_container *containers, size_t n,
                                        struct dv_arena *arena)
{
    struct dv_api_container *copy = DV_NEW_ARRAY(arena, struct dv_api_container, n + 1);

    for (size_t i = 0; i < n; i++)
        copy[i] = containers[i];
    return copy;
}

/* The template, whose containers are told their index where pods have one. */
static struct dv_api_pod_template_spec template_of(const struct dv_job_state *state)
{
    struct dv_arena *arena = state->plan->arena;
    struct dv_api_pod_template_spec template = state->job->spec.template;
    struct dv_api_pod_spec *spec = &template.spec;

    if (!state->is_indexed)
        return template;
    spec->containers = copy_of(spec->containers, spec->n_containers, arena);
    spec->init_containers = copy_of(spec->init_containers, spec->n_init_containers, arena);
    add_index_env(spec->containers, spec->n_containers, arena);
    add_index_env(spec->init_containers, spec->n_init_containers, arena);
    return template;
}

static void annotate(struct dv_api_pod *pod, const char *key, int64_t value, struct dv_arena *arena)
{
    dv_entry_set(&pod->metadata.annotations, &pod->metadata.n_annotations, dv_str_from_c(key),
                 dv_str_printf(arena, "%lld", (long long)value), arena);
}

/* Tells the pod how often those before it had failed; `last` NULL: none had. */
static void set_failures(struct dv_api_pod *pod, const struct dv_job_pod *last,
                         struct dv_arena *arena)
{
    int64_t n = last ? dv_job_annotation(last->pod, DV_STR(DV_JOB_FAILURES_ANNOTATION)) : 0;
    int64_t n_ignored = last ? dv_job_annotation(last->pod, DV_STR(DV_JOB_IGNORED_ANNOTATION)) : 0;
    bool is_ignored = last && last->verdict == DV_JOB_IGNORE;

    n = (n < 0 ? 0 : n) + (last && !is_ignored);
    n_ignored = (n_ignored < 0 ? 0 : n_ignored) + is_ignored;
    annotate(pod, DV_JOB_FAILURES_ANNOTATION, n, arena);
    if (n_ignored > 0)
        annotate(pod, DV_JOB_IGNORED_ANNOTATION, n_ignored, arena);
}

static void set_index(struct dv_api_pod *pod, dv_str job, int64_t index, struct dv_arena *arena)
{
    dv_str number = dv_str_printf(arena, "%lld", (long long)index);
    size_t n = PREFIX_BYTES_MAX - number.n - 2;

    pod->metadata.generate_name =
        dv_str_printf(arena, "%.*s-%.*s-", DV_FMT(dv_str_slice(job, 0, n)), DV_FMT(number));
    pod->spec.hostname = dv_str_printf(arena, "%.*s-%.*s", DV_FMT(job), DV_FMT(number));
    annotate(pod, DV_JOB_INDEX_LABEL, index, arena);
    dv_entry_set(&pod->metadata.labels, &pod->metadata.n_labels, DV_STR(DV_JOB_INDEX_LABEL), number,
                 arena);
}

/* The pod that has failed last of those of an index, by bisection. */
static const struct dv_job_pod *find_delayed(const struct dv_job_state *state, int64_t index)
{
    size_t from = 0;
    size_t to = state->pods.n;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (state->pods.v[middle].index < index)
            from = middle + 1;
        else
            to = middle;
    }
    for (; from < state->pods.n && state->pods.v[from].index == index; from++)
        if (state->pods.v[from].is_delayed)
            return &state->pods.v[from];
    return NULL;
}

/* How long an index waits after failures of its own pods. */
static uint64_t index_pause_ms(const struct dv_job_state *state, const struct dv_job_pod *last)
{
    int64_t n = dv_job_annotation(last->pod, DV_STR(DV_JOB_FAILURES_ANNOTATION));
    int64_t ignored = dv_job_annotation(last->pod, DV_STR(DV_JOB_IGNORED_ANNOTATION));
    struct dv_job_failures failures = {.n = (n < 0 ? 0 : n) + (ignored < 0 ? 0 : ignored) + 1,
                                       .last = dv_job_pod_end(last->pod)};

    return dv_job_backoff_ms(&failures, state->input->now);
}

/* Creates the pod of an index, unless the index has to wait. */
static void create_at(struct dv_job_state *state, const struct dv_api_pod_template_spec *template,
                      int64_t index)
{
    struct dv_arena *arena = state->plan->arena;
    const struct dv_job_pod *last = state->has_index_limit ? find_delayed(state, index) : NULL;
    uint64_t pause_ms = last ? index_pause_ms(state, last) : 0;
    struct dv_api_pod *pod;

    if (pause_ms > 0) {
        dv_plan_again(state->plan, pause_ms);
        return;
    }
    pod = dv_plan_pod(state->owner, template, arena);
    set_index(pod, state->job->metadata.name, index, arena);
    if (state->has_index_limit)
        set_failures(pod, last, arena);
    (void)dv_plan_create(state->plan, dv_kind(DV_KIND_POD), pod);
}

/* The indexes that need no pod. */
static struct dv_job_indexes taken(const struct dv_job_state *state)
{
    struct dv_arena *arena = state->plan->arena;
    struct dv_job_indexes running = {0};
    struct dv_job_indexes over = dv_job_indexes_union(&state->succeeded, &state->failed, arena);

    for (size_t i = 0; i < state->pods.n; i++) {
        const struct dv_job_pod *pod = &state->pods.v[i];

        if (pod->is_valid && (pod->is_active || (state->replaces_failed && pod->is_terminating)))
            dv_job_indexes_append(&running, pod->index, arena);
    }
    return dv_job_indexes_union(&over, &running, arena);
}

static void create_indexed(struct dv_job_state *state, int64_t n)
{
    const struct dv_api_pod_template_spec template = template_of(state);
    struct dv_job_indexes not_wanted = taken(state);
    int64_t completions = state->job->spec.completions ? *state->job->spec.completions : 0;
    int64_t index = 0;

    for (size_t i = 0; n > 0 && index < completions && i <= not_wanted.intervals.n; i++) {
        bool is_end = i == not_wanted.intervals.n;
        int64_t end = is_end ? completions : not_wanted.intervals.v[i].first;

        for (; n > 0 && index < end; index++, n--)
            create_at(state, &template, index);
        if (!is_end && n > 0)
            index = not_wanted.intervals.v[i].last + 1;
    }
}

static void plan_more(struct dv_job_state *state, int64_t n)
{
    struct dv_job_failures failures = dv_job_failures_of(state);
    uint64_t pause_ms =
        state->has_index_limit ? 0 : dv_job_backoff_ms(&failures, state->input->now);
    int64_t n_room = DV_PODS_WAITING_MAX;

    if (pause_ms > 0) {
        dv_plan_again(state->plan, pause_ms);
        return;
    }
    for (size_t i = 0; i < state->pods.n; i++)
        n_room -= state->pods.v[i].is_active && dv_pod_is_waiting(state->pods.v[i].pod);
    n = n < n_room ? n : n_room;
    n = n < DV_JOB_BURST ? n : DV_JOB_BURST;
    if (state->is_indexed) {
        create_indexed(state, n);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        (void)dv_plan_create(
            state->plan, dv_kind(DV_KIND_POD),
            dv_plan_pod(state->owner, &state->job->spec.template, state->plan->arena));
}

/* ---- as many as are wanted ---- */

static int64_t wanted(const struct dv_job_state *state)
{
    const struct dv_api_job_spec *spec = &state->job->spec;
    int64_t parallelism = spec->parallelism ? *spec->parallelism : 1;
    int64_t left;

    /* Without a number of completions the first success lets those end that run. */
    if (!spec->completions)
        return state->n_succeeded > 0 ? (int64_t)state->n_active : parallelism;
    left = *spec->completions - state->n_succeeded;
    return left < 0 ? 0 : left < parallelism ? left : parallelism;
}

void dv_job_plan_pods(struct dv_job_state *state)
{
    int64_t n_active = (int64_t)state->n_active;
    int64_t n_wanted = state->is_suspended ? 0 : wanted(state);
    int64_t n_more = n_wanted - n_active;

    delete_untracked(state);
    if (state->plan->actions.n > 0)
        return;
    plan_fewer(state, n_more < 0 ? (size_t)-n_more : 0);
    if (state->plan->actions.n > 0)
        return;
    if (state->replaces_failed)
        n_more -= (int64_t)state->n_terminating;
    if (n_more > 0)
        plan_more(state, n_more);
}
