/* test_device_host.h - a manager on a loop with a virtual clock, over a store in memory whose
 * writes fail on request; for the tests of this module's effects. */
#ifndef DV_DEVICE_TEST_DEVICE_HOST_H
#define DV_DEVICE_TEST_DEVICE_HOST_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "support/device_plugin.h"
#include "support/rig.h"
#include "support/test_store.h"

struct dv_device_manager;
struct dv_store;

#define GPU "vendor.io/gpu"

struct host {
    struct rig rig;   /* its directory is the kubelet's */
    char plugins[96]; /* device-plugins in it */
    struct dv_store *store;
    struct test_store_faults faults;
    struct dv_device_manager *devices; /* NULL: closed */
    int n_changed;
    struct dv_buf told; /* pods whose devices' health changed: "p0 p1 | " for each time */
};

int host_start(void **state); /* opens it, too */
int host_end(void **state);
#define host_test(f) cmocka_unit_test_setup_teardown(f, host_start, host_end)
void host_open(struct host *host);
void host_close(struct host *host);
/* Closes it and opens it again over a store in a file: what was written there by the last such one
 * is loaded. */
void host_reopen_on_disk(struct host *host);

/* Starts the plugin, registers it, and waits for its list. */
void host_add(struct host *host, struct device_plugin *plugin, const char *name,
              const char *devices);
/* Until the resource GPU is as it says: "capacity/allocatable", with a "!" behind it while its
 * plugin is gone; "removed"; "-" when it is not reported. */
void host_wait_capacity(struct host *host, const char *capacity);
const char *host_capacity(struct host *host);
void host_kill(struct host *host, struct device_plugin *plugin); /* and waits until it is missed */

/* Gives container "c" of the pod so many GPUs, which become active first. */
enum dv_code host_allocate(struct host *host, const char *pod, int64_t amount, struct dv_err *err);
enum dv_code host_start_container(struct host *host, const char *pod, int64_t amount,
                                  struct dv_err *err);
/* Takes back all that the pod holds, and waits for the write. */
enum dv_code host_release(struct host *host, const char *pod, struct dv_err *err);
/* "g0 g1"; "": nothing. */
const char *host_held(struct host *host, const char *pod);

/* Until all is written: fails when it stays in memory. Then the store has what memory has. */
void host_wait_saved(struct host *host);

#endif
