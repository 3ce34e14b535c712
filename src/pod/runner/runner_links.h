/* runner_links.h - links to the logs of containers, by which collectors find them:
 *
 *     <logs>/../containers/<pod>_<namespace>_<container>-<id>.log
 *
 * What there should be follows from the runtime's view of our pods, so that containers that were
 * there before have theirs, too. Nobody waits for a link. */
#ifndef DV_POD_RUNNER_LINKS_H
#define DV_POD_RUNNER_LINKS_H

#include <stdbool.h>

#include "base/str.h"
#include "resource/values.h"

struct dv_arena;
struct dv_runner;
struct dv_runner_links;

struct dv_runner_links *dv_runner_links_new(struct dv_runner *runner);
void dv_runner_links_free(struct dv_runner_links *links); /* nothing is under way; NULL is fine */
/* Whether links are being made. */
bool dv_runner_links_are_busy(const struct dv_runner_links *links);

/* To be called when the runtime's view of the pod has changed. */
void dv_runner_links_look(struct dv_runner_links *links, dv_str uid);
dv_str dv_runner_links_dir(const struct dv_runner_links *links);
/* The ids of all containers that the runtime has. */
struct dv_strs dv_runner_links_ids(const struct dv_runner_links *links, struct dv_arena *arena);

#endif
