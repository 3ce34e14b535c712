/* failed_pods.h - where pods of a DaemonSet have failed a moment ago: the next one is deleted later
 * each time, so that a pod that cannot run does not keep its node busy. */
#ifndef DV_APPS_FAILED_PODS_H
#define DV_APPS_FAILED_PODS_H

#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"

struct dv_failed_pods {
    struct dv_map by_key;
    struct dv_list order; /* the one that failed last is at the end */
};

void dv_failed_pods_init(struct dv_failed_pods *failed);
void dv_failed_pods_fini(struct dv_failed_pods *failed);
/* One that has failed was deleted. `key` names its place and what was tried there. */
void dv_failed_pods_note(struct dv_failed_pods *failed, dv_str key, uint64_t now_ms);
/* How long the next one has to wait; 0: it need not. */
uint64_t dv_failed_pods_wait_ms(const struct dv_failed_pods *failed, dv_str key, uint64_t now_ms);

#endif
