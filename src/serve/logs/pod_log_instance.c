/* pod_log_instance.c - whose log is meant: which container of a pod, and which of its instances. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "resource/resource.h"
#include "serve/logs/pod_log.h"

/* The names of a pod's containers are a part of its object, which has a limit of its own. */
#define NAMES_BYTES_MAX (4u << 20)

/* ---- which container ---- */

static bool has(const struct dv_api_container *containers, size_t n, dv_str name)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(containers[i].name, name))
            return true;
    return false;
}

static bool has_container(const struct dv_api_pod_spec *spec, dv_str name)
{
    for (size_t i = 0; i < spec->n_ephemeral_containers; i++)
        if (dv_str_eq(spec->ephemeral_containers[i].ephemeral_container_common.name, name))
            return true;
    return has(spec->containers, spec->n_containers, name) ||
           has(spec->init_containers, spec->n_init_containers, name);
}

/* Prints "[a b]". */
static void print_names(const struct dv_api_container *containers, size_t n, struct dv_buf *buf)
{
    dv_buf_add_char(buf, '[');
    for (size_t i = 0; i < n; i++)
        dv_buf_printf(buf, "%s%.*s", i > 0 ? " " : "", DV_FMT(containers[i].name));
    dv_buf_add_char(buf, ']');
}

/* Asks for a name, and says which there are. */
static dv_str ask_for_name(const struct dv_api_pod_spec *spec, dv_str pod_name,
                           struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, NAMES_BYTES_MAX);
    dv_buf_printf(&buf, "a container name must be specified for pod %.*s", DV_FMT(pod_name));
    if (spec->n_containers > 0) {
        dv_buf_add_c(&buf, ", choose one of: ");
        print_names(spec->containers, spec->n_containers, &buf);
    }
    if (spec->n_containers > 0 && spec->n_init_containers > 0) {
        dv_buf_add_c(&buf, " or one of the init containers: ");
        print_names(spec->init_containers, spec->n_init_containers, &buf);
    }
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

bool dv_pod_choose_container(const struct dv_api_pod_spec *spec, dv_str pod_name, dv_str wanted,
                             struct dv_arena *arena, dv_str *container, dv_str *text)
{
    if (wanted.n == 0 && spec->n_containers != 1) {
        *text = ask_for_name(spec, pod_name, arena);
        return false;
    }
    if (wanted.n > 0 && !has_container(spec, wanted)) {
        *text = dv_str_printf(arena, "container %.*s is not valid for pod %.*s", DV_FMT(wanted),
                              DV_FMT(pod_name));
        return false;
    }
    *container = wanted.n > 0 ? wanted : spec->containers[0].name;
    return true;
}

/* ---- which instance ---- */

static const struct dv_api_container_status *find_in(const struct dv_api_container_status *statuses,
                                                     size_t n, dv_str name)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(statuses[i].name, name))
            return &statuses[i];
    return NULL;
}

static const struct dv_api_container_status *find_status(const struct dv_api_pod_status *status,
                                                         dv_str name)
{
    const struct dv_api_container_status *found =
        find_in(status->container_statuses, status->n_container_statuses, name);

    if (!found)
        found = find_in(status->init_container_statuses, status->n_init_container_statuses, name);
    if (!found)
        found = find_in(status->ephemeral_container_statuses,
                        status->n_ephemeral_container_statuses, name);
    return found;
}

/* Returns what a container waits for. */
static dv_str print_waiting(const struct dv_api_container_state_waiting *waiting,
                            struct dv_arena *arena)
{
    if (!waiting)
        return DV_STR("is waiting to start - no logs yet");
    if (dv_str_eq(waiting->reason, DV_STR("ErrImagePull")))
        return DV_STR("is waiting to start: image can't be pulled");
    if (dv_str_eq(waiting->reason, DV_STR("ImagePullBackOff")))
        return DV_STR("is waiting to start: trying and failing to pull image");
    return dv_str_printf(arena, "is waiting to start: %.*s", DV_FMT(waiting->reason));
}

bool dv_pod_log_instance(const struct dv_api_pod_status *status, dv_str pod_name, dv_str container,
                         bool is_previous, struct dv_arena *arena, dv_str *id, dv_str *text)
{
    const struct dv_api_container_status *found = find_status(status, container);
    const struct dv_api_container_state *state = found ? &found->state : NULL;
    dv_str last = found && found->last_state.terminated ? found->last_state.terminated->container_id
                                                        : DV_STR_NONE;
    dv_str why = DV_STR_NONE;
    dv_str instance = last;

    if (is_previous && found && last.n == 0) {
        *text =
            dv_str_printf(arena, "previous terminated container \"%.*s\" in pod \"%.*s\" not found",
                          DV_FMT(container), DV_FMT(pod_name));
        return false;
    }
    if (!found)
        why = DV_STR("is not available");
    else if (is_previous)
        instance = last;
    else if (state->running)
        instance = found->container_id;
    else if (state->terminated && state->terminated->container_id.n > 0)
        instance = state->terminated->container_id;
    else if (last.n == 0) /* the next instance has not begun, or never will */
        why = state->terminated || found->last_state.terminated
                  ? DV_STR("is terminated")
                  : print_waiting(state->waiting, arena);
    if (why.n > 0)
        *text = dv_str_printf(arena, "container \"%.*s\" in pod \"%.*s\" %.*s", DV_FMT(container),
                              DV_FMT(pod_name), DV_FMT(why));
    else
        *id = instance;
    return why.n == 0;
}
