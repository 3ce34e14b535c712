/* life_action.c - what is under way for a pod, and how it ended. */
#include <stdlib.h>

#include "base/arena.h"
#include "workload/life/life_state.h"

struct dv_life_action *dv_life_begin(struct dv_life_looking *look, enum dv_life_action_kind kind,
                                     dv_str id)
{
    struct dv_life *life = look->life;
    struct dv_life_action *action = dv_vec_add_in(&look->actions, look->arena);
    struct dv_life_pending *pending = dv_vec_add(&life->pending);

    if (++life->last_action == 0)
        life->last_action = 1;
    action->kind = pending->kind = kind;
    action->id_of_action = pending->id = life->last_action;
    action->id = dv_str_copy(id, look->arena);
    pending->subject = dv_life_hash(id);
    return action;
}

void dv_life_for_container(struct dv_life_looking *look, struct dv_life_action *action, dv_str name)
{
    action->container = dv_str_copy(name, look->arena);
    action->container_kind = DV_WORKLOAD_REGULAR;
    action->spec = dv_life_spec(look, name, &action->container_kind);
}

struct dv_strs dv_life_copy_strs(struct dv_strs from, struct dv_arena *arena)
{
    struct dv_strs copy = {DV_NEW_ARRAY(arena, dv_str, from.n), from.n};

    for (size_t i = 0; i < from.n; i++)
        copy.v[i] = dv_str_copy(from.v[i], arena);
    return copy;
}

static struct dv_life_pending *find_pending(const struct dv_life *life, uint32_t id)
{
    for (size_t i = 0; i < life->pending.n; i++)
        if (life->pending.v[i].id == id)
            return &life->pending.v[i];
    return NULL;
}

const struct dv_life_result *dv_life_result_of(struct dv_life *life, uint32_t id)
{
    const struct dv_life_pending *pending = find_pending(life, id);

    return pending && pending->is_done ? &pending->result : NULL;
}

void dv_life_forget(struct dv_life *life, uint32_t id)
{
    struct dv_life_pending *pending = find_pending(life, id);
    size_t i;

    if (!pending)
        return;
    i = (size_t)(pending - life->pending.v);
    free(pending->texts);
    dv_vec_remove_swap(&life->pending, i);
    if (life->pending.n == 0)
        dv_vec_fini(&life->pending); /* nothing is under way in most pods, most of the time */
}

/* ---- the actions of a step ---- */

struct dv_life_action *dv_life_actions_begin(struct dv_life_looking *look,
                                             struct dv_life_actions *actions,
                                             struct dv_arena *arena, enum dv_life_action_kind kind,
                                             dv_str id)
{
    struct dv_life_action *action = dv_life_begin(look, kind, id);

    *dv_vec_add_in(&actions->ids, arena) = action->id_of_action;
    return action;
}

bool dv_life_actions_have_ended(struct dv_life *life, const struct dv_life_actions *actions)
{
    for (size_t i = 0; i < actions->ids.n; i++)
        if (!dv_life_result_of(life, actions->ids.v[i]))
            return false;
    return true;
}

const struct dv_life_result *dv_life_actions_failure(struct dv_life *life,
                                                     const struct dv_life_actions *actions)
{
    for (size_t i = 0; i < actions->ids.n; i++) {
        const struct dv_life_result *result = dv_life_result_of(life, actions->ids.v[i]);

        if (result && result->has_failed)
            return result;
    }
    return NULL;
}

void dv_life_actions_forget(struct dv_life *life, struct dv_life_actions *actions)
{
    for (size_t i = 0; i < actions->ids.n; i++)
        dv_life_forget(life, actions->ids.v[i]);
    dv_vec_clear(&actions->ids);
}

/* ---- what is under way ---- */

bool dv_life_is_pending(const struct dv_life *life, enum dv_life_action_kind kind, dv_str id)
{
    for (size_t i = 0; i < life->pending.n; i++)
        if (life->pending.v[i].kind == kind && life->pending.v[i].subject == dv_life_hash(id))
            return true;
    return false;
}

void dv_life_cancel(struct dv_life_looking *look, uint32_t id)
{
    struct dv_life_pending *pending = find_pending(look->life, id);

    if (!pending || pending->is_cancelled || pending->is_done)
        return;
    pending->is_cancelled = true;
    *dv_vec_add_in(&look->cancels, look->arena) = id;
}

void dv_life_done(struct dv_life *life, uint32_t id_of_action, const struct dv_life_result *result)
{
    struct dv_life_pending *pending = find_pending(life, id_of_action);
    size_t n = result->error.n + result->reason.n + result->id.n + result->output.n;
    struct dv_life_result *kept;
    char *at;

    if (!pending || pending->is_done) /* nobody waits for it any more */
        return;
    for (size_t i = 0; i < result->ips.n; i++)
        n += result->ips.v[i].n;
    pending->texts = at = dv_alloc(n + result->ips.n * sizeof(dv_str) + 1);
    kept = &pending->result;
    *kept = *result;
    kept->ips.v = (dv_str *)(void *)at; /* first, so that it is aligned */
    at += result->ips.n * sizeof(dv_str);
    for (size_t i = 0; i < result->ips.n; i++)
        kept->ips.v[i] = dv_str_put(result->ips.v[i], &at);
    kept->error = dv_str_put(result->error, &at);
    kept->reason = dv_str_put(result->reason, &at);
    kept->id = dv_str_put(result->id, &at);
    kept->output = dv_str_put(result->output, &at);
    pending->is_done = true;
}

/* What the view shows was there before the removal, and what could not be removed is not tried
 * again at once: either would have the runtime asked without end. */
static void note_removal(struct dv_life_looking *look, const struct dv_life_result *result)
{
    struct dv_life *life = look->life;

    if (life->stage != DV_LIFE_FINISHED)
        return; /* the next sync removes what is left */
    life->view_after_ms = look->facts->now_ms;
    if (result->has_failed)
        life->next_removal_ms = look->facts->now_ms + dv_life_stretch(look, DV_LIFE_RETRY_MS);
}

void dv_life_drop_results(struct dv_life_looking *look)
{
    struct dv_life *life = look->life;

    for (size_t i = life->pending.n; i-- > 0;) {
        enum dv_life_action_kind kind = life->pending.v[i].kind;
        bool is_removal =
            kind == DV_LIFE_REMOVE_SANDBOX || (kind == DV_LIFE_REMOVE_CONTAINER && !life->sync);

        if (!life->pending.v[i].is_done ||
            !(is_removal || kind == DV_LIFE_PROBE || kind == DV_LIFE_PRE_STOP))
            continue;
        if (is_removal)
            note_removal(look, &life->pending.v[i].result);
        dv_life_forget(life, life->pending.v[i].id);
    }
}
