#include "cri/tests/test_cri_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "pb/pb.h"
#include "proto/cri_v1.pb-c.h"
#include "support/dvtest.h"
#include "support/turns.h"

#define STEP_MS 100u
/* Enough for a call and its answer over a socket of this process. */
#define TURNS 20

static void on_state(void *ctx)
{
    struct cri_host *host = ctx;

    host->n_states++;
}

static void on_pod(void *ctx, dv_str uid)
{
    struct cri_host *host = ctx;

    host->n_told++;
    (void)snprintf(host->last_told, sizeof(host->last_told), "%.*s", DV_FMT(uid));
    if (host->closes_when_told) {
        dv_cri_close(host->cri, rig_on_closed, &host->rig);
        host->cri = NULL;
    }
}

int cri_host_set_up(void **state)
{
    struct cri_host *host = DV_ALLOC(struct cri_host);

    rig_init(&host->rig, "cri");
    cri_runtime_init(&host->runtime, host->rig.loop, host->rig.dir);
    cri_runtime_start(&host->runtime);
    *state = host;
    return 0;
}

int cri_host_tear_down(void **state)
{
    struct cri_host *host = *state;

    cri_host_close(host);
    cri_runtime_stop(&host->runtime);
    loop_turns(host->rig.loop, TURNS);
    cri_runtime_fini(&host->runtime);
    rig_fini(&host->rig);
    free(host);
    return 0;
}

void cri_host_begin(struct cri_host *host)
{
    const struct dv_cri_options options = {
        .path = dv_str_from_c(host->runtime.path),
        .state_changed = on_state,
        .pod_changed = on_pod,
        .ctx = host,
    };
    struct dv_err err;

    host->cri = dv_cri_open(host->rig.loop, &options, &err);
    assert_ok(host->cri, &err);
}

void cri_host_turn(struct cri_host *host, uint64_t step_ms, bool (*is_met)(struct cri_host *host))
{
    for (int i = 0; i < 10000 && !is_met(host); i++) {
        loop_turns(host->rig.loop, TURNS);
        if (!is_met(host))
            rig_advance(&host->rig, step_ms);
    }
    assert_true(is_met(host));
}

static bool is_complete(struct cri_host *host)
{
    return dv_cri_view_is_complete(host->cri);
}

void cri_host_open(struct cri_host *host)
{
    cri_host_begin(host);
    cri_host_turn(host, STEP_MS, is_complete);
}

void cri_host_close(struct cri_host *host)
{
    int n_closed = host->rig.n_closed;

    if (!host->cri)
        return;
    dv_cri_close(host->cri, rig_on_closed, &host->rig);
    host->cri = NULL;
    rig_wait_count(&host->rig, &host->rig.n_closed, n_closed + 1);
}

void cri_host_pass(struct cri_host *host, uint64_t ms)
{
    for (uint64_t passed = 0; passed < ms; passed += STEP_MS) {
        rig_advance(&host->rig, STEP_MS);
        loop_turns(host->rig.loop, TURNS);
    }
}

/* ---- calls ---- */

static void on_done(struct dv_cri_call *call, const void *answer, const struct dv_err *err)
{
    struct cri_try *attempt = DV_CONTAINER(call, struct cri_try, call);
    const CriV1__RunPodSandboxResponse *sandbox = answer;
    const CriV1__CreateContainerResponse *container = answer;

    attempt->n_done++;
    assert_true(!answer == (err != NULL));
    if (err)
        attempt->err = *err;
    else
        (void)dv_succeed(&attempt->err);
    if (!err && call->method == DV_CRI_RUN_POD_SANDBOX)
        (void)snprintf(attempt->id, sizeof(attempt->id), "%s", sandbox->pod_sandbox_id);
    if (!err && call->method == DV_CRI_CREATE_CONTAINER)
        (void)snprintf(attempt->id, sizeof(attempt->id), "%s", container->container_id);
}

void cri_try_start(struct cri_host *host, struct cri_try *attempt, enum dv_cri_method method,
                   const void *request)
{
    memset(attempt, 0, sizeof(*attempt));
    attempt->call = (struct dv_cri_call){.method = method, .done = on_done};
    dv_cri_call_start(host->cri, &attempt->call, request);
    assert_int_equal(attempt->n_done, 0);
}

void cri_try_run(struct cri_host *host, struct cri_try *attempt, enum dv_cri_method method,
                 const void *request)
{
    cri_try_start(host, attempt, method, request);
    loop_wait_count(host->rig.loop, &attempt->n_done, 1);
    loop_turns(host->rig.loop, TURNS);
    assert_int_equal(attempt->n_done, 1);
}

void cri_try_id(struct cri_host *host, struct cri_try *attempt, enum dv_cri_method method,
                const char *id)
{
    CriV1__StartContainerRequest start = CRI_V1__START_CONTAINER_REQUEST__INIT;
    CriV1__StopContainerRequest stop = CRI_V1__STOP_CONTAINER_REQUEST__INIT;
    CriV1__RemoveContainerRequest remove = CRI_V1__REMOVE_CONTAINER_REQUEST__INIT;
    CriV1__ContainerStatusRequest status = CRI_V1__CONTAINER_STATUS_REQUEST__INIT;
    CriV1__StopPodSandboxRequest stop_sandbox = CRI_V1__STOP_POD_SANDBOX_REQUEST__INIT;
    CriV1__RemovePodSandboxRequest remove_sandbox = CRI_V1__REMOVE_POD_SANDBOX_REQUEST__INIT;
    CriV1__PodSandboxStatusRequest sandbox_status = CRI_V1__POD_SANDBOX_STATUS_REQUEST__INIT;
    CriV1__ExecSyncRequest exec = CRI_V1__EXEC_SYNC_REQUEST__INIT;
    const struct {
        enum dv_cri_method method;
        const void *request;
    } rows[] = {
        {DV_CRI_START_CONTAINER,    &start         },
        {DV_CRI_STOP_CONTAINER,     &stop          },
        {DV_CRI_REMOVE_CONTAINER,   &remove        },
        {DV_CRI_CONTAINER_STATUS,   &status        },
        {DV_CRI_STOP_POD_SANDBOX,   &stop_sandbox  },
        {DV_CRI_REMOVE_POD_SANDBOX, &remove_sandbox},
        {DV_CRI_POD_SANDBOX_STATUS, &sandbox_status},
        {DV_CRI_EXEC_SYNC,          &exec          },
    };

    start.container_id = stop.container_id = remove.container_id = status.container_id = id;
    stop_sandbox.pod_sandbox_id = remove_sandbox.pod_sandbox_id = id;
    sandbox_status.pod_sandbox_id = exec.container_id = id;
    for (size_t i = 0; i < DV_COUNT(rows); i++)
        if (rows[i].method == method) {
            cri_try_run(host, attempt, method, rows[i].request);
            return;
        }
    fail_msg("%s has no row", dv_cri_method_name(method));
}

void cri_host_sandbox(struct cri_host *host, struct cri_try *attempt, const char *pod,
                      unsigned number)
{
    char uid[72];
    CriV1__PodSandboxMetadata metadata = CRI_V1__POD_SANDBOX_METADATA__INIT;
    CriV1__PodSandboxConfig__LabelsEntry *label;
    CriV1__PodSandboxConfig config = CRI_V1__POD_SANDBOX_CONFIG__INIT;
    CriV1__RunPodSandboxRequest request = CRI_V1__RUN_POD_SANDBOX_REQUEST__INIT;

    (void)snprintf(uid, sizeof(uid), "uid-%s", pod);
    metadata.name = pod;
    metadata.uid = uid;
    metadata.namespace_ = "default";
    metadata.attempt = number;
    label = dv_pb_entry_new(&cri_v1__pod_sandbox_config__labels_entry__descriptor,
                            DV_CRI_LABEL_POD_UID, uid, host->rig.arena);
    config.metadata = &metadata;
    config.labels = &label;
    config.n_labels = 1;
    request.config = &config;
    cri_try_run(host, attempt, DV_CRI_RUN_POD_SANDBOX, &request);
}

void cri_host_container(struct cri_host *host, struct cri_try *attempt, const char *sandbox,
                        const char *pod, const char *name, const char *command)
{
    char uid[72];
    char first[64];
    char second[64] = "";
    const char *words[] = {first, second};
    CriV1__ContainerMetadata metadata = CRI_V1__CONTAINER_METADATA__INIT;
    CriV1__ImageSpec image = CRI_V1__IMAGE_SPEC__INIT;
    CriV1__ContainerConfig__LabelsEntry *label;
    CriV1__ContainerConfig config = CRI_V1__CONTAINER_CONFIG__INIT;
    CriV1__CreateContainerRequest request = CRI_V1__CREATE_CONTAINER_REQUEST__INIT;
    struct cri_try start;

    (void)snprintf(uid, sizeof(uid), "uid-%s", pod);
    config.n_command = (size_t)sscanf(command, "%63s %63s", first, second);
    config.command = words;
    metadata.name = name;
    image.image = "busybox";
    label = dv_pb_entry_new(&cri_v1__container_config__labels_entry__descriptor,
                            DV_CRI_LABEL_POD_UID, uid, host->rig.arena);
    config.metadata = &metadata;
    config.image = &image;
    config.labels = &label;
    config.n_labels = 1;
    request.pod_sandbox_id = sandbox;
    request.config = &config;
    cri_try_run(host, attempt, DV_CRI_CREATE_CONTAINER, &request);
    if (attempt->err.code != DV_OK)
        return;
    cri_try_id(host, &start, DV_CRI_START_CONTAINER, attempt->id);
    attempt->err = start.err;
}
