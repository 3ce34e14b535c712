/* cri_world.h - what a cri_runtime does in answer to a call. */
#ifndef DV_TESTS_CRI_WORLD_H
#define DV_TESTS_CRI_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cri/cri.h"
#include "support/cri_runtime.h"

/* What a call comes to. */
struct cri_answer {
    struct dv_buf bytes;
    struct dv_err err;            /* code DV_OK: it went well */
    uint64_t after_ms;            /* the answer takes so long */
    struct cri_container *killed; /* when that time is over; NULL: none */
};

/* Does what the method does. `subject` is what it is about, for the record of calls. */
void cri_world_call(struct cri_runtime *runtime, enum dv_cri_method method, dv_str request,
                    bool has_odd_state, struct cri_answer *answer, char *subject, size_t size);
/* The ContainerEventResponse about the container. */
void cri_world_print_event(const struct cri_container *container, int type, struct dv_buf *buf);
/* Each is NULL when there is none. */
struct cri_sandbox *cri_world_find_sandbox(struct cri_runtime *runtime, const char *id);
struct cri_container *cri_world_find_container(struct cri_runtime *runtime, const char *id);
int64_t cri_world_now_ns(struct cri_runtime *runtime);
/* As long as a real one, and of hexadecimal digits. */
void cri_world_make_id(struct cri_runtime *runtime, char id[65], char first);
void cri_world_remove_container(struct cri_runtime *runtime, struct cri_container *container);
void cri_world_remove_sandbox(struct cri_runtime *runtime, struct cri_sandbox *sandbox);

/* Fields of an answer; what is empty or zero is left out, as proto3 has it. */
void cri_world_add_c(struct dv_buf *buf, uint32_t number, const char *text);
void cri_world_add_number(struct dv_buf *buf, uint32_t number, int64_t value);
/* An entry of a map. The types of entries differ in C, and in nothing else. */
void cri_world_add_pair(struct dv_buf *buf, uint32_t number, const char *key, const char *value);
/* The fields of PodSandbox, or of PodSandboxStatus, which differ in their numbers. */
void cri_world_add_sandbox(struct dv_buf *buf, const struct cri_sandbox *sandbox, bool is_status,
                           bool has_odd_state);
void cri_world_add_listed_container(struct dv_buf *buf, const struct cri_container *container,
                                    bool has_odd_state);
void cri_world_add_container_status(struct dv_buf *buf, const struct cri_container *container,
                                    bool has_odd_state);

void cri_world_remove_all(struct cri_runtime *runtime);
/* Tells those who read events. */
void cri_runtime_tell(struct cri_runtime *runtime, const struct cri_container *container, int type);

#endif
