/* life_start.c - one container's start: back-off, image, create, start, postStart. Whatever fails
 * is remembered with the reason and text that the container's status shows at the next sync. */
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "resource/resource.h"
#include "workload/config.h"
#include "workload/life/life_state.h"

struct start_look {
    struct dv_life_looking *look;
    const struct dv_life_start *start;
    const struct dv_api_container *spec;
    struct dv_life_member *member;
    struct dv_life_starting *starting;
    struct dv_arena *arena;
    dv_str sandbox_id;
    struct dv_strs ips;
};

static enum dv_life_go fail(struct start_look *start, const char *reason, dv_str message)
{
    start->member->reason = dv_str_from_c(reason);
    dv_life_set_text(&start->member->message, message);
    start->starting->step = DV_LIFE_START_FAILED;
    return DV_LIFE_NEXT;
}

/* A failure of the image's part, which has an event of its own before this one. */
static enum dv_life_go fail_image(struct start_look *start, const char *reason, dv_str message)
{
    dv_life_add_note(start->look, true, "Failed", start->start->name, "Error: %s", reason);
    return fail(start, reason, message);
}

/* A failure whose text is its event. */
static enum dv_life_go fail_with_text(struct start_look *start, const char *reason, dv_str message)
{
    dv_life_add_note(start->look, true, "Failed", start->start->name, "Error: %.*s",
                     DV_FMT(message));
    return fail(start, reason, message);
}

static struct dv_life_action *begin(struct start_look *start, enum dv_life_action_kind kind,
                                    enum dv_life_start_step step)
{
    struct dv_life_action *action = dv_life_begin(start->look, kind, start->starting->id);

    dv_life_for_container(start->look, action, start->start->name);
    action->image = dv_str_copy(start->starting->image, start->look->arena);
    action->image_id = dv_str_copy(start->starting->image_id, start->look->arena);
    action->sandbox_id = dv_str_copy(start->sandbox_id, start->look->arena);
    action->ips = dv_life_copy_strs(start->ips, start->look->arena);
    start->starting->action = action->id_of_action;
    start->starting->since_ms = start->look->facts->now_ms;
    start->starting->step = step;
    return action;
}

/* ---- back-off of restarts ---- */

/* Another image or other resources are another container to the back-off. */
static uint64_t restart_key(const struct dv_api_container *spec)
{
    struct dv_buf text;
    uint64_t key;

    dv_buf_init(&text, 64 * 1024);
    dv_buf_add(&text, spec->image);
    dv_encode_json_text(&dv_message_resource_requirements, &spec->resources, NULL, DV_STR_NONE,
                        &text);
    key = dv_life_hash(dv_buf_str(&text));
    dv_buf_fini(&text);
    return key;
}

static bool is_backed_off(struct start_look *start)
{
    struct dv_life_member *member = start->member;
    int64_t now_ms = dv_life_wall_ms(start->look);
    uint64_t key = restart_key(start->spec);

    if (start->start->exited_ms == 0)
        return false;
    if (member->restart_key != key)
        member->restart = (struct dv_life_backoff){0};
    member->restart_key = key;
    if (!dv_life_backoff_waits(&member->restart, start->start->exited_ms, now_ms,
                               &start->starting->backoff_rest_ms)) {
        dv_life_backoff_grow(&member->restart, start->start->exited_ms, now_ms);
        return false;
    }
    start->starting->has_backed_off = true;
    return true;
}

static enum dv_life_go fail_backed_off(struct start_look *start)
{
    dv_str pod = dv_life_pod_text(start->look);
    uint32_t delay_s = start->member->restart.delay_s;
    char delay[32];

    /* As Go prints it: 40s, 1m20s, 5m0s. */
    if (delay_s < 60)
        (void)snprintf(delay, sizeof(delay), "%us", delay_s);
    else
        (void)snprintf(delay, sizeof(delay), "%um%us", delay_s / 60, delay_s % 60);
    dv_life_add_note(start->look, true, "BackOff", start->start->name,
                     "Back-off restarting failed container %.*s in pod %.*s",
                     DV_FMT(start->start->name), DV_FMT(pod));
    return fail(start, "CrashLoopBackOff",
                dv_str_printf(start->look->arena,
                              "back-off %s restarting failed container=%.*s pod=%.*s", delay,
                              DV_FMT(start->start->name), DV_FMT(pod)));
}

/* ---- the image ---- */

static enum dv_life_go begin_create(struct start_look *start)
{
    struct dv_life_action *action = begin(start, DV_LIFE_CREATE_CONTAINER, DV_LIFE_START_CREATE);

    action->attempt = start->start->attempt;
    action->counts_logs = !start->start->has_instance;
    return DV_LIFE_WAIT;
}

static enum dv_life_go begin_pull(struct start_look *start)
{
    struct dv_life_member *member = start->member;
    dv_str image = start->starting->image;
    uint64_t key = dv_life_hash(image);
    int64_t now_ms = (int64_t)start->look->facts->now_ms;

    if (member->pull_key != key) {
        member->pull = (struct dv_life_backoff){0};
        dv_life_set_text(&member->pull_error, DV_STR_NONE);
    }
    member->pull_key = key;
    if (dv_life_backoff_waits(&member->pull, member->pull.updated_ms, now_ms,
                              &start->starting->backoff_rest_ms)) {
        start->starting->has_backed_off = true;
        dv_life_add_note(start->look, false, "BackOff", start->start->name,
                         "Back-off pulling image \"%.*s\"", DV_FMT(image));
        return fail_image(start, "ImagePullBackOff",
                          dv_str_printf(start->look->arena, "Back-off pulling image \"%.*s\"%s%.*s",
                                        DV_FMT(image), member->pull_error.n > 0 ? ": " : "",
                                        DV_FMT(member->pull_error)));
    }
    dv_life_add_note(start->look, false, "Pulling", start->start->name, "Pulling image \"%.*s\"",
                     DV_FMT(image));
    (void)begin(start, DV_LIFE_PULL_IMAGE, DV_LIFE_START_PULL);
    return DV_LIFE_WAIT;
}

static enum dv_life_go begin_image(struct start_look *start)
{
    struct dv_err err;

    if (!dv_config_image(start->spec->image, start->arena, &start->starting->image, &err)) {
        dv_str message = dv_str_copy(dv_str_from_c(err.msg), start->look->arena);

        dv_life_add_note(start->look, true, "InspectFailed", start->start->name, "%.*s",
                         DV_FMT(message));
        return fail_image(start, "InvalidImageName", message);
    }
    /* it may be a part of the pod's object, which can be another one before the start has ended */
    start->starting->image = dv_str_copy(start->starting->image, start->arena);
    if (dv_str_eq(start->spec->image_pull_policy, DV_STR("Always")))
        return begin_pull(start);
    (void)begin(start, DV_LIFE_INSPECT_IMAGE, DV_LIFE_START_INSPECT);
    return DV_LIFE_WAIT;
}

static enum dv_life_go end_inspect(struct start_look *start, const struct dv_life_result *result)
{
    dv_str image = start->starting->image;
    dv_str name = start->start->name;
    dv_str text;

    if (result->has_failed) {
        text = dv_str_printf(start->look->arena, "Failed to inspect image \"%.*s\": %.*s",
                             DV_FMT(image), DV_FMT(result->error));
        dv_life_add_note(start->look, true, "InspectFailed", name, "%.*s", DV_FMT(text));
        return fail_image(
            start, result->fault == DV_LIFE_FAULT_NAME ? "InvalidImageName" : "ImageInspectError",
            text);
    }
    if (result->id.n > 0) {
        start->starting->image_id = dv_str_copy(result->id, start->arena);
        dv_life_add_note(
            start->look, false, "Pulled", name,
            "Container image \"%.*s\" already present on machine and can be accessed by the "
            "pod",
            DV_FMT(image));
        return begin_create(start);
    }
    if (dv_str_eq(start->spec->image_pull_policy, DV_STR("Never"))) {
        text = dv_str_printf(start->look->arena,
                             "Container image \"%.*s\" is not present with pull policy of Never",
                             DV_FMT(image));
        dv_life_add_note(start->look, true, "ErrImageNeverPull", name, "%.*s", DV_FMT(text));
        return fail_image(start, "ErrImageNeverPull", text);
    }
    return begin_pull(start);
}

/* What a registry's or runtime's error text makes of a failed pull. */
static enum dv_life_go fail_pull(struct start_look *start, dv_str error)
{
    static const struct {
        dv_str prefix;
        const char *why;
    } known[] = {
        {DV_STR_INIT("RegistryUnavailable"),       "because the registry is unavailable"    },
        {DV_STR_INIT("SignatureValidationFailed"), "because the signature validation failed"},
    };
    struct dv_life_member *member = start->member;
    const char *reason = "ErrImagePull";
    int64_t now_ms = (int64_t)start->look->facts->now_ms;
    dv_str text = error;

    dv_life_add_note(start->look, true, "Failed", start->start->name,
                     "Failed to pull image \"%.*s\": %.*s", DV_FMT(start->starting->image),
                     DV_FMT(error));
    for (size_t i = 0; i < DV_COUNT(known); i++) {
        if (!error.p || !dv_str_starts_with(error, known[i].prefix))
            continue;
        reason = known[i].prefix.p;
        text = dv_str_printf(start->look->arena, "image pull failed for %.*s %s%.*s",
                             DV_FMT(start->starting->image), known[i].why,
                             DV_FMT(dv_str_slice(error, known[i].prefix.n, error.n)));
    }
    dv_life_backoff_grow(&member->pull, now_ms, now_ms);
    dv_life_set_text(&member->pull_error,
                     dv_str_printf(start->look->arena, "%s: %.*s", reason, DV_FMT(text)));
    return fail_image(start, reason, text);
}

/* A duration of milliseconds as Go prints it: 15ms, 1.5s, 1m2.25s. */
static dv_str duration_text(uint64_t ms, struct dv_arena *arena)
{
    char fraction[8] = "";
    uint64_t minutes = ms / 60000;
    size_t n;

    if (ms < 1000)
        return ms == 0 ? DV_STR("0s") : dv_str_printf(arena, "%llums", (unsigned long long)ms);
    if (ms % 1000 != 0) {
        (void)snprintf(fraction, sizeof(fraction), ".%03u", (unsigned)(ms % 1000));
        for (n = 4; fraction[n - 1] == '0'; n--)
            fraction[n - 1] = '\0';
    }
    if (minutes == 0)
        return dv_str_printf(arena, "%llu%ss", (unsigned long long)(ms / 1000), fraction);
    if (minutes < 60)
        return dv_str_printf(arena, "%llum%llu%ss", (unsigned long long)minutes,
                             (unsigned long long)(ms / 1000 % 60), fraction);
    return dv_str_printf(arena, "%lluh%llum%llu%ss", (unsigned long long)(minutes / 60),
                         (unsigned long long)(minutes % 60), (unsigned long long)(ms / 1000 % 60),
                         fraction);
}

static enum dv_life_go end_pull(struct start_look *start, const struct dv_life_result *result)
{
    dv_str took;

    if (result->has_failed)
        return fail_pull(start, result->error);
    took =
        duration_text(start->look->facts->now_ms - start->starting->since_ms, start->look->arena);
    start->starting->image_id = dv_str_copy(result->id, start->arena);
    start->member->pull = (struct dv_life_backoff){0};
    dv_life_set_text(&start->member->pull_error, DV_STR_NONE);
    dv_life_add_note(
        start->look, false, "Pulled", start->start->name,
        "Successfully pulled image \"%.*s\" in %.*s (%.*s including waiting). Image size: "
        "%llu bytes.",
        DV_FMT(start->starting->image), DV_FMT(took), DV_FMT(took),
        (unsigned long long)result->size_bytes);
    return begin_create(start);
}

/* ---- the container ---- */

static enum dv_life_go end_create(struct start_look *start, const struct dv_life_result *result)
{
    if (result->has_failed)
        return fail_with_text(start,
                              result->fault == DV_LIFE_FAULT_CONFIG ? "CreateContainerConfigError"
                                                                    : "CreateContainerError",
                              dv_str_copy(result->error, start->look->arena));
    start->starting->id = dv_str_copy(result->id, start->arena);
    dv_life_add_note(start->look, false, "Created", start->start->name, "Container created");
    (void)begin(start, DV_LIFE_START_CONTAINER, DV_LIFE_START_RUN);
    return DV_LIFE_WAIT;
}

static enum dv_life_go succeed(struct start_look *start)
{
    start->member->reason = DV_STR_NONE;
    dv_life_set_text(&start->member->message, DV_STR_NONE);
    start->starting->step = DV_LIFE_START_DONE;
    return DV_LIFE_NEXT;
}

static enum dv_life_go end_start(struct start_look *start, const struct dv_life_result *result)
{
    struct dv_life_action *action;

    if (result->has_failed)
        return fail_with_text(start, "RunContainerError",
                              dv_str_copy(result->error, start->look->arena));
    dv_life_add_note(start->look, false, "Started", start->start->name, "Container started");
    if (!start->spec->lifecycle || !start->spec->lifecycle->post_start)
        return succeed(start);
    action = begin(start, DV_LIFE_POST_START, DV_LIFE_START_HOOK);
    action->hook = start->spec->lifecycle->post_start;
    return DV_LIFE_WAIT;
}

/* ---- postStart ---- */

/* "[sh -c true]": a command as Go prints a list. */
static dv_str command_text(const struct dv_api_exec_action *exec, struct dv_arena *arena)
{
    struct dv_buf text;
    dv_str copy;

    dv_buf_init(&text, 4096);
    for (size_t i = 0; i < exec->n_command; i++) {
        if (i > 0)
            dv_buf_add_char(&text, ' ');
        dv_buf_add(&text, exec->command[i]);
    }
    copy = dv_str_copy(dv_buf_str(&text), arena);
    dv_buf_fini(&text);
    return copy;
}

static dv_str hook_error(struct start_look *start, const struct dv_life_result *result)
{
    const struct dv_api_lifecycle_handler *hook = start->spec->lifecycle->post_start;
    dv_str pod = dv_life_pod_text(start->look);
    struct dv_buf output;
    dv_str text;

    dv_buf_init(&output, (size_t)6 * DV_PROBE_OUTPUT_BYTES + 2);
    dv_buf_add_json(&output, result->output);
    if (hook->exec)
        text = dv_str_printf(start->arena,
                             "Exec lifecycle hook ([%.*s]) for Container \"%.*s\" in Pod \"%.*s\" "
                             "failed - error: %.*s, message: %.*s",
                             DV_FMT(command_text(hook->exec, start->arena)),
                             DV_FMT(start->start->name), DV_FMT(pod), DV_FMT(result->error),
                             DV_FMT(dv_buf_str(&output)));
    else
        text = dv_str_printf(start->arena,
                             "%s lifecycle hook (%.*s) for Container \"%.*s\" in Pod \"%.*s\" "
                             "failed - error: %.*s",
                             hook->http_get ? "HTTP" : "Sleep",
                             DV_FMT(hook->http_get ? hook->http_get->path : DV_STR_NONE),
                             DV_FMT(start->start->name), DV_FMT(pod), DV_FMT(result->error));
    dv_buf_fini(&output);
    return text;
}

static enum dv_life_go end_hook(struct start_look *start, const struct dv_life_result *result)
{
    struct dv_life_kill *kill;

    if (!result->has_failed)
        return succeed(start);
    start->starting->hook_error = hook_error(start, result);
    dv_life_add_note(start->look, true, "FailedPostStartHook", start->start->name,
                     "PostStartHook failed");
    kill = dv_vec_add_in(&start->starting->kill, start->arena);
    *kill = (struct dv_life_kill){.id = start->starting->id,
                                  .name = start->start->name,
                                  .kind = start->start->kind,
                                  .message = DV_STR("FailedPostStartHook"),
                                  .grace_s = -1};
    start->starting->step = DV_LIFE_START_KILL;
    return DV_LIFE_NEXT;
}

/* ---- all of it ---- */

typedef enum dv_life_go end_fn(struct start_look *start, const struct dv_life_result *result);

static enum dv_life_go step(struct start_look *start)
{
    static end_fn *const ends[DV_LIFE_START_FAILED + 1] = {
        [DV_LIFE_START_INSPECT] = end_inspect, [DV_LIFE_START_PULL] = end_pull,
        [DV_LIFE_START_CREATE] = end_create,   [DV_LIFE_START_RUN] = end_start,
        [DV_LIFE_START_HOOK] = end_hook,
    };
    struct dv_life_starting *starting = start->starting;
    const struct dv_life_result *result;
    uint32_t action = starting->action;
    enum dv_life_go go;

    if (starting->step == DV_LIFE_START_BEGIN)
        return is_backed_off(start) ? fail_backed_off(start) : begin_image(start);
    if (starting->step == DV_LIFE_START_KILL) {
        if (dv_life_is_forced(start->look)) /* the end stops it with all others */
            dv_life_kill_cancel(start->look, &starting->kill);
        if (dv_life_kill_step(start->look, &starting->kill, start->arena) == DV_LIFE_WAIT)
            return DV_LIFE_WAIT;
        return fail(start, "PostStartHookError", starting->hook_error);
    }
    result = dv_life_result_of(start->look->life, action);
    if (!result || !ends[starting->step])
        return DV_LIFE_WAIT;
    go = ends[starting->step](start, result);
    dv_life_forget(start->look->life, action);
    return go;
}

enum dv_life_go dv_life_start_step(struct dv_life_looking *look, const struct dv_life_start *start,
                                   dv_str sandbox_id, struct dv_strs ips,
                                   struct dv_life_starting *starting, struct dv_arena *arena)
{
    struct start_look start_look = {
        .look = look,
        .start = start,
        .spec = dv_life_spec(look, start->name, NULL),
        .starting = starting,
        .arena = arena,
        .sandbox_id = sandbox_id,
        .ips = ips,
    };

    if (!start_look.spec) { /* the container is not in the object any more */
        dv_life_forget(look->life, starting->action);
        starting->step = DV_LIFE_START_FAILED;
        return DV_LIFE_NEXT;
    }
    start_look.member = dv_life_member(look->life, start->name);
    while (starting->step != DV_LIFE_START_DONE && starting->step != DV_LIFE_START_FAILED)
        if (step(&start_look) == DV_LIFE_WAIT)
            return DV_LIFE_WAIT;
    return DV_LIFE_NEXT;
}
