#include "control/tests/test_control_world.h"

#include "support/dvtest.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "cluster/embedded.h"
#include "loop/loop.h"
#include "store/store.h"
#include "json/json.h"

#define WAIT_MS 20000u

enum {
    SPACE_OBJECTS,
    SPACE_META,
};

static const char *const space_names[] = {[SPACE_OBJECTS] = "objects", [SPACE_META] = "meta"};
static const struct dv_store_schema schema = {.spaces = space_names, .n_spaces = 2};

static void set_true(void *ctx)
{
    *(bool *)ctx = true;
}

static bool is_true(void *ctx)
{
    return *(const bool *)ctx;
}

static void run_until(struct world *world, bool (*is_met)(void *ctx), void *ctx)
{
    assert_true(dv_loop_run_until(world->loop, is_met, ctx, WAIT_MS));
}

/* ---- the wrapper: a request of the controllers on its way to the API ---- */

struct held {
    struct world *world;
    struct dv_link link;
    struct dv_request *request; /* theirs */
    struct dv_request own;      /* to the API; when it has been passed on */
    struct dv_task task;
    bool is_passed;
    bool is_cancelled;
    enum fault fault;
};

static void answer(struct held *held, const struct dv_api_status *failure)
{
    struct dv_request *request = held->request;
    struct dv_api_status broken = {
        .code = held->fault == FAULT_CONFLICT ? 409 : 500,
        .reason = held->fault == FAULT_CONFLICT ? DV_STR("Conflict") : DV_STR("InternalError"),
        .message = DV_STR("made to fail")};

    if (held->is_cancelled && !held->is_passed)
        broken.code = 499;
    if (held->fault != FAULT_NONE || (held->is_cancelled && !held->is_passed))
        failure = &broken;
    if (!failure) {
        request->object = held->own.object;
        request->objects = held->own.objects;
        request->n_objects = held->own.n_objects;
        request->is_created = held->own.is_created;
        request->is_removed = held->own.is_removed;
    }
    if (!failure && request->verb == DV_VERB_CREATE && request->kind->id == DV_KIND_CLAIM)
        held->world->n_claims_made++;
    dv_link_remove(&held->link);
    request->done(request, failure);
    free(held);
}

static void on_own_done(struct dv_request *own, const struct dv_api_status *failure)
{
    answer(DV_CONTAINER(own, struct held, own), failure);
}

static void on_task(struct dv_task *task)
{
    struct held *held = DV_CONTAINER(task, struct held, task);

    if (held->is_cancelled || held->fault == FAULT_BEFORE || held->fault == FAULT_CONFLICT) {
        answer(held, NULL);
        return;
    }
    held->own = *held->request;
    held->own.done = on_own_done;
    held->is_passed = true;
    dv_request_start(held->world->back, &held->own);
}

static enum fault fault_of(struct world *world)
{
    static const enum fault faults[] = {FAULT_BEFORE, FAULT_AFTER, FAULT_CONFLICT};

    if (world->fault_seed)
        return rand_r(&world->fault_seed) % 5 == 0
                   ? faults[(size_t)rand_r(&world->fault_seed) % DV_COUNT(faults)]
                   : FAULT_NONE;
    return world->fault_at == 0 || world->fault_at == world->n_requests ? world->fault : FAULT_NONE;
}

static void front_start(struct dv_cluster *cluster, struct dv_request *request)
{
    struct world *world = DV_CONTAINER(cluster, struct world, front);
    struct held *held = DV_ALLOC(struct held);

    held->world = world;
    held->request = request;
    if (request->kind->id != DV_KIND_EVENT) {
        world->n_requests++;
        held->fault = fault_of(world);
    }
    dv_list_push(&world->held, &held->link);
    if (!world->is_holding)
        dv_task_post(&held->task, world->loop, on_task);
}

static void front_cancel(struct dv_cluster *cluster, struct dv_request *request)
{
    struct world *world = DV_CONTAINER(cluster, struct world, front);
    struct dv_link *link;

    DV_LIST_EACH (&world->held, link) {
        struct held *held = DV_CONTAINER(link, struct held, link);

        if (held->request != request)
            continue;
        held->is_cancelled = true;
        if (held->is_passed)
            dv_request_cancel(world->back, &held->own);
        else
            dv_task_post(&held->task, world->loop, on_task);
        return;
    }
    fail_msg("a request was cancelled that is not under way");
}

void release_requests(struct world *world)
{
    struct dv_link *link;

    world->is_holding = false;
    DV_LIST_EACH (&world->held, link) {
        struct held *held = DV_CONTAINER(link, struct held, link);

        if (!held->is_passed)
            dv_task_post(&held->task, world->loop, on_task);
    }
}

static struct dv_view *front_view(struct dv_cluster *cluster, const struct dv_view_options *options,
                                  struct dv_err *err)
{
    const struct world *world = DV_CONTAINER(cluster, struct world, front);
    struct dv_view_options own = *options;

    own.label_selector = world->hidden;
    return dv_view_open(world->back, &own, err);
}

static const struct dv_cluster_engine front_engine = {
    .view_open = front_view, .request_start = front_start, .request_cancel = front_cancel};

/* ---- life ---- */

static bool has_spaces(void *ctx)
{
    return dv_embedded_n(((struct world *)ctx)->embedded, dv_kind(DV_KIND_NAMESPACE)) >= 4;
}

int start_world(void **state)
{
    const struct dv_embedded_options options = {.space_objects = SPACE_OBJECTS,
                                                .space_meta = SPACE_META};
    struct world *world = DV_ALLOC(struct world);
    struct dv_err err;

    *state = world;
    dv_clock_virtual_init(&world->clock);
    dv_list_init(&world->held);
    world->arena = dv_arena_new();
    world->loop = dv_loop_new(&world->clock.clock, &err);
    assert_ok(world->loop, &err);
    world->store = dv_store_open_memory(world->loop, &schema, NULL, &err);
    assert_ok(world->store, &err);
    world->embedded = dv_embedded_open(world->loop, world->store, &options, &err);
    assert_ok(world->embedded, &err);
    world->back = dv_embedded_cluster(world->embedded);
    world->front = (struct dv_cluster){.engine = &front_engine, .loop = world->loop};
    world->options =
        (struct dv_control_options){.cluster = &world->front, .gates = dv_control_gates_default()};
    run_until(world, has_spaces, world);
    return 0;
}

void open_control(struct world *world)
{
    struct dv_err err;

    world->control = dv_control_open(world->loop, &world->options, &err);
    assert_ok(world->control, &err);
    settle(world);
}

void close_control(struct world *world)
{
    bool is_closed = false;

    if (!world->control)
        return;
    dv_control_close(world->control, set_true, &is_closed);
    world->control = NULL;
    run_until(world, is_true, &is_closed);
    assert_true(dv_list_is_empty(&world->held));
}

int end_world(void **state)
{
    struct world *world = *state;
    bool is_closed = false;

    close_control(world);
    dv_embedded_close(world->embedded, set_true, &is_closed);
    run_until(world, is_true, &is_closed);
    is_closed = false;
    dv_store_close(world->store, set_true, &is_closed);
    run_until(world, is_true, &is_closed);
    dv_arena_free(world->arena);
    dv_loop_free(world->loop);
    free(world);
    return 0;
}

/* ---- what tests do ---- */

struct asking {
    struct dv_request request;
    struct world *world;
    struct dv_object *object; /* in the world's arena */
    int code;
    const char *message;
    bool is_done;
};

static struct dv_object *keep(struct world *world, const struct dv_object *object)
{
    const struct dv_message *message = object->kind->versions[0].message;
    struct dv_object *copy = DV_NEW(world->arena, struct dv_object);

    *copy = *object;
    copy->value = dv_arena_alloc(world->arena, message->size, message->align);
    dv_message_copy(message, object->value, world->arena, copy->value);
    copy->meta = copy->value;
    return copy;
}

static void on_done(struct dv_request *request, const struct dv_api_status *failure)
{
    struct asking *asking = DV_CONTAINER(request, struct asking, request);

    asking->is_done = true;
    if (request->object)
        asking->object = keep(asking->world, request->object);
    if (failure) {
        asking->code = (int)failure->code;
        asking->message = dv_str_to_c(failure->message, asking->world->arena);
    }
}

static void ask(struct world *world, struct asking *asking)
{
    asking->world = world;
    asking->request.done = on_done;
    dv_request_start(world->back, &asking->request);
    run_until(world, is_true, &asking->is_done);
}

static void must(const struct asking *asking)
{
    if (asking->code)
        fail_msg("%d: %s", asking->code, asking->message);
}

static struct dv_json *parse(struct world *world, const char *yaml)
{
    struct dv_err err;
    struct dv_json *doc = dv_yaml_parse(dv_str_from_c(yaml), NULL, world->arena, &err);

    if (!doc)
        fail_msg("%s: %s", yaml, err.msg);
    return doc;
}

struct dv_object *make(struct world *world, enum dv_kind_id kind, const char *space,
                       const char *yaml)
{
    const struct dv_message *message = dv_kind(kind)->versions[0].message;
    void *value = dv_arena_alloc(world->arena, message->size, message->align);
    struct asking asking = {
        .request = {.verb = DV_VERB_CREATE,
                    .kind = dv_kind(kind),
                    .space = dv_str_from_c(space),
                    .value = value}
    };
    struct dv_err err;

    assert_ok(dv_decode_json(message, parse(world, yaml), DV_UNKNOWN_DROP, world->arena, value,
                             NULL, &err),
              &err);
    ask(world, &asking);
    must(&asking);
    settle(world);
    return asking.object;
}

static struct asking patch(struct world *world, enum dv_kind_id kind,
                           enum dv_subresource subresource, const char *space, const char *name,
                           const char *yaml)
{
    struct asking asking = {
        .request = {.verb = DV_VERB_PATCH,
                    .subresource = subresource,
                    .kind = dv_kind(kind),
                    .space = dv_str_from_c(space),
                    .name = dv_str_from_c(name),
                    .patch_type = DV_PATCH_MERGE,
                    .patch = parse(world, yaml),
                    .field_manager = DV_STR("tester")}
    };

    ask(world, &asking);
    settle(world);
    return asking;
}

int attempt(struct world *world, enum dv_kind_id kind, enum dv_subresource subresource,
            const char *space, const char *name, const char *yaml)
{
    return patch(world, kind, subresource, space, name, yaml).code;
}

void change(struct world *world, enum dv_kind_id kind, const char *space, const char *name,
            const char *yaml)
{
    struct asking asking = patch(world, kind, DV_SUB_NONE, space, name, yaml);

    must(&asking);
}

void change_status(struct world *world, enum dv_kind_id kind, const char *space, const char *name,
                   const char *yaml)
{
    struct asking asking = patch(world, kind, DV_SUB_STATUS, space, name, yaml);

    must(&asking);
}

static void remove_object(struct world *world, enum dv_kind_id kind, const char *space,
                          const char *name, const int64_t *grace_s)
{
    const struct dv_api_delete_options options = {.grace_period_seconds = grace_s};
    struct asking asking = {
        .request = {.verb = DV_VERB_DELETE,
                    .kind = dv_kind(kind),
                    .space = dv_str_from_c(space),
                    .name = dv_str_from_c(name),
                    .delete_options = &options}
    };

    ask(world, &asking);
    if (asking.code != 404)
        must(&asking);
    settle(world);
}

void destroy(struct world *world, enum dv_kind_id kind, const char *space, const char *name)
{
    static const int64_t at_once = 0;

    remove_object(world, kind, space, name, &at_once);
}

void delete_gently(struct world *world, enum dv_kind_id kind, const char *space, const char *name)
{
    remove_object(world, kind, space, name, NULL);
}

void allocate(struct world *world, const char *claim, const char *results, const char *pods)
{
    dv_str rest = dv_str_from_c(pods);
    struct dv_buf yaml;
    dv_str name;

    dv_buf_init(&yaml, SIZE_MAX);
    dv_buf_printf(&yaml, "{status: {" ALLOCATION("%s") ", reservedFor: [", results);
    while (rest.n > 0 && dv_str_split(&rest, ' ', &name)) {
        const struct dv_object *pod =
            look(world, DV_KIND_POD, "default", dv_str_to_c(name, world->arena));

        dv_buf_printf(&yaml, "{resource: pods, name: %.*s, uid: %.*s},", DV_FMT(name),
                      DV_FMT(pod ? pod->meta->uid : DV_STR("gone")));
    }
    dv_buf_add_c(&yaml, "]}}");
    change(world, DV_KIND_CLAIM, "default", claim, FINALIZER);
    change_status(world, DV_KIND_CLAIM, "default", claim, dv_buf_c(&yaml));
    dv_buf_fini(&yaml);
}

/* ---- what tests see ---- */

struct dv_object *look(struct world *world, enum dv_kind_id kind, const char *space,
                       const char *name)
{
    return dv_embedded_get(world->embedded, dv_kind(kind), dv_str_from_c(space),
                           dv_str_from_c(name));
}

const struct dv_api_pod *look_pod(struct world *world, const char *name)
{
    const struct dv_object *object = look(world, DV_KIND_POD, "default", name);

    return object ? object->value : NULL;
}

const struct dv_api_resource_claim *look_claim(struct world *world, const char *name)
{
    const struct dv_object *object = look(world, DV_KIND_CLAIM, "default", name);

    return object ? object->value : NULL;
}

size_t list(struct world *world, enum dv_kind_id kind, const char *space,
            struct dv_object ***objects)
{
    const struct dv_list_query query = {.kind = dv_kind(kind),
                                        .version = &dv_kind(kind)->versions[0],
                                        .space = dv_str_from_c(space)};
    struct dv_api_status *failure;
    struct dv_list_page page;

    assert_true(dv_embedded_list(world->embedded, &query, world->arena, &page, &failure));
    *objects = page.objects;
    return page.n_objects;
}

const struct dv_api_resource_claim *generated(struct world *world, const char *pod,
                                              const char *entry)
{
    const struct dv_api_resource_claim *found = NULL;
    struct dv_object **objects;
    size_t n = list(world, DV_KIND_CLAIM, "default", &objects);

    for (size_t i = 0; i < n; i++) {
        const struct dv_api_object_meta *meta = objects[i]->meta;
        const struct dv_str_entry *annotation =
            dv_entry_find(meta->annotations, meta->n_annotations,
                          DV_STR("resource.kubernetes.io/pod-claim-name"));

        if (!annotation || !dv_str_eq(annotation->value, dv_str_from_c(entry)) ||
            meta->n_owner_references != 1 ||
            !dv_str_eq(meta->owner_references[0].name, dv_str_from_c(pod)))
            continue;
        if (found)
            fail_msg("two claims for entry %s of pod %s", entry, pod);
        found = objects[i]->value;
    }
    return found;
}

size_t n_events(struct world *world, const char *pod, const char *reason, const char *message)
{
    struct dv_object **objects;
    size_t n = list(world, DV_KIND_EVENT, "", &objects);
    size_t n_found = 0;

    for (size_t i = 0; i < n; i++) {
        const struct dv_api_event *event = objects[i]->value;

        if (dv_str_eq(event->involved_object.name, dv_str_from_c(pod)) &&
            dv_str_eq(event->reason, dv_str_from_c(reason)) &&
            (!message || dv_str_eq(event->message, dv_str_from_c(message))))
            n_found += (size_t)event->count;
    }
    return n_found;
}

const char *text(struct world *world, const char *fmt, ...)
{
    struct dv_buf buf;
    const char *copy;
    va_list args;

    dv_buf_init(&buf, SIZE_MAX);
    va_start(args, fmt);
    dv_buf_vprintf(&buf, fmt, args);
    va_end(args);
    copy = dv_str_to_c(dv_buf_str(&buf), world->arena);
    dv_buf_fini(&buf);
    return copy;
}

/* ---- time ---- */

struct quiet {
    struct world *world;
    uint64_t version;
    uint64_t n_requests;
    size_t n_turns;
};

/* So many turns without a change or a request, and nothing in the store's queue: all is at rest. */
#define N_QUIET_TURNS 20u

static bool is_quiet(void *ctx)
{
    struct quiet *quiet = ctx;
    struct world *world = quiet->world;
    uint64_t version = dv_embedded_version(world->embedded);
    struct dv_store_stats stats;

    dv_store_get_stats(world->store, &stats);
    if (stats.n_queued == 0 && version == quiet->version &&
        world->n_requests == quiet->n_requests &&
        (world->is_holding || dv_list_is_empty(&world->held)))
        quiet->n_turns++;
    else
        quiet->n_turns = 0;
    quiet->version = version;
    quiet->n_requests = world->n_requests;
    return quiet->n_turns > N_QUIET_TURNS;
}

static void stay_awake(struct dv_timer *timer)
{
    dv_timer_start(timer, timer->loop, dv_loop_now_ms(timer->loop), stay_awake);
}

void settle(struct world *world)
{
    struct quiet quiet = {.world = world};
    struct dv_timer timer = {0};

    dv_timer_start(&timer, world->loop, dv_loop_now_ms(world->loop), stay_awake);
    run_until(world, is_quiet, &quiet);
    dv_timer_cancel(&timer);
}

void pass(struct world *world, uint64_t ms)
{
    while (ms > 0) {
        uint64_t step = ms < 500 ? ms : 500;

        dv_clock_virtual_advance_ms(&world->clock, step);
        settle(world);
        ms -= step;
    }
}
