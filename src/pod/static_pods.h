/* static_pods.h - the pods that the files of a folder describe: one a file, YAML or JSON, names
 * that begin with a dot left out. The folder is watched, and read every 20 seconds besides.
 *
 * Changes are told as a view of the API tells them, so that whoever runs pods need not know where
 * one comes from. A file that cannot be read, or is no pod, is told by name; other files do not
 * notice, and a pod that came from it before goes on as it was until the file is right again, or
 * removed. */
#ifndef DV_POD_STATIC_PODS_H
#define DV_POD_STATIC_PODS_H

#include <stddef.h>

#include "base/str.h"
#include "loop/loop.h"

struct dv_object;
struct dv_static_pods;

struct dv_static_pods_options {
    dv_str dir; /* kept, as is the next; need not be there yet */
    dv_str node_name;
    /* A pod came (old: NULL), went (now: NULL) or is another one. Objects are borrowed. */
    void (*changed)(void *ctx, struct dv_object *old, struct dv_object *now);
    void (*synced)(void *ctx); /* the folder was read for the first time */
    /* What is wrong with files now, a text each; after every change of that. */
    void (*faulty)(void *ctx, const dv_str *texts, size_t n_texts);
    void *ctx;
};

/* Nothing is told before this has returned. */
struct dv_static_pods *dv_static_pods_open(struct dv_loop *loop,
                                           const struct dv_static_pods_options *options);
void dv_static_pods_close(struct dv_static_pods *pods, dv_closed_fn *closed, void *ctx);

#endif
