#include "serve/kubelet/node_command.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "cri/cri.h"
#include "pod/runner.h"
#include "proto/cri_v1.pb-c.h"
#include "resource/resource.h"
#include "rest/rest.h"
#include "serve/kubelet/node_route.h"
#include "serve/kubelet/node_target.h"

/* A command that takes longer is for /exec, whose client can be seen to leave. */
#define COMMAND_S 600
/* The limit of both outputs together; an answer of the runtime is shorter. */
#define OUTPUT_BYTES_MAX (32u << 20)

/* A command that runs; in the arena of the call. */
struct run {
    struct dv_link link;
    struct dv_rest_call *call;
    dv_str command; /* as it was sent */
    struct dv_cri_call cri;
};

static void reply_text(struct dv_rest_call *call, unsigned status, dv_str text)
{
    dv_rest_call_add_field(call, DV_STR("Content-Type"), DV_STR("text/plain"));
    dv_rest_call_reply(call, status, text);
}

static void reply_output(struct run *run, const CriV1__ExecSyncResponse *response)
{
    const dv_str out = {(const char *)response->stdout.data, response->stdout.len};
    const dv_str err = {(const char *)response->stderr.data, response->stderr.len};
    DV_CLEANUP(dv_buf_fini) struct dv_buf body;
    unsigned status = 200;

    dv_buf_init(&body, OUTPUT_BYTES_MAX);
    if (response->exit_code == 0) {
        dv_buf_add(&body, out);
    } else {
        status = 500;
        dv_buf_printf(&body, "command '%.*s' exited with %d: ", DV_FMT(run->command),
                      response->exit_code);
    }
    dv_buf_add(&body, err);
    dv_rest_call_add_field(run->call, DV_STR("Content-Type"), DV_STR("text/plain"));
    dv_rest_call_reply_buf(run->call, status, &body);
}

static void on_ended(struct dv_cri_call *cri, const void *answer, const struct dv_err *err)
{
    struct run *run = DV_CONTAINER(cri, struct run, cri);

    dv_link_remove(&run->link);
    if (err)
        reply_text(run->call, err->code == DV_CANCELLED ? 503 : 500, dv_str_from_c(err->msg));
    else
        reply_output(run, answer);
}

/* The words of a command stand between single blanks, as in the reference: there are no quotes.
 * False: there is none. */
static bool read_command(struct run *run, dv_str query, struct dv_arena *arena,
                         CriV1__ExecSyncRequest *exec)
{
    DV_VEC(const char *) words = {0};
    dv_str rest;
    dv_str word;

    if (!dv_rest_query_get(query, DV_STR("cmd"), arena, &run->command) || run->command.n == 0)
        return false;
    rest = run->command;
    while (dv_str_split(&rest, ' ', &word))
        *dv_vec_add_in(&words, arena) = dv_str_to_c(word, arena);
    exec->cmd = words.v;
    exec->n_cmd = words.n;
    return true;
}

/* Returns the id of the pod's running container of that name; NULL: there is none. */
static const char *find_container(const struct dv_cri *cri, const struct dv_node_target *target)
{
    const struct dv_cri_pod *pod = dv_cri_view_pod(cri, target->pod->meta->uid);

    for (size_t i = 0; pod && i < pod->n_containers; i++) {
        const CriV1__ContainerStatus *container = pod->containers[i];

        if (container->state == CRI_V1__CONTAINER_STATE__CONTAINER_RUNNING &&
            dv_str_eq(dv_str_from_c(container->metadata->name), target->container))
            return container->id;
    }
    return NULL;
}

void dv_node_commands_answer(struct dv_node_commands *commands, const struct dv_agent *agent,
                             const struct dv_runner *runner, const struct dv_node_route *route,
                             struct dv_rest_call *call, const struct dv_rest_request *request)
{
    struct dv_arena *arena = dv_rest_call_arena(call);
    struct dv_cri *cri = runner ? dv_runner_cri(runner) : NULL;
    CriV1__ExecSyncRequest exec = CRI_V1__EXEC_SYNC_REQUEST__INIT;
    struct run *run = DV_NEW(arena, struct run);
    struct dv_node_target target;

    if (!read_command(run, request->query, arena, &exec)) {
        reply_text(call, 400, DV_STR("query parameter \"cmd\" must be a command"));
        return;
    }
    if (!dv_node_target_find(agent, route, 1, &target)) {
        reply_text(call, 404, DV_STR("pod does not exist"));
        return;
    }
    if (!cri) {
        reply_text(call, 503, DV_STR("no container runtime runs pods on this node"));
        return;
    }
    exec.container_id = find_container(cri, &target);
    if (!exec.container_id) {
        reply_text(
            call, 500,
            dv_str_printf(arena, "container not found (\"%.*s\")", DV_FMT(target.container)));
        return;
    }
    exec.timeout = COMMAND_S;
    run->call = call;
    run->cri = (struct dv_cri_call){.method = DV_CRI_EXEC_SYNC, .done = on_ended};
    dv_list_push(&commands->all, &run->link);
    dv_cri_call_start(cri, &run->cri, &exec.base);
}

void dv_node_commands_init(struct dv_node_commands *commands)
{
    dv_list_init(&commands->all);
}

void dv_node_commands_stop(struct dv_node_commands *commands)
{
    struct dv_link *link;

    while ((link = dv_list_shift(&commands->all)) != NULL)
        dv_cri_call_cancel(&DV_CONTAINER(link, struct run, link)->cri);
}
