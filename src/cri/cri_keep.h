/* cri_keep.h - copies statuses for the view, where they stay as long as the runtime has what they
 * are about: in one block, without what nobody looks at. */
#ifndef DV_CRI_KEEP_H
#define DV_CRI_KEEP_H

struct CriV1__ContainerStatus;
struct CriV1__PodSandboxStatus;
struct dv_arena;

/* The copy is in a new arena, which the caller owns. */
const struct CriV1__PodSandboxStatus *
dv_cri_keep_sandbox(const struct CriV1__PodSandboxStatus *status, struct dv_arena **arena);
const struct CriV1__ContainerStatus *
dv_cri_keep_container(const struct CriV1__ContainerStatus *status, struct dv_arena **arena);

#endif
