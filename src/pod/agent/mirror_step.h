/* mirror_step.h - what is to be done next about the mirror of a static pod in the API. Pure. */
#ifndef DV_POD_MIRROR_STEP_H
#define DV_POD_MIRROR_STEP_H

#include <stdbool.h>

struct dv_mirror_facts {
    bool is_settled;  /* the pods of the API and of files are known */
    bool has_pod;     /* a static pod of that name is here, or has not gone yet */
    bool is_wanted;   /* and its file is there */
    bool is_there;    /* the API has a mirror of that name */
    bool is_same;     /* which is of this pod: it has its hash */
    bool is_deleting; /* which has a deletionTimestamp */
    bool is_writing;  /* a request about it is under way */
    bool is_pausing;  /* one has failed */
    bool has_node;    /* the Node that would own it is there */
};

enum dv_mirror_step {
    DV_MIRROR_WAIT,
    DV_MIRROR_CREATE,
    DV_MIRROR_REMOVE, /* it is nobody's, or another pod's, or somebody has deleted it */
    DV_MIRROR_FORGET, /* neither is there */
};
enum dv_mirror_step dv_mirror_next(const struct dv_mirror_facts *facts);

#endif
