#include "pod_life_runtime.h"

#include <assert.h>
#include <string.h>

#include "workload/config.h"
#include "workload/probe.h"
#include "json/json.h"

/* ---- the runtime ---- */

static struct world_container *find_container(struct world *world, dv_str id)
{
    for (size_t i = 0; i < world->containers.n; i++)
        if (world->containers.v[i].is_there && dv_str_eq(world->containers.v[i].view.id, id))
            return &world->containers.v[i];
    return NULL;
}

static int64_t wall_ns(uint64_t ms)
{
    return (LIFE_BASE_S * 1000 + (int64_t)ms) * 1000000;
}

void runtime_end(struct world *world, struct world_container *container, int32_t exit_code,
                 const char *reason)
{
    if (container->view.state != DV_LIFE_RUNNING)
        return;
    container->view.state = DV_LIFE_EXITED;
    container->view.finished_ns = wall_ns(world->now_ms);
    container->view.exit_code = container->end.is_known ? container->end.exit_code : exit_code;
    container->view.reason =
        container->end.is_known ? container->end.reason : dv_str_from_c(reason);
    container->view.end_message = container->end.message;
    container->ends_ms = 0;
}

void runtime_list(struct world *world)
{
    dv_vec_clear(&world->seen_containers);
    dv_vec_clear(&world->seen_sandboxes);
    for (size_t i = 0; i < world->containers.n; i++)
        if (world->containers.v[i].is_there)
            *dv_vec_add(&world->seen_containers) = world->containers.v[i].view;
    for (size_t i = 0; i < world->sandboxes.n; i++)
        *dv_vec_add(&world->seen_sandboxes) = world->sandboxes.v[i];
    world->view_ms = LIFE_CLOCK_MS + world->now_ms;
}

/* ---- what was recorded of a call ---- */

/* How often we have made the call. */
static size_t n_calls(const struct world *world, const char *method, dv_str container,
                      uint32_t attempt)
{
    size_t n = 0;

    for (size_t i = 0; i < world->calls.n; i++)
        n += strcmp(world->calls.v[i].method, method) == 0 &&
             dv_str_eq(world->calls.v[i].container, container) &&
             world->calls.v[i].attempt == attempt;
    return n;
}

static const struct record_call *recorded(const struct world *world, const char *method,
                                          const struct dv_life_action *action, uint32_t attempt)
{
    return record_call_of(world->record, method, action->container, attempt,
                          n_calls(world, method, action->container, attempt));
}

static uint32_t attempt_of(struct world *world, dv_str id)
{
    const struct world_container *container = find_container(world, id);

    return container ? container->view.restart_count : 0;
}

/* The hook's call: one without a time limit, unlike a probe's. */
static const struct record_call *recorded_hook(struct world *world,
                                               const struct dv_life_action *action)
{
    dv_str command = DV_STR_NONE;
    uint32_t attempt = attempt_of(world, action->id);

    for (size_t i = 0; action->hook->exec && i < action->hook->exec->n_command; i++)
        command = dv_str_printf(world->arena, "%.*s%s%.*s", DV_FMT(command), i > 0 ? " " : "",
                                DV_FMT(action->hook->exec->command[i]));
    for (size_t i = 0; i < world->record->n_calls; i++) {
        const struct record_call *call = &world->record->calls[i];

        if (dv_str_eq(call->method, DV_STR("ExecSync")) && !call->has_timeout &&
            dv_str_eq(call->container, action->container) && call->attempt == attempt &&
            dv_str_eq(call->command, command))
            return call;
    }
    return NULL;
}

/* The probe's call that was made about so long after the start of the instance. */
static const struct record_call *recorded_probe(struct world *world,
                                                const struct dv_life_action *action)
{
    const struct dv_api_exec_action *exec = action->probe->probe_handler.exec;
    const struct world_container *container = find_container(world, action->id);
    const struct record_call *start = record_call_of(
        world->record, "StartContainer", action->container, attempt_of(world, action->id), 0);
    const struct record_call *found = NULL;
    dv_str command = DV_STR_NONE;
    uint64_t age_ms;

    if (!exec || !container || !start)
        return NULL;
    age_ms = world->now_ms - (uint64_t)(container->view.started_ns / 1000000 - LIFE_BASE_S * 1000);
    for (size_t i = 0; i < exec->n_command; i++)
        command = dv_str_printf(world->arena, "%.*s%s%.*s", DV_FMT(command), i > 0 ? " " : "",
                                DV_FMT(exec->command[i]));
    for (size_t i = 0; i < world->record->n_calls; i++) {
        const struct record_call *call = &world->record->calls[i];

        if (dv_str_eq(call->method, DV_STR("ExecSync")) && call->has_timeout &&
            dv_str_eq(call->container, action->container) && call->attempt == start->attempt &&
            dv_str_eq(call->command, command) && (!found || call->ms <= start->ms + age_ms + 300))
            found = call;
    }
    return found;
}

/* ---- doing ---- */

static void note_call(struct world *world, const char *method, dv_str container, uint32_t attempt)
{
    *dv_vec_add(&world->calls) =
        (struct seen_call){.ms = world->now_ms,
                           .method = method,
                           .container = dv_str_copy(container, world->arena),
                           .attempt = attempt};
}

static uint32_t next_attempt(const struct world *world, const struct dv_life_action *action)
{
    uint32_t attempt = action->attempt;

    for (size_t i = 0; action->counts_logs && i < world->containers.n; i++)
        if (dv_str_eq(world->containers.v[i].view.name, action->container) &&
            world->containers.v[i].view.restart_count >= attempt)
            attempt = world->containers.v[i].view.restart_count + 1;
    return attempt;
}

/* How long the action takes. */
uint64_t runtime_begin(struct world *world, struct dv_life_action *action)
{
    const struct record_call *call = NULL;

    switch (action->kind) {
    case DV_LIFE_RUN_SANDBOX:
        call = recorded(world, "RunPodSandbox", action, action->attempt);
        note_call(world, "RunPodSandbox", DV_STR_NONE, action->attempt);
        world->n_starts++;
        break;
    case DV_LIFE_PULL_IMAGE:
        note_call(world, "PullImage", DV_STR_NONE, 0);
        world->n_starts++;
        return 20;
    case DV_LIFE_CREATE_CONTAINER:
        action->attempt = next_attempt(world, action);
        call = recorded(world, "CreateContainer", action, action->attempt);
        break;
    case DV_LIFE_START_CONTAINER:
        call = recorded(world, "StartContainer", action, attempt_of(world, action->id));
        note_call(world, "StartContainer", action->container, attempt_of(world, action->id));
        break;
    case DV_LIFE_STOP_CONTAINER: {
        struct world_container *container = find_container(world, action->id);

        call = recorded(world, "StopContainer", action, attempt_of(world, action->id));
        note_call(world, "StopContainer", action->container, attempt_of(world, action->id));
        world->calls.v[world->calls.n - 1].has_timeout = true;
        world->calls.v[world->calls.n - 1].timeout_s = action->grace_s;
        if (container && container->view.state != DV_LIFE_RUNNING)
            return 5;
        break;
    }
    case DV_LIFE_STOP_SANDBOX:
        note_call(world, "StopPodSandbox", DV_STR_NONE, 0);
        break;
    case DV_LIFE_POST_START:
    case DV_LIFE_PRE_STOP:
        if (action->hook->sleep)
            return (uint64_t)action->hook->sleep->seconds * 1000;
        call = recorded_hook(world, action);
        note_call(world, "ExecSync", action->container, attempt_of(world, action->id));
        world->calls.v[world->calls.n - 1].is_hook = true;
        break;
    case DV_LIFE_PROBE:
        call = recorded_probe(world, action);
        break;
    case DV_LIFE_CLEAN_UP:
        return 200;
    case DV_LIFE_SET_UP:
    case DV_LIFE_PREPARE:
    case DV_LIFE_INSPECT_IMAGE:
    case DV_LIFE_REMOVE_CONTAINER:
    case DV_LIFE_REMOVE_SANDBOX:
    case DV_LIFE_RELEASE:
    case DV_N_LIFE_ACTION_KINDS:
        return 5;
    }
    return call ? call->duration_ms : 50;
}

static void fail(struct dv_life_result *result, dv_str error)
{
    result->has_failed = true;
    result->error = error;
}

static void do_create(struct world *world, const struct dv_life_action *action,
                      struct dv_life_result *result)
{
    const struct record_call *call = recorded(world, "CreateContainer", action, action->attempt);
    dv_str refused = record_waiting(world->record, action->container, "CreateContainerConfigError");
    struct world_container *container;

    if (refused.n > 0 && !world->has_config) {
        result->fault = DV_LIFE_FAULT_CONFIG;
        fail(result, refused);
        return;
    }
    note_call(world, "CreateContainer", action->container, action->attempt);
    world->n_starts++;
    if (call && call->has_failed) {
        fail(result, call->error);
        return;
    }
    container = dv_vec_add(&world->containers);
    container->is_there = true;
    container->end = record_end_of(world->record, action->container, action->attempt);
    container->view = (struct dv_life_container){
        .name = dv_str_copy(action->container, world->arena),
        .id = dv_str_printf(world->arena, "<container:%.*s:%u>", DV_FMT(action->container),
                            action->attempt),
        .sandbox_id = dv_str_copy(action->sandbox_id, world->arena),
        .state = DV_LIFE_CREATED,
        .restart_count = action->attempt,
        .hash = dv_config_hash(action->spec),
        .has_hash = true,
        .created_ns = wall_ns(world->now_ms),
        .image = dv_str_copy(action->spec->image, world->arena),
        .image_id = DV_STR("sha256:1"),
    };
    result->id = container->view.id;
}

static void do_start(struct world *world, const struct dv_life_action *action,
                     struct dv_life_result *result)
{
    struct world_container *container = find_container(world, action->id);
    const struct record_call *call = record_call_of(
        world->record, "StartContainer", action->container, attempt_of(world, action->id), 0);

    assert(container);
    if (call && call->has_failed) {
        container->view.state = DV_LIFE_EXITED;
        container->view.exit_code = 128;
        container->view.reason = DV_STR("StartError");
        container->view.finished_ns = wall_ns(world->now_ms);
        container->view.message = container->end.message;
        fail(result, call->error);
        return;
    }
    container->view.state = DV_LIFE_RUNNING;
    container->view.started_ns = wall_ns(world->now_ms);
    if (container->end.is_known && container->end.is_own)
        container->ends_ms = world->now_ms + container->end.after_ms;
}

static void do_sandbox(struct world *world, const struct dv_life_action *action,
                       struct dv_life_result *result)
{
    static dv_str ips[] = {DV_STR_INIT("<podIP>")};
    size_t n = n_calls(world, "RunPodSandbox", DV_STR_NONE, action->attempt);
    const struct record_call *call =
        record_call_of(world->record, "RunPodSandbox", DV_STR_NONE, action->attempt, n - 1);
    struct dv_life_sandbox *sandbox;

    if (call && call->has_failed) {
        fail(result, call->error);
        return;
    }
    sandbox = dv_vec_add(&world->sandboxes);
    *sandbox = (struct dv_life_sandbox){
        .id = dv_str_printf(world->arena, "<sandbox:%u>", action->attempt),
        .attempt = action->attempt,
        .is_ready = true,
        .has_host_network = world->pod.spec.host_network,
        .has_status = true,
        .created_ns = wall_ns(world->now_ms),
    };
    if (!world->pod.spec.host_network)
        sandbox->ips = (struct dv_strs){ips, 1};
    result->id = sandbox->id;
    result->ips = sandbox->ips;
}

static void do_hook(struct world *world, const struct dv_life_action *action,
                    struct dv_life_result *result)
{
    const struct record_call *call = action->hook->exec ? recorded_hook(world, action) : NULL;
    dv_str told = record_waiting(world->record, action->container, "PostStartHookError");
    size_t begin = dv_str_find(told, DV_STR("failed - error: "));
    size_t end = dv_str_find(told, DV_STR(", message: "));
    const struct dv_json *output;
    struct dv_err err;

    if (!call || (call->exit_code == 0 && !call->has_failed))
        return;
    fail(result, call->error);
    if (end == told.n)
        return;
    result->error = dv_str_slice(told, begin + sizeof("failed - error: ") - 1, end);
    output = dv_json_parse(dv_str_slice(told, end + sizeof(", message: ") - 1, told.n), NULL,
                           world->arena, &err);
    if (!output || !dv_json_as_str(output, &result->output, &err))
        result->output = DV_STR_NONE;
}

/* Whether the status of this time, or of the second after, shows that the probe has succeeded. */
static bool was_good(const struct world *world, const struct dv_life_action *action)
{
    const struct dv_api_container_status *status =
        record_status_at(world->record, action->container, world->now_ms + 1000);

    if (!status || action->probe_kind == DV_PROBE_LIVENESS)
        return false;
    return action->probe_kind == DV_PROBE_READINESS ? status->ready
                                                    : status->started && *status->started;
}

static void do_probe(struct world *world, const struct dv_life_action *action,
                     struct dv_life_result *result)
{
    const struct record_call *call = recorded_probe(world, action);
    dv_str kind = dv_probe_kind_name(action->probe_kind);
    const char *failed =
        dv_str_to_c(dv_str_printf(world->arena, "%.*s probe failed: ", DV_FMT(kind)), world->arena);
    const char *errored = dv_str_to_c(
        dv_str_printf(world->arena,
                      "%.*s probe errored and resulted in unknown state: ", DV_FMT(kind)),
        world->arena);
    const struct record_event *failure =
        record_event_of(world->record, "Unhealthy", action->container, failed);
    const struct record_event *error =
        record_event_of(world->record, "Unhealthy", action->container, errored);

    if (!action->probe->probe_handler.exec) {
        result->outcome = failure && !was_good(world, action) ? DV_PROBE_FAILURE : DV_PROBE_SUCCESS;
    } else if (call && (call->has_failed || call->exit_code != 0)) {
        result->outcome = call->has_failed && error ? DV_PROBE_ERROR : DV_PROBE_FAILURE;
    }
    if (result->outcome == DV_PROBE_ERROR)
        result->error = dv_str_slice(error->message, dv_str_from_c(errored).n, error->message.n);
    else if (result->outcome == DV_PROBE_FAILURE && failure)
        result->output =
            dv_str_slice(failure->message, dv_str_from_c(failed).n, failure->message.n);
}

static void do_stop_sandbox(struct world *world, const struct dv_life_action *action)
{
    for (size_t i = 0; i < world->sandboxes.n; i++)
        if (dv_str_eq(world->sandboxes.v[i].id, action->id))
            world->sandboxes.v[i].is_ready = false;
    for (size_t i = 0; i < world->containers.n; i++)
        if (dv_str_eq(world->containers.v[i].view.sandbox_id, action->id))
            runtime_end(world, &world->containers.v[i], 137, "Error");
}

static void do_pull(struct world *world, const struct dv_life_action *action,
                    struct dv_life_result *result)
{
    for (size_t i = 0; i < world->record->n_calls; i++)
        if (dv_str_eq(world->record->calls[i].method, DV_STR("PullImage")) &&
            dv_str_eq(world->record->calls[i].image, action->image) &&
            world->record->calls[i].has_failed)
            fail(result, world->record->calls[i].error);
    result->id = DV_STR("sha256:1");
    result->size_bytes = 1000;
}

static void do_inspect(struct world *world, const struct dv_life_action *action,
                       struct dv_life_result *result)
{
    const char *text = dv_str_to_c(
        dv_str_printf(world->arena, "Container image \"%.*s\" already", DV_FMT(action->image)),
        world->arena);

    if (record_event_of(world->record, "Pulled", DV_STR_NONE, text))
        result->id = DV_STR("sha256:1");
}

static void do_set_up(struct world *world, struct dv_life_result *result)
{
    const struct record_event *event =
        record_event_of(world->record, "FailedMount", DV_STR_NONE, "");

    if (!event || world->has_config)
        return;
    fail(result, event->message);
    result->reason = event->reason;
}

void runtime_finish(struct world *world, const struct world_job *job)
{
    const struct dv_life_action *action = &job->action;
    struct dv_life_result result = {0};
    struct world_container *container = find_container(world, action->id);

    switch (action->kind) {
    case DV_LIFE_SET_UP:
        do_set_up(world, &result);
        break;
    case DV_LIFE_RUN_SANDBOX:
        do_sandbox(world, action, &result);
        break;
    case DV_LIFE_INSPECT_IMAGE:
        do_inspect(world, action, &result);
        break;
    case DV_LIFE_PULL_IMAGE:
        do_pull(world, action, &result);
        break;
    case DV_LIFE_CREATE_CONTAINER:
        do_create(world, action, &result);
        break;
    case DV_LIFE_START_CONTAINER:
        do_start(world, action, &result);
        break;
    case DV_LIFE_POST_START:
    case DV_LIFE_PRE_STOP:
        do_hook(world, action, &result);
        break;
    case DV_LIFE_STOP_CONTAINER:
        if (container)
            runtime_end(world, container, 0, "Completed");
        break;
    case DV_LIFE_REMOVE_CONTAINER:
        if (container)
            container->is_there = false;
        break;
    case DV_LIFE_STOP_SANDBOX:
        do_stop_sandbox(world, action);
        break;
    case DV_LIFE_REMOVE_SANDBOX:
        for (size_t i = world->sandboxes.n; i-- > 0;)
            if (dv_str_eq(world->sandboxes.v[i].id, action->id))
                dv_vec_remove(&world->sandboxes, i);
        break;
    case DV_LIFE_PROBE:
        do_probe(world, action, &result);
        break;
    case DV_LIFE_PREPARE:
    case DV_LIFE_RELEASE:
    case DV_LIFE_CLEAN_UP:
    case DV_N_LIFE_ACTION_KINDS:
        break;
    }
    if (world->life && job->of_agent == world->n_agents)
        dv_life_done(world->life, action->id_of_action, &result);
}
