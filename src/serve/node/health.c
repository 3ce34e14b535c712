/* health.c - whether this node works: troubles that last until they are taken back, and notes about
 * what happened. /healthz, the node's status and the log tell them. */
#include "serve/health.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/vec.h"

/* How many texts are kept; further ones are only counted. */
#define N_NOTES_MAX 100u
#define NOTE_BYTES 1024u

#define WRITES "daemon: cannot write", "daemon: can write again"
#define LISTENS "daemon: cannot be connected to", "daemon: can be connected to again"

static const struct {
    const char *name;
    const char *bad; /* what the log says when the trouble comes, and when it is over */
    const char *good;
} parts[DV_N_HEALTH_PARTS] = {
    [DV_HEALTH_STATE] = {"state",                       WRITES },
    [DV_HEALTH_KUBECONFIG] = {"admin.kubeconfig",            WRITES },
    [DV_HEALTH_REGISTRATION] = {"device-plugins/kubelet.sock", LISTENS},
    [DV_HEALTH_PODRES] = {"pod-resources/kubelet.sock",  LISTENS},
    [DV_HEALTH_DAVIT] = {"davit.sock",                  LISTENS},
};

static const char *const event_names[DV_N_HEALTH_EVENTS] = {
    [DV_HEALTH_STATE_DAMAGED] = "state_damaged",
    [DV_HEALTH_WRITES_LOST] = "writes_lost",
    [DV_HEALTH_ROW_SET_ASIDE] = "row_set_aside",
    [DV_HEALTH_MODE_FIXED] = "mode_fixed",
};

struct dv_health {
    struct dv_arena *arena;
    struct dv_err troubles[DV_N_HEALTH_PARTS]; /* code DV_OK: there is none */
    struct dv_err all;                         /* all troubles in one text */
    struct dv_gauge *gauges[DV_N_HEALTH_PARTS];
    struct dv_counter *counters[DV_N_HEALTH_EVENTS];
    DV_VEC(dv_str) notes;
    struct dv_arena *faults_arena; /* NULL: there are none */
    dv_str *faults;
    size_t n_faults;
};

struct dv_health *dv_health_new(struct dv_metrics *metrics)
{
    static const char *const part_label[] = {"part"};
    static const char *const event_label[] = {"what"};
    const struct dv_family_spec troubles = {
        .name = "davit_trouble",
        .help = "1: this part cannot do its work now; /readyz says why",
        .labels = part_label,
        .n_labels = 1,
    };
    const struct dv_family_spec events = {
        .name = "davit_state_events_total",
        .help = "What happened to the state since the start; davit status tells it",
        .labels = event_label,
        .n_labels = 1,
    };
    struct dv_health *health = DV_ALLOC(struct dv_health);
    struct dv_family *gauges = dv_metrics_add_gauge(metrics, &troubles);
    struct dv_family *counters = dv_metrics_add_counter(metrics, &events);

    health->arena = dv_arena_new();
    for (size_t i = 0; i < DV_N_HEALTH_PARTS; i++) {
        dv_str name = dv_str_from_c(parts[i].name);

        health->gauges[i] = dv_family_gauge(gauges, &name);
        dv_gauge_set(health->gauges[i], 0);
    }
    for (size_t i = 0; i < DV_N_HEALTH_EVENTS; i++) {
        dv_str name = dv_str_from_c(event_names[i]);

        health->counters[i] = dv_family_counter(counters, &name);
        dv_counter_add(health->counters[i], 0);
    }
    return health;
}

void dv_health_free(struct dv_health *health)
{
    if (!health)
        return;
    dv_arena_free(health->arena);
    dv_arena_free(health->faults_arena);
    free(health);
}

static void join(struct dv_health *health)
{
    (void)dv_succeed(&health->all);
    for (size_t i = 0; i < DV_N_HEALTH_PARTS; i++) {
        const struct dv_err *err = &health->troubles[i];

        if (err->code != DV_OK && health->all.code == DV_OK)
            health->all = *err;
        else if (err->code != DV_OK)
            (void)dv_fail(&health->all, health->all.code, "%.120s; %.120s", health->all.msg,
                          err->msg);
    }
}

void dv_health_set(struct dv_health *health, enum dv_health_part part, const struct dv_err *err)
{
    struct dv_err *known = &health->troubles[part];
    bool was_bad = known->code != DV_OK;
    bool is_same = err && was_bad && strcmp(known->msg, err->msg) == 0;

    if (err)
        *known = *err;
    else
        (void)dv_succeed(known);
    join(health);
    dv_gauge_set(health->gauges[part], err ? 1 : 0);
    if (err && !is_same)
        dv_log(DV_LOG_ERROR, parts[part].bad, DV_F_C("part", parts[part].name), DV_F_CODE(err),
               DV_F_ERR(err));
    else if (!err && was_bad)
        dv_log(DV_LOG_INFO, parts[part].good, DV_F_C("part", parts[part].name));
}

const struct dv_err *dv_health_trouble(const struct dv_health *health)
{
    return health->all.code == DV_OK ? NULL : &health->all;
}

void dv_health_note(struct dv_health *health, enum dv_health_event event, const char *fmt, ...)
{
    char text[NOTE_BYTES];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args); /* a longer text is cut, as it is in the log */
    va_end(args);
    dv_log(DV_LOG_ERROR, "daemon: the state", DV_F_C("what", event_names[event]),
           DV_F_C("error", text));
    dv_counter_add(health->counters[event], 1);
    if (health->notes.n < N_NOTES_MAX)
        *dv_vec_add_in(&health->notes, health->arena) =
            dv_str_copy(dv_str_from_c(text), health->arena);
}

size_t dv_health_notes(const struct dv_health *health, const dv_str **notes)
{
    *notes = health->notes.v;
    return health->notes.n;
}

void dv_health_set_faults(struct dv_health *health, const dv_str *texts, size_t n_texts)
{
    struct dv_arena *arena = dv_arena_new();

    health->n_faults = n_texts < N_NOTES_MAX ? n_texts : N_NOTES_MAX;
    health->faults = DV_NEW_ARRAY(arena, dv_str, health->n_faults);
    for (size_t i = 0; i < health->n_faults; i++)
        health->faults[i] = dv_str_copy(texts[i], arena);
    dv_arena_free(health->faults_arena);
    health->faults_arena = arena;
}

size_t dv_health_faults(const struct dv_health *health, const dv_str **texts)
{
    *texts = health->faults;
    return health->n_faults;
}
