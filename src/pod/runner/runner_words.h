/* runner_words.h - the last words of containers: read once from the disk when a container has
 * ended, kept while the runtime has it. */
#ifndef DV_POD_RUNNER_WORDS_H
#define DV_POD_RUNNER_WORDS_H

#include <stdbool.h>

#include "base/str.h"

struct dv_cri_pod;
struct dv_runner_pod;

/* Begins to read what containers of the view have left that were not looked at yet, and forgets
 * those that the runtime does not have any more; `view` may be NULL. False: something is being
 * read, and the pod is looked at again after that. */
bool dv_runner_words_read(struct dv_runner_pod *pod, const struct dv_cri_pod *view);
/* What the container of that id has left; empty when it has not, or has not ended. */
dv_str dv_runner_words_of(const struct dv_runner_pod *pod, dv_str id);
/* Forgets all of them. Nothing is being read. */
void dv_runner_words_clear(struct dv_runner_pod *pod);

#endif
