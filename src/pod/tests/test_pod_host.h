/* test_pod_host.h - the pods of a node on a loop with a virtual clock, over a device plugin in the
 * same process and a store in memory whose writes fail on request. */
#ifndef DV_POD_TEST_POD_HOST_H
#define DV_POD_TEST_POD_HOST_H

#include <stdbool.h>

#include "base/err.h"
#include "pod/pod.h"
#include "support/device_plugin.h"
#include "support/rig.h"
#include "support/test_store.h"
#include "topology/topology.h"

struct dv_store;

#define GPU "vendor.io/gpu"

/* An admission or a release that is under way, and how it ended. */
struct asked {
    struct dv_pod_admission admission;
    struct dv_pod_release release;
    int n_done;
    bool is_admitted;
    bool was_known;
    struct dv_err err; /* of what was not decided, or the text of a refusal */
    char reason[64];
};

struct host {
    struct rig rig;
    char plugins[96]; /* device-plugins in its directory */
    struct dv_store *store;
    struct test_store_faults faults;
    struct dv_device_manager *devices;
    struct dv_pods *pods;
    struct dv_numa_machine machine;
    struct dv_topology_config topology;
    struct device_plugin plugin; /* with GPUs g0 to g3 */
    int n_ended;
    int n_verdicts;
    struct dv_pod_times times; /* of the last one */
};

int host_start(void **state); /* open, the plugin is there */
int host_end(void **state);
#define host_test(f) cmocka_unit_test_setup_teardown(f, host_start, host_end)
/* All ends and begins again with an empty store. */
void host_renew(struct host *host);
/* The same over a store in a file: what the last one wrote there is loaded. */
void host_reopen_on_disk(struct host *host);
void host_close(struct host *host);

void host_kill_plugin(struct host *host);
void host_start_plugin(struct host *host);

/* Begins; wait for n_done. A pod with containers "c0", "c1", ... that want so many GPUs each; "1
 * 2". */
void host_ask(struct host *host, struct asked *asked, const char *uid, const char *amounts);
/* Like host_ask, for a pod that the caller has made. */
void host_ask_input(struct host *host, struct asked *asked, struct dv_pod_input *input);
/* Until it has ended; DV_OK when it was decided. */
enum dv_code host_admit(struct host *host, struct asked *asked, const char *uid,
                        const char *amounts);
void host_begin_release(struct host *host, struct asked *asked, const char *uid);
enum dv_code host_release(struct host *host, struct asked *asked, const char *uid);

/* "p0=g0,g1 p1=g2 " of all pods, in the order of their uids; in the test's arena. */
const char *host_pods(struct host *host);
/* The same from the store, when all is written. */
const char *host_stored(struct host *host);
/* That both are the same, and this. */
void host_check(struct host *host, const char *pods);

#endif
