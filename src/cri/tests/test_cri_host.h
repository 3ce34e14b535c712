/* test_cri_host.h - a dv_cri on a rig, with a runtime that runs nothing. */
#ifndef DV_TEST_CRI_HOST_H
#define DV_TEST_CRI_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "cri/cri.h"
#include "support/cri_runtime.h"
#include "support/rig.h"

struct cri_host {
    struct rig rig;
    struct cri_runtime runtime;
    struct dv_cri *cri;
    int n_states; /* how often state_changed ran */
    int n_told;   /* how often pod_changed ran */
    char last_told[128];
    bool closes_when_told; /* pod_changed closes it */
};

/* The runtime serves and is not connected yet; `cri` is NULL. */
int cri_host_set_up(void **state);
int cri_host_tear_down(void **state);

/* Begins to connect. */
void cri_host_begin(struct cri_host *host);
/* Connects, and waits until everything is known. */
void cri_host_open(struct cri_host *host);
void cri_host_close(struct cri_host *host);
/* Waits until it is so, turning the clock by `step_ms` again and again. */
void cri_host_turn(struct cri_host *host, uint64_t step_ms, bool (*is_met)(struct cri_host *host));
/* Turns the clock by that in steps of 100 ms, and lets answers arrive meanwhile. */
void cri_host_pass(struct cri_host *host, uint64_t ms);

/* A call and how it ended. */
struct cri_try {
    struct dv_cri_call call;
    int n_done;
    struct dv_err err; /* code DV_OK: it went well */
    char id[65];       /* of what RunPodSandbox or CreateContainer made */
};

void cri_try_start(struct cri_host *host, struct cri_try *attempt, enum dv_cri_method method,
                   const void *request);
/* Starts it and waits for its end. */
void cri_try_run(struct cri_host *host, struct cri_try *attempt, enum dv_cri_method method,
                 const void *request);
/* Starts a call about the sandbox or container `id`, such as StopContainer, and waits. */
void cri_try_id(struct cri_host *host, struct cri_try *attempt, enum dv_cri_method method,
                const char *id);

/* Runs a sandbox for the pod, whose uid is its name with "uid-" in front; its id is in `attempt`.
 */
void cri_host_sandbox(struct cri_host *host, struct cri_try *attempt, const char *pod,
                      unsigned number);
/* Makes a container in that sandbox and starts it. `command` has one or two words. */
void cri_host_container(struct cri_host *host, struct cri_try *attempt, const char *sandbox,
                        const char *pod, const char *name, const char *command);

#endif
