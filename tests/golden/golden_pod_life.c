/* golden_pod_life.c - replays how a kubelet led pods: a life leads the same pod over a runtime
 * whose containers do as recorded, in virtual time, and what it made of it is compared.
 *
 * A status is compared by its parts: each part's values in order, repeated ones once. Two changes
 * may have come in one update, so that a value which lasts for less than the kubelet's second may
 * be missing on either side; such values are named by `is_passing`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "files.h"
#include "pod_life_record.h"
#include "pod_life_world.h"
#include "resource/resource.h"
#include "workload/workload.h"

enum {
    TAIL_MS = 3000,     /* the recording stopped at about this before its last value */
    STEPS_MAX = 200000, /* more than any pod takes: it would not end */
    EXTRA_MS = 30000,   /* how much longer than recorded a pod may take */
};

/* The values of one part of a pod, in order. */
struct value {
    dv_str text;
    uint64_t ms;
    bool is_passing;
};
struct values {
    DV_VEC(struct value) v;
};

struct replay {
    const struct record *record;
    struct world *world;
    struct dv_arena *arena;
    const char *file;
    unsigned line;
    bool is_told; /* what differs is printed */
    bool has_differed;
    bool lacks; /* something recorded has not come yet */
};

static void add(struct replay *replay, struct values *values, uint64_t ms, bool is_passing,
                dv_str text)
{
    if (values->v.n > 0 && dv_str_eq(values->v.v[values->v.n - 1].text, text))
        return;
    *dv_vec_add_in(&values->v, replay->arena) = (struct value){text, ms, is_passing};
}

static void differ(struct replay *replay, const char *what, dv_str part, dv_str got, dv_str want)
{
    replay->has_differed = true;
    if (replay->is_told)
        printf("%s:%u: %.*s: %s %.*s: got %.*s, want %.*s\n", replay->file, replay->line,
               DV_FMT(replay->record->id), what, DV_FMT(part), DV_FMT(got), DV_FMT(want));
}

/* Compares two orders of values, in which passing ones may be missing. */
static void compare(struct replay *replay, const char *what, dv_str part, const struct values *got,
                    const struct values *want)
{
    size_t i = 0;
    size_t j = 0;

    while (j < want->v.n) {
        const struct value *wanted = &want->v.v[j];
        bool may_skip = i < got->v.n && got->v.v[i].is_passing;
        bool comes_next =
            may_skip && i + 1 < got->v.n && dv_str_eq(got->v.v[i + 1].text, wanted->text);

        if (i < got->v.n && dv_str_eq(got->v.v[i].text, wanted->text)) {
            i++;
            j++;
        } else if (wanted->is_passing && !comes_next && (j + 1 < want->v.n || i == got->v.n)) {
            j++;
        } else if (may_skip) {
            i++;
        } else {
            replay->lacks |= i == got->v.n;
            differ(replay, what, part, i < got->v.n ? got->v.v[i].text : DV_STR("nothing more"),
                   wanted->text);
            return;
        }
    }
    for (; i < got->v.n; i++)
        if (!got->v.v[i].is_passing && got->v.v[i].ms + TAIL_MS < replay->record->end_ms)
            differ(replay, what, part, got->v.v[i].text, DV_STR("nothing more"));
}

/* ---- parts of a status ---- */

static dv_str state_text(struct replay *replay, const struct dv_api_container_status *status,
                         bool *is_passing)
{
    const struct dv_api_container_state *state = &status->state;
    const struct dv_api_container_state_terminated *last = status->last_state.terminated;
    dv_str before =
        last ? dv_str_printf(replay->arena, ", last %lld %.*s %.*s", (long long)last->exit_code,
                             DV_FMT(last->reason), DV_FMT(last->message))
             : DV_STR_NONE;
    dv_str id = status->container_id;

    *is_passing = false;
    if (state->running) {
        *is_passing = true; /* it may end within the second */
        return dv_str_printf(replay->arena, "#%lld running%.*s %.*s",
                             (long long)status->restart_count, DV_FMT(before), DV_FMT(id));
    }
    if (state->terminated) {
        /* It may be started again in the second that shows its end. */
        *is_passing = true;
        return dv_str_printf(replay->arena, "#%lld terminated %lld %.*s %.*s%.*s %.*s",
                             (long long)status->restart_count,
                             (long long)state->terminated->exit_code,
                             DV_FMT(state->terminated->reason), DV_FMT(state->terminated->message),
                             DV_FMT(before), DV_FMT(id));
    }
    if (state->waiting) {
        *is_passing = dv_str_ends_with(state->waiting->reason, DV_STR("BackOff"));
        return dv_str_printf(replay->arena, "#%lld waiting %.*s %.*s%.*s %.*s",
                             (long long)status->restart_count, DV_FMT(state->waiting->reason),
                             DV_FMT(state->waiting->message), DV_FMT(before), DV_FMT(id));
    }
    return DV_STR("no state");
}

static const struct dv_api_container_status *find(const struct dv_api_container_status *statuses,
                                                  size_t n, dv_str name)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(statuses[i].name, name))
            return &statuses[i];
    return NULL;
}

static const struct dv_api_container_status *status_of(const struct dv_api_pod_status *status,
                                                       dv_str name)
{
    const struct dv_api_container_status *found =
        find(status->container_statuses, status->n_container_statuses, name);

    if (!found)
        found = find(status->init_container_statuses, status->n_init_container_statuses, name);
    return found ? found
                 : find(status->ephemeral_container_statuses,
                        status->n_ephemeral_container_statuses, name);
}

typedef void part_fn(struct replay *replay, const struct dv_api_pod_status *status, dv_str name,
                     uint64_t ms, struct values *values);

static void part_phase(struct replay *replay, const struct dv_api_pod_status *status, dv_str name,
                       uint64_t ms, struct values *values)
{
    (void)name;
    add(replay, values, ms, false,
        dv_str_printf(replay->arena, "%.*s %.*s %.*s", DV_FMT(status->phase),
                      DV_FMT(status->reason), DV_FMT(status->message)));
}

static void part_state(struct replay *replay, const struct dv_api_pod_status *status, dv_str name,
                       uint64_t ms, struct values *values)
{
    const struct dv_api_container_status *container = status_of(status, name);
    bool is_passing = false;
    dv_str text;

    if (!container)
        return;
    text = state_text(replay, container, &is_passing);
    add(replay, values, ms, is_passing, text);
}

static void part_ready(struct replay *replay, const struct dv_api_pod_status *status, dv_str name,
                       uint64_t ms, struct values *values)
{
    const struct dv_api_container_status *container = status_of(status, name);

    if (container)
        add(replay, values, ms, true,
            dv_str_printf(replay->arena, "%s %s", container->ready ? "ready" : "not ready",
                          !container->started   ? ""
                          : *container->started ? "started"
                                                : "not started"));
}

static void part_condition(struct replay *replay, const struct dv_api_pod_status *status,
                           dv_str name, uint64_t ms, struct values *values)
{
    for (size_t i = 0; i < status->n_conditions; i++) {
        const struct dv_api_pod_condition *condition = &status->conditions[i];

        if (dv_str_eq(condition->type, name))
            /* A static pod's first status may be older than its mirror. */
            add(replay, values, ms,
                dv_str_ends_with(name, DV_STR("Ready")) || replay->world->is_static,
                dv_str_printf(replay->arena, "%.*s %.*s %.*s", DV_FMT(condition->status),
                              DV_FMT(condition->reason), DV_FMT(condition->message)));
    }
}

/* What the phase is while the containers have ended: a terminal one comes later than that. */
static void part_end(struct replay *replay, const struct dv_api_pod_status *status, dv_str name,
                     uint64_t ms, struct values *values)
{
    for (size_t i = 0; i < status->n_conditions; i++) {
        const struct dv_api_pod_condition *condition = &status->conditions[i];
        bool is_end = dv_str_eq(condition->reason, DV_STR("PodCompleted")) ||
                      dv_str_eq(condition->reason, DV_STR("PodFailed"));

        if (dv_str_eq(condition->type, name) && is_end)
            add(replay, values, ms, false,
                dv_str_printf(replay->arena, "%.*s %.*s", DV_FMT(status->phase),
                              DV_FMT(condition->reason)));
    }
}

static void compare_part(struct replay *replay, const char *what, dv_str name, part_fn *part)
{
    struct values got = {0};
    struct values want = {0};

    for (size_t i = 0; i < replay->record->n_statuses; i++)
        if (dv_str_eq(replay->record->statuses[i].type, DV_STR("MODIFIED")))
            part(replay, &replay->record->statuses[i].status, name, replay->record->statuses[i].ms,
                 &want);
    for (size_t i = 0; i < replay->world->statuses.n; i++)
        part(replay, &replay->world->statuses.v[i].status, name, replay->world->statuses.v[i].ms,
             &got);
    compare(replay, what, name, &got, &want);
}

/* Each type of condition that was ever there. */
static void compare_conditions(struct replay *replay)
{
    struct values types = {0};

    for (size_t i = 0; i < replay->record->n_statuses; i++) {
        const struct dv_api_pod_status *status = &replay->record->statuses[i].status;

        for (size_t j = 0; j < status->n_conditions; j++) {
            dv_str type = status->conditions[j].type;
            size_t k = 0;

            while (k < types.v.n && !dv_str_eq(types.v.v[k].text, type))
                k++;
            if (k < types.v.n)
                continue;
            add(replay, &types, 0, false, type);
            compare_part(replay, "condition", type, part_condition);
        }
    }
}

static void compare_statuses(struct replay *replay)
{
    const struct dv_api_pod_spec *spec = &replay->world->pod.spec;

    compare_part(replay, "phase", DV_STR_NONE, part_phase);
    compare_part(replay, "end by", DV_STR("Ready"), part_end);
    compare_conditions(replay);
    for (size_t i = 0; i < spec->n_init_containers; i++) {
        compare_part(replay, "state of", spec->init_containers[i].name, part_state);
        compare_part(replay, "ready of", spec->init_containers[i].name, part_ready);
    }
    for (size_t i = 0; i < spec->n_containers; i++) {
        compare_part(replay, "state of", spec->containers[i].name, part_state);
        compare_part(replay, "ready of", spec->containers[i].name, part_ready);
    }
    for (size_t i = 0; i < spec->n_ephemeral_containers; i++)
        compare_part(replay, "state of",
                     spec->ephemeral_containers[i].ephemeral_container_common.name, part_state);
}

/* ---- calls ---- */

static bool is_compared(dv_str method, bool has_timeout)
{
    if (dv_str_eq(method, DV_STR("ExecSync")))
        return !has_timeout; /* hooks; how often a probe ran depends on the machine */
    return dv_str_starts_with(method, DV_STR("Create")) ||
           dv_str_starts_with(method, DV_STR("Start")) ||
           dv_str_starts_with(method, DV_STR("Stop")) ||
           dv_str_starts_with(method, DV_STR("Run")) || dv_str_starts_with(method, DV_STR("Pull"));
}

static dv_str call_text(struct replay *replay, dv_str method, dv_str container, uint32_t attempt,
                        bool has_timeout, int64_t timeout_s)
{
    if (has_timeout)
        return dv_str_printf(replay->arena, "%.*s %.*s:%u %lld s", DV_FMT(method),
                             DV_FMT(container), attempt, (long long)timeout_s);
    return dv_str_printf(replay->arena, "%.*s %.*s:%u", DV_FMT(method), DV_FMT(container), attempt);
}

/* The calls about one container, and those about the sandbox between them. */
static void compare_calls(struct replay *replay, dv_str name)
{
    struct values got = {0};
    struct values want = {0};

    for (size_t i = 0; i < replay->record->n_calls; i++) {
        const struct record_call *call = &replay->record->calls[i];

        if (is_compared(call->method, call->has_timeout && call->container.n > 0 &&
                                          !dv_str_starts_with(call->method, DV_STR("Stop"))) &&
            (call->container.n == 0 || dv_str_eq(call->container, name)))
            add(replay, &want, call->ms, false,
                call_text(replay, call->method, call->container, call->attempt,
                          dv_str_eq(call->method, DV_STR("StopContainer")), call->timeout_s));
    }
    for (size_t i = 0; i < replay->world->calls.n; i++) {
        const struct seen_call *call = &replay->world->calls.v[i];

        if (call->container.n == 0 || dv_str_eq(call->container, name))
            add(replay, &got, call->ms, false,
                call_text(replay, dv_str_from_c(call->method), call->container, call->attempt,
                          strcmp(call->method, "StopContainer") == 0, call->timeout_s));
    }
    compare(replay, "calls", name, &got, &want);
}

/* Whose turn it is to be stopped: sidecars come one after the other, the rest at once. */
static dv_str stop_text(struct replay *replay, dv_str container)
{
    enum dv_workload_kind kind = DV_WORKLOAD_REGULAR;

    (void)dv_workload_container(&replay->world->pod, container, &kind);
    return kind == DV_WORKLOAD_SIDECAR ? container : DV_STR("another");
}

static void compare_stops(struct replay *replay)
{
    struct values got = {0};
    struct values want = {0};

    for (size_t i = 0; i < replay->record->n_calls; i++)
        if (dv_str_eq(replay->record->calls[i].method, DV_STR("StopContainer")))
            add(replay, &want, replay->record->calls[i].ms, false,
                stop_text(replay, replay->record->calls[i].container));
    for (size_t i = 0; i < replay->world->calls.n; i++)
        if (strcmp(replay->world->calls.v[i].method, "StopContainer") == 0)
            add(replay, &got, replay->world->calls.v[i].ms, false,
                stop_text(replay, replay->world->calls.v[i].container));
    compare(replay, "turns", DV_STR_NONE, &got, &want);
}

/* ---- events ---- */

static bool is_same(const struct record_event *a, const struct record_event *b)
{
    static const dv_str combined = DV_STR_INIT("(combined from similar events): ");
    dv_str message = b->message;

    if (dv_str_starts_with(message, combined))
        message = dv_str_slice(message, combined.n, message.n);
    return a->is_warning == b->is_warning && dv_str_eq(a->reason, b->reason) &&
           dv_str_eq(a->message, message) && dv_str_eq(a->field_path, b->field_path);
}

/* Where the event is for the first time; n: it is not there. */
static size_t place(const struct record_event *events, size_t n, const struct record_event *event)
{
    size_t i = 0;

    while (i < n && !is_same(&events[i], event))
        i++;
    return i;
}

static dv_str event_text(struct replay *replay, const struct record_event *event)
{
    return dv_str_printf(replay->arena, "%s %.*s %.*s %.*s",
                         event->is_warning ? "Warning" : "Normal", DV_FMT(event->reason),
                         DV_FMT(event->field_path), DV_FMT(event->message));
}

/* Recorded times are whole seconds: within one, the order is not known. */
static void compare_order(struct replay *replay, const struct record_event *events, size_t n)
{
    const struct record_event *got = replay->world->events.v;
    size_t n_got = replay->world->events.n;

    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < j; i++)
            if (events[i].first_s < events[j].first_s && !is_same(&events[i], &events[j]) &&
                place(events, n, &events[j]) == j && place(events, n, &events[i]) == i &&
                place(got, n_got, &events[i]) > place(got, n_got, &events[j]))
                differ(replay, "events", DV_STR("in another order"), event_text(replay, &events[j]),
                       event_text(replay, &events[i]));
}

static void compare_events(struct replay *replay)
{
    const struct record *record = replay->record;
    const struct world *world = replay->world;

    for (size_t i = 0; i < record->n_events; i++)
        if (place(world->events.v, world->events.n, &record->events[i]) == world->events.n) {
            replay->lacks = true;
            differ(replay, "events", DV_STR_NONE, DV_STR("nothing"),
                   event_text(replay, &record->events[i]));
        }
    for (size_t i = 0; i < world->events.n; i++)
        if (place(record->events, record->n_events, &world->events.v[i]) == record->n_events &&
            (uint64_t)world->events.v[i].first_s * 1000 + TAIL_MS < record->end_ms)
            differ(replay, "events", DV_STR_NONE, event_text(replay, &world->events.v[i]),
                   DV_STR("nothing"));
    compare_order(replay, record->events, record->n_events);
}

/* ---- a record ---- */

static void compare_all(struct replay *replay)
{
    const struct dv_api_pod_spec *spec = &replay->world->pod.spec;

    replay->has_differed = replay->lacks = false;
    compare_statuses(replay);
    compare_events(replay);
    compare_stops(replay);
    for (size_t i = 0; i < spec->n_init_containers; i++)
        compare_calls(replay, spec->init_containers[i].name);
    for (size_t i = 0; i < spec->n_containers; i++)
        compare_calls(replay, spec->containers[i].name);
}

struct totals {
    unsigned n_passed;
    unsigned n_failed;
};

/* Whether the pod was refused at its admission, which is decided before a life begins. */
static bool is_refused(const struct record *record)
{
    for (size_t i = 0; i < record->n_statuses; i++)
        if (dv_str_starts_with(record->statuses[i].status.message, DV_STR("Pod was rejected: ")))
            return true;
    return false;
}

static void replay_line(const char *file, unsigned line, dv_str text, struct totals *totals)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct record record;
    struct world world;
    struct dv_err err;
    struct replay replay = {&record, &world, arena, file, line, false, false, false};
    unsigned n_steps = 0;
    uint64_t end_ms;

    if (!record_read(text, arena, &record, &err)) {
        printf("%s:%u: %s\n", file, line, err.msg);
        totals->n_failed++;
        return;
    }
    if (is_refused(&record))
        return;
    world_init(&world, &record, arena);
    end_ms = record.end_ms + 1000;
    do {
        while (world_step(&world, end_ms))
            if (++n_steps > STEPS_MAX)
                break;
        compare_all(&replay);
        end_ms += 1000;
    } while (replay.lacks && end_ms < record.end_ms + EXTRA_MS);
    if (n_steps > STEPS_MAX)
        differ(&replay, "time", DV_STR_NONE, DV_STR("no end"), DV_STR("an end"));
    if (replay.has_differed) {
        replay.is_told = true;
        compare_all(&replay);
    }
    world_fini(&world);
    if (replay.has_differed)
        totals->n_failed++;
    else
        totals->n_passed++;
}

static void replay_file(size_t kind, const char *name, FILE *file, void *ctx)
{
    char *text = NULL;
    size_t size = 0;
    ssize_t n;

    (void)kind;
    for (unsigned line = 1; (n = getline(&text, &size, file)) > 0; line++)
        replay_line(name, line, (dv_str){text, (size_t)n}, ctx);
    free(text);
}

int main(int argc, char **argv)
{
    static const struct golden_kind kinds[] = {
        {"pods.jsonl", {"actions", "statuses", "cri"}, {NULL}},
    };
    struct totals totals = {0};

    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s DIR\n", argv[0]);
        return 2;
    }
    totals.n_failed += golden_files(argv[1], kinds, DV_COUNT(kinds), replay_file, &totals);
    printf("%u passed, %u failed\n", totals.n_passed, totals.n_failed);
    return totals.n_failed > 0;
}
