/* dra_driver.h - a DRA driver on the test's own loop. It prepares a device for each claim. */
#ifndef DV_TESTS_DRA_DRIVER_H
#define DV_TESTS_DRA_DRIVER_H

#include <stdbool.h>

#include "base/map.h"
#include "claim/claim_manager.h"
#include "loop/loop.h"
#include "plugin/plugin.h"

struct dv_arena;

struct dra_driver {
    /* To be set before it starts, or later: how it behaves. */
    const char *cdi_id; /* of each device */
    const char *device; /* of pool "pool"; NULL: "dev" */
    bool refuses;       /* to prepare */
    bool keeps;         /* refuses to unprepare */
    bool holds;         /* does not answer */

    struct dv_loop *loop;
    struct dv_server *server; /* NULL: it does not run */
    const char *name;
    char path[128];
    struct dv_arena *arena;
    struct dv_map prepared; /* uids of claims */
    int n_prepare;          /* calls */
    int n_unprepare;
    int n_registered;
    struct dv_plugin_info info;
    struct dv_plugin_registration registration;
};

/* Serves on <dir>/<name>.sock; `name` is kept. */
void dra_driver_start(struct dra_driver *driver, struct dv_loop *loop, const char *dir,
                      const char *name);
/* As the plugin watcher does it; see n_registered. */
void dra_driver_register(struct dra_driver *driver, struct dv_claim_manager *claims);
/* The process ends; what it prepared stays prepared. */
void dra_driver_kill(struct dra_driver *driver);
void dra_driver_fini(struct dra_driver *driver); /* and that, too */

#endif
