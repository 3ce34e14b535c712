/* test_probe.h - a watcher and what it tells, for its tests. */
#ifndef DV_PLUGIN_TEST_PROBE_H
#define DV_PLUGIN_TEST_PROBE_H

#include <stdbool.h>

#include "base/buf.h"
#include "plugin/watcher.h"

struct node;

/* A watcher, and what it tells. */
struct probe {
    struct node *node;
    struct dv_plugin_watcher *watcher;
    struct dv_plugin_watcher_owner owner;
    struct dv_buf told; /* "+a.sock -a.sock " */
    int n_found;
    int n_lost;
    int refuse; /* the next so many that are found */
    int n_closed;
};

void probe_open(struct probe *probe, struct node *node);
void probe_start(struct probe *probe, struct node *node); /* and waits until it has scanned */
void probe_end(struct probe *probe);
/* What happens in the file system has been heard of when this returns. */
void probe_settle(struct probe *probe);
bool probe_has_scanned(void *probe);
/* Since it was last asked, after all has settled. */
void assert_told(struct probe *probe, const char *told);
const char *path_of(const struct probe *probe, const char *name);

#endif
