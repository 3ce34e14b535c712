#include "workload/life.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/num.h"
#include "resource/resource.h"
#include "workload/life/life_state.h"

/* ---- small things that all parts use ---- */

void dv_life_set_text(dv_str *text, dv_str value)
{
    char *copy = NULL;

    if (value.n > 0) {
        copy = dv_alloc(value.n);
        memcpy(copy, value.p, value.n);
    }
    free((char *)(uintptr_t)text->p); /* it is ours: only this function sets such texts */
    *text = (dv_str){copy, value.n};
}

uint64_t dv_life_hash(dv_str text)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */

    for (size_t i = 0; i < text.n; i++)
        hash = (hash ^ (unsigned char)text.p[i]) * UINT64_C(1099511628211);
    return hash ? hash : 1;
}

int64_t dv_life_wall_ms(const struct dv_life_looking *look)
{
    return look->facts->now.seconds * 1000 + look->facts->now.nanos / 1000000;
}

void dv_life_look_at(struct dv_life_looking *look, uint64_t ms)
{
    look->again_ms = dv_u64_min(look->again_ms, ms);
}

uint64_t dv_life_stretch(const struct dv_life_looking *look, uint64_t ms)
{
    return ms + ((ms * DV_LIFE_STRETCH_PER_MILLE / 1000 * look->facts->random) >> 32);
}

const struct dv_life_member *dv_life_member_find(const struct dv_life *life, dv_str name)
{
    for (size_t i = 0; i < life->members.n; i++)
        if (dv_str_eq(life->members.v[i].name, name))
            return &life->members.v[i];
    return NULL;
}

struct dv_life_member *dv_life_member(struct dv_life *life, dv_str name)
{
    struct dv_life_member *member;

    for (size_t i = 0; i < life->members.n; i++)
        if (dv_str_eq(life->members.v[i].name, name))
            return &life->members.v[i];
    member = dv_vec_add(&life->members);
    dv_life_set_text(&member->name, name);
    return member;
}

const struct dv_api_container *dv_life_spec(const struct dv_life_looking *look, dv_str name,
                                            enum dv_workload_kind *kind)
{
    return look->pod ? dv_workload_container(look->pod, name, kind) : NULL;
}

dv_str dv_life_pod_text(const struct dv_life_looking *look)
{
    return dv_str_printf(look->arena, "%.*s_%.*s(%.*s)", DV_FMT(look->pod->metadata.name),
                         DV_FMT(look->pod->metadata.namespace), DV_FMT(look->facts->uid));
}

static dv_str field_path(const struct dv_life_looking *look, dv_str container)
{
    static const char *const lists[] = {
        [DV_WORKLOAD_INIT] = "initContainers",
        [DV_WORKLOAD_SIDECAR] = "initContainers",
        [DV_WORKLOAD_REGULAR] = "containers",
        [DV_WORKLOAD_EPHEMERAL] = "ephemeralContainers",
    };
    enum dv_workload_kind kind;

    if (container.n == 0)
        return DV_STR_NONE;
    if (!dv_life_spec(look, container, &kind)) /* the pod is not known: most are regular ones */
        kind = DV_WORKLOAD_REGULAR;
    return dv_str_printf(look->arena, "spec.%s{%.*s}", lists[kind], DV_FMT(container));
}

void dv_life_add_note(struct dv_life_looking *look, bool is_warning, const char *reason,
                      dv_str container, const char *fmt, ...)
{
    struct dv_life_note *note = dv_vec_add_in(&look->notes, look->arena);
    struct dv_buf text;
    va_list args;

    dv_buf_init(&text, 64 * 1024);
    va_start(args, fmt);
    dv_buf_vprintf(&text, fmt, args);
    va_end(args);
    *note = (struct dv_life_note){
        .is_warning = is_warning,
        .reason = dv_str_copy(dv_str_from_c(reason), look->arena),
        .message = dv_str_copy(dv_buf_str(&text), look->arena),
        .field_path = field_path(look, container),
    };
    dv_buf_fini(&text);
}

/* ---- new, free ---- */

struct dv_life *dv_life_new(void)
{
    return DV_ALLOC(struct dv_life);
}

void dv_life_free(struct dv_life *life)
{
    if (!life)
        return;
    for (size_t i = 0; i < life->members.n; i++) {
        struct dv_life_member *member = &life->members.v[i];

        dv_life_set_text(&member->name, DV_STR_NONE);
        dv_life_set_text(&member->message, DV_STR_NONE);
        dv_life_set_text(&member->pull_error, DV_STR_NONE);
        free(member->probes);
    }
    dv_vec_fini(&life->members);
    for (size_t i = 0; i < life->pending.n; i++)
        free(life->pending.v[i].texts);
    dv_vec_fini(&life->pending);
    dv_vec_fini(&life->seen);
    dv_vec_fini(&life->ips);
    dv_life_sync_free(life->sync);
    dv_life_ending_free(life->ending);
    dv_arena_free(life->status_arena);
    dv_life_set_text(&life->held_reason, DV_STR_NONE);
    dv_life_set_text(&life->held_message, DV_STR_NONE);
    free(life);
}

const struct dv_api_pod_status *dv_life_status(const struct dv_life *life)
{
    return life->status;
}

struct dv_strs dv_life_ips(const struct dv_life *life)
{
    return (struct dv_strs){life->ips.v, life->ips.n};
}

/* ---- looking ---- */

static uint64_t devices_hash(const struct dv_life_facts *facts)
{
    uint64_t hash = 0;

    for (size_t i = 0; i < facts->n_devices; i++)
        for (size_t j = 0; j < facts->devices[i].n; j++) {
            const struct dv_api_resource_status *status = &facts->devices[i].v[j];

            for (size_t k = 0; k < status->n_resources; k++)
                hash = hash * 31 + dv_life_hash(status->resources[k].resource_id) +
                       dv_life_hash(status->resources[k].health) * 7 +
                       dv_life_hash(status->resources[k].message) * 13;
        }
    return hash;
}

/* What of the facts makes a sync due: the pod's spec, its deletion, what others say of it, and the
 * health of its devices. */
static uint64_t object_hash(const struct dv_life_facts *facts)
{
    const struct dv_api_pod *pod = facts->pod;
    uint64_t hash = (uint64_t)pod->metadata.generation * 2654435761u +
                    (uint64_t)pod->metadata.deletion_timestamp.seconds;

    for (size_t i = 0; i < pod->spec.n_readiness_gates; i++)
        for (size_t j = 0; j < pod->status.n_conditions; j++)
            if (dv_str_eq(pod->status.conditions[j].type,
                          pod->spec.readiness_gates[i].condition_type))
                hash = hash * 31 + dv_life_hash(pod->status.conditions[j].status);
    for (size_t i = 0; i < pod->spec.n_containers; i++) /* static pods have no generation */
        hash = hash * 31 + dv_life_hash(pod->spec.containers[i].image);
    return (hash * 31 + pod->spec.n_ephemeral_containers) * 31 + devices_hash(facts);
}

/* Whether the pod is to end, whatever its containers do. */
static bool must_end(const struct dv_life_looking *look)
{
    const struct dv_life_facts *facts = look->facts;

    return !look->pod || facts->has_vanished || facts->eviction_reason.n > 0 ||
           dv_life_is_deleted(look->pod) || dv_life_phase_is_terminal(dv_life_phase_before(look));
}

/* Whether activeDeadlineSeconds have passed since the last sync; else it is looked at again. */
static bool is_overdue(struct dv_life_looking *look)
{
    const int64_t *deadline_s = look->pod->spec.active_deadline_seconds;
    const struct dv_api_pod_status *status = dv_life_status(look->life);

    if (!deadline_s || !status || !status->start_time.is_set)
        return false;
    if (look->facts->now.seconds - status->start_time.seconds >= *deadline_s)
        return true;
    dv_life_look_at(look, look->facts->now_ms + DV_LIFE_DEADLINE_LOOK_MS);
    return false;
}

static bool is_sync_due(struct dv_life_looking *look)
{
    struct dv_life *life = look->life;
    const struct dv_life_facts *facts = look->facts;

    if (facts->view_ms == 0 || facts->view_ms <= life->view_after_ms)
        return false;
    if (!life->has_begun || life->wants_sync || life->seen_object != object_hash(facts) ||
        facts->now_ms >= life->next_sync_ms || dv_life_has_news(life, &facts->view) ||
        is_overdue(look))
        return true;
    dv_life_look_at(look, life->next_sync_ms);
    return false;
}

/* The network is missing, or something else that is no fault of the pod. */
static bool is_held_up(struct dv_life_looking *look)
{
    const struct dv_life_facts *facts = look->facts;

    if (facts->network_problem.n == 0 || look->pod->spec.host_network)
        return false;
    dv_life_add_note(look, true, "NetworkNotReady", DV_STR_NONE, "network is not ready: %.*s",
                     DV_FMT(facts->network_problem));
    look->life->next_sync_ms = facts->now_ms + dv_life_stretch(look, DV_LIFE_NETWORK_RETRY_MS);
    return true;
}

static void begin_sync(struct dv_life_looking *look)
{
    struct dv_life *life = look->life;
    const struct dv_life_facts *facts = look->facts;

    life->has_begun = true;
    life->wants_sync = false;
    life->seen_object = object_hash(facts);
    dv_life_see(life, &facts->view);
    if (dv_life_phase_is_terminal(dv_life_publish(look, DV_LIFE_RECKON_ALIVE))) {
        dv_life_end_begin(look);
        return;
    }
    dv_life_collect(look);
    if (!is_held_up(look))
        dv_life_sync_begin(look);
}

static void look_syncing(struct dv_life_looking *look)
{
    struct dv_life *life = look->life;

    if (life->sync) {
        if (must_end(look) && !life->is_ending) {
            life->is_ending = true;
            dv_life_sync_cancel(look);
        }
        dv_life_sync_go(look);
    }
    if (life->sync)
        return;
    if (must_end(look)) {
        if (look->facts->view_ms != 0 && look->facts->view_ms > life->view_after_ms)
            dv_life_end_begin(look);
        return;
    }
    if (!is_sync_due(look))
        return;
    begin_sync(look);
    if (life->sync)
        dv_life_sync_go(look);
    else if (life->stage == DV_LIFE_SYNCING)
        dv_life_look_at(look, life->next_sync_ms);
}

static bool is_empty(const struct dv_life_view *view)
{
    return view->n_containers == 0 && view->n_sandboxes == 0;
}

static void look_finished(struct dv_life_looking *look)
{
    const struct dv_life_facts *facts = look->facts;
    struct dv_life *life = look->life;

    if (facts->view_ms <= life->view_after_ms)
        return;
    if ((!look->pod || facts->has_vanished) && is_empty(&facts->view))
        life->stage = DV_LIFE_GONE;
    else if (facts->now_ms < life->next_removal_ms)
        dv_life_look_at(look, life->next_removal_ms);
    else
        dv_life_collect(look);
}

void dv_life_look(struct dv_life *life, const struct dv_life_facts *facts, struct dv_arena *arena,
                  struct dv_life_orders *orders)
{
    struct dv_life_looking look = {
        .life = life,
        .facts = facts,
        .pod = facts->pod,
        .arena = arena,
        .again_ms = UINT64_MAX,
    };

    if (look.pod && life->has_begun && life->stage < DV_LIFE_TERMINATED && facts->view_ms != 0)
        dv_life_probe_go(&look);
    if (life->stage == DV_LIFE_SYNCING)
        look_syncing(&look);
    if (life->ending)
        dv_life_end_go(&look);
    dv_life_drop_results(&look);
    if (life->stage == DV_LIFE_FINISHED && !life->ending)
        look_finished(&look);
    *orders = (struct dv_life_orders){
        .actions = look.actions.v,
        .n_actions = look.actions.n,
        .cancels = look.cancels.v,
        .n_cancels = look.cancels.n,
        .notes = look.notes.v,
        .n_notes = look.notes.n,
        .again_ms = look.again_ms,
        .view_after_ms = life->view_after_ms,
        .has_new_status = look.has_new_status,
        .stage = life->stage,
    };
    if (orders->view_after_ms != 0 && facts->view_ms > orders->view_after_ms)
        orders->view_after_ms = 0;
}
